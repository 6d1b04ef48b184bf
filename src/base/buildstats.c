/*
 * buildstats.c
 *	  Which index builds were taken over, which were not, and where their time went.
 *
 * Builds are rare, and each one takes its time, so they are counted in shared memory
 * as they end; nothing is kept in the backend.  The counters are atomics that are
 * only added to; pg_stat_lookahead_reset() stores zeros.
 *
 * A build that fails is not counted.
 *
 * src/base/buildstats.c
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "port/atomics.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "base/buildstats.h"
#include "base/compat.h"

typedef enum Counter
{
	BUILDS,
	PARALLEL_BUILDS,
	SPILLED_BUILDS,
	INDEX_ROWS,
	SCAN_TIME,					/* from here on microseconds */
	SORT_TIME,
	LOAD_TIME
} Counter;

#define NUM_COUNTERS (LOAD_TIME + 1)

static const char *const outcome_names[LA_NUM_BUILD_OUTCOMES] = {
	"built",
	"left: too many values",
	"left: parallel",
	"left: long values",
	"left: comparison",
	"left: expressions"
};

typedef struct SharedBuildStats
{
	pg_atomic_uint64 counters[LA_NUM_BUILD_OUTCOMES][NUM_COUNTERS];
} SharedBuildStats;

static SharedBuildStats *shared = NULL;

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_stat_get_lookahead_index_build(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_stat_get_lookahead_index_build);

/*
 * Shared memory is stats.c's: these are called where it asks for it and sets it up.
 */
Size
la_build_stats_shmem_size(void)
{
	return MAXALIGN(sizeof(SharedBuildStats));
}

void
la_build_stats_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pg_lookahead index builds",
							 sizeof(SharedBuildStats), &found);
	if (found)
		return;
	for (int o = 0; o < LA_NUM_BUILD_OUTCOMES; o++)
		for (int i = 0; i < NUM_COUNTERS; i++)
			pg_atomic_init_u64(&shared->counters[o][i], 0);
}

static void
add(LaBuildOutcome outcome, Counter counter, int64 value)
{
	if (value > 0)
		pg_atomic_fetch_add_u64(&shared->counters[outcome][counter], value);
}

/*
 * A build has ended, or was left to the server: then there are no figures.
 */
void
la_build_stats_add(LaBuildOutcome outcome, const LaBuildFigures *figures)
{
	if (shared == NULL)
		return;
	add(outcome, BUILDS, 1);
	if (figures == NULL)
		return;
	add(outcome, PARALLEL_BUILDS, figures->parallel);
	add(outcome, SPILLED_BUILDS, figures->spilled);
	add(outcome, INDEX_ROWS, figures->rows);
	add(outcome, SCAN_TIME, figures->scan_time);
	add(outcome, SORT_TIME, figures->sort_time);
	add(outcome, LOAD_TIME, figures->load_time);
}

void
la_build_stats_reset(void)
{
	for (int o = 0; o < LA_NUM_BUILD_OUTCOMES; o++)
		for (int i = 0; i < NUM_COUNTERS; i++)
			pg_atomic_write_u64(&shared->counters[o][i], 0);
}

/*
 * The rows of pg_stat_lookahead_index_build.  Times are milliseconds.
 */
Datum
pg_stat_get_lookahead_index_build(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	if (shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_lookahead must be loaded via \"shared_preload_libraries\""),
				 errhint("Set \"shared_preload_libraries = 'pg_lookahead'\" and restart the server.")));
	InitMaterializedSRF(fcinfo, 0);

	for (int o = 0; o < LA_NUM_BUILD_OUTCOMES; o++)
	{
		Datum		values[NUM_COUNTERS + 1];
		bool		nulls[NUM_COUNTERS + 1] = {0};
		int			n = 0;

		values[n++] = CStringGetTextDatum(outcome_names[o]);
		for (int i = 0; i < NUM_COUNTERS; i++)
		{
			int64		value = (int64) pg_atomic_read_u64(&shared->counters[o][i]);

			if (i < SCAN_TIME)
				values[n++] = Int64GetDatum(value);
			else
				values[n++] = Float8GetDatum(value / 1000.0);
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
