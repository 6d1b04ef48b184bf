/*
 * stats.c
 *	  Counters of look-ahead: for the server, and for the last statement.
 *
 *		room: LaCounters of one node
 *			|  la_stats_publish(), when the node's memory goes away,
 *			|  so also after an error or a cancel
 *			v
 *		pending[kind]  (this backend) ----flush----> shared->counters[kind]
 *		last[]         (this backend)                     |
 *			|                                             v
 *			v                                     pg_stat_lookahead
 *		pg_lookahead_last_statement()
 *
 * A node that must not look ahead has a reason instead of figures.  la_stats_refuse()
 * keeps it in the query's memory context; when that goes away, the reason joins the
 * figures of the node, if it has any, and else becomes a row of its own.
 *
 * Locking: none.  The shared counters are atomics that are only added to; a
 * reset stores zeros, so an addition that runs at the same moment may survive
 * it.  The view can be off by what other backends have not flushed yet: a
 * backend flushes when a node that looked ahead ends, when FLUSH_AFTER nodes
 * that did not look ahead have ended, when it reads the view, and when it
 * exits.  (Flushing each point query would make all backends write to one
 * cache line, and a point query must not pay for statistics.)
 *
 * Shared memory exists only when the library was loaded by
 * shared_preload_libraries; without it, look-ahead and the figures of the last
 * statement work, and the view says what to set.
 *
 * "Last statement" is the last message of the client that attached any node:
 * nodes that end under the same statement timestamp belong together.  A
 * statement that attaches none, such as the call of the function itself,
 * leaves the figures alone.  They are forgotten when the session is given to another
 * client (reset.c).
 *
 * src/base/stats.c
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "base/buildstats.h"
#include "base/compat.h"
#include "base/reset.h"
#include "base/stats.h"

/* Nodes ended without looking ahead before their count is made public. */
#define FLUSH_AFTER 64

/* Nodes remembered for pg_lookahead_last_statement(). */
#define MAX_LAST_NODES 256

typedef struct SharedStats
{
	pg_atomic_uint64 counters[LA_NUM_KINDS][LA_NUM_SHARED_COUNTERS];
	pg_atomic_uint64 reset_time;	/* a TimestampTz */
} SharedStats;

typedef struct NodeFigures
{
	LaKind		kind;
	Oid			heaprelid;
	Oid			indexrelid;
	const char *reason;			/* why it did not look ahead, or NULL */
	LaCounters	counters;
} NodeFigures;

/* A node that must not look ahead, while its query runs. */
typedef struct Refusal
{
	LaKind		kind;
	Oid			heaprelid;
	Oid			indexrelid;
	const char *reason;
	MemoryContextCallback callback;
} Refusal;

static const char *const kind_names[LA_NUM_KINDS] = {
	"index scan",
	"index only scan",
	"nested loop",
	"hash join"
};

static SharedStats *shared = NULL;
static int64 pending[LA_NUM_KINDS][LA_NUM_SHARED_COUNTERS];
static int	npending = 0;
static bool exit_registered = false;

