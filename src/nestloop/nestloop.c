/*
 * nestloop.c
 *	  Nested loops that look ahead over their outer rows: who is eligible, and how
 *	  the queue gets between the join and its outer child.
 *
 * The join stays stock: it takes outer rows one by one, passes their values to the
 * inner index scan, rescans it, and joins.  attach/ shows us each NestLoopState after
 * ExecutorStart; we put a function of our own between the join and its outer child, as
 * the output layer of that child (attach/takeover.c):
 *
 *		parent --> ExecNestLoop (stock) --> inner index scan (stock)
 *						|
 *						v
 *					exec_queue --> outer child
 *
 *	0. CANDIDATE: a join starts with nothing but a count of its outer rows.  It is
 *	   looked at when the first block is read, or after FEW_ROWS rows; at once, if
 *	   the planner expects MANY_ROWS.  A join of a few cached rows pays for no more.
 *	1. PASS: exec_queue hands on the outer child's rows.  It compares two numbers:
 *	   was any block read since the row before?
 *	2. OBSERVE: after a miss, inner_prefetch.c makes each row's inner reads before the row is
 *	   handed on, and times them.
 *	3. ARMED: after enough waits for leaf pages or for heap blocks, outer rows
 *	   are taken ahead into inner_prefetch.c's queue, and the reads of all of them started.
 *	4. When the policy disarms, the queue is used up first.
 *	5. Where nothing has to be read, a third policy, of outer rows, tries whether it
 *	   helps to look ahead in memory (cache_prefetch.c), and keeps to it if so.
 *
 * Eligible is a join
 *	- that passes values of the outer row to the inner side, which is an index or
 *	  index-only scan of a btree, by itself or below Memoize, without ORDER BY
 *	  operators,
 *	- or an Append that chooses among such scans by these values (prune.c),
 *	- of a table whose access method is heap, under an MVCC snapshot, and not where
 *	  old_snapshot_threshold (15, 16) could make an early read fail,
 *	- of whose inner keys at least the first column's is an equality that can be
 *	  known ahead (innerkeys.c; of an Append's members each for itself),
 *	- whose outer side may be run ahead (attach/runahead.c), and in a SERIALIZABLE
 *	  transaction only if all of it will be read: reading takes predicate locks.
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
#include "base/accessmethod.h"
#include "base/compat.h"
#include "base/explain.h"
#include "base/guc.h"
#include "nestloop/nestloop_int.h"
#include "nestloop/nestloop.h"
#include "window/history.h"
#include "window/issue.h"

/* Memory look-ahead over outer rows: see init_rows(). */
#define ROWS_THRESHOLD	8
#define TRIAL_ROWS		128
#define FASTER			0.95
#define LONG_ROW_US		20.0

#define MAX_PARTITIONS	1024	/* of an inner side that is worth the memory */

/* Outer rows of a candidate; see above. */
#define FEW_ROWS		128
#define MANY_ROWS		1000

/* A join of which nothing is known yet, and then what is known of it. */
typedef struct Candidate
{
	LaTakeover	takeover;		/* of the outer child's output */
	NestLoopState *node;
	int			patience;		/* outer rows until it is looked at */
	int64		handed;			/* outer rows since the start or a rescan */
	int64		seen_reads;		/* blocks read when we last returned */
	LaNestLoop *join;			/* NULL until then */
} Candidate;

static LaNodeKind nestloops;

/* The join is rescanned, or the query ends. */
static void
on_rescan(LaTakeover *takeover)
{
	Candidate  *c = la_takeover_container(Candidate, takeover);
	LaNestLoop *join = c->join;

	c->handed = 0;
	if (join == NULL)
		return;
	if (join->handed > 0)
	{
		la_policy_rescan(&join->leaf.policy, !join->at_end);
		la_policy_rescan(&join->heap.policy, !join->at_end);
		la_policy_rescan(&join->rows, !join->at_end);
	}
	join->handed = 0;
	join->at_end = false;
	la_innerprefetch_clear(join);
}

static LaCounters
counters_of(const LaNestLoop *join)
{
	LaCounters	sum = join->heap.counters;

	sum.c[LA_LEAF_PAGES_ISSUED] = join->leaf.counters.c[LA_BLOCKS_ISSUED];
	return sum;
}

/* The join's memory goes. */
static void
on_end(LaTakeover *takeover)
{
	LaNestLoop *join = la_takeover_container(Candidate, takeover)->join;
	LaCounters	counters;

	if (join == NULL)
		return;
	counters = counters_of(join);
	la_budget_end(&join->budget);
	la_stats_publish(LA_KIND_NESTED_LOOP, join->heaprelid, join->indexrelid,
					 &counters);
	la_history_note(join->known_by,
					join->heap.policy.verdict != LA_READS_UNKNOWN ?
					&join->heap.policy : &join->leaf.policy);
}

