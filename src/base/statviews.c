/*
 * statviews.c
 *	  The SQL functions of the statistics of statements and indexes.
 *
 * Rows are of copies of the entries, each taken at another moment.  Of the statements of other
 * users, the identifier is shown to members of pg_read_all_stats only, as in pg_stat_statements.
 *
 * src/base/statviews.c
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"

#include "base/base.h"
#include "base/base_int.h"

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_stat_get_lookahead_statements(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_stat_get_lookahead_indexes(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_stat_get_lookahead_info(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_stat_lookahead_statements_reset(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_stat_get_lookahead_statements);
PG_FUNCTION_INFO_V1(pg_stat_get_lookahead_indexes);
PG_FUNCTION_INFO_V1(pg_stat_get_lookahead_info);
PG_FUNCTION_INFO_V1(pg_stat_lookahead_statements_reset);

/* The counters that statements and indexes have in common, in the order of the views. */
static void
put_blocks(LaSqlRow *row, const LaStatSums *sums)
{
	static const LaCounter shown[] = {
		LA_SCANS_ACTIVATED, LA_BLOCKS_FORESEEN, LA_BLOCKS_ISSUED, LA_BLOCKS_CACHED,
		LA_BLOCKS_SKIPPED_RECENT, LA_BLOCKS_SKIPPED_SEQUENTIAL, LA_BLOCKS_ON_TIME,
		LA_BLOCKS_LATE, LA_BLOCKS_WASTED, LA_BLOCKS_EVICTED, LA_BLOCKS_NOT_STARTED,
		LA_ENTRIES_KILLED, LA_LEAF_PAGES_ISSUED
	};

	for (int i = 0; i < (int) lengthof(shown); i++)
		la_sqlrow_put_count(row, sums->c[shown[i]]);
}

static void
put_times(LaSqlRow *row, const LaStatSums *sums)
{
	for (int i = LA_WAIT_NS; i <= LA_SAVED_ERROR_NS; i++)
		la_sqlrow_put_milliseconds(row, sums->c[i]);
}

static Datum
names_of_reasons(uint64 reasons)
{
	const char *names[LA_MAX_REASONS];
	Datum		elements[LA_MAX_REASONS];
	int			n = la_stattable_reason_names(reasons, names, LA_MAX_REASONS);

	for (int i = 0; i < n; i++)
		elements[i] = CStringGetTextDatum(names[i]);
	return PointerGetDatum(construct_array(elements, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/* The rows of pg_stat_lookahead_statements. */
Datum
pg_stat_get_lookahead_statements(PG_FUNCTION_ARGS)
{
	bool		reads_all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	LaStatEntry *entries;
	int			nentries;
	LaSqlRow	row;

	la_shmem_require();
	la_sqlrow_begin(&row, fcinfo);
	nentries = la_stattable_copy(LA_STAT_STATEMENTS, true, &entries);
	for (int i = 0; i < nentries; i++)
	{
		const LaStatEntry *e = &entries[i];
		bool		hidden = !reads_all && e->key.userid != GetUserId();

		la_sqlrow_put_oid(&row, e->key.userid);
		la_sqlrow_put_oid(&row, e->key.dbid);
		la_sqlrow_put_unless(&row, hidden, BoolGetDatum(e->key.toplevel));
		la_sqlrow_put_unless(&row, hidden, Int64GetDatum(e->key.queryid));
		la_sqlrow_put_count(&row, e->sums.executions);
		put_blocks(&row, &e->sums);
		la_sqlrow_put_count(&row, e->sums.blocks_read);
		la_sqlrow_put_milliseconds(&row, e->sums.read_ns);
		put_times(&row, &e->sums);
		la_sqlrow_put(&row, names_of_reasons(e->sums.reasons));
		la_sqlrow_put_time(&row, e->since);
		la_sqlrow_end(&row);
	}
	return (Datum) 0;
}

/* The rows below pg_stat_lookahead_indexes, of all databases. */
Datum
pg_stat_get_lookahead_indexes(PG_FUNCTION_ARGS)
{
	LaStatEntry *entries;
	int			nentries;
	LaSqlRow	row;

	la_shmem_require();
	la_sqlrow_begin(&row, fcinfo);
	nentries = la_stattable_copy(LA_STAT_INDEXES, true, &entries);
	for (int i = 0; i < nentries; i++)
	{
		const LaStatEntry *e = &entries[i];

		la_sqlrow_put_oid(&row, e->key.dbid);
		la_sqlrow_put_oid(&row, e->key.heaprelid);
		la_sqlrow_put_oid(&row, e->key.indexrelid);
		put_blocks(&row, &e->sums);
		put_times(&row, &e->sums);
		la_sqlrow_put_time(&row, e->since);
		la_sqlrow_end(&row);
	}
	return (Datum) 0;
}

/* The row of pg_stat_lookahead_info. */
Datum
pg_stat_get_lookahead_info(PG_FUNCTION_ARGS)
{
	LaSqlRow	row;

	la_shmem_require();
	la_sqlrow_begin(&row, fcinfo);
	for (int t = 0; t < LA_NUM_STAT_TABLES; t++)
	{
		LaStatTableInfo info = la_stattable_info((LaStatTable) t);

		la_sqlrow_put_count(&row, info.entries);
		la_sqlrow_put_count(&row, info.max_entries);
		la_sqlrow_put_count(&row, info.deallocated);
	}
	la_sqlrow_put_time(&row, la_stats_reset_time());
	la_sqlrow_end(&row);
	return (Datum) 0;
}

/* Zero and null mean any. */
static bool
matches(const LaStatKey *key, void *arg)
{
	const LaStatKey *wanted = arg;

	return (wanted->userid == 0 || wanted->userid == key->userid) &&
		(wanted->dbid == 0 || wanted->dbid == key->dbid) &&
		(wanted->queryid == 0 || wanted->queryid == key->queryid);
}

Datum
pg_stat_lookahead_statements_reset(PG_FUNCTION_ARGS)
{
	LaStatKey	wanted = {0};

	la_shmem_require();
	wanted.userid = PG_GETARG_OID(0);
	wanted.dbid = PG_GETARG_OID(1);
	wanted.queryid = PG_GETARG_INT64(2);
	if (wanted.userid == 0 && wanted.dbid == 0 && wanted.queryid == 0)
		la_stattable_reset(LA_STAT_STATEMENTS, NULL, NULL);
	else
		la_stattable_reset(LA_STAT_STATEMENTS, matches, &wanted);
	PG_RETURN_VOID();
}
