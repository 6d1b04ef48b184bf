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
 * States, of which PASS, OBSERVE and ARMED are those of the policies of leaf and heap reads:
 *
 *		            examined         a miss            waits
 *		CANDIDATE ----------> PASS <--------> OBSERVE ---------> ARMED
 *		    |                 ^  ^   no waits                      |
 *		    v                 |  +---------------------------------+
 *		not eligible          v             no waits any more
 *		                CACHE PREFETCH
 *
 *	CANDIDATE: outer rows are only counted, so a join of a few cached rows costs next to
 *	   nothing.  The join is examined when the first block is read, or after FEW_ROWS rows;
 *	   at once, if the planner expects MANY_ROWS.
 *	PASS: the outer child's rows are returned as they come.  A comparison of two numbers
 *	   shows whether a block was read since the previous row.
 *	OBSERVE: after a miss, inner_prefetch.c makes each row's inner reads before the row is
 *	   returned, and times them.
 *	ARMED: after enough waits for leaf pages or for heap blocks, outer rows are fetched ahead
 *	   into the queue, and their reads started.  When the policy disarms, the queue is used
 *	   up first.
 *	CACHE PREFETCH: where nothing has to be read, a third policy, of outer rows, tries whether
 *	   cache_prefetch.c makes them faster, and keeps it if so.
 *
 * A join is eligible if
 *	- it passes values of the outer row to the inner side, which is an index or index-only
 *	  scan of a btree without ORDER BY operators, by itself or below Memoize, or an Append
 *	  that chooses among such scans by these values (prune.c);
 *	- the table's access method is heap, the snapshot is an MVCC snapshot, and
 *	  old_snapshot_threshold (15, 16) cannot make an early read fail;
 *	- at least the index's first column is compared for equality with a value that can be
 *	  known ahead (scankeys.c; checked for each member of an Append by itself);
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

#define MAX_PARTITIONS	1024	/* of an inner side that is worth the memory */

/* Outer rows of a candidate; see above. */
#define FEW_ROWS		128
#define MANY_ROWS		1000

/* A join that has not been examined yet, until "join" is set; see LaNestLoop. */
typedef struct Candidate
{
	LaInterposer interposer;
	NestLoopState *node;
	int			rows_until_examined;
	int64		returned;
	int64		seen_reads;
	LaNestLoop *join;
} Candidate;

static LaNodeKind nestloops;

/* The join is rescanned, or ends: for later executions, how far was it read the first time? */
static void
note_demand(const LaNestLoop *join)
{
	const LaScanLength *length = &join->heap.policy.length;

	if (join->returned > 0 && length->scans == 0 && join->may_end_early)
		la_history_note_demand(join->identity, la_scan_length_visits(length), !join->at_end);
}

/* The join is rescanned, or the query ends. */
static void
on_rescan(LaInterposer *interposer)
{
	Candidate  *c = la_interpose_container(Candidate, interposer);
	LaNestLoop *join = c->join;

	c->returned = 0;
	if (join == NULL)
		return;
	note_demand(join);
	if (join->returned > 0)
	{
		la_io_policy_rescan(&join->leaf.policy, !join->at_end);
		la_io_policy_rescan(&join->heap.policy, !join->at_end);
		la_cache_policy_rescan(&join->cached_rows);
	}
	join->returned = 0;
	join->at_end = false;
	la_innerprefetch_clear(join);
}

static LaCounters
counters_of(const LaNestLoop *join)
{
	LaCounters	sum = join->heap.counters;

	sum.c[LA_LEAF_PAGES_ISSUED] = join->leaf.counters.c[LA_BLOCKS_ISSUED];
	la_counters_add_times(&sum, &join->leaf.counters);
	return sum;
}

/* The join's memory is freed. */
static void
on_end(LaInterposer *interposer)
{
	LaNestLoop *join = la_interpose_container(Candidate, interposer)->join;
	LaCounters	counters;

	if (join == NULL)
		return;
	note_demand(join);
	counters = counters_of(join);
	la_budget_end(&join->budget);
	la_stats_publish(LA_KIND_NESTED_LOOP, join->heaprelid, join->indexrelid, &counters);
	la_history_note(join->history_index,
					join->heap.policy.verdict != LA_READS_UNKNOWN ?
					join->heap.policy.verdict : join->leaf.policy.verdict,
					LA_CACHE_UNKNOWN);
}

