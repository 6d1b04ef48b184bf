/*
 * guc.c
 *	  The settings of pg_lookahead.
 *
 * The settings of all rooms are in the tables below and are defined together when the
 * library is loaded; rooms only read the variables of base.h.  An index scan reads most of its
 * settings when the shim is installed, and keeps them until it ends.  explain, backend_memory,
 * nestloop_reuse_tids and tablespace_max_in_flight are read whenever they matter.
 *
 * Most settings are PGC_USERSET: look-ahead changes when a block is read, never what a
 * query returns, so any user may tune it for a session, a function or a transaction.
 * log_min_saved is PGC_SUSET as it writes statements to the server's log, and
 * tablespace_max_in_flight as it is for the sake of other sessions.  Three more
 * are, because they decide what code is trusted with, and a session's value is in
 * force in SECURITY DEFINER functions and on tables of other users, too:
 * enable_index_build and enable_btree_insert let this library write index pages;
 * additional_access_methods vouches for code that pg_lookahead does not know, which may
 * return wrong rows, or crash, if it must not be run ahead after all.
 *
 * The defaults suit storage whose random reads take 25 us or more; docs/settings.md says
 * when to change them.
 *
 * src/base/guc.c
 */
#include "postgres.h"

#include <limits.h>

#include "access/parallel.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "base/base.h"

bool		la_enable;
bool		la_enable_index_scan;
bool		la_enable_bitmap_scan;
bool		la_enable_nestloop;
bool		la_nestloop_reuse_tids;
bool		la_enable_hash_join;
bool		la_hash_huge_pages;
bool		la_enable_index_build;
bool		la_enable_btree_insert;
bool		la_enable_write;
bool		la_enable_foreign_key;
bool		la_enable_toast;
bool		la_enable_subplan;
bool		la_enable_tid_scan;
bool		la_enable_replay;
bool		la_enable_apply;
bool		la_adjust_costs;
bool		la_force;
bool		la_explain;
int			la_attach_threshold;
int			la_max_distance;
int			la_tablespace_max_in_flight;
int			la_miss_threshold;
double		la_min_read_time;
int			la_cache_prefetch_threshold;
int			la_cache_prefetch_distance;
int			la_max_leaf_pages;
int			la_scan_memory;
int			la_backend_memory;
int			la_apply_queue_size;
int			la_max_statements;
int			la_max_indexes;
bool		la_save_statistics;
int			la_log_min_saved = -1;

/* As text only; accessmethod.c keeps the lists. */
static char *excluded_access_methods = NULL;
static char *additional_access_methods = NULL;

typedef struct BoolSetting
{
	const char *name;
	bool	   *variable;
	bool		boot_value;
	GucContext	context;
	int			flags;
	const char *short_desc;
	const char *long_desc;
} BoolSetting;

typedef struct IntSetting
{
	const char *name;
	int		   *variable;
	int			boot_value;
	int			min;
	int			max;
	int			flags;
	const char *short_desc;
	const char *long_desc;
} IntSetting;

