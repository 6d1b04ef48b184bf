/*
 * nestloop.c
 *	  Nested loops that look ahead over their outer rows: which are eligible, and how the
 *	  queue gets between the join and its outer child.
 *
 * The join runs stock: it takes outer rows one by one, passes their values to the inner index
 * scan, rescans it, and joins.  exec_queue() is put between the join and its outer child after
 * ExecutorStart, as the output layer of that child (attach/interpose_node.c):
 *
 *		parent --> ExecNestLoop (stock) --> inner index scan (stock)
 *						|
 *						v
 *					exec_queue --> outer child
 *
 * It is a source of rows for rows/ahead.c: those of the outer child, which are queued
 * (rows/childqueue.c).  What they will need are the look-ups of the inner side (lookups.c).
 *
 *		            examined         a miss            waits
 *		CANDIDATE ----------> PASS <--------> OBSERVE ---------> ARMED
 *		    |                 ^  ^   no waits                      |
 *		    v                 |  +---------------------------------+
 *		not eligible          v             no waits any more
 *		                   TOUCHED
 *
 *	CANDIDATE: outer rows are only counted, so a join of a few cached rows costs next to
 *	   nothing.  The join is examined when the first block is read, or after FEW_ROWS rows,
 *	   whatever the planner expects: of a generic plan it expects thousands where few come.
 *	PASS, OBSERVE, ARMED, TOUCHED: see rows/ahead.c.  In PASS the outer child's rows are returned
 *	   as they come.
 *	REUSE: where the inner side is an index scan, it may take what was found (reuse.c).
 *	BOUNDED: where the join may end early, at most one row more is known than were returned since
 *	   the join started or was rescanned, and below a LIMIT no more than will be wanted at the rate
 *	   so far.  pg_lookahead.force lifts this.
 *
 * A join is eligible if
 *	- it passes values of the outer row to the inner side, which has look-ups by these values;
 *	- where the inner side is more than index scans, and an Append that chooses among them: nothing
 *	  in it has effects, and its keys are hints, as in a subplan;
 *	- the outer side may be run ahead (attach/runahead.c) and, in a SERIALIZABLE transaction,
 *	  all of it will be read, because reading takes predicate locks.
 * The last two are checked when the join would first look ahead, so in short or cached queries
 * never.
 *
 * Invariants
 *	- Of the inner side only pages are read early.  Its filters are evaluated by stock alone.
 *	- There is one direction: a nested loop cannot run backward, nor return to a mark.
 *	  EvalPlanQual has plans of its own, which are not attached.
 *
 * src/nestloop/nestloop.c
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "executor/executor.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "nestloop/nestloop.h"
#include "nestloop/nestloop_int.h"
#include "rows/rows.h"
#include "window/window.h"

/*
 * Cache prefetch.  A trial takes more outer rows than one of an index scan takes visits, which
 * are shorter, and is content with less gain.
 */
#define ROWS_THRESHOLD	8
#define TRIAL_ROWS		128
#define FASTER			0.95
#define LONG_ROW_US		20.0

/* Outer rows of a candidate; see above. */
#define FEW_ROWS		128

/* A join that has not been examined yet, until "join" is set; see LaNestLoop. */
typedef struct Candidate
{
	LaInterposer interposer;
	NestLoopState *node;
	int			rows_until_examined;
	int64		returned;
	int64		seen_reads;
	struct LaNestLoop *join;
} Candidate;

/* May the join look ahead?  Checked when it first would. */
typedef enum Eligibility
{
	NOT_CHECKED,
	ELIGIBLE,
	NOT_ELIGIBLE
} Eligibility;

typedef struct LaNestLoop
{
	NestLoopState *node;
	const LaInterposer *interposer; /* of the outer child's output */
	EState	   *estate;
	MemoryContext context;		/* lives as long as the query */
	bool		is_plain;		/* the inner side: index scans alone */
	LaRunAhead	run_ahead;
	LaBudget	budget;			/* of keys; the rest is in ahead */
	LaKeyRows	rows;			/* outer rows, for their keys */
	LaLookups  *lookups;
	LaAhead    *ahead;

	Oid			heaprelid;		/* InvalidOid: several, of no common parent */
	Oid			indexrelid;		/* InvalidOid: several */
	Oid			known_by;		/* whose history is used; see history.c */

	Eligibility eligibility;
	int64		returned;		/* outer rows since the start or a rescan */
	bool		at_end;			/* all of them were returned */
	int64		seen_reads;		/* blocks read when the last one was returned */

	LaChildQueue *queue;		/* NULL until the join first looks ahead */
	LaReuse    *reuse;			/* likewise; or NULL */
	int			wanted;			/* rows that a subplan of the join wants
								 * queued */
} LaNestLoop;

