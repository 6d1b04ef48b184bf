/*
 * nestloop.c
 *	  Nested loops that look ahead over their outer rows: who is eligible, and how
 *	  the queue gets between the join and its outer child.
 *
 * The join stays stock: it takes outer rows one by one, passes their values to the
 * inner index scan, rescans it, and joins.  attach/ shows us each NestLoopState after
 * ExecutorStart; we put a function of our own in place of its ExecProcNodeReal.
 * While that function runs the node's own, the node's outer child is
 * LaJoin.queue, a PlanState of ours that nobody else ever sees:
 *
 *		parent --> exec_join --> ExecNestLoop (stock) --> inner index scan (stock)
 *								   |
 *								   v  instead of the outer child
 *								 exec_queue --> outer child
 *
 *	1. PASS: exec_queue hands on the outer child's rows.  It compares two numbers:
 *	   was any block read since the row before?
 *	2. OBSERVE: after a miss, scout.c makes each row's inner reads before the row is
 *	   handed on, and times them.
 *	3. ARMED: after enough waits for leaf pages or for heap blocks, outer rows
 *	   are taken ahead into scout.c's queue, and the reads of all of them started.
 *	4. When the policy disarms, the queue is used up first.
 *	5. Where nothing has to be read, a third policy, of outer rows, tries whether it
 *	   helps to look ahead in memory (touch.c), and keeps to it if so.
 *
 * Eligible is a join
 *	- that passes values of the outer row to the inner side, which is an index or
 *	  index-only scan of a btree, by itself or below Memoize, without ORDER BY
 *	  operators,
 *	- or an Append that chooses among such scans by these values (route.c),
 *	- of a table whose access method is heap, under an MVCC snapshot, and not where
 *	  old_snapshot_threshold (15, 16) could make an early read fail,
 *	- of whose inner keys at least the first column's is an equality that can be
 *	  known ahead (keys.c; of an Append's members each for itself),
 *	- whose outer side may be run ahead (attach/early.c), and in a SERIALIZABLE transaction
 *	  only if all of it will be read: reading takes predicate locks.
 * The last two are looked at when the join would first look ahead: not at all in
 * short or cached queries.
 *
 * Nothing is ever asked of the inner side early but pages: expressions of its
 * filters are evaluated by stock only.  A nested loop cannot run backward, nor
 * return to a mark, so there is one direction.  EvalPlanQual has plans of its own,
 * which are not attached.
 *
 * src/nestloop/nestloop.c
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "executor/executor.h"
#include "utils/memutils.h"

#include "attach/attach.h"
#include "attach/takeover.h"
#include "base/compat.h"
#include "base/explain.h"
#include "base/guc.h"
#include "nestloop/join.h"
#include "nestloop/nestloop.h"
#include "window/history.h"
#include "window/issue.h"

/* Memory look-ahead over outer rows: see init_rows(). */
#define ROWS_THRESHOLD	8
#define TRIAL_ROWS		128
#define FASTER			0.95
#define LONG_ROW_US		20.0

#define MAX_PARTITIONS	1024	/* of an inner side that is worth the memory */

static LaNodeKind nestloops;

/* The join is rescanned, or the query ends. */
static void
on_rescan(LaTakeover *takeover)
{
	LaJoin	   *join = la_takeover_container(LaJoin, takeover);

	if (join->handed > 0)
	{
		la_policy_rescan(&join->leaf.policy, !join->at_end);
		la_policy_rescan(&join->heap.policy, !join->at_end);
		la_policy_rescan(&join->rows, !join->at_end);
	}
	join->handed = 0;
	join->at_end = false;
	la_scout_clear(join);
}

static LaCounters
counters_of(const LaJoin *join)
{
	LaCounters	sum = join->heap.counters;

	sum.c[LA_LEAF_PAGES_ISSUED] = join->leaf.counters.c[LA_BLOCKS_ISSUED];
	return sum;
}

