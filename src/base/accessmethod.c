/*
 * accessmethod.c
 *	  Which index access methods may be run ahead of the executor.
 *
 * Running an access method ahead means that amgettuple has gone on to later rows when
 * the executor sees a row.  All that it left in the scan descriptor for that row is put
 * back (scan/rowqueue.c): TID, recheck flags, distances, tuples.  What it keeps
 * elsewhere is not: an access method may offer functions that tell something of the
 * row that its scan returned last, such as a score or where the match was, and these
 * would answer for a later row.  It may also count on being asked for a row only if that
 * is wanted.  Neither can be seen from outside.
 *
 * So only methods that were read and tested are run ahead: those of core, which have
 * no such functions, and those of the list below.  (pgvector and RUM compute distances
 * from the values of the row, never from the state of the scan.)  All others run
 * stock, unless a superuser vouches for them in
 * pg_lookahead.additional_access_methods.  Operator classes do not matter: GiST is
 * GiST, whoever wrote its operator class, because support functions are given all that
 * they work on.
 *
 * A method of core is known by its OID.  One of an extension is known by its handler: a C
 * function of that name, from that library, that belongs to the extension; and
 * by the version of the library, or, where the library does not tell (before
 * 18, and libraries that do not declare it), of the extension.  Its own name does not
 * matter.  A version that was not tested may do what is said above: pgvector 0.5.0 still
 * kept the index page of the row that it returned last pinned until the next.
 *
 * The answer is found once for each method and session, and again after changes of
 * pg_am or pg_proc.  Settings are asked each time, and cost nothing while they are empty.
 *
 * src/base/accessmethod.c
 */
#include "postgres.h"

#include <limits.h>

#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_am.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "base/accessmethod.h"
#include "base/compat.h"
#include "base/guc.h"

#define MAX_CACHED	16

typedef struct Version
{
	int			major;
	int			minor;
	int			patch;
} Version;

static const struct
{
	LaAccessMethod method;
	const char *handler;
	const char *library;		/* and extension: they have the same name */
	Version		oldest;			/* tested */
	Version		newest;
}			known[] = {
	{LA_AM_HNSW, "hnswhandler", "vector", {0, 5, 1}, {0, 8, INT_MAX}},
	{LA_AM_IVFFLAT, "ivfflathandler", "vector", {0, 5, 1}, {0, 8, INT_MAX}},
	{LA_AM_RUM, "rumhandler", "rum", {1, 3, 0}, {1, 3, INT_MAX}}
};

/* What was found out. */
static struct
{
	Oid			am;
	LaAccessMethod method;
}			cache[MAX_CACHED];
static int	ncached = 0;
static uint64 changes = 0;		/* of the catalogs */

static void
forget(Datum arg, int cacheid, uint32 hashvalue)
{
	ncached = 0;
	changes++;
}

/* ---- versions -------------------------------------------------------------- */

static bool
is_at_least(Version a, Version b)
{
	if (a.major != b.major)
		return a.major > b.major;
	if (a.minor != b.minor)
		return a.minor > b.minor;
	return a.patch >= b.patch;
}

/* The file's name without directory and suffix, as "vector" in "$libdir/vector". */
static bool
is_library(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash == NULL ? path : slash + 1;
	size_t		length = strlen(name);

	return strncmp(base, name, length) == 0 &&
		(base[length] == '\0' || strcmp(base + length, DLSUFFIX) == 0);
}

/* What the loaded library says of itself, or NULL. */
static char *
library_version(const char *library)
{
#ifdef LA_HAVE_MODULE_VERSIONS
	for (DynamicFileList *file = get_first_loaded_module(); file != NULL;
		 file = get_next_loaded_module(file))
	{
		const char *path;
		const char *name;
		const char *version;

		get_loaded_module_details(file, &path, &name, &version);
		if (version != NULL && is_library(path, library))
			return pstrdup(version);
	}
#endif
	return NULL;
}

/* The installed version of an extension, or NULL. */
static char *
extension_version(Oid extension)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	char	   *version = NULL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(extension));
	scan = systable_beginscan(rel, ExtensionOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		datum = heap_getattr(tuple, Anum_pg_extension_extversion,
										 RelationGetDescr(rel), &isnull);

		if (!isnull)
			version = TextDatumGetCString(datum);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return version;
}

/* Is it a version of the extension, and of its library, that was tested? */
static bool
is_tested(int which, Oid handler)
{
	Oid			extension = getExtensionOfObject(ProcedureRelationId, handler);
	char	   *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;
	char	   *text;
	Version		version = {0};

	if (name == NULL || strcmp(name, known[which].library) != 0)
		return false;
	text = library_version(known[which].library);

	if (text == NULL)
		text = extension_version(extension);
	return text !=NULL &&
				sscanf(text, "%d.%d.%d", &version.major, &version.minor, &version.patch) >= 2 &&
				is_at_least(version, known[which].oldest) &&
				is_at_least(known[which].newest, version);
}

/* ---- recognition ----------------------------------------------------------- */

static char *
text_of(HeapTuple proc, AttrNumber attribute)
{
	bool		isnull;
	Datum		datum = SysCacheGetAttr(PROCOID, proc, attribute, &isnull);

	return isnull ? pstrdup("") : TextDatumGetCString(datum);
}

static Oid
handler_of(Oid am)
{
	HeapTuple	tuple = SearchSysCache1(AMOID, ObjectIdGetDatum(am));
	Oid			handler = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		handler = ((Form_pg_am) GETSTRUCT(tuple))->amhandler;
		ReleaseSysCache(tuple);
	}
	return handler;
}

static LaAccessMethod
recognize(Oid am)
{
	Oid			handler = handler_of(am);
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(handler));
	LaAccessMethod method = LA_AM_UNKNOWN;

	if (!HeapTupleIsValid(tuple))
		return LA_AM_UNKNOWN;
	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId)
	{
		char	   *symbol = text_of(tuple, Anum_pg_proc_prosrc);
		char	   *library = text_of(tuple, Anum_pg_proc_probin);

		for (int i = 0; i < (int) lengthof(known); i++)
		{
			if (strcmp(symbol, known[i].handler) == 0 &&
				is_library(library, known[i].library) && is_tested(i, handler))
				method = known[i].method;
		}
	}
	ReleaseSysCache(tuple);
	return method;
}

/*
 * The access method, if it is one that is known.
 */
LaAccessMethod
la_am_of(Oid am)
{
	uint64		before = changes;
	LaAccessMethod method;

	switch (am)
	{
		case BTREE_AM_OID:
			return LA_AM_BTREE;
		case HASH_AM_OID:
			return LA_AM_HASH;
		case GIST_AM_OID:
			return LA_AM_GIST;
		case SPGIST_AM_OID:
			return LA_AM_SPGIST;
	}
	for (int i = 0; i < ncached; i++)
	{
		if (cache[i].am == am)
			return cache[i].method;
	}
	method = recognize(am);
	if (before == changes && ncached < MAX_CACHED)
	{
		cache[ncached].am = am;
		cache[ncached].method = method;
		ncached++;
	}
	return method;
}

/*
 * May scans of its indexes look ahead?
 */
bool
la_am_may_run_ahead(Oid am)
{
	return la_am_of(am) != LA_AM_UNKNOWN || la_am_is_added(am);
}

void
la_am_init(void)
{
	CacheRegisterSyscacheCallback(AMOID, forget, (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, forget, (Datum) 0);
}