static NodeFigures last[MAX_LAST_NODES];
static int	nlast = 0;
static bool last_has_reasons = false;
static TimestampTz last_statement = 0;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_stat_get_lookahead(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_stat_lookahead_reset(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_lookahead_last_statement(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_lookahead_last_statement_0_2(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_stat_get_lookahead);
PG_FUNCTION_INFO_V1(pg_stat_lookahead_reset);
PG_FUNCTION_INFO_V1(pg_lookahead_last_statement);
PG_FUNCTION_INFO_V1(pg_lookahead_last_statement_0_2);

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(MAXALIGN(sizeof(SharedStats)));
	RequestAddinShmemSpace(la_build_stats_shmem_size());
}

static void
startup_shmem(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("pg_lookahead", sizeof(SharedStats), &found);
	if (!found)
	{
		for (int k = 0; k < LA_NUM_KINDS; k++)
			for (int i = 0; i < LA_NUM_SHARED_COUNTERS; i++)
				pg_atomic_init_u64(&shared->counters[k][i], 0);
		pg_atomic_init_u64(&shared->reset_time,
						   (uint64) GetCurrentTimestamp());
	}
	la_build_stats_shmem_init();
	LWLockRelease(AddinShmemInitLock);
}

static void
forget_last(void)
{
	nlast = 0;
	last_has_reasons = false;
	last_statement = 0;
}

void
la_stats_init(void)
{
	la_reset_register(forget_last);

	/* too late to ask for shared memory when loaded by a running backend */
	if (!process_shared_preload_libraries_in_progress)
		return;

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}

static void
flush_pending(void)
{
	if (shared == NULL || npending == 0)
		return;
	for (int k = 0; k < LA_NUM_KINDS; k++)
	{
		for (int i = 0; i < LA_NUM_SHARED_COUNTERS; i++)
		{
			if (pending[k][i] != 0)
				pg_atomic_fetch_add_u64(&shared->counters[k][i],
										pending[k][i]);
			pending[k][i] = 0;
		}
	}
	npending = 0;
}

static void
flush_at_exit(int code, Datum arg)
{
	flush_pending();
}

/*
 * A query starts whose nodes may look ahead: what this backend counts from here on is to
 * be made public when it exits.
 *
 * By on_shmem_exit(), not before_shmem_exit(): it comes after the transaction that is
 * open has been aborted, and its nodes have ended.  Nor would it do to register with the
 * latter while a query starts, since PG_END_ENSURE_ERROR_CLEANUP() insists on being the
 * last who did.
 */
void
la_stats_start_backend(void)
{
	if (shared == NULL || exit_registered)
		return;
	on_shmem_exit(flush_at_exit, (Datum) 0);
	exit_registered = true;
}

/*
 * The place for what a node that ends leaves behind, NULL if there are too many nodes.
 * Figures and the reason of one node come one after the other, in any order; they go
 * to the same place.
 */
static NodeFigures *
place_of(LaKind kind, Oid heaprelid, Oid indexrelid, bool reason)
{
	TimestampTz now = GetCurrentStatementStartTimestamp();
	NodeFigures *f;

	if (now != last_statement)
	{
		nlast = 0;
		last_has_reasons = false;
		last_statement = now;
	}
	for (int i = nlast - 1; i >= 0 && (reason || last_has_reasons); i--)
	{
		f = &last[i];
		if (f->kind == kind && f->heaprelid == heaprelid &&
			f->indexrelid == indexrelid &&
			f->counters.c[LA_SCANS_ACTIVATED] == 0 &&
			(reason ? f->reason == NULL :
			 f->reason != NULL && f->counters.c[LA_SCANS_ATTACHED] == 0))
			return f;
	}
	if (nlast >= MAX_LAST_NODES)
		return NULL;
	f = &last[nlast++];
	memset(f, 0, sizeof(*f));
	f->kind = kind;
	f->heaprelid = heaprelid;
	f->indexrelid = indexrelid;
	return f;
}

/*
 * Take over the figures of a node that ends.  Must not fail: it is called
 * while memory contexts are being torn down, perhaps after an error.
 */
void
la_stats_publish(LaKind kind, Oid heaprelid, Oid indexrelid,
				 const LaCounters *counters)
{
	NodeFigures *f = place_of(kind, heaprelid, indexrelid, false);

	if (f != NULL)
		f->counters = *counters;
	if (shared == NULL)
		return;
	if (counters->c[LA_SCANS_ACTIVATED] == 0)
		pending[kind][LA_SCANS_ATTACHED] += counters->c[LA_SCANS_ATTACHED];
	else
	{
		for (int i = 0; i < LA_NUM_SHARED_COUNTERS; i++)
			pending[kind][i] += counters->c[i];
	}
	npending++;
	if (counters->c[LA_SCANS_ACTIVATED] != 0 || npending >= FLUSH_AFTER)
		flush_pending();
}

/* The memory of a refused node's query goes: as la_stats_publish(). */
static void
publish_refusal(void *arg)
{
	const Refusal *r = arg;
	NodeFigures *f = place_of(r->kind, r->heaprelid, r->indexrelid, true);

	if (f == NULL)
		return;
	f->reason = r->reason;
	last_has_reasons = true;
}

/*
 * A node does not look ahead, because it could be noticed.  The reason is a string that
 * lives for ever, and says what is in the way: "the outer side calls a volatile function".
 */
void
la_stats_refuse(EState *estate, LaKind kind, Oid heaprelid, Oid indexrelid,
				const char *reason)
{
	Refusal    *r = MemoryContextAlloc(estate->es_query_cxt, sizeof(Refusal));

	r->kind = kind;
	r->heaprelid = heaprelid;
	r->indexrelid = indexrelid;
	r->reason = reason;
	r->callback.func = publish_refusal;
	r->callback.arg = r;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, &r->callback);

	if (message_level_is_interesting(DEBUG1))
	{
		Oid			relid = OidIsValid(heaprelid) ? heaprelid : indexrelid;
		char	   *name = OidIsValid(relid) ? get_rel_name(relid) : NULL;

		if (name != NULL)
			ereport(DEBUG1,
					(errmsg_internal("pg_lookahead is not activated for %s on \"%s\": %s",
									 kind_names[kind], name, reason)));
		else
			ereport(DEBUG1,
					(errmsg_internal("pg_lookahead is not activated for %s: %s",
									 kind_names[kind], reason)));
	}
}

static void
require_shared(void)
{
	if (shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_lookahead must be loaded via \"shared_preload_libraries\""),
				 errhint("Set \"shared_preload_libraries = 'pg_lookahead'\" and restart the server; "
						 "pg_lookahead_last_statement() works without.")));
}