/* The join's memory goes. */
static void
on_end(LaTakeover *takeover)
{
	LaJoin	   *join = la_takeover_container(LaJoin, takeover);
	LaCounters	counters = counters_of(join);

	if (!join->initialized)
		return;
	la_budget_end(&join->budget);
	la_stats_publish(LA_KIND_NESTED_LOOP, join->heaprelid, join->indexrelid,
					 &counters);
	la_history_note(join->known_by,
					join->heap.policy.verdict != LA_READS_UNKNOWN ?
					&join->heap.policy : &join->leaf.policy);
}

/* An inner scan that stands for all of them. */
static LaInner *
first_scan(LaJoin *join)
{
	LaInner    *inner = join->inners;

	while (inner->scan == NULL)
		inner++;
	return inner;
}

/*
 * The join would look ahead for the first time: may it?
 */
static bool
prepare(LaJoin *join)
{
	LaEarly		early = la_join_early(join);
	MemoryContext old;

	if (join->prepared || join->given_up)
		return join->prepared;
	old = MemoryContextSwitchTo(join->context);
	join->given_up = true;
	if ((la_join_takes_all(join) || !IsolationIsSerializable()) &&
		la_early_is_safe(&early, join->outer) &&
		la_keys_of(first_scan(join)) != NULL &&
		(join->append == NULL ||
		 (join->route = la_route_create(join)) != NULL) &&
		(join->scout = la_scout_create(join)) != NULL)
	{
		join->prepared = true;
		join->given_up = false;
	}
	MemoryContextSwitchTo(old);
	return join->prepared;
}

/*
 * A trial of memory look-ahead takes more rows than one of an index scan, whose
 * visits are shorter, and gains less.
 */
static void
init_rows(LaJoin *join, int threshold)
{
	LaPolicyConfig config = {
		.max_distance = 1,
		.memory_threshold = threshold,
		.memory_distance = la_memory_distance,
		.memory_trial = TRIAL_ROWS,
		.memory_faster = FASTER,
		.memory_visit_us = LONG_ROW_US,
	};

	la_policy_init(&join->rows, &config);
}

/*
 * One more row was joined without reads looked ahead for; missed: a block was read
 * for it.  The policy of heap reads leads: that of leaf pages begins and stops
 * observing with it, or it would observe for hundreds of rows what the other one has
 * found to be no wait.
 */
static void
count_pass(LaJoin *join, bool missed)
{
	LaPolicy   *heap = &join->heap.policy;
	LaPolicy   *leaf = &join->leaf.policy;

	la_policy_rest(leaf);
	if (missed || !la_policy_quiet_visit(heap))
		la_policy_on_pass(heap, missed);
	if (heap->state != LA_PASS)
		la_policy_on_pass(leaf, true);
	else
		(void) la_policy_quiet_visit(leaf);
}

/* The same for memory look-ahead, which ends with a miss. */
static void
count_row(LaJoin *join, bool missed)
{
	LaPolicy   *rows = &join->rows;

	if (missed)
		la_policy_on_read(rows);
	else if (rows->state == LA_ARMED)
		la_policy_on_visit(rows, LA_VISIT_HIT, 0.0);
	else if (!la_policy_quiet_visit(rows))
		la_policy_on_pass(rows, false);
	if (la_policy_clock_due(rows))
		la_policy_on_clock(rows, la_issue_clock_us());
}

/* Memory look-ahead would begin: can it? */
static bool
prepare_rows(LaJoin *join)
{
	if (prepare(join) && la_scout_may_reuse(first_scan(join)))
		return true;
	init_rows(join, -1);
	return false;
}

static TupleTableSlot *
next_row(LaJoin *join)
{
	LaPolicy   *heap = &join->heap.policy;
	bool		missed = join->handed > 0 &&
		la_issue_blocks_read() != join->seen_reads;
	TupleTableSlot *slot;

	if (la_scout_is_at_end(join))
		return NULL;
	if (!la_join_is(join, LA_ARMED))
	{
		missed |= heap->state == LA_OBSERVE;	/* it is made here, if any */
		if (heap->state == LA_PASS)
			count_pass(join, missed);
		count_row(join, missed);
	}
	if (la_scout_has_rows(join) ||
		(la_join_is(join, LA_ARMED) && prepare(join)) ||
		(join->rows.state == LA_ARMED && prepare_rows(join)))
		return la_scout_next(join);
	la_scout_pass(join);
	slot = ExecProcNode(join->outer);
	if (heap->state == LA_OBSERVE && !TupIsNull(slot) && prepare(join))
		la_scout_observe(join, slot);
	return slot;
}

