/*
 * accessmethod.c
 *	  Which index access methods may be run ahead of the executor.
 *
 * An access method is run ahead when its amgettuple has gone on to later rows by the time
 * the executor processes a row.  The rooms then restore what it left in the scan
 * descriptor for that row: TID, recheck flags, distances, tuples (scan/rowqueue.c).  What
 * it keeps elsewhere they cannot restore.  It may offer functions about the row that its scan
 * returned last, such as a score or the position of the match, which would answer for a
 * later row; or it may rely on being called only for rows that are needed.  Neither can be
 * seen from outside.
 *
 * So an access method is run ahead only if its code has been reviewed and tested: those
 * of core, which offer no such functions, and those in the table "known".  (pgvector and
 * RUM compute distances from the values of the row, not from the state of the scan.)  All
 * others run as without pg_lookahead, unless a superuser vouches for them in
 * pg_lookahead.additional_access_methods.  What operator classes call early is judged by
 * attach/gate.c, unless it is of the same library, or the access method is listed there, too, which
 * one of core may be.
 *
 * An access method of core is identified by its OID; one of an extension by its handler, a C
 * function of a given name in a given library that belongs to the extension, and by the
 * version of the library or, where the library does not declare one (always before
 * PostgreSQL 18), of the extension.  Its name does not matter.  Versions outside the tested
 * range are refused: pgvector 0.5.0, for example, kept a pin on the index page of the row
 * that it returned last.
 *
 * The result is cached per session until pg_am or pg_proc changes.  The names in settings
 * are compared each time, because a setting outlives the access methods of a database; that
 * costs nothing while the settings are empty.
 *
 * src/base/accessmethod.c
 */
#include "postgres.h"

#include <limits.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_am.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "base/base.h"
#include "base/compat.h"

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
	const char *library;		/* the extension has the same name */
	Version		oldest;			/* tested versions */
	Version		newest;
}			known[] = {
	{LA_AM_HNSW, "hnswhandler", "vector", {0, 5, 1}, {0, 8, INT_MAX}},
	{LA_AM_IVFFLAT, "ivfflathandler", "vector", {0, 5, 1}, {0, 8, INT_MAX}},
	{LA_AM_RUM, "rumhandler", "rum", {1, 3, 0}, {1, 3, INT_MAX}}
};

static struct
{
	Oid			am;
	LaAccessMethod method;
}			cache[MAX_CACHED];
static int	ncached = 0;
static uint64 invalidations = 0;

/* The lists of the settings, as check_list() stores them, or NULL. */
static const char *excluded_names = NULL;
static const char *additional_names = NULL;

static void
invalidate_cache(Datum arg, int cacheid, uint32 hashvalue)
{
	ncached = 0;
	invalidations++;
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

/* Is it the path of that library, as "$libdir/vector" is of "vector"? */
static bool
is_library(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash == NULL ? path : slash + 1;
	size_t		length = strlen(name);

	return strncmp(base, name, length) == 0 &&
		(base[length] == '\0' || strcmp(base + length, DLSUFFIX) == 0);
}

/* The version that the loaded library declares in its magic block, or NULL. */
#ifdef LA_HAVE_MODULE_VERSIONS
static char *
library_version(const char *library)
{
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
	return NULL;
}
#else
#define library_version(library)	((char *) NULL)
#endif

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

/* Does the handler belong to a tested version of the extension? */
static bool
is_tested(int which, Oid handler)
{
	Oid			extension = getExtensionOfObject(ProcedureRelationId, handler);
	char	   *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;
	char	   *declared;
	Version		version = {0};

	if (name == NULL || strcmp(name, known[which].library) != 0)
		return false;
	declared = library_version(known[which].library);
	if (declared == NULL)
		declared = extension_version(extension);
	if (declared == NULL ||
		sscanf(declared, "%d.%d.%d", &version.major, &version.minor, &version.patch) < 2)
		return false;
	return is_at_least(version, known[which].oldest) &&
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

static LaAccessMethod
recognize(Oid am)
{
	HeapTuple	tuple = SearchSysCache1(AMOID, ObjectIdGetDatum(am));
	LaAccessMethod method = LA_AM_UNKNOWN;
	Oid			handler;

	if (!HeapTupleIsValid(tuple))
		return LA_AM_UNKNOWN;
	handler = ((Form_pg_am) GETSTRUCT(tuple))->amhandler;
	ReleaseSysCache(tuple);

	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(handler));
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

/* Is the function in the library of this access method, which is one of "known"? */
bool
la_am_has_function(Oid am, Oid function)
{
	LaAccessMethod method = la_am_of(am);
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		found = false;

	if (!HeapTupleIsValid(tuple))
		return false;
	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId)
	{
		char	   *library = text_of(tuple, Anum_pg_proc_probin);

		for (int i = 0; i < (int) lengthof(known); i++)
			found |= known[i].method == method && is_library(library, known[i].library);
		pfree(library);
	}
	ReleaseSysCache(tuple);
	return found;
}

/* What is_tested() reads, and by which indexes. */
static const Oid catalogs[] = {
	DependRelationId, DependDependerIndexId, ExtensionRelationId, ExtensionOidIndexId
};

/*
 * Identify an access method.  Nothing is cached if the cache was invalidated meanwhile, or if
 * somebody else has a catalog locked: then it is not known for now.
 */
LaAccessMethod
la_am_of(Oid am)
{
	uint64		before = invalidations;
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
	if (!la_lock_catalogs_at_once(catalogs, lengthof(catalogs)))
		return LA_AM_UNKNOWN;
	method = recognize(am);
	la_lock_release_catalogs(catalogs, lengthof(catalogs));
	if (before == invalidations && ncached < MAX_CACHED)
	{
		cache[ncached].am = am;
		cache[ncached].method = method;
		ncached++;
	}
	return method;
}

/* ---- settings -------------------------------------------------------------- */

/*
 * A name that no index access method of this database has is accepted, because the access
 * method may be created later, or exist in another database.  As it may also be misspelt, a
 * WARNING is raised.
 */
static void
warn_of_unknown_name(const char *setting, const char *name)
{
	HeapTuple	tuple = SearchSysCache1(AMNAME, CStringGetDatum(name));

	if (!HeapTupleIsValid(tuple))
		ereport(WARNING,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("access method \"%s\" does not exist", name),
				 errdetail("The name has no effect in \"%s\".", setting)));
	else if (((Form_pg_am) GETSTRUCT(tuple))->amtype != AMTYPE_INDEX)
		ereport(WARNING,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("access method \"%s\" is not an index access method", name),
				 errdetail("The name has no effect in \"%s\".", setting)));
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
}

