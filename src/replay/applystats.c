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

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "replication/logicallauncher.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "base/shmem.h"
#include "base/stats.h"
#include "replay/applystats.h"

#define COLUMNS 24

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

/* What a worker shows. */
typedef struct Place
{
	pg_atomic_uint32 pid;		/* 0: free */
	pg_atomic_uint32 subscription;
	pg_atomic_uint32 state;
	pg_atomic_uint32 reason;
	pg_atomic_uint64 c[LA_APPLY_NUM_COUNTERS];
	pg_atomic_uint64 reads[LA_NUM_SHARED_COUNTERS];
} Place;

typedef struct Shared
{
	int			nplaces;
	Place		places[FLEXIBLE_ARRAY_MEMBER];
} Shared;

static Shared *shared = NULL;
static Place *own = NULL;		/* of this worker */
static uint64 kept[LA_NUM_SHARED_COUNTERS]; /* of tables that were forgotten */

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_stat_get_lookahead_apply(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_stat_get_lookahead_apply);

static void
clear_place(Place *place)
{
	pg_atomic_write_u32(&place->state, LA_APPLY_OFF);
	pg_atomic_write_u32(&place->reason, LA_APPLY_KNOWN);
	for (int i = 0; i < LA_APPLY_NUM_COUNTERS; i++)
		pg_atomic_write_u64(&place->c[i], 0);
	for (int i = 0; i < LA_NUM_SHARED_COUNTERS; i++)
		pg_atomic_write_u64(&place->reads[i], 0);
}

static void
init_shared(void *area)
{
	Shared	   *s = area;

	s->nplaces = max_logical_replication_workers;
	for (int n = 0; n < s->nplaces; n++)
	{
		Place	   *place = &s->places[n];

		pg_atomic_init_u32(&place->pid, 0);
		pg_atomic_init_u32(&place->subscription, InvalidOid);
		pg_atomic_init_u32(&place->state, LA_APPLY_OFF);
		pg_atomic_init_u32(&place->reason, LA_APPLY_KNOWN);
		for (int i = 0; i < LA_APPLY_NUM_COUNTERS; i++)
			pg_atomic_init_u64(&place->c[i], 0);
		for (int i = 0; i < LA_NUM_SHARED_COUNTERS; i++)
			pg_atomic_init_u64(&place->reads[i], 0);
	}
}

void
la_applystats_init(void)
{
	la_shmem_register("pg_lookahead apply",
					  offsetof(Shared, places) + max_logical_replication_workers * sizeof(Place),
					  init_shared, (void **) &shared);
}

static void
give_back(int code, Datum arg)
{
	pg_atomic_write_u32(&own->pid, 0);
	own = NULL;
}

/* This process applies the changes of a subscription. */
void
la_applystats_begin(Oid subscription)
{
	for (int n = 0; shared != NULL && own == NULL && n < shared->nplaces; n++)
	{
		Place	   *place = &shared->places[n];
		uint32		nobody = 0;

		if (!pg_atomic_compare_exchange_u32(&place->pid, &nobody, (uint32) MyProcPid))
			continue;
		clear_place(place);
		pg_atomic_write_u32(&place->subscription, subscription);
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
		pg_atomic_write_u32(&own->state, state);
}

/* Nothing is known of a change. */
void
la_applystats_leave(LaApplyReason reason)
{
	la_applystats_add(LA_APPLY_CHANGES_LEFT);
	if (own != NULL)
		pg_atomic_write_u32(&own->reason, reason);
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
put_row(ReturnSetInfo *rsinfo, Place *place, uint32 pid)
{
	const char *reason = reason_names[pg_atomic_read_u32(&place->reason)];
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS] = {0};
	int			n = 0;

	values[n++] = ObjectIdGetDatum(pg_atomic_read_u32(&place->subscription));
	values[n++] = Int32GetDatum((int32) pid);
	values[n++] = CStringGetTextDatum(state_names[pg_atomic_read_u32(&place->state)]);
	for (int i = 0; i < LA_APPLY_NUM_COUNTERS; i++)
		values[n++] = Int64GetDatum((int64) pg_atomic_read_u64(&place->c[i]));
	nulls[n] = reason == NULL;
	values[n++] = reason == NULL ? (Datum) 0 : CStringGetTextDatum(reason);
	for (int i = 0; i < (int) lengthof(shown_reads); i++)
		values[n++] = Int64GetDatum((int64) pg_atomic_read_u64(&place->reads[shown_reads[i]]));
	for (int i = 0; i < (int) lengthof(shown_times); i++)
	{
		int64		ns = (int64) pg_atomic_read_u64(&place->reads[shown_times[i]]);

		values[n++] = Float8GetDatum((double) ns / LA_NS_IN_MS);
	}
	Assert(n == rsinfo->setDesc->natts && n <= COLUMNS);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* A row for each worker that applies changes. */
Datum
pg_stat_get_lookahead_apply(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	la_stats_require_shared();
	InitMaterializedSRF(fcinfo, 0);
	for (int n = 0; shared != NULL && n < shared->nplaces; n++)
	{
		uint32		pid = pg_atomic_read_u32(&shared->places[n].pid);

		if (pid != 0)
			put_row(rsinfo, &shared->places[n], pid);
	}
	return (Datum) 0;
}