static TupleTableSlot *
exec_queue(PlanState *queue)
{
	LaJoin	   *join = (LaJoin *) queue;
	TupleTableSlot *slot;

	slot = join->given_up ? ExecProcNode(join->outer) : next_row(join);

	join->seen_reads = la_issue_blocks_read();
	if (TupIsNull(slot))
		join->at_end = true;
	else
		join->handed++;
	return slot;
}

/* What is possible everywhere. */
static void
restrict_config(LaPolicyConfig *config, Relation rel, const LaJoin *join)
{
	LaPolicyConfig other = la_window_config(rel, la_join_takes_all(join),
											join->known_by);

	config->max_distance = Min(config->max_distance, other.max_distance);
	config->advice_works &= other.advice_works;
}

static void
init_lane(LaLane *lane, LaJoin *join, bool heaps)
{
	LaInner    *first = first_scan(join);
	Relation	rel = heaps ? first->heap : first->index;
	LaPolicyConfig config = la_window_config(rel, la_join_takes_all(join),
											 join->known_by);

	lane->rels = MemoryContextAlloc(join->context,
									join->ninners * sizeof(Relation));
	for (int i = 0; i < join->ninners; i++)
	{
		LaInner    *inner = &join->inners[i];

		/* a member without reads that can be known is never asked for */
		lane->rels[i] = inner->scan == NULL ? rel :
			heaps ? inner->heap : inner->index;
		if (lane->rels[i]->rd_rel->reltablespace != rel->rd_rel->reltablespace)
			restrict_config(&config, lane->rels[i], join);
	}
	config.memory_threshold = -1;	/* that is what join->rows is for */
	config.nested_loop = true;
	la_policy_init(&lane->policy, &config);
	lane->last_block = InvalidBlockNumber;
}

/* At the first execution: only now it is known how many rows are wanted. */
static void
initialize(LaJoin *join)
{
	join->budget.limit = (Size) la_scan_memory * 1024;
	init_lane(&join->leaf, join, false);
	init_lane(&join->heap, join, true);
	init_rows(join, la_nestloop_reuse && la_memory_threshold >= 0 &&
			  !first_scan(join)->index_only && !IsolationIsSerializable() ?
			  la_memory_threshold * ROWS_THRESHOLD : -1);
	join->heap.counters.c[LA_SCANS_ATTACHED] = 1;
	join->initialized = true;
}

static TupleTableSlot *
exec_join(PlanState *node)
{
	LaTakeover *takeover = la_takeover_of(node);
	LaJoin	   *join = takeover == NULL ? NULL :
		la_takeover_container(LaJoin, takeover);
	TupleTableSlot *slot;

	if (join == NULL || join->given_up)
	{
		la_takeover_give_back(node, &nestloops);
		return nestloops.stock(node);
	}
	if (!join->initialized)
		initialize(join);

	/*
	 * If this is left by an error, the node is never executed again: a failed
	 * query's plan is not used for anything any more, not even to end it.
	 */
	outerPlanState(node) = &join->queue;
	slot = nestloops.stock(node);
	outerPlanState(node) = join->outer;
	return slot;
}

/*
 * Fill in an inner scan.  Returns false if it is not one that can be known ahead.
 */
