/*
 * buildstats.c
 *	  Cumulative statistics of index builds, by pg_lookahead and by the server.
 *
 * Builds are rare and long, so each one is counted in shared memory as it ends, without
 * counts pending in the backend.  A build that fails is not counted.
 *
 * The counters are atomic variables without a lock, like those of stats.c.
 *
 * src/base/buildstats.c
 */
#include "postgres.h"

#include "funcapi.h"
#include "port/atomics.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "base/base.h"

typedef enum Counter
{
	BUILDS,
	PARALLEL_BUILDS,
	SPILLED_BUILDS,
	INDEX_ENTRIES,
	SCAN_TIME,					/* this and the next ones in microseconds */
	SORT_TIME,
	LOAD_TIME
} Counter;

#define NUM_COUNTERS (LOAD_TIME + 1)
#define NUM_COLUMNS	(NUM_COUNTERS + 2)	/* status and reason */

/* Why the server builds an index; NULL where pg_lookahead does. */
static const char *const reasons[LA_NUM_BUILD_OUTCOMES] = {
	[LA_LEFT_MANY_VALUES] = "too many different values",
	[LA_LEFT_PARALLEL] = "too many parallel workers",
	[LA_LEFT_LONG_KEYS] = "long values are compressed",
	[LA_LEFT_COMPARISON] = "comparison function is not built in",
	[LA_LEFT_EXPRESSIONS] = "functions might be called more often",
};

typedef struct SharedBuildStats
{
	pg_atomic_uint64 counters[LA_NUM_BUILD_OUTCOMES][NUM_COUNTERS];
} SharedBuildStats;

static SharedBuildStats *shared = NULL;

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_stat_get_lookahead_index_build_1_0(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_stat_get_lookahead_index_build_1_0);

void
la_build_stats_init(void)
{
	la_shmem_register("pg_lookahead index builds", sizeof(SharedBuildStats), NULL,
					  (void **) &shared);
}

static void
add(LaBuildOutcome outcome, Counter counter, int64 value)
{
	if (value > 0)
		pg_atomic_fetch_add_u64(&shared->counters[outcome][counter], value);
}

/* Count a build.  There are no figures of one that is left to the server. */
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
	add(outcome, INDEX_ENTRIES, figures->rows);
	add(outcome, SCAN_TIME, figures->scan_time);
	add(outcome, SORT_TIME, figures->sort_time);
	add(outcome, LOAD_TIME, figures->load_time);
}

void
la_build_stats_reset(void)
{
	la_shmem_reset_counters(shared, sizeof(SharedBuildStats));
}

/* The rows of pg_stat_lookahead_index_build. */
Datum
pg_stat_get_lookahead_index_build_1_0(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	la_shmem_require();
	InitMaterializedSRF(fcinfo, 0);

	for (int o = 0; o < LA_NUM_BUILD_OUTCOMES; o++)
	{
		const char *reason = reasons[o];
		Datum		values[NUM_COLUMNS];
		bool		nulls[NUM_COLUMNS] = {0};
		int			n = 0;

		values[n++] = CStringGetTextDatum(reason == NULL ? "built" : "left to the server");
		for (int i = 0; i < NUM_COUNTERS; i++)
		{
			int64		value = (int64) pg_atomic_read_u64(&shared->counters[o][i]);

			if (i < SCAN_TIME)
				values[n++] = Int64GetDatum(value);
			else
				values[n++] = Float8GetDatum(value / 1000.0);	/* milliseconds */
		}
		nulls[n] = reason == NULL;
		values[n] = reason == NULL ? (Datum) 0 : CStringGetTextDatum(reason);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