static LaNodeKind nestloops;

static TupleTableSlot *exec_queue(PlanState *outer);

/* The outer child's next row. */
static TupleTableSlot *
outer_row(const LaNestLoop *join)
{
	return join->interposer->below(outerPlanState(join->node));
}

/* ---- LaRowSource ------------------------------------------------------------------------ */

/* Behaviour BOUNDED. */
static bool
may_fetch(void *arg, int64 queued)
{
	const LaNestLoop *join = arg;

	return queued == 0 || la_force ||
		la_runahead_may_fetch(&join->run_ahead.context, join->estate, queued, join->returned);
}

static bool
fetch(void *arg, uint64 n)
{
	LaNestLoop *join = arg;
	LaKept	   *kept = la_ahead_own(join->ahead, n);

	kept->scan = NULL;
	kept->complete = false;
	return la_childqueue_row(join->queue, n, false) != NULL;
}

static void
plan_visits(void *arg, uint64 n, LaAheadRow *row)
{
	LaNestLoop *join = arg;

	la_lookups_plan(join->lookups, la_childqueue_at(join->queue, n), row);
}

static bool
set_key(void *arg, uint64 n, const LaRowVisit *visit)
{
	LaNestLoop *join = arg;

	return la_lookups_set_key(join->lookups, la_childqueue_at(join->queue, n), visit->rel);
}

static bool
locate(void *arg, uint64 n, LaAheadRow *row, const LaMatches *matches, bool last)
{
	LaNestLoop *join = arg;
	LaKeyedScan *scan = la_lookups_locate(join->lookups, row, matches);

	if (join->reuse != NULL)
		la_reuse_keep(join->reuse, la_ahead_own(join->ahead, n), scan, matches);
	return last;
}

/* ---- the join begins anew, or ends ---------------------------------------------- */

/* The join is rescanned, or the query ends. */
static void
on_rescan(LaInterposer *interposer)
{
	Candidate  *c = la_interpose_container(Candidate, interposer);
	LaNestLoop *join = c->join;

	c->returned = 0;
	if (join == NULL)
		return;
	la_ahead_rescan(join->ahead, join->returned, join->at_end);
	join->returned = 0;
	join->at_end = false;
	if (join->queue == NULL)
		return;
	la_childqueue_clear(join->queue);
	la_lookups_release(join->lookups);
	if (join->reuse != NULL)
		la_reuse_clear(join->reuse);
}

/* The join's memory is freed. */
static void
on_end(LaInterposer *interposer)
{
	LaNestLoop *join = la_interpose_container(Candidate, interposer)->join;

	if (join == NULL)
		return;
	la_ahead_note_demand(join->ahead, join->returned, join->at_end);
	la_budget_end(&join->budget);
	la_stats_publish(LA_KIND_NESTED_LOOP, join->heaprelid, join->indexrelid,
					 la_ahead_counters(join->ahead));
	la_ahead_forget(join->ahead, join->known_by);
}

/* ---- may it look ahead? --------------------------------------------------------- */

static void
create_queue(LaNestLoop *join)
{
	LaBudget   *budget = la_ahead_budget(join->ahead);

	if (!la_budget_has(budget, sizeof(LaChildQueue)))
		return;
	la_budget_take(budget, sizeof(LaChildQueue));
	join->queue = palloc0(sizeof(LaChildQueue));
	la_childqueue_init(join->queue, join->interposer, join->context, budget);
	join->queue->keeps_errors = join->run_ahead.keeps_errors;
	join->queue->may_fetch = may_fetch;
	join->queue->arg = join;
	if (join->is_plain && la_nestloop_reuse_tids)
		join->reuse = la_reuse_create(budget);
}