static bool
init_scan(LaInner *inner, PlanState *ps, LaJoin *join)
{
	JoinState  *node = &join->node->js;

	inner->join = join;
	if (IsA(ps, IndexScanState))
	{
		IndexScanState *scan = (IndexScanState *) ps;

		if (scan->iss_NumOrderByKeys > 0)
			return false;
		inner->index = scan->iss_RelationDesc;
		inner->scankeys = scan->iss_ScanKeys;
		inner->nkeys = scan->iss_NumScanKeys;
		inner->runtime = scan->iss_RuntimeKeys;
		inner->nruntime = scan->iss_NumRuntimeKeys;
	}
	else if (IsA(ps, IndexOnlyScanState))
	{
		IndexOnlyScanState *scan = (IndexOnlyScanState *) ps;

		if (scan->ioss_NumOrderByKeys > 0)
			return false;
		inner->index = scan->ioss_RelationDesc;
		inner->scankeys = scan->ioss_ScanKeys;
		inner->nkeys = scan->ioss_NumScanKeys;
		inner->runtime = scan->ioss_RuntimeKeys;
		inner->nruntime = scan->ioss_NumRuntimeKeys;
		inner->index_only = true;
	}
	else
		return false;
	inner->heap = ((ScanState *) ps)->ss_currentRelation;
	inner->first_match_only = ps->qual == NULL && node->joinqual == NULL &&
		(node->single_match || node->jointype == JOIN_ANTI);
	if (inner->nruntime == 0 || inner->index == NULL ||
		inner->index->rd_rel->relam != BTREE_AM_OID ||
		inner->heap->rd_tableam != GetHeapamTableAmRoutine())
		return false;
	inner->scan = ps;
	return true;
}

/* The table of which the members of an Append are partitions, if it is one. */
static Oid
partitioned_table(const AppendState *append)
{
	int			rti = bms_next_member(((Append *) append->ps.plan)->apprelids, -1);
	RangeTblEntry *rte = rti < 0 ? NULL : exec_rt_fetch(rti, append->ps.state);

	return rte != NULL && rte->rtekind == RTE_RELATION ? rte->relid : InvalidOid;
}

/*
 * Fill in the inner side.  Returns false if there is nothing that can be known ahead.
 */
static bool
init_inner(LaJoin *join)
{
	PlanState  *ps = innerPlanState(join->node);
	AppendState *append;
	LaInner    *first = NULL;

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
		if (first == NULL)
			first = inner;
		else if (RelationUsesLocalBuffers(inner->heap) !=
				 RelationUsesLocalBuffers(first->heap))
			inner->scan = NULL; /* see la_window_create() */
	}
	if (first == NULL)
	{
		pfree(join->inners);
		return false;
	}
	join->known_by = RelationGetRelid(first->index);
	if (append != NULL)
		join->heaprelid = partitioned_table(append);
	else
	{
		join->heaprelid = RelationGetRelid(join->inners[0].heap);
		join->indexrelid = RelationGetRelid(join->inners[0].index);
	}
	return true;
}

static void
attach_nestloop(PlanState *ps, const LaAttachContext *context)
{
	NestLoopState *node = castNode(NestLoopState, ps);
	EState	   *estate = ps->state;
	LaJoin	   *join;

	if (!la_enable_nestloop)
		return;
	if (!la_takeover_is_possible(ps, &nestloops) ||
		((NestLoop *) ps->plan)->nestParams == NIL ||
		estate->es_epq_active != NULL ||
		la_early_reads_may_fail() ||
		la_am_is_excluded(BTREE_AM_OID))
		return;

	join = MemoryContextAllocZero(estate->es_query_cxt, sizeof(LaJoin));
	join->node = node;
	join->context = estate->es_query_cxt;
	if (!init_inner(join))
	{
		pfree(join);
		return;
	}
	join->queue.type = T_Invalid;
	join->queue.state = estate;
	join->queue.plan = outerPlanState(ps)->plan;
	join->queue.lefttree = outerPlanState(ps);
	join->queue.ExecProcNode = join->queue.ExecProcNodeReal = exec_queue;
	join->outer = outerPlanState(ps);
	join->limit = context->limit;
	join->demand = context->demand;
	join->skippable = context->skippable;
	join->initplan_params = la_early_initplan_params(estate);
	join->takeover.on_rescan = on_rescan;
	join->takeover.on_end = on_end;
	la_takeover_begin(&join->takeover, ps, &nestloops, exec_join);
}

static const LaCounters *
explain_source(PlanState *ps)
{
	static LaCounters counters;
	LaTakeover *takeover = la_takeover_find(ps, &nestloops);

	if (takeover == NULL)
		return NULL;
	counters = counters_of(la_takeover_container(LaJoin, takeover));
	return &counters;
}

void
la_nestloop_init(void)
{
	la_attach_register(T_NestLoopState, attach_nestloop);
	la_explain_register(explain_source);
}