/* The Params by which the join passes values of the outer row. */
static void
init_rows(LaNestLoop *join)
{
	List	   *params = ((NestLoop *) join->node->js.ps.plan)->nestParams;
	ListCell   *lc;

	join->rows.context = join->context;
	join->rows.budget = &join->budget;
	join->rows.ahead = &join->ahead;
	la_rowparams_init(&join->rows.params, join->estate, list_length(params));
	foreach(lc, params)
	{
		NestLoopParam *nlp = lfirst(lc);

		la_rowparams_add(&join->rows.params, nlp->paramno, nlp->paramval->varattno);
	}
}

/* Returns false if the join is not eligible; *refused is the reason that prohibits it, if any. */
static bool
make_prefetch(LaNestLoop *join, const char **refused)
{
	*refused = la_runahead_refuses_reading(la_nestloop_takes_all(join), join->ahead.join->state);
	if (*refused == NULL)
		*refused = la_runahead_refuses_outer(&join->ahead);
	if (*refused != NULL)
		return false;
	if (la_scankeys_get(&join->first->s, &join->rows) == NULL)
	{
		*refused = join->first->s.keys_refused;
		return false;
	}
	if (join->append != NULL)
	{
		join->prune = la_prune_create(join->append->as_prune_state, &join->rows, refused);
		if (join->prune == NULL)
			return false;
	}
	join->prefetch = la_innerprefetch_create(join);
	return join->prefetch != NULL;
}

/* The join would look ahead: may it?  The first call checks it. */
static bool
prepare(LaNestLoop *join)
{
	const char *refused = NULL;
	MemoryContext old;

	if (join->eligibility != LA_NOT_CHECKED)
		return join->eligibility == LA_ELIGIBLE;
	old = MemoryContextSwitchTo(join->context);
	join->eligibility = LA_NOT_ELIGIBLE;
	init_rows(join);
	if (make_prefetch(join, &refused))
		join->eligibility = LA_ELIGIBLE;
	else if (refused != NULL)
		la_stats_refuse(join->estate, LA_KIND_NESTED_LOOP, join->heaprelid,
						join->indexrelid, refused);
	MemoryContextSwitchTo(old);
	return join->eligibility == LA_ELIGIBLE;
}

/*
 * No reads were started ahead for the row that was joined last; missed: a block was read for it.
 *
 * The policy of leaf reads begins and ends OBSERVE with that of heap reads.  Otherwise it would
 * observe for hundreds of rows what the other one has found to be no wait.
 */
static void
count_row(LaNestLoop *join, bool missed)
{
	LaIoPolicy *heap = &join->heap.policy;
	LaIoPolicy *leaf = &join->leaf.policy;
	LaCachePolicy *rows = &join->cached_rows;

	if (heap->state == LA_PASS)
	{
		la_io_policy_stop(leaf);
		la_io_policy_on_pass(heap, missed);
		la_io_policy_on_pass(leaf, heap->state != LA_PASS);
	}

	if (missed)
		la_cache_policy_on_read(rows);
	else
		la_cache_policy_on_hit(rows, true);
	if (la_cache_policy_clock_due(rows))
		la_cache_policy_on_clock(rows, la_issue_clock_us());
}

/* Cache prefetch would begin: may it?  If not, it is not tried again. */
static bool
prepare_rows(LaNestLoop *join)
{
	if (prepare(join) && la_innerprefetch_may_reuse(join->first))
		return true;
	la_cache_policy_disable(&join->cached_rows);
	return false;
}

static TupleTableSlot *
next_row(LaNestLoop *join)
{
	LaIoPolicy *heap = &join->heap.policy;
	bool		missed = join->returned > 0 &&
		la_issue_blocks_read() != join->seen_reads;
	TupleTableSlot *slot;

	if (la_innerprefetch_is_at_end(join))
		return NULL;
	if (!la_nestloop_reads_ahead(join))
	{
		missed |= heap->state == LA_OBSERVE;	/* by inner_prefetch.c, if any */
		count_row(join, missed);
	}
	if (la_innerprefetch_has_rows(join) ||
		(la_nestloop_reads_ahead(join) && prepare(join)) ||
		(la_cache_policy_is_armed(&join->cached_rows) && prepare_rows(join)))
		return la_innerprefetch_next(join);
	la_innerprefetch_pass(join);
	slot = la_nestloop_outer_row(join);
	if (heap->state == LA_OBSERVE && !TupIsNull(slot) && prepare(join))
		la_innerprefetch_observe(join, slot);
	return slot;
}

static LaIoPolicyConfig
config_for(const LaNestLoop *join, Relation rel)
{
	return la_config_reads(rel, la_nestloop_takes_all(join), join->history_index);
}