/* An inner scan that stands for all of them. */
static LaInner *
first_scan(LaNestLoop *join)
{
	LaInner    *inner = join->inners;

	while (inner->scan == NULL)
		inner++;
	return inner;
}

/*
 * Make what looking ahead takes.  Returns false if the join is not eligible after all;
 * *refused says why if it must not look ahead.
 */
static bool
make_prefetch(LaNestLoop *join, const char **refused)
{
	LaInner    *first = first_scan(join);

	if (!la_nestloop_takes_all(join) && IsolationIsSerializable())
		*refused = "not all rows may be read, and reading takes predicate locks";
	else
		*refused = la_runahead_refuses_outer(&join->ahead);
	if (*refused != NULL)
		return false;
	if (la_innerkeys_of(first) == NULL)
	{
		*refused = first->keys_refused;
		return false;
	}
	if (join->append != NULL)
	{
		join->route = la_prune_create(join, refused);
		if (join->route == NULL)
			return false;
	}
	join->prefetch = la_innerprefetch_create(join);
	return join->prefetch != NULL;
}

/*
 * The join would look ahead for the first time: may it?
 */
static bool
prepare(LaNestLoop *join)
{
	const char *refused = NULL;
	MemoryContext old;

	if (join->prepared || join->given_up)
		return join->prepared;
	old = MemoryContextSwitchTo(join->context);
	join->given_up = true;
	if (make_prefetch(join, &refused))
	{
		join->prepared = true;
		join->given_up = false;
	}
	else if (refused != NULL)
		la_stats_refuse(join->estate, LA_KIND_NESTED_LOOP, join->heaprelid,
						join->indexrelid, refused);
	MemoryContextSwitchTo(old);
	return join->prepared;
}

/*
 * A trial of memory look-ahead takes more rows than one of an index scan, whose
 * visits are shorter, and gains less.
 */
