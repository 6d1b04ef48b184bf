/*
 * minor.c
 *	  Which rooms may work in the minor release that is running.
 *
 * The server loads a library that was built for any minor release of its major version,
 * which suits most extensions, since minor releases keep the server's interfaces.  The
 * rooms rely on more: on the order in which nodes and access methods do things, on
 * private state that they take over and give back, and on the meaning of structures.
 * A bug fix in a minor release may change any of that.
 *
 * For each minor release whose sources were available, minor_table.h has a number per
 * room, computed from the definitions in the server's sources that the room relies on
 * (dev/fingerprint).  A room is installed if the library was built for the release that is
 * running, known or not; otherwise if both releases are in the table and their numbers for
 * the room are equal.  Else the server works as without the room, and a WARNING is raised:
 * once in the server's log if the library is preloaded, otherwise once in each session that
 * loads it.
 * Parallel workers, which load what their leader has loaded, raise none.
 *
 * Betas and release candidates have the number of the first release of their major
 * version.  They are distinguished by name, and must have the same one.
 *
 * Settings, views and functions do not depend on this.  pg_lookahead_library() tells of it.
 *
 * src/base/minor.c
 */
#include "postgres.h"

#include "access/parallel.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/guc.h"

#include "base/base.h"
#include "base/compat.h"

typedef struct LaMinor
{
	int			version;		/* as in server_version_num */
	uint32		numbers[LA_NUM_ROOMS];
} LaMinor;

#include "base/minor_table.h"

static const char *const room_names[LA_NUM_ROOMS] = {
	[LA_ROOM_SCAN] = "index scans",
	[LA_ROOM_NESTLOOP] = "nested loops",
	[LA_ROOM_HASHJOIN] = "hash joins",
	[LA_ROOM_INDEXBUILD] = "index builds",
	[LA_ROOM_WRITE] = "writes",
	[LA_ROOM_BITMAP] = "bitmap scans",
	[LA_ROOM_TOAST] = "values out of line",
};

static bool allowed[LA_NUM_ROOMS];

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_lookahead_library(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_lookahead_library);

static const LaMinor *
find_minor(int version)
{
	for (int i = 0; i < (int) lengthof(minors); i++)
	{
		if (minors[i].version == version)
			return &minors[i];
	}
	return NULL;
}

static char *
version_text(int version)
{
	return psprintf("%d.%d", version / 10000, version % 10000);
}

/* A release's name, such as "19beta1", without what packagers append after a space. */
static char *
release_name(const char *version)
{
	return pnstrdup(version, strcspn(version, " "));
}

/* The rooms that are not allowed, as a list for messages. */
static char *
rooms_text(void)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int room = 0; room < LA_NUM_ROOMS; room++)
	{
		if (!allowed[room])
			appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "",
							 room_names[room]);
	}
	return text.data;
}

static void
warn(const char *built, const char *running, bool known)
{
	ereport(WARNING,
			(errmsg("pg_lookahead was built for PostgreSQL %s, and this is PostgreSQL %s",
					built, running),
			 known ?
			 errdetail("Look-ahead stays off where what it relies on differs "
					   "between the two: %s.",
					   rooms_text()) :
			 errdetail("Look-ahead stays off, since it is not known whether "
					   "what it relies on is the same in both: %s.",
					   rooms_text()),
			 errhint("Build pg_lookahead again for this server, and install it.")));
}

static char *
running_name(void)
{
	return release_name(GetConfigOption("server_version", false, false));
}

/* Compare the release of the headers with the running one. */
void
la_minor_init(void)
{
	int			built = LA_BUILT_VERSION_NUM;
	int			running = LA_RUNNING_VERSION_NUM;
	char	   *built_name = release_name(LA_BUILT_VERSION);
	const LaMinor *from = find_minor(built);
	const LaMinor *to = find_minor(running);
	bool		same = built == running &&
		(running % 10000 > 0 || strcmp(built_name, running_name()) == 0);
	bool		known = built != running && from != NULL && to != NULL;
	bool		all = true;

	for (int room = 0; room < LA_NUM_ROOMS; room++)
	{
		allowed[room] = same ||
			(known && from->numbers[room] == to->numbers[room]);
		all &= allowed[room];
	}
	if (all || IsParallelWorker())
		return;
	if (built == running)
		warn(built_name, running_name(), known);
	else
		warn(version_text(built), version_text(running), known);
}

bool
la_minor_allows(LaRoom room)
{
	return allowed[room];
}

/* The two releases, and the rooms that are not allowed. */
Datum
pg_lookahead_library(PG_FUNCTION_ARGS)
{
	int			built = LA_BUILT_VERSION_NUM;
	int			running = LA_RUNNING_VERSION_NUM;
	ArrayType  *disabled = construct_empty_array(TEXTOID);
	ArrayBuildState *rooms = NULL;
	LaSqlRow	row = {0};

	for (int room = 0; room < LA_NUM_ROOMS; room++)
	{
		if (!allowed[room])
			rooms = accumArrayResult(rooms, CStringGetTextDatum(room_names[room]), false,
									 TEXTOID, CurrentMemoryContext);
	}
	la_sqlrow_put_text(&row, built == running ? release_name(LA_BUILT_VERSION) :
					   version_text(built));
	la_sqlrow_put_text(&row, built == running ? running_name() : version_text(running));
	la_sqlrow_put(&row, rooms == NULL ? PointerGetDatum(disabled) :
				  makeArrayResult(rooms, CurrentMemoryContext));
	return la_sqlrow_datum(&row, fcinfo);
}
