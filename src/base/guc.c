/*
 * guc.c
 *	  The settings of pg_lookahead.
 *
 * All of them but one are PGC_USERSET: look-ahead changes when a block is read, never
 * what a query returns, so any user may tune it for a session, a function or
 * a transaction.  The exception is additional_access_methods.  It vouches for code
 * that we do not know, which may return wrong rows if it is run ahead, or crash; and
 * what a session sets holds inside SECURITY DEFINER functions, policies and foreign key
 * checks of others, too.  So it takes a superuser, or the privilege to set it.  The defaults are for storage whose random read takes some
 * 50 us and more; README tells when to change them.
 *
 * A running scan reads its settings when it is attached (see
 * scan/scan.c) and keeps them until it ends.
 *
 * src/base/guc.c
 */
#include "postgres.h"

#include <limits.h>

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/guc.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "base/compat.h"
#include "base/guc.h"

bool		la_enable = true;
bool		la_enable_index_scan = true;
bool		la_enable_nestloop = true;
bool		la_nestloop_reuse_tids = true;
bool		la_enable_hash_join = true;
bool		la_hash_huge_pages = true;
bool		la_enable_index_build = false;
bool		la_enable_btree_insert = false;
bool		la_force = false;
bool		la_explain = true;
int			la_attach_threshold = 8;
int			la_max_distance = 64;
int			la_miss_threshold = 2;
double		la_min_read_time = 0.025;
int			la_cache_prefetch_threshold = 256;
int			la_cache_prefetch_distance = 32;
int			la_max_leaf_pages = 64;
int			la_scan_memory = 2048;
int			la_backend_memory = 32768;

static char *excluded_access_methods = NULL;
static char *additional_access_methods = NULL;

/* The same, taken apart: see check_names(). */
static const char *excluded_names = NULL;
static const char *additional_names = NULL;

static void
define_bool(const char *name, const char *brief, const char *detail,
			bool *variable, bool boot, int flags)
{
	DefineCustomBoolVariable(name, brief, detail, variable, boot,
							 PGC_USERSET, flags, NULL, NULL, NULL);
}

static void
define_int(const char *name, const char *brief, const char *detail,
		   int *variable, int boot, int min, int max, int flags)
{
	DefineCustomIntVariable(name, brief, detail, variable, boot, min, max,
							PGC_USERSET, flags, NULL, NULL, NULL);
}

/*
 * A name that no access method has is likely to be misspelt.  It is accepted with a
 * WARNING: the method may be created later, or exist in another database.  Nobody
 * is told who did not set it in this session; nor can catalogs be read outside of a
 * transaction.
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
 * A list of access methods: what is kept of it are the names, one after the other, behind
 * the last of them an empty one.
 */
static bool
check_names(const char *setting, char **newval, void **extra, GucSource source)
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
	/* each is followed by a comma at least, or by the end */
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

static bool
check_excluded(char **newval, void **extra, GucSource source)
{
	return check_names("pg_lookahead.excluded_access_methods", newval, extra, source);
}

static void
assign_excluded(const char *newval, void *extra)
{
	excluded_names = extra;
}

static bool
check_additional(char **newval, void **extra, GucSource source)
{
	return check_names("pg_lookahead.additional_access_methods", newval, extra, source);
}

static void
assign_additional(const char *newval, void *extra)
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

/*
 * Is look-ahead to leave indexes of this access method alone?
 */
bool
la_am_is_excluded(Oid am)
{
	return is_listed(excluded_names, am);
}

/*
 * ... or not, although the access method is not known?
 */
bool
la_am_is_added(Oid am)
{
	return is_listed(additional_names, am);
}

