/*
 * stats.c
 *	  Cumulative statistics of the server, and those of a session's last statement.
 *
 *		LaCounters of a node
 *			|  la_stats_publish(), from a callback of the node's memory context:
 *			|  so also after an error
 *			+---------------------> last_nodes[] --> pg_lookahead_last_statement()
 *			+---------------------> statements.c, by statement and by index
 *			v
 *		pending[kind] (backend) --flush_pending()--> shared->counters[kind]
 *														  |
 *														  v
 *												  pg_stat_lookahead
 *
 * A node that must not look ahead has a reason in place of counters.  la_stats_refuse()
 * keeps it in the query's memory context; when that is reset, the reason joins the
 * counters of the node if it has any, and is an entry of its own otherwise.
 *
 * The last statement is the last message from the client that attached a node: entries
 * belong to it while the statement timestamp stays the same.  A statement that attaches
 * none, such as the call of the function itself, does not change the entries.  They are
 * discarded when the session is reset for another client (utility.c).
 *
 * Locking: the shared counters and reset_time are atomic variables without a lock (shmem.c).
 * Backends only add to counters, and read each one atomically, so a row of the view is not
 * a snapshot: its counters may be of different moments.  A reset stores zeros one by one,
 * and may miss what is added at the same time.  pending[] and last_nodes[] are local to
 * the backend.
 *
 * A backend flushes pending[] when a node that looked ahead ends, when FLUSH_AFTER
 * other nodes have ended, when it reads or resets the view, and when it exits.  (If each
 * point query flushed, all backends would write to the same cache lines.)
 *
 * There is shared memory only if the library is loaded by shared_preload_libraries.
 * Otherwise the view and its reset raise an error, and everything else works.
 *
 * src/base/stats.c
 */
#include "postgres.h"

#include "access/xact.h"
#include "funcapi.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "base/base.h"
#include "base/base_int.h"

/* Nodes that end without having looked ahead between two flushes. */
#define FLUSH_AFTER 64

/* Nodes remembered for pg_lookahead_last_statement(). */
#define MAX_LAST_NODES 256

typedef struct SharedStats
{
	pg_atomic_uint64 counters[LA_NUM_KINDS][LA_NUM_SHARED_COUNTERS];
	pg_atomic_uint64 reset_time;	/* a TimestampTz */
} SharedStats;

/* What identifies a node after its execution. */
typedef struct NodeIdentity
{
	LaKind		kind;
	Oid			heaprelid;
	Oid			indexrelid;
} NodeIdentity;

/* A row of pg_lookahead_last_statement(). */
typedef struct NodeStats
{
	NodeIdentity node;
	const char *reason;			/* why it must not look ahead, or NULL */
	LaCounters	counters;
} NodeStats;

/* The reason of a node, until its query ends. */
typedef struct Refusal
{
	NodeIdentity node;
	const char *reason;
	MemoryContextCallback callback;
} Refusal;

static const char *const kind_names[LA_NUM_KINDS] = {
	"index scan",
	"index only scan",
	"nested loop",
	"hash join",
	"bitmap heap scan",
	"bitmap index scan",
	"index insert",
	"foreign key",
	"toast",
	"subplan",
	"tid scan"
};

static SharedStats *shared = NULL;
static int64 pending[LA_NUM_KINDS][LA_NUM_SHARED_COUNTERS];
static int	npending = 0;
static bool exit_registered = false;