/*
 * The rows of pg_stat_lookahead.
 */
Datum
pg_stat_get_lookahead(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	require_shared();
	flush_pending();
	InitMaterializedSRF(fcinfo, 0);

	for (int k = 0; k < LA_NUM_KINDS; k++)
	{
		Datum		values[LA_NUM_SHARED_COUNTERS + 2];
		bool		nulls[LA_NUM_SHARED_COUNTERS + 2] = {0};
		int			n = 0;

		values[n++] = CStringGetTextDatum(kind_names[k]);
		for (int i = 0; i < LA_NUM_SHARED_COUNTERS; i++)
			values[n++] = Int64GetDatum((int64) pg_atomic_read_u64(&shared->counters[k][i]));
		values[n++] = TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&shared->reset_time));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

Datum
pg_stat_lookahead_reset(PG_FUNCTION_ARGS)
{
	require_shared();
	flush_pending();
	for (int k = 0; k < LA_NUM_KINDS; k++)
		for (int i = 0; i < LA_NUM_SHARED_COUNTERS; i++)
			pg_atomic_write_u64(&shared->counters[k][i], 0);
	la_build_stats_reset();
	pg_atomic_write_u64(&shared->reset_time, (uint64) GetCurrentTimestamp());
	PG_RETURN_VOID();
}

/*
 * One row for each node of the last statement that attached any, in the order
 * in which they ended.  The extension's 0.1.0 knows of nodes that were attached only,
 * and of no reasons.
 */
static Datum
last_statement_rows(FunctionCallInfo fcinfo, bool with_reasons)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);

	for (int row = 0; row < nlast; row++)
	{
		const NodeFigures *f = &last[row];
		const int64 *c = f->counters.c;
		Datum		values[LA_NUM_SHARED_COUNTERS + 7];
		bool		nulls[LA_NUM_SHARED_COUNTERS + 7] = {0};
		int			n = 0;

		if (!with_reasons && f->reason != NULL && c[LA_SCANS_ATTACHED] == 0)
			continue;
		values[n++] = CStringGetTextDatum(kind_names[f->kind]);
		/* a node may read several of them */
		nulls[n] = !OidIsValid(f->heaprelid);
		values[n++] = ObjectIdGetDatum(f->heaprelid);
		nulls[n] = !OidIsValid(f->indexrelid);
		values[n++] = ObjectIdGetDatum(f->indexrelid);
		for (int i = 0; i < LA_NUM_SHARED_COUNTERS; i++)
			values[n++] = Int64GetDatum(c[i]);
		if (c[LA_DISTANCE_SAMPLES] == 0)
			nulls[n++] = true;
		else
			values[n++] = Float8GetDatum((double) c[LA_DISTANCE_SUM] /
										 c[LA_DISTANCE_SAMPLES]);
		values[n++] = Int64GetDatum(c[LA_DISTANCE_MAX]);
		values[n++] = Int64GetDatum(c[LA_DISTANCE_CAPACITY]);
		if (with_reasons && f->reason != NULL)
			values[n++] = CStringGetTextDatum(f->reason);
		else if (with_reasons)
			nulls[n++] = true;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

Datum
pg_lookahead_last_statement(PG_FUNCTION_ARGS)
{
	return last_statement_rows(fcinfo, false);
}

Datum
pg_lookahead_last_statement_0_2(PG_FUNCTION_ARGS)
{
	return last_statement_rows(fcinfo, true);
}