void
la_guc_init(void)
{
	define_bool("pg_lookahead.enable",
				"Enables look-ahead.",
				"When off, every query runs exactly as without pg_lookahead.",
				&la_enable, true, 0);
	define_bool("pg_lookahead.enable_index_scan",
				"Enables look-ahead in index and index-only scans.",
				NULL,
				&la_enable_index_scan, true, 0);
	define_bool("pg_lookahead.enable_nestloop",
				"Enables look-ahead over the outer rows of nested loops.",
				"Applies to nested loops whose inner side is a btree index scan.",
				&la_enable_nestloop, true, 0);
	define_bool("pg_lookahead.nestloop_reuse",
				"Lets inner index scans use what was found when looking ahead.",
				"When off, the inner scan searches the index again for each outer row.",
				&la_nestloop_reuse_tids, true, 0);
	define_bool("pg_lookahead.enable_hash_join",
				"Lets hash joins fetch what they look up into the CPU's cache.",
				"A statement that runs keeps what it started with.",
				&la_enable_hash_join, true, 0);
	define_bool("pg_lookahead.hash_join_huge_pages",
				"Asks for huge pages for large hash tables.",
				NULL,
				&la_hash_huge_pages, true, 0);
	define_bool("pg_lookahead.enable_index_build",
				"Lets btree indexes be built by a sort of normalized keys.",
				"The index is byte for byte the one that the server would have built.",
				&la_enable_index_build, false, 0);
	define_bool("pg_lookahead.enable_btree_insert",
				"Lets statements that insert many rows insert in btree indexes by themselves.",
				"Whatever is more than putting an entry on a page with room for it is left to the server.",
				&la_enable_btree_insert, false, 0);
	define_bool("pg_lookahead.force",
				"Makes every eligible node look ahead at once, for tests.",
				"All thresholds and gates are ignored; queries may become slower.",
				&la_force, false, GUC_NOT_IN_SAMPLE);
	define_bool("pg_lookahead.explain",
				"Prints look-ahead under a scan node in EXPLAIN (ANALYZE).",
				"Has an effect on PostgreSQL 18 and later only.",
				&la_explain, true, 0);
	define_int("pg_lookahead.attach_delay",
			   "Sets the number of cached rows that a short scan returns before it is attached.",
			   "Applies to btree scans without filter and LIMIT; "
			   "a scan that has to read a block is attached at once.",
			   &la_attach_threshold, 8, 0, 1000, 0);
	define_int("pg_lookahead.max_distance",
			   "Sets the maximum number of blocks that a scan reads ahead.",
			   "The scan ramps up to it while it finds blocks that are not cached.",
			   &la_max_distance, 64, 1, 1024, 0);
	define_int("pg_lookahead.miss_threshold",
			   "Sets the number of slow reads a scan must wait for before it looks ahead.",
			   "A read is slow when it takes at least pg_lookahead.min_read_time.",
			   &la_miss_threshold, 2, 0, 1000, 0);
	DefineCustomRealVariable("pg_lookahead.min_read_time",
							 "Sets the time from which a read counts as a wait worth avoiding.",
							 "Faster reads are taken to come from the operating system's cache. "
							 "If this value is specified without units, it is taken as milliseconds.",
							 &la_min_read_time, 0.025, 0.0, 1000.0,
							 PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	define_int("pg_lookahead.memory_threshold",
			   "Sets the number of cached heap blocks a scan visits before it looks ahead in memory.",
			   "-1 disables look-ahead in scans whose blocks are all cached.",
			   &la_cache_prefetch_threshold, 256, -1, 1000000, 0);
	define_int("pg_lookahead.memory_distance",
			   "Sets the number of cached heap blocks that a scan touches ahead.",
			   NULL,
			   &la_cache_prefetch_distance, 32, 1, 64, 0);
	define_int("pg_lookahead.max_leaf_batches",
			   "Sets the maximum number of index leaf pages that a scan keeps read ahead.",
			   "Each one takes up to about 22 kB of memory, or 30 kB in an index-only scan.",
			   &la_max_leaf_pages, 64, 2, 256, 0);
	define_int("pg_lookahead.scan_memory",
			   "Sets the memory that one scan may use to look ahead.",
			   "A scan that has no room for another index page looks less far ahead.",
			   &la_scan_memory, 2048, 64, MAX_KILOBYTES, GUC_UNIT_KB);
	define_int("pg_lookahead.backend_memory",
			   "Sets the memory that all scans of a backend together may use to look ahead.",
			   "Scans that find no room run as if look-ahead were off.",
			   &la_backend_memory, 32768, 0, MAX_KILOBYTES, GUC_UNIT_KB);
	DefineCustomStringVariable("pg_lookahead.excluded_access_methods",
							   "Lists index access methods whose scans never look ahead.",
							   NULL,
							   &excluded_access_methods, "", PGC_USERSET,
							   GUC_LIST_INPUT, check_excluded, assign_excluded, NULL);
	DefineCustomStringVariable("pg_lookahead.additional_access_methods",
							   "Lists index access methods that look ahead although pg_lookahead does not know them.",
							   "Their functions must not depend on the row that a scan has returned last.",
							   &additional_access_methods, "", PGC_SUSET,
							   GUC_LIST_INPUT, check_additional, assign_additional, NULL);

	MarkGUCPrefixReserved("pg_lookahead");
}