static NodeStats last_nodes[MAX_LAST_NODES];
static int	num_last_nodes = 0;
static bool last_has_reasons = false;
static TimestampTz last_statement = 0;	/* its timestamp */

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_stat_get_lookahead(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_stat_lookahead_reset(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_lookahead_last_statement_1_0(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_stat_get_lookahead);
PG_FUNCTION_INFO_V1(pg_stat_lookahead_reset);
PG_FUNCTION_INFO_V1(pg_lookahead_last_statement_1_0);

static void
init_shared(void *area)
{
	SharedStats *stats = area;

	la_shmem_init_counters(area, sizeof(SharedStats));
	pg_atomic_write_u64(&stats->reset_time, (uint64) GetCurrentTimestamp());
}

static void
begin_last_statement(TimestampTz timestamp)
{
	num_last_nodes = 0;
	last_has_reasons = false;
	last_statement = timestamp;
}

static void
discard_last_statement(void)
{
	begin_last_statement(0);
}

void
la_stats_init(void)
{
	la_utility_register(la_utility_resets_session, discard_last_statement);
	la_shmem_register("pg_lookahead", sizeof(SharedStats), init_shared, (void **) &shared);
	la_statements_init();
}

/* Have the counters belong to a statement, too, as long as that has not ended. */
void
la_stats_open(LaCounters *counters, const EState *estate)
{
	counters->statement = la_statements_stats(estate);
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
 * Called when a query starts whose nodes may look ahead, so that the backend flushes what
 * it has counted when it exits.
 *
 * on_shmem_exit() callbacks run after an open transaction has been aborted, and thus after
 * its nodes have ended; before_shmem_exit() callbacks would run too early.  Nor could one be
 * registered here, because PG_END_ENSURE_ERROR_CLEANUP() expects its own to be the last.
 */
void
la_stats_flush_at_exit(void)
{
	if (shared == NULL || exit_registered)
		return;
	on_shmem_exit(flush_at_exit, (Datum) 0);
	exit_registered = true;
}

/*
 * The entry for the reason of a node, if is_reason is true, or else for its counters; NULL if
 * there are too many nodes.  Both share an entry, and may come in any order: so this is an
 * entry of the node that does not have yet what comes now, or a new one.
 */
static NodeStats *
last_entry_for(const NodeIdentity *node, bool is_reason)
{
	TimestampTz now = GetCurrentStatementStartTimestamp();
	NodeStats  *entry;

	if (now != last_statement)
		begin_last_statement(now);
	for (int i = num_last_nodes - 1; i >= 0 && (is_reason || last_has_reasons); i--)
	{
		entry = &last_nodes[i];
		if (entry->node.kind == node->kind &&
			entry->node.heaprelid == node->heaprelid &&
			entry->node.indexrelid == node->indexrelid &&
			entry->counters.c[LA_SCANS_ACTIVATED] == 0 &&
			(is_reason ? entry->reason == NULL :
			 entry->reason != NULL && entry->counters.c[LA_SCANS_ATTACHED] == 0))
			return entry;
	}
	if (num_last_nodes >= MAX_LAST_NODES)
		return NULL;
	entry = &last_nodes[num_last_nodes++];
	memset(entry, 0, sizeof(*entry));
	entry->node = *node;
	return entry;
}

/*
 * Record the counters of a node that ends.  This must not fail, because it is called while
 * memory contexts are reset, perhaps after an error.
 */
void
la_stats_publish(LaKind kind, Oid heaprelid, Oid indexrelid,
				 const LaCounters *counters)
{
	NodeIdentity node = {kind, heaprelid, indexrelid};
	NodeStats  *entry = last_entry_for(&node, false);

	if (entry != NULL)
	{
		entry->counters = *counters;
		entry->counters.statement = NULL;
	}
	la_statements_add(counters->statement, heaprelid, indexrelid, counters);
	if (shared == NULL)
		return;
	if (counters->c[LA_SCANS_ACTIVATED] == 0)
	{
		pending[kind][LA_SCANS_ATTACHED] += counters->c[LA_SCANS_ATTACHED];
		pending[kind][LA_WAIT_NS] += counters->c[LA_WAIT_NS];
	}
	else
	{
		for (int i = 0; i < LA_NUM_SHARED_COUNTERS; i++)
			pending[kind][i] += counters->c[i];
	}
	npending++;
	if (counters->c[LA_SCANS_ACTIVATED] != 0 || npending >= FLUSH_AFTER)
		flush_pending();
}

/* Memory context callback: record a reason.  Like la_stats_publish(), it must not fail. */
static void
publish_refusal(void *arg)
{
	const Refusal *r = arg;
	NodeStats  *entry = last_entry_for(&r->node, true);

	if (entry == NULL)
		return;
	entry->reason = r->reason;
	last_has_reasons = true;
}

/*
 * Record that a node must not look ahead, because that would not be safe.  The reason is a
 * constant string, such as "the outer side calls a volatile function".
 */
void
la_stats_refuse(EState *estate, LaKind kind, Oid heaprelid, Oid indexrelid,
				const char *reason)
{
	NodeIdentity node = {kind, heaprelid, indexrelid};
	Refusal    *r = MemoryContextAlloc(estate->es_query_cxt, sizeof(Refusal));

	r->node = node;
	r->reason = reason;
	r->callback.func = publish_refusal;
	r->callback.arg = r;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, &r->callback);
	la_statements_add_reason(la_statements_stats(estate), reason);

	if (message_level_is_interesting(DEBUG1))
	{
		Oid			relid = OidIsValid(heaprelid) ? heaprelid : indexrelid;
		char	   *name = OidIsValid(relid) ? get_rel_name(relid) : NULL;

		if (name != NULL)
			elog(DEBUG1, "pg_lookahead is not activated for %s on \"%s\": %s",
				 kind_names[kind], name, reason);
		else
			elog(DEBUG1, "pg_lookahead is not activated for %s: %s",
				 kind_names[kind], reason);
	}
}

/* When all statistics were last reset. */
TimestampTz
la_stats_reset_time(void)
{
	return (TimestampTz) pg_atomic_read_u64(&shared->reset_time);
}

/* The rows of pg_stat_lookahead. */
Datum
pg_stat_get_lookahead(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	la_shmem_require();
	flush_pending();
	InitMaterializedSRF(fcinfo, 0);

	for (int k = 0; k < LA_NUM_KINDS; k++)
	{
		Datum		values[LA_NUM_VIEW_COUNTERS + 5];
		bool		nulls[LA_NUM_VIEW_COUNTERS + 5] = {0};
		int			n = 0;

		values[n++] = CStringGetTextDatum(kind_names[k]);
		for (int i = 0; i < LA_NUM_VIEW_COUNTERS; i++)
			values[n++] = Int64GetDatum((int64) pg_atomic_read_u64(&shared->counters[k][i]));
		values[n++] = TimestampTzGetDatum(la_stats_reset_time());
		for (int i = LA_WAIT_NS; i <= LA_SAVED_ERROR_NS; i++)
			values[n++] = Float8GetDatum((double) (int64)
										 pg_atomic_read_u64(&shared->counters[k][i]) / LA_NS_IN_MS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

Datum
pg_stat_lookahead_reset(PG_FUNCTION_ARGS)
{
	la_shmem_require();
	flush_pending();
	la_shmem_reset_counters(shared->counters, sizeof(shared->counters));
	la_build_stats_reset();
	la_stattable_reset(LA_STAT_STATEMENTS, NULL, NULL);
	la_stattable_reset(LA_STAT_INDEXES, NULL, NULL);
	pg_atomic_write_u64(&shared->reset_time, (uint64) GetCurrentTimestamp());
	PG_RETURN_VOID();
}

/* How many nodes of the statement that the client has sent last have ended so far. */
int
la_stats_last_count(void)
{
	return GetCurrentStatementStartTimestamp() == last_statement ? num_last_nodes : 0;
}

/* One of them, and what it is, in the words of a plan: "index scan using t_a on t". */
const LaCounters *
la_stats_last_node(int n, char **name)
{
	const NodeIdentity *node = &last_nodes[n].node;
	char	   *index = OidIsValid(node->indexrelid) ? get_rel_name(node->indexrelid) : NULL;
	char	   *heap = OidIsValid(node->heaprelid) ? get_rel_name(node->heaprelid) : NULL;

	*name = psprintf("%s%s%s%s%s", kind_names[node->kind],
					 index ? " using " : "", index ? index : "",
					 heap ? " on " : "", heap ? heap : "");
	return &last_nodes[n].counters;
}

/* A row for each node of the last statement, in the order in which they ended. */
Datum
pg_lookahead_last_statement_1_0(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);

	for (int row = 0; row < num_last_nodes; row++)
	{
		const NodeStats *entry = &last_nodes[row];
		const NodeIdentity *node = &entry->node;
		const int64 *c = entry->counters.c;
		Datum		values[LA_NUM_VIEW_COUNTERS + 7];
		bool		nulls[LA_NUM_VIEW_COUNTERS + 7] = {0};
		int			n = 0;

		values[n++] = CStringGetTextDatum(kind_names[node->kind]);
		/* null if a node reads several of them */
		nulls[n] = !OidIsValid(node->heaprelid);
		values[n++] = ObjectIdGetDatum(node->heaprelid);
		nulls[n] = !OidIsValid(node->indexrelid);
		values[n++] = ObjectIdGetDatum(node->indexrelid);
		for (int i = 0; i < LA_NUM_VIEW_COUNTERS; i++)
			values[n++] = Int64GetDatum(c[i]);
		if (c[LA_DISTANCE_SAMPLES] == 0)
			nulls[n++] = true;
		else
			values[n++] = Float8GetDatum((double) c[LA_DISTANCE_SUM] /
										 c[LA_DISTANCE_SAMPLES]);
		values[n++] = Int64GetDatum(c[LA_DISTANCE_MAX]);
		values[n++] = Int64GetDatum(c[LA_DISTANCE_CAPACITY]);
		if (entry->reason != NULL)
			values[n] = CStringGetTextDatum(entry->reason);
		else
			nulls[n] = true;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