static const BoolSetting bool_settings[] = {
	{"pg_lookahead.enable", &la_enable, true, PGC_USERSET, 0,
		"Enables look-ahead.",
	"When off, every query runs as it would without pg_lookahead."},
	{"pg_lookahead.enable_index_scan", &la_enable_index_scan, true, PGC_USERSET, 0,
		"Enables look-ahead in index scans and index-only scans.",
	NULL},
	{"pg_lookahead.enable_bitmap_scan", &la_enable_bitmap_scan, true, PGC_USERSET, 0,
		"Enables look-ahead in bitmap scans.",
	"Applies to pages of GIN and btree indexes, and before PostgreSQL 18 to heap blocks."},
	{"pg_lookahead.enable_nestloop", &la_enable_nestloop, true, PGC_USERSET, 0,
		"Enables look-ahead over the outer rows of nested loops.",
	"Applies to nested loops whose inner side is scanned by a btree index or by a TID."},
	{"pg_lookahead.enable_subplan", &la_enable_subplan, true, PGC_USERSET, 0,
		"Enables look-ahead over the rows for which correlated subqueries are executed.",
	"Applies to subqueries that look up values of the row by btree indexes."},
	{"pg_lookahead.enable_tid_scan", &la_enable_tid_scan, true, PGC_USERSET, 0,
		"Enables look-ahead in scans of rows by their TIDs.",
	"Applies to lists of TIDs, as in ctid = ANY (...)."},
	{"pg_lookahead.nestloop_reuse_tids", &la_nestloop_reuse_tids, true, PGC_USERSET, 0,
		"Enables inner index scans of nested loops to reuse the TIDs found by look-ahead.",
	"When off, the inner scan searches the index again for each outer row."},
	{"pg_lookahead.enable_hash_join", &la_enable_hash_join, true, PGC_USERSET, 0,
		"Enables prefetching of hash table entries into the CPU cache in hash joins.",
	"A running statement keeps the value that it started with."},
	{"pg_lookahead.hash_join_huge_pages", &la_hash_huge_pages, true, PGC_USERSET, 0,
		"Enables the use of huge pages for large hash tables.",
	NULL},
	{"pg_lookahead.enable_index_build", &la_enable_index_build, false, PGC_SUSET, 0,
		"Enables btree index builds that sort normalized keys.",
	"The index is byte for byte the one that the server would have built."},
	{"pg_lookahead.enable_btree_insert", &la_enable_btree_insert, false, PGC_SUSET, 0,
		"Enables pg_lookahead's insert path for bulk inserts into btree indexes.",
	"All but inserting an entry into a page with free space is left to the server."},
	{"pg_lookahead.enable_write", &la_enable_write, true, PGC_USERSET, 0,
		"Enables look-ahead over the rows that INSERT, UPDATE, MERGE and COPY FROM write.",
	"Index pages that the rows will need are read before their turn."},
	{"pg_lookahead.enable_foreign_key", &la_enable_foreign_key, true, PGC_USERSET, 0,
		"Enables look-ahead over the rows whose foreign keys are checked, or acted on.",
	"Pages that the queries of the next rows will need are read before their turn."},
	{"pg_lookahead.enable_toast", &la_enable_toast, true, PGC_USERSET, 0,
		"Enables look-ahead for values that are stored out of line.",
	"Applies to rows of scans, sorts, hash joins and Gather, of COPY TO and of rewritten tables."},
	{"pg_lookahead.enable_replay", &la_enable_replay, true, PGC_SIGHUP, 0,
		"Enables recovery to choose by itself how far it reads ahead.",
	"Settings of the server that have been set are left alone."},
	{"pg_lookahead.enable_apply", &la_enable_apply, true, PGC_SIGHUP, 0,
		"Enables look-ahead over the changes that logical replication applies.",
	"Pages that the changes will need are read before their turn."},
	{"pg_lookahead.adjust_costs", &la_adjust_costs, false, PGC_USERSET, 0,
		"Enables plans by what reads cost on this storage with look-ahead.",
	"Has an effect on tables whose tablespaces have been calibrated."},
	{"pg_lookahead.force", &la_force, false, PGC_USERSET, GUC_NOT_IN_SAMPLE,
		"Forces look-ahead in every eligible plan node, for testing.",
	"Thresholds are ignored, and queries may become slower."},
	{"pg_lookahead.explain", &la_explain, true, PGC_USERSET, 0,
		"Includes look-ahead figures in the output of EXPLAIN (ANALYZE).",
	"Before PostgreSQL 18, in that of pg_lookahead_explain() only."}
};

static const IntSetting int_settings[] = {
	{"pg_lookahead.attach_threshold", &la_attach_threshold, 192, 0, 1000, 0,
		"Sets the number of index entries that a scan takes before look-ahead observes it.",
		"Applies to btree scans whose blocks are cached; one that has to read a block is "
	"observed from there on."},
	{"pg_lookahead.max_distance", &la_max_distance, 64, 1, 1024, 0,
		"Sets the maximum number of blocks that a scan reads ahead.",
	"The distance grows up to this value while the scan finds blocks that are not cached."},
	{"pg_lookahead.miss_threshold", &la_miss_threshold, 2, 0, 1000, 0,
		"Sets the number of slow reads that a scan waits for before it looks ahead.",
	"A read is slow if it takes at least \"pg_lookahead.min_read_time\"."},
	{"pg_lookahead.cache_prefetch_threshold", &la_cache_prefetch_threshold, 256, -1, 1000000, 0,
		"Sets the number of cached heap blocks that a scan visits "
		"before it prefetches them into the CPU cache.",
	"A value of -1 disables prefetching of cached blocks."},
	{"pg_lookahead.cache_prefetch_distance", &la_cache_prefetch_distance, 32, 1, 64, 0,
		"Sets the number of cached heap blocks that a scan prefetches into the CPU cache.",
	NULL},
	{"pg_lookahead.max_leaf_pages", &la_max_leaf_pages, 64, 2, 256, 0,
		"Sets the maximum number of index leaf pages that a scan keeps read ahead.",
	"Each page takes up to 22 kB of memory, or 30 kB in an index-only scan."},
	{"pg_lookahead.scan_memory", &la_scan_memory, 2048, 64, MAX_KILOBYTES, GUC_UNIT_KB,
		"Sets the maximum memory for look-ahead in one scan, or in one index of a write.",
	"A scan without memory for another index page looks less far ahead."},
	{"pg_lookahead.backend_memory", &la_backend_memory, 32768, 0, MAX_KILOBYTES, GUC_UNIT_KB,
		"Sets the maximum memory to be used for look-ahead by all scans of a backend.",
	"Scans that exceed it run without look-ahead."}
};

/*
 * The sizes of tables in shared memory have no meaning where there is none.  They are defined all
 * the same, since the configuration file may have them.
 */