static void
init_reads(LaReads *reads, LaNestLoop *join, bool heaps)
{
	Relation	rel = heaps ? join->first->s.heap : join->first->s.index;
	LaIoPolicyConfig config = config_for(join, rel);

	reads->rels = MemoryContextAlloc(join->context, join->ninners * sizeof(Relation));
	for (int i = 0; i < join->ninners; i++)
	{
		LaInner    *inner = &join->inners[i];

		/* a member whose reads cannot be known is never visited */
		reads->rels[i] = inner->s.scan == NULL ? rel : heaps ? inner->s.heap : inner->s.index;
		if (reads->rels[i]->rd_rel->reltablespace != rel->rd_rel->reltablespace)
		{
			LaIoPolicyConfig other = config_for(join, reads->rels[i]);

			config.max_distance = Min(config.max_distance, other.max_distance);
			config.advice_works &= other.advice_works;
		}
	}
	if (join->may_end_early)
	{
		LaHistoryDemand demand = la_history_demand(join->identity);

		config.read_to_end = demand.to_end;
		config.early_visits = heaps && !demand.to_end ? demand.early_visits : 0;
	}
	config.costly_to_observe = true;
	config.order = LA_ORDER_OF_NEED;
	config.kernel_reads_near = true;
	la_io_policy_init(&reads->policy, &config);
}

/* Only during execution is it known how many rows are wanted. */
static void
init_policies(LaNestLoop *join)
{
	LaCachePolicyConfig rows = {
		.threshold = la_nestloop_reuse_tids && la_cache_prefetch_threshold >= 0 &&
		!join->first->s.index_only && !IsolationIsSerializable() ?
		la_cache_prefetch_threshold * ROWS_THRESHOLD : -1,
		.distance = la_cache_prefetch_distance,
		.trial = TRIAL_ROWS,
		.faster = FASTER,
		.visit_us = LONG_ROW_US,
	};

	join->budget.limit = (Size) la_scan_memory * 1024;
	join->may_end_early = !la_nestloop_takes_all(join);
	init_reads(&join->leaf, join, false);
	init_reads(&join->heap, join, true);
	la_cache_policy_init(&join->cached_rows, &rows);
	la_stats_open(&join->heap.counters, join->estate);
	join->heap.counters.c[LA_SCANS_ATTACHED] = 1;
}

/* Fill in an inner scan.  Returns false if its reads cannot be known ahead. */
static bool
init_scan(LaInner *inner, PlanState *ps, LaNestLoop *join)
{
	JoinState  *node = &join->node->js;

	if (!IsA(ps, IndexScanState) && !IsA(ps, IndexOnlyScanState))
		return false;
	inner->join = join;
	inner->first_match_only = ps->qual == NULL && node->joinqual == NULL &&
		(node->single_match || node->jointype == JOIN_ANTI);
	return la_keyedscan_init(&inner->s, ps, ((ScanState *) ps)->ss_currentRelation);
}

/* The table whose partitions the members of an Append are, if it is one. */
static Oid
partitioned_table(const AppendState *append)
{
	int			rti = bms_next_member(((Append *) append->ps.plan)->apprelids, -1);
	RangeTblEntry *rte = rti < 0 ? NULL : exec_rt_fetch(rti, append->ps.state);

	return rte != NULL && rte->rtekind == RTE_RELATION ? rte->relid : InvalidOid;
}

/* Fill in the inner side.  Returns false if no reads of it can be known ahead. */
static bool
init_inner(LaNestLoop *join)
{
	PlanState  *ps = innerPlanState(join->node);
	AppendState *append;

	if (IsA(ps, MemoizeState))
		ps = outerPlanState(ps);
	if (IsA(ps, AppendState) && ((AppendState *) ps)->as_nplans == 1)
		ps = ((AppendState *) ps)->appendplans[0];
	append = IsA(ps, AppendState) ? (AppendState *) ps : NULL;
	if (append != NULL && (append->as_prune_state == NULL ||
						   append->as_nasyncplans > 0 ||
						   append->as_nplans > MAX_PARTITIONS ||
						   ps->plan->parallel_aware))
		return false;
	join->append = append;
	join->ninners = append != NULL ? append->as_nplans : 1;
	join->inners = MemoryContextAllocZero(join->context,
										  Max(join->ninners, 1) * sizeof(LaInner));
	for (int i = 0; i < join->ninners; i++)
	{
		LaInner    *inner = &join->inners[i];

		if (!init_scan(inner, append != NULL ? append->appendplans[i] : ps, join))
			continue;
		if (join->first == NULL)
			join->first = inner;
		else if (RelationUsesLocalBuffers(inner->s.heap) !=
				 RelationUsesLocalBuffers(join->first->s.heap))
			inner->s.scan = NULL;	/* see la_window_create() */
	}
	if (join->first == NULL)
	{
		pfree(join->inners);
		return false;
	}
	join->history_index = RelationGetRelid(join->first->s.index);
	join->identity = la_history_scan_of(join->history_index,
										(uint64) join->estate->es_plannedstmt->queryId,
										join->node->js.ps.plan->plan_node_id);
	if (append != NULL)
		join->heaprelid = partitioned_table(append);
	else
	{
		join->heaprelid = RelationGetRelid(join->inners[0].s.heap);
		join->indexrelid = RelationGetRelid(join->inners[0].s.index);
	}
	return true;
}