/* Returns false if the join is not eligible; *refused is the reason that prohibits it, if any. */
static bool
prepare_parts(LaNestLoop *join, const char **refused)
{
	LaRunAhead *ahead = &join->run_ahead;

	*refused = la_runahead_refuses_reading(la_runahead_takes_all(&ahead->context, join->estate),
										   join->estate);
	if (*refused == NULL && !join->is_plain)
		*refused = la_runahead_refuses_plan(ahead->inner);
	if (*refused == NULL)
		*refused = la_runahead_refuses_outer(ahead);
	if (*refused != NULL)
		return false;
	ahead->hints_only = !join->is_plain;
	if (!la_lookups_prepare(join->lookups, refused))
		return false;
	*refused = NULL;			/* of some lookups only */
	if (!la_lookups_set_ahead(join->lookups, join->ahead))
		return false;
	create_queue(join);
	return join->queue != NULL;
}

/* The join would look ahead: may it?  The first call checks it. */
static bool
prepare(LaNestLoop *join)
{
	const char *refused = NULL;
	MemoryContext old;

	if (join->eligibility != NOT_CHECKED)
		return join->eligibility == ELIGIBLE;
	old = MemoryContextSwitchTo(join->context);
	join->eligibility = prepare_parts(join, &refused) ? ELIGIBLE : NOT_ELIGIBLE;
	if (refused != NULL)
		la_stats_refuse(join->estate, LA_KIND_NESTED_LOOP, join->heaprelid,
						join->indexrelid, refused);
	MemoryContextSwitchTo(old);
	return join->eligibility == ELIGIBLE;
}

/* The same; what only touches cached pages is not tried again where it cannot be faster. */
static bool
may_look_ahead(LaNestLoop *join)
{
	if (!prepare(join))
		return false;
	if (la_ahead_is_active(join->ahead) ||
		(join->reuse != NULL && la_reuse_is_possible(la_lookups_first(join->lookups))))
		return true;
	la_ahead_refuse_touch(join->ahead);
	return la_childqueue_has_rows(join->queue);
}

/* ---- outer rows ----------------------------------------------------------------- */

/* The next row, by the queue. */
static TupleTableSlot *
next_queued(LaNestLoop *join)
{
	uint64		n = la_ahead_next_row(join->ahead);

	join->wanted = Max(join->wanted - 1, 0);
	la_childqueue_release(join->queue);
	if (!la_ahead_turn(join->ahead))
		return NULL;
	if (join->reuse != NULL)
		la_reuse_turn(join->reuse, la_ahead_own(join->ahead, n));
	return la_childqueue_return_head(join->queue);
}

static TupleTableSlot *
next_row(LaNestLoop *join)
{
	bool		missed = join->returned > 0 &&
		la_issue_blocks_read() != join->seen_reads;
	LaChildQueue *queue = join->queue;

	if (queue != NULL && queue->at_end && !la_childqueue_has_rows(queue))
		return NULL;
	if ((la_ahead_next(join->ahead, missed) && may_look_ahead(join)) ||
		(queue != NULL && la_childqueue_has_rows(queue)) || join->wanted > 0)
		return next_queued(join);
	if (join->reuse != NULL)
		la_reuse_turn(join->reuse, NULL);
	return outer_row(join);
}

/* Are outer rows queued here? */
bool
la_nestloop_has(const LaInterposer *interposer)
{
	return interposer->function == exec_queue;
}

/*
 * The queue, which so many of the next rows will be in; they are known from the second one on.
 * NULL if the outer side must not be run ahead, or the join has not been examined yet.
 */
LaChildQueue *
la_nestloop_want(LaInterposer *interposer, int rows)
{
	LaNestLoop *join = la_interpose_container(Candidate, interposer)->join;

	if (interposer->ended || join == NULL || !prepare(join) ||
		(!la_force && !la_runahead_may_fetch(&join->run_ahead.context, join->estate, 1,
											 join->returned)))
		return NULL;
	join->wanted = rows;
	return join->queue;
}

/* ---- examination ---------------------------------------------------------------- */

/* The Params by which the join passes values of the outer row. */
static void
init_rows(LaNestLoop *join)
{
	List	   *params = ((NestLoop *) join->node->js.ps.plan)->nestParams;
	ListCell   *lc;

	join->budget.limit = (Size) la_scan_memory * 1024;
	join->rows.context = join->context;
	join->rows.budget = &join->budget;
	join->rows.ahead = &join->run_ahead;
	la_rowparams_init(&join->rows.params, join->estate, list_length(params));
	foreach(lc, params)
	{
		NestLoopParam *nlp = lfirst(lc);

		la_rowparams_add(&join->rows.params, nlp->paramno, nlp->paramval->varattno);
	}
}