static void
define_table_size(const char *name, const char *description, int *variable, int *unused,
				  int boot_value)
{
	bool		preloading = process_shared_preload_libraries_in_progress;

	DefineCustomIntVariable(name, description,
							"Those that were used least give way to others.  "
							"A value of 0 disables these statistics.",
							preloading ? variable : unused, boot_value, 0, 1000000,
							preloading ? PGC_POSTMASTER : PGC_SIGHUP, 0,
							NULL, NULL, NULL);
}

static void
define_statistics(void)
{
	/* one for each: the server expects a variable to be zero, or the default */
	static int	unused_statements;
	static int	unused_indexes;

	define_table_size("pg_lookahead.max_statements",
					  "Sets the maximum number of statements tracked by pg_lookahead.",
					  &la_max_statements, &unused_statements, 5000);
	define_table_size("pg_lookahead.max_indexes",
					  "Sets the maximum number of indexes tracked by pg_lookahead.",
					  &la_max_indexes, &unused_indexes, 2000);
	DefineCustomBoolVariable("pg_lookahead.save_statistics",
							 "Saves statistics of statements and indexes across server "
							 "shutdowns.",
							 NULL, &la_save_statistics, true, PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("pg_lookahead.log_min_saved",
							"Sets the minimum time that look-ahead must have saved in a "
							"statement for this to be logged.",
							"Zero logs all statements in which it was active; -1 none.",
							&la_log_min_saved, -1, -1, INT_MAX, PGC_SUSET, GUC_UNIT_MS,
							NULL, NULL, NULL);
}

/*
 * There is no limit without shared memory.  Whoever sets one by hand is told so, once; workers have
 * their leader's setting.
 */
static bool
check_tablespace_limit(int *newval, void **extra, GucSource source)
{
	static bool told = false;

	if (*newval > 0 && source == PGC_S_SESSION && !la_shmem_is_there() && !told &&
		!InitializingParallelWorker)
	{
		told = true;
		ereport(WARNING,
				(errmsg("\"%s\" has no effect", "pg_lookahead.tablespace_max_in_flight"),
				 errdetail("Sessions know of each other only if the server preloads the library."),
				 errhint("Add pg_lookahead to \"shared_preload_libraries\", "
						 "and restart the server.")));
	}
	return true;
}

void
la_guc_init(void)
{
	for (size_t i = 0; i < lengthof(bool_settings); i++)
	{
		const BoolSetting *s = &bool_settings[i];

		DefineCustomBoolVariable(s->name, s->short_desc, s->long_desc, s->variable,
								 s->boot_value, s->context, s->flags,
								 NULL, NULL, NULL);
	}
	for (size_t i = 0; i < lengthof(int_settings); i++)
	{
		const IntSetting *s = &int_settings[i];

		DefineCustomIntVariable(s->name, s->short_desc, s->long_desc, s->variable,
								s->boot_value, s->min, s->max, PGC_USERSET, s->flags,
								NULL, NULL, NULL);
	}
	DefineCustomRealVariable("pg_lookahead.min_read_time",
							 "Sets the time from which on a read counts as slow.",
							 "Faster reads are taken to come from the operating system's cache.",
							 &la_min_read_time, 0.025, 0.0, 1000.0,
							 PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomStringVariable("pg_lookahead.excluded_access_methods",
							   "Lists index access methods whose scans never look ahead.",
							   NULL,
							   &excluded_access_methods, "", PGC_USERSET,
							   GUC_LIST_INPUT,
							   la_am_check_excluded, la_am_assign_excluded, NULL);
	DefineCustomStringVariable("pg_lookahead.additional_access_methods",
							   "Lists index access methods that look ahead "
							   "although pg_lookahead does not know them, or their operators.",
							   "Their functions must not depend on the row "
							   "that a scan has returned last, nor their operators on settings.",
							   &additional_access_methods, "", PGC_SUSET,
							   GUC_LIST_INPUT,
							   la_am_check_additional, la_am_assign_additional, NULL);

	DefineCustomIntVariable("pg_lookahead.tablespace_max_in_flight",
							"Sets the maximum number of reads in flight of all sessions that "
							"look ahead in a tablespace.",
							"Sessions divide it.  A value of 0 means no limit.",
							&la_tablespace_max_in_flight, 0, 0, 65536,
							PGC_SUSET, 0, check_tablespace_limit, NULL, NULL);
	DefineCustomIntVariable("pg_lookahead.apply_queue_size",
							"Sets the memory for changes of logical replication that are "
							"received ahead of their turn.",
							"A change that does not fit is received in its turn.",
							&la_apply_queue_size, 4096, 64, MAX_KILOBYTES / 2,
							PGC_SIGHUP, GUC_UNIT_KB, NULL, NULL, NULL);

	define_statistics();
	MarkGUCPrefixReserved("pg_lookahead");
}