static void
init_rows(LaNestLoop *join, int threshold)
{
	LaPolicyConfig config = {
		.max_distance = 1,
		.memory_threshold = threshold,
		.memory_distance = la_cache_prefetch_distance,
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
count_pass(LaNestLoop *join, bool missed)
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
count_row(LaNestLoop *join, bool missed)
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
prepare_rows(LaNestLoop *join)
{
	if (prepare(join) && la_innerprefetch_may_reuse(first_scan(join)))
		return true;
	init_rows(join, -1);
	return false;
}

static TupleTableSlot *
next_row(LaNestLoop *join)
{
	LaPolicy   *heap = &join->heap.policy;
	bool		missed = join->handed > 0 &&
		la_issue_blocks_read() != join->seen_reads;
	TupleTableSlot *slot;

	if (la_innerprefetch_is_at_end(join))
		return NULL;
	if (!la_nestloop_is(join, LA_ARMED))
	{
		missed |= heap->state == LA_OBSERVE;	/* it is made here, if any */
		if (heap->state == LA_PASS)
			count_pass(join, missed);
		count_row(join, missed);
	}
	if (la_innerprefetch_has_rows(join) ||
		(la_nestloop_is(join, LA_ARMED) && prepare(join)) ||
		(join->rows.state == LA_ARMED && prepare_rows(join)))
		return la_innerprefetch_next(join);
	la_innerprefetch_pass(join);
	slot = la_nestloop_outer_row(join);
	if (heap->state == LA_OBSERVE && !TupIsNull(slot) && prepare(join))
		la_innerprefetch_observe(join, slot);
	return slot;
}

/* What is possible everywhere. */
static void
restrict_config(LaPolicyConfig *config, Relation rel, const LaNestLoop *join)
{
	LaPolicyConfig other = la_window_config(rel, la_nestloop_takes_all(join),
											join->known_by);

	config->max_distance = Min(config->max_distance, other.max_distance);
	config->advice_works &= other.advice_works;
}

static void
init_lane(LaLane *lane, LaNestLoop *join, bool heaps)
{
	LaInner    *first = first_scan(join);
	Relation	rel = heaps ? first->heap : first->index;
	LaPolicyConfig config = la_window_config(rel, la_nestloop_takes_all(join),
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
initialize(LaNestLoop *join)
{
	join->budget.limit = (Size) la_scan_memory * 1024;
	init_lane(&join->leaf, join, false);
	init_lane(&join->heap, join, true);
	init_rows(join, la_nestloop_reuse_tids && la_cache_prefetch_threshold >= 0 &&
			  !first_scan(join)->index_only && !IsolationIsSerializable() ?
			  la_cache_prefetch_threshold * ROWS_THRESHOLD : -1);
	join->heap.counters.c[LA_SCANS_ATTACHED] = 1;
}

/*
 * Fill in an inner scan.  Returns false if it is not one that can be known ahead.
 */
static bool
init_scan(LaInner *inner, PlanState *ps, LaNestLoop *join)
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
init_inner(LaNestLoop *join)
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

/*
 * The candidate is worth a look.  Returns NULL if it is not eligible.
 */
static LaNestLoop *
make_join(Candidate *c)
{
	EState	   *estate = c->node->js.ps.state;
	LaNestLoop *join = MemoryContextAllocZero(estate->es_query_cxt, sizeof(LaNestLoop));

	join->node = c->node;
	join->outer = outerPlanState(c->node);
	join->takeover = &c->takeover;
	join->estate = estate;
	join->context = estate->es_query_cxt;
	join->ahead.join = &c->node->js.ps;
	join->ahead.outer = join->outer;
	join->ahead.inner = innerPlanState(c->node);
	la_attach_context(&c->node->js.ps, &join->ahead.context);
	if (!init_inner(join))
	{
		pfree(join);
		return NULL;
	}
	initialize(join);
	join->handed = c->handed;
	join->seen_reads = c->seen_reads;
	return join;
}

/*
 * The next row of a candidate.
 */
static TupleTableSlot *
pass_row(Candidate *c)
{
	TupleTableSlot *slot = c->takeover.below(c->takeover.node);

	c->patience--;
	c->handed++;
	c->seen_reads = la_issue_blocks_read();
	return slot;
}

static inline bool
is_worth_a_look(const Candidate *c)
{
	return c->patience <= 0 ||
		(c->handed > 0 && la_issue_blocks_read() != c->seen_reads);
}

/*
 * What the join calls when it calls its outer child.
 */
static TupleTableSlot *
exec_queue(PlanState *outer)
{
	Candidate  *c = la_takeover_container(Candidate,
										  la_takeover_of(outer, LA_LAYER_OUTPUT));
	LaNestLoop *join = c->join;
	TupleTableSlot *slot;

	if (c->takeover.ended)
		return c->takeover.below(outer);
	if (join == NULL)
	{
		if (!is_worth_a_look(c))
			return pass_row(c);
		join = c->join = make_join(c);
	}
	if (join == NULL || join->given_up)
	{
		la_takeover_end(&c->takeover);
		return c->takeover.below(outer);
	}

	slot = next_row(join);
	join->seen_reads = la_issue_blocks_read();
	if (TupIsNull(slot))
		join->at_end = true;
	else
		join->handed++;
	return slot;
}

/* How many outer rows is a join left alone for, if none of its blocks has to be read? */
static int
patience_with(const PlanState *outer)
{
	int			rows = FEW_ROWS;

	if (la_force || outer->plan->plan_rows >= MANY_ROWS)
		return 0;
	/* not for more than it takes until looking ahead in memory is tried */
	if (la_cache_prefetch_threshold >= 0 && la_cache_prefetch_threshold < FEW_ROWS)
		rows = Min(rows, la_cache_prefetch_threshold * ROWS_THRESHOLD);
	return rows;
}

/* Is that an inner side that could be eligible? */
static bool
is_candidate(PlanState *inner)
{
	if (IsA(inner, MemoizeState))
		inner = outerPlanState(inner);
	return IsA(inner, IndexScanState) || IsA(inner, IndexOnlyScanState) ||
		IsA(inner, AppendState);
}

static bool
attach_nestloop(PlanState *ps, bool limited)
{
	EState	   *estate = ps->state;
	PlanState  *outer = outerPlanState(ps);
	Candidate  *c;

	if (!la_enable_nestloop || ((NestLoop *) ps->plan)->nestParams == NIL ||
		!is_candidate(innerPlanState(ps)) ||
		!la_takeover_is_possible(ps, &nestloops) ||
		!la_takeover_of_output_is_possible(outer) ||
		estate->es_epq_active != NULL ||
		la_early_reads_may_fail() ||
		la_am_is_excluded(BTREE_AM_OID))
		return false;

	c = MemoryContextAllocZero(estate->es_query_cxt, sizeof(Candidate));
	c->node = castNode(NestLoopState, ps);
	c->patience = patience_with(outer);
	c->takeover.listens_to = ps->ps_ExprContext;
	c->takeover.on_rescan = on_rescan;
	c->takeover.on_end = on_end;
	la_takeover_begin(&c->takeover, outer, LA_LAYER_OUTPUT, exec_queue);
	return true;
}

static const LaCounters *
explain_source(PlanState *ps)
{
	static LaCounters counters;
	LaTakeover *takeover;
	LaNestLoop *join;

	if (!IsA(ps, NestLoopState))
		return NULL;
	takeover = la_takeover_find(outerPlanState(ps), LA_LAYER_OUTPUT);
	if (takeover == NULL || takeover->function != exec_queue)
		return NULL;
	join = la_takeover_container(Candidate, takeover)->join;
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