/* Only during execution is it known how many rows are wanted. */
static bool
create_ahead(LaNestLoop *join)
{
	LaKeyedScan *first = la_lookups_first(join->lookups);
	LaCachePolicyConfig touch = {
		.threshold = join->is_plain && la_nestloop_reuse_tids &&
		la_cache_prefetch_threshold >= 0 && !first->index_only && !IsolationIsSerializable() ?
		la_cache_prefetch_threshold * ROWS_THRESHOLD : -1,
		.distance = la_cache_prefetch_distance,
		.trial = TRIAL_ROWS,
		.faster = FASTER,
		.visit_us = LONG_ROW_US,
	};
	LaRowSource source = {
		.arg = join,
		.own_size = sizeof(LaKept),
		.fetch = fetch,
		.plan = plan_visits,
		.set_key = set_key,
		.locate = locate
	};
	LaAheadConfig config = {
		.rel = la_lookups_narrowest(join->lookups),
		.first_rel = first->index,
		.nrels = la_lookups_relations(join->lookups),
		.known_by = join->known_by,
		.identity = la_history_scan_of(join->known_by,
									   (uint64) join->estate->es_plannedstmt->queryId,
									   join->node->js.ps.plan->plan_node_id),
		.estate = join->estate,
		.takes_all = la_runahead_takes_all(&join->run_ahead.context, join->estate),
		.order = LA_ORDER_OF_NEED,
		.touch = &touch
	};
	MemoryContext old = MemoryContextSwitchTo(join->context);

	join->ahead = la_ahead_create(&source, &config);
	MemoryContextSwitchTo(old);
	return join->ahead != NULL;
}

/* The inner side, without what passes its rows on. */
static PlanState *
inner_scan(PlanState *inner)
{
	if (IsA(inner, MemoizeState))
		inner = outerPlanState(inner);
	if (IsA(inner, AppendState) && ((AppendState *) inner)->as_nplans == 1)
		inner = ((AppendState *) inner)->appendplans[0];
	return inner;
}

static bool
is_index_scan(const PlanState *ps)
{
	return IsA(ps, IndexScanState) || IsA(ps, IndexOnlyScanState);
}

/* Is that an index scan, or an Append that chooses among such scans, and others? */
static bool
is_plain(const PlanState *scan)
{
	const AppendState *append = (const AppendState *) scan;

	return is_index_scan(scan) ||
		(IsA(scan, AppendState) && append->as_prune_state != NULL &&
		 append->as_prune_state->do_exec_prune);
}

/* The table whose partitions the members of an Append are, if it is one. */
static Oid
partitioned_table(const AppendState *append)
{
	int			rti = bms_next_member(((Append *) append->ps.plan)->apprelids, -1);
	RangeTblEntry *rte = rti < 0 ? NULL : exec_rt_fetch(rti, append->ps.state);

	return rte != NULL && rte->rtekind == RTE_RELATION ? rte->relid : InvalidOid;
}

/* Fill in the inner side.  Returns false if it has no look-ups. */
static bool
init_inner(LaNestLoop *join)
{
	JoinState  *node = &join->node->js;
	PlanState  *inner = innerPlanState(join->node);
	PlanState  *scan = inner_scan(inner);
	bool		first_match_only = node->single_match || node->jointype == JOIN_ANTI;
	MemoryContext old = MemoryContextSwitchTo(join->context);

	init_rows(join);
	join->is_plain = is_plain(scan);
	join->lookups = la_lookups_create(inner, &join->rows, first_match_only, node->joinqual != NULL);
	MemoryContextSwitchTo(old);
	if (join->lookups == NULL)
		return false;
	join->known_by = la_lookups_known_by(join->lookups);
	if (IsA(scan, AppendState))
		join->heaprelid = partitioned_table((AppendState *) scan);
	else
		join->heaprelid = RelationGetRelid(la_lookups_first(join->lookups)->heap);
	if (is_index_scan(scan))
		join->indexrelid = join->known_by;
	return true;
}