/*
 * Check a list of identifiers.  Its "extra" is the names, unquoted and case-folded, one
 * after the other, each with its terminating zero byte, and an empty name at the end.  Names
 * are looked up only if this session's user sets the value and catalogs can be read.
 */
static bool
check_list(const char *setting, char **newval, void **extra, GucSource source)
{
	bool		warn = source >= PGC_S_INTERACTIVE && IsTransactionState() &&
		OidIsValid(MyDatabaseId) && !InitializingParallelWorker;
	char	   *copy = pstrdup(*newval);
	List	   *names = NIL;
	char	   *end;
	ListCell   *lc;

	if (!SplitIdentifierString(copy, ',', &names))
	{
		GUC_check_errdetail("List syntax is invalid.");
		pfree(copy);
		list_free(names);
		return false;
	}
	/* a name and its zero byte take no more than the name and its comma did */
	end = *extra = la_guc_alloc(strlen(*newval) + 2);
	foreach(lc, names)
	{
		if (end == NULL)
			break;
		if (warn)
			warn_of_unknown_name(setting, lfirst(lc));
		strcpy(end, lfirst(lc));
		end += strlen(end) + 1;
	}
	if (end != NULL)
		*end = '\0';
	pfree(copy);
	list_free(names);
	return end != NULL;
}

bool
la_am_check_excluded(char **newval, void **extra, GucSource source)
{
	return check_list("pg_lookahead.excluded_access_methods", newval, extra, source);
}

void
la_am_assign_excluded(const char *newval, void *extra)
{
	excluded_names = extra;
}

bool
la_am_check_additional(char **newval, void **extra, GucSource source)
{
	return check_list("pg_lookahead.additional_access_methods", newval, extra, source);
}

void
la_am_assign_additional(const char *newval, void *extra)
{
	additional_names = extra;
}

static bool
is_listed(const char *names, Oid am)
{
	char	   *name;
	bool		found = false;

	if (names == NULL || names[0] == '\0')
		return false;
	name = get_am_name(am);
	if (name == NULL)
		return false;
	for (; names[0] != '\0' && !found; names += strlen(names) + 1)
		found = strcmp(names, name) == 0;
	pfree(name);
	return found;
}

bool
la_am_is_excluded(Oid am)
{
	return is_listed(excluded_names, am);
}

/* Does a superuser vouch for what its operator classes call? */
bool
la_am_is_vouched_for(Oid am)
{
	return is_listed(additional_names, am);
}

bool
la_am_may_run_ahead(Oid am)
{
	return la_am_of(am) != LA_AM_UNKNOWN || la_am_is_vouched_for(am);
}

void
la_am_init(void)
{
	CacheRegisterSyscacheCallback(AMOID, invalidate_cache, (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, invalidate_cache, (Datum) 0);
}
