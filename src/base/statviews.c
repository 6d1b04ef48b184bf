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
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "base/stats.h"
#include "base/stattable.h"

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_stat_get_lookahead_statements(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_stat_get_lookahead_indexes(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_stat_get_lookahead_info(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_stat_lookahead_statements_reset(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_stat_get_lookahead_statements);
PG_FUNCTION_INFO_V1(pg_stat_get_lookahead_indexes);
PG_FUNCTION_INFO_V1(pg_stat_get_lookahead_info);
PG_FUNCTION_INFO_V1(pg_stat_lookahead_statements_reset);

static Datum
milliseconds(int64 ns)
{
	return Float8GetDatum((double) ns / LA_NS_IN_MS);
}

/* The counters that statements and indexes have in common, in the order of the views. */
static int
put_blocks(Datum *values, int n, const LaStatSums *sums)
{
	static const LaCounter shown[] = {
		LA_SCANS_ACTIVATED, LA_BLOCKS_FORESEEN, LA_BLOCKS_ISSUED, LA_BLOCKS_CACHED,
		LA_BLOCKS_SKIPPED_RECENT, LA_BLOCKS_SKIPPED_SEQUENTIAL, LA_BLOCKS_ON_TIME,
		LA_BLOCKS_LATE, LA_BLOCKS_WASTED, LA_BLOCKS_EVICTED, LA_BLOCKS_NOT_STARTED,
		LA_ENTRIES_KILLED, LA_LEAF_PAGES_ISSUED
	};

	for (int i = 0; i < (int) lengthof(shown); i++)
		values[n++] = Int64GetDatum(sums->c[shown[i]]);
	return n;
}

static int
put_times(Datum *values, int n, const LaStatSums *sums)
{
	values[n++] = milliseconds(sums->c[LA_WAIT_NS]);
	values[n++] = milliseconds(sums->c[LA_SAVED_NS]);
	values[n++] = milliseconds(sums->c[LA_SAVED_ERROR_NS]);
	return n;
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

#define STATEMENT_COLUMNS	25
#define INDEX_COLUMNS		20

/* The rows of pg_stat_lookahead_statements. */
Datum
pg_stat_get_lookahead_statements(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		reads_all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	LaStatEntry *entries;
	int			nentries;

	la_stats_require_shared();
	InitMaterializedSRF(fcinfo, 0);
	nentries = la_stattable_copy(LA_STAT_STATEMENTS, true, &entries);
	for (int i = 0; i < nentries; i++)
	{
		const LaStatEntry *e = &entries[i];
		Datum		values[STATEMENT_COLUMNS];
		bool		nulls[STATEMENT_COLUMNS] = {0};
		bool		hidden = !reads_all && e->key.userid != GetUserId();
		int			n = 0;

		values[n++] = ObjectIdGetDatum(e->key.userid);
		values[n++] = ObjectIdGetDatum(e->key.dbid);
		nulls[n] = hidden;
		values[n++] = BoolGetDatum(e->key.toplevel);
		nulls[n] = hidden;
		values[n++] = Int64GetDatum(e->key.queryid);
		values[n++] = Int64GetDatum(e->sums.executions);
		n = put_blocks(values, n, &e->sums);
		values[n++] = Int64GetDatum(e->sums.blocks_read);
		values[n++] = milliseconds(e->sums.read_ns);
		n = put_times(values, n, &e->sums);
		values[n++] = names_of_reasons(e->sums.reasons);
		values[n++] = TimestampTzGetDatum(e->since);
		Assert(n == STATEMENT_COLUMNS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* The rows below pg_stat_lookahead_indexes, of all databases. */
Datum
pg_stat_get_lookahead_indexes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	LaStatEntry *entries;
	int			nentries;

	la_stats_require_shared();
	InitMaterializedSRF(fcinfo, 0);
	nentries = la_stattable_copy(LA_STAT_INDEXES, true, &entries);
	for (int i = 0; i < nentries; i++)
	{
		const LaStatEntry *e = &entries[i];
		Datum		values[INDEX_COLUMNS];
		bool		nulls[INDEX_COLUMNS] = {0};
		int			n = 0;

		values[n++] = ObjectIdGetDatum(e->key.dbid);
		values[n++] = ObjectIdGetDatum(e->key.heaprelid);
		nulls[n] = !OidIsValid(e->key.indexrelid);
		values[n++] = ObjectIdGetDatum(e->key.indexrelid);
		n = put_blocks(values, n, &e->sums);
		n = put_times(values, n, &e->sums);
		values[n++] = TimestampTzGetDatum(e->since);
		Assert(n == INDEX_COLUMNS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* The row of pg_stat_lookahead_info. */
Datum
pg_stat_get_lookahead_info(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		values[3 * LA_NUM_STAT_TABLES + 1];
	bool		nulls[3 * LA_NUM_STAT_TABLES + 1] = {0};
	int			n = 0;

	la_stats_require_shared();
	InitMaterializedSRF(fcinfo, 0);
	for (int t = 0; t < LA_NUM_STAT_TABLES; t++)
	{
		LaStatTableInfo info = la_stattable_info((LaStatTable) t);

		values[n++] = Int64GetDatum(info.entries);
		values[n++] = Int64GetDatum(info.max_entries);
		values[n++] = Int64GetDatum(info.deallocated);
	}
	values[n++] = TimestampTzGetDatum(la_stats_reset_time());
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
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

	la_stats_require_shared();
	wanted.userid = PG_GETARG_OID(0);
	wanted.dbid = PG_GETARG_OID(1);
	wanted.queryid = PG_GETARG_INT64(2);
	if (wanted.userid == 0 && wanted.dbid == 0 && wanted.queryid == 0)
		la_stattable_reset(LA_STAT_STATEMENTS, NULL, NULL);
	else
		la_stattable_reset(LA_STAT_STATEMENTS, matches, &wanted);
	PG_RETURN_VOID();
}
