/*
 * applystats.c
 *	  Figures of apply workers, in shared memory: written by them, read by sessions.
 *
 * Each worker that applies changes takes a place, and gives it back when it ends.  All figures are
 * atomic variables with one writer, so that nobody takes a lock.  Reads are counted by rows/ in
 * the worker's own memory, as long as it knows the tables; what was counted before is kept here.
 *
 * src/replay/applystats.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "replication/logicallauncher.h"
#include "storage/ipc.h"

#include "base/base.h"
#include "replay/replay_int.h"

/* Of the counters of reads, those that are shown. */
static const LaCounter shown_reads[] = {
	LA_BLOCKS_FORESEEN, LA_BLOCKS_ISSUED, LA_BLOCKS_CACHED, LA_BLOCKS_ON_TIME, LA_BLOCKS_LATE,
	LA_BLOCKS_WASTED
};

static const LaCounter shown_times[] = {LA_WAIT_NS, LA_SAVED_NS};

static const char *const state_names[] = {
	[LA_APPLY_OFF] = "off",
	[LA_APPLY_PASSIVE] = "passive",
	[LA_APPLY_OBSERVING] = "observing",
	[LA_APPLY_AHEAD] = "ahead",
};

static const char *const reason_names[LA_APPLY_NUM_REASONS] = {
	[LA_APPLY_KNOWN] = NULL,
	[LA_APPLY_NO_RELATION] = "the publisher has not described the table",
	[LA_APPLY_NOT_SYNCHRONIZED] = "the table is not synchronized yet",
	[LA_APPLY_NO_TABLE] = "there is no such table",
	[LA_APPLY_NOT_HEAP] = "the table is not an ordinary one",
	[LA_APPLY_NO_IDENTITY] = "no btree index finds the row",
	[LA_APPLY_NO_INDEX] = "no index of the table can be searched early",
	[LA_APPLY_NO_PARTITION] = "the partition is not known",
	[LA_APPLY_NO_VALUE] = "a value cannot be read early",
	[LA_APPLY_TABLE_LOCKED] = "the table is locked, or being changed",
	[LA_APPLY_TOO_MANY] = "there are too many tables at a time",
	[LA_APPLY_DAMAGED] = "the message is not understood",
	[LA_APPLY_FAILED] = "looking ahead has failed",
};

/*
 * What a worker shows.  It alone writes its place, and each figure is shown by itself, in whatever
 * order others see them: for a moment, a new worker beside what the last one there has counted.
 */
typedef struct Place
{
	pg_atomic_uint64 pid;		/* 0: free */
	pg_atomic_uint64 subscription;
	pg_atomic_uint64 state;
	pg_atomic_uint64 reason;
	pg_atomic_uint64 c[LA_APPLY_NUM_COUNTERS];
	pg_atomic_uint64 reads[LA_NUM_SHARED_COUNTERS];
} Place;

static Place *places = NULL;	/* max_logical_replication_workers */
static Place *own = NULL;		/* of this worker */
static uint64 kept[LA_NUM_SHARED_COUNTERS]; /* of tables that were forgotten */

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_stat_get_lookahead_apply(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_stat_get_lookahead_apply);

void
la_applystats_init(void)
{
	la_shmem_register("pg_lookahead apply",
					  Max(max_logical_replication_workers, 1) * sizeof(Place), NULL,
					  (void **) &places);
}

static void
give_back(int code, Datum arg)
{
	pg_atomic_write_u64(&own->pid, 0);
	own = NULL;
}

/* This process applies the changes of a subscription. */
void
la_applystats_begin(Oid subscription)
{
	for (int n = 0; places != NULL && own == NULL && n < max_logical_replication_workers; n++)
	{
		Place	   *place = &places[n];
		uint64		nobody = 0;

		if (!pg_atomic_compare_exchange_u64(&place->pid, &nobody, (uint64) MyProcPid))
			continue;
		la_shmem_reset_counters(&place->subscription,
								sizeof(Place) - offsetof(Place, subscription));
		pg_atomic_write_u64(&place->subscription, subscription);
		own = place;
		on_shmem_exit(give_back, (Datum) 0);
	}
}

void
la_applystats_set(LaApplyCounter counter, uint64 value)
{
	if (own != NULL)
		pg_atomic_write_u64(&own->c[counter], value);
}

void
la_applystats_add(LaApplyCounter counter)
{
	if (own != NULL)
		pg_atomic_write_u64(&own->c[counter], pg_atomic_read_u64(&own->c[counter]) + 1);
}

void
la_applystats_set_state(LaApplyState state)
{
	if (own != NULL)
		pg_atomic_write_u64(&own->state, state);
}

/* Nothing is known of a change. */
void
la_applystats_leave(LaApplyReason reason)
{
	la_applystats_add(LA_APPLY_CHANGES_LEFT);
	if (own != NULL)
		pg_atomic_write_u64(&own->reason, reason);
}

void
la_applystats_set_reads(const LaCounters *counters)
{
	for (int i = 0; own != NULL && i < LA_NUM_SHARED_COUNTERS; i++)
		pg_atomic_write_u64(&own->reads[i], kept[i] + (uint64) counters->c[i]);
}

/* What counts reads is going to begin anew. */
void
la_applystats_keep_reads(void)
{
	for (int i = 0; own != NULL && i < LA_NUM_SHARED_COUNTERS; i++)
		kept[i] = pg_atomic_read_u64(&own->reads[i]);
}

/* ---- the view -------------------------------------------------------------------- */

static void
put_row(LaSqlRow *row, Place *place, int pid)
{
	la_sqlrow_put_oid(row, (Oid) pg_atomic_read_u64(&place->subscription));
	la_sqlrow_put(row, Int32GetDatum(pid));
	la_sqlrow_put_text(row, state_names[pg_atomic_read_u64(&place->state)]);
	for (int i = 0; i < LA_APPLY_NUM_COUNTERS; i++)
		la_sqlrow_put_count(row, (int64) pg_atomic_read_u64(&place->c[i]));
	la_sqlrow_put_text(row, reason_names[pg_atomic_read_u64(&place->reason)]);
	for (int i = 0; i < (int) lengthof(shown_reads); i++)
		la_sqlrow_put_count(row, (int64) pg_atomic_read_u64(&place->reads[shown_reads[i]]));
	for (int i = 0; i < (int) lengthof(shown_times); i++)
		la_sqlrow_put_milliseconds(row,
								   (int64) pg_atomic_read_u64(&place->reads[shown_times[i]]));
	la_sqlrow_end(row);
}

/* A row for each worker that applies changes. */
Datum
pg_stat_get_lookahead_apply(PG_FUNCTION_ARGS)
{
	LaSqlRow	row;

	la_shmem_require();
	la_sqlrow_begin(&row, fcinfo);
	for (int n = 0; n < max_logical_replication_workers; n++)
	{
		uint64		pid = pg_atomic_read_u64(&places[n].pid);

		if (pid != 0)
			put_row(&row, &places[n], (int) pid);
	}
	return (Datum) 0;
}