/* Examine a candidate.  Returns NULL if it is not eligible. */
static LaNestLoop *
examine(Candidate *c)
{
	EState	   *estate = c->node->js.ps.state;
	LaNestLoop *join = MemoryContextAllocZero(estate->es_query_cxt, sizeof(LaNestLoop));

	join->node = c->node;
	join->interposer = &c->interposer;
	join->estate = estate;
	join->context = estate->es_query_cxt;
	join->run_ahead.join = &c->node->js.ps;
	join->run_ahead.outer = outerPlanState(c->node);
	join->run_ahead.inner = innerPlanState(c->node);
	join->run_ahead.can_keep_errors = true;
	la_demand_context(&c->node->js.ps, &join->run_ahead.context);
	if (!init_inner(join) || !create_ahead(join))
	{
		pfree(join);
		return NULL;
	}
	join->returned = c->returned;
	join->seen_reads = c->seen_reads;
	return join;
}

/* What the join calls instead of the outer child's function. */
static TupleTableSlot *
exec_queue(PlanState *outer)
{
	Candidate  *c = la_interpose_container(Candidate,
										   la_interpose_enter(outer, LA_LAYER_OUTPUT));
	LaNestLoop *join = c->join;
	TupleTableSlot *slot;

	if (c->rows_until_examined > 0 &&
		(c->returned == 0 || la_issue_blocks_read() == c->seen_reads))
	{
		slot = c->interposer.below(outer);
		c->rows_until_examined--;
		c->returned++;
		c->seen_reads = la_issue_blocks_read();
		return slot;
	}
	c->rows_until_examined = 0;
	if (c->interposer.ended)
		return c->interposer.below(outer);
	if (join == NULL)
		join = c->join = examine(c);
	if (join == NULL || join->eligibility == NOT_ELIGIBLE)
	{
		la_interpose_end(&c->interposer);
		return c->interposer.below(outer);
	}

	slot = next_row(join);
	join->seen_reads = la_issue_blocks_read();
	if (TupIsNull(slot))
		join->at_end = true;
	else
		join->returned++;
	return slot;
}

/* After how many outer rows is a join examined if no block has to be read? */
static int
rows_before_examination(void)
{
	int			rows = FEW_ROWS;

	if (la_force)
		return 0;
	/* no later than when cache prefetch would be tried */
	if (la_cache_prefetch_threshold >= 0 && la_cache_prefetch_threshold < FEW_ROWS)
		rows = Min(rows, la_cache_prefetch_threshold * ROWS_THRESHOLD);
	return rows;
}

static bool
attach_nestloop(PlanState *ps)
{
	EState	   *estate = ps->state;
	PlanState  *outer = outerPlanState(ps);
	Candidate  *c;

	if (!la_enable_nestloop || ((NestLoop *) ps->plan)->nestParams == NIL ||
		(!la_enable_subplan && !is_plain(inner_scan(innerPlanState(ps)))) ||
		!la_interpose_is_possible(ps, &nestloops) ||
		!la_interpose_output_is_possible(outer) ||
		(!la_force && la_node_has_one_row(outer)) ||
		!la_gate_allows_searches())
		return false;

	c = MemoryContextAllocZero(estate->es_query_cxt, sizeof(Candidate));
	c->node = castNode(NestLoopState, ps);
	c->rows_until_examined = rows_before_examination();
	c->interposer.listens_to = ps->ps_ExprContext;
	c->interposer.on_rescan = on_rescan;
	c->interposer.on_end = on_end;
	la_interpose_begin(&c->interposer, outer, LA_LAYER_OUTPUT, exec_queue);
	return true;
}

static const LaCounters *
explain_source(PlanState *ps)
{
	LaInterposer *interposer = !IsA(ps, NestLoopState) ? NULL :
		la_interpose_find(outerPlanState(ps), LA_LAYER_OUTPUT);
	LaNestLoop *join;

	if (interposer == NULL || interposer->function != exec_queue)
		return NULL;
	join = la_interpose_container(Candidate, interposer)->join;
	return join == NULL ? NULL : la_ahead_counters(join->ahead);
}

void
la_nestloop_init(void)
{
	la_attach_register(T_NestLoopState, attach_nestloop);
	la_explain_register(explain_source);
}