/* Examine a candidate.  Returns NULL if it is not eligible. */
static LaNestLoop *
examine(Candidate *c)
{
	EState	   *estate = c->node->js.ps.state;
	LaNestLoop *join = MemoryContextAllocZero(estate->es_query_cxt, sizeof(LaNestLoop));

	join->node = c->node;
	join->outer = outerPlanState(c->node);
	join->interposer = &c->interposer;
	join->estate = estate;
	join->context = estate->es_query_cxt;
	join->ahead.join = &c->node->js.ps;
	join->ahead.outer = join->outer;
	join->ahead.inner = innerPlanState(c->node);
	join->ahead.can_keep_errors = true;
	la_demand_context(&c->node->js.ps, &join->ahead.context);
	if (!init_inner(join))
	{
		pfree(join);
		return NULL;
	}
	init_policies(join);
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

	if (c->interposer.ended)
		return c->interposer.below(outer);
	if (join == NULL)
	{
		if (c->rows_until_examined > 0 &&
			(c->returned == 0 || la_issue_blocks_read() == c->seen_reads))
		{
			slot = c->interposer.below(outer);
			c->rows_until_examined--;
			c->returned++;
			c->seen_reads = la_issue_blocks_read();
			return slot;
		}
		join = c->join = examine(c);
	}
	if (join == NULL || join->eligibility == LA_NOT_ELIGIBLE)
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
rows_before_examination(const PlanState *outer)
{
	int			rows = FEW_ROWS;

	if (la_force || outer->plan->plan_rows >= MANY_ROWS)
		return 0;
	/* no later than when cache prefetch would be tried */
	if (la_cache_prefetch_threshold >= 0 && la_cache_prefetch_threshold < FEW_ROWS)
		rows = Min(rows, la_cache_prefetch_threshold * ROWS_THRESHOLD);
	return rows;
}

/* May a join with this inner side be eligible? */
static bool
is_candidate(PlanState *inner)
{
	if (IsA(inner, MemoizeState))
		inner = outerPlanState(inner);
	if (IsA(inner, AppendState))
	{
		const AppendState *append = (const AppendState *) inner;

		return append->as_nplans == 1 ||
			(append->as_prune_state != NULL && append->as_prune_state->do_exec_prune);
	}
	return IsA(inner, IndexScanState) || IsA(inner, IndexOnlyScanState);
}

static bool
attach_nestloop(PlanState *ps, bool limited)
{
	EState	   *estate = ps->state;
	PlanState  *outer = outerPlanState(ps);
	Candidate  *c;

	if (!la_enable_nestloop || ((NestLoop *) ps->plan)->nestParams == NIL ||
		!is_candidate(innerPlanState(ps)) ||
		!la_interpose_is_possible(ps, &nestloops) ||
		!la_interpose_output_is_possible(outer) ||
		!la_gate_allows_searches())
		return false;

	c = MemoryContextAllocZero(estate->es_query_cxt, sizeof(Candidate));
	c->node = castNode(NestLoopState, ps);
	c->rows_until_examined = rows_before_examination(outer);
	c->interposer.listens_to = ps->ps_ExprContext;
	c->interposer.on_rescan = on_rescan;
	c->interposer.on_end = on_end;
	la_interpose_begin(&c->interposer, outer, LA_LAYER_OUTPUT, exec_queue);
	return true;
}

static const LaCounters *
explain_source(PlanState *ps)
{
	static LaCounters counters;
	LaInterposer *interposer = !IsA(ps, NestLoopState) ? NULL :
		la_interpose_find(outerPlanState(ps), LA_LAYER_OUTPUT);
	LaNestLoop *join;

	if (interposer == NULL || interposer->function != exec_queue)
		return NULL;
	join = la_interpose_container(Candidate, interposer)->join;
	if (join == NULL)
		return NULL;
	counters = counters_of(join);
	return &counters;
}

void
la_nestloop_init(void)
{
	la_attach_register(T_NestLoopState, attach_nestloop);
	la_explain_register(explain_source);
}
