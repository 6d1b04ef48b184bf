/*
 * noderows.c
 *	  The rows that a sort, or a Gather, passes on.
 *
 *		client, table, function <-- [ row ] <-- [ row | row | row ] <-- sort, in memory; workers
 *									current		 taken before their turn
 *
 * Where only nodes are above that pass its rows on, or compute with them (is_near_top()), the rows
 * that come next are taken from it ahead (rows/childqueue.c), as soon as reads of values are waited
 * for.
 *
 * SORT	That is not noticed.  When a sort returns its first row, it has read all its input.  In
 * memory, the others are an array of tuples, of which each call returns the next one: nothing is
 * evaluated, read or written, nor can it fail, and whatever is done above does not change them.
 * Left alone are
 *		- sorts whose rows can be asked for in another order (randomAccess: scrollable cursors,
 *		  marks);
 *		- sorts in files;
 *		- sorts that workers execute, which pass pointers on to their leader.
 * Where it is executed anew, it forgets that it was done (sort_Done).
 *
 * GATHER	Its workers execute the plan below it ahead of what the rows are used for, in stock,
 * too, but the leader does not.  So rows are taken ahead only where nobody could notice it
 * (attach/runahead.c).  An error of a worker is raised at once: what may fail is left alone.
 *
 * BOUND	What is bounded by a Limit, a sort or a Gather with sorts below it, is not asked for
 * more rows than that will take: a bounded sort would fail.
 *
 * src/toast/noderows.c
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "utils/tuplesort.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "toast/toast_int.h"

#define MOST_LOOKED		64		/* rows without a value out of line */
#define WANTED			128		/* rows known ahead */

typedef struct NodeRows
{
	LaInterposer interposer;
	LaToastColumns columns;
	LaFollower *follower;		/* NULL until there is a value */
	LaChildQueue *queue;		/* likewise */
	LaBudget	budget;
	LaDemandContext demand;
	TupleTableSlot *current;
	uint64		number;			/* of the current row */
	int64		returned;		/* rows since the sort was done */
	int			looked;			/* rows, for a value */
	bool		given_up;
	bool		ahead;			/* rows are taken before their turn */
} NodeRows;

static LaNodeKind sorts;
static LaNodeKind gathers;
static LaNodeKind merging_gathers;

/* NULL: a Gather. */
static const SortState *
sort_of(const NodeRows *s)
{
	return IsA(s->interposer.node, SortState) ? (const SortState *) s->interposer.node : NULL;
}

/* Has the node begun to return rows since it was last executed anew? */
static bool
is_begun(const PlanState *ps)
{
	if (IsA(ps, SortState))
		return ((const SortState *) ps)->sort_Done;
	return IsA(ps, GatherState) ? ((const GatherState *) ps)->initialized :
		((const GatherMergeState *) ps)->initialized;
}

/* ---- rows to come -------------------------------------------------------------- */

/* How many rows the node may be asked for, by a Limit; sorts below a Gather are bounded, too. */
static int64
bound_of(const PlanState *ps)
{
	int64		needed;

	if (IsA(ps, SortState))
		return ((const SortState *) ps)->bounded_Done ? ((const SortState *) ps)->bound_Done :
			PG_INT64_MAX;
	needed = IsA(ps, GatherState) ? ((const GatherState *) ps)->tuples_needed :
		((const GatherMergeState *) ps)->tuples_needed;
	return needed < 0 ? PG_INT64_MAX : needed;
}

/* LaChildQueue.may_fetch */
static bool
may_fetch(void *arg, int64 queued)
{
	const NodeRows *s = arg;
	const PlanState *ps = s->interposer.node;

	if (!s->ahead)
		return true;
	return queued < la_demand_rows_wanted(s->demand.limit) &&
		s->returned + queued < bound_of(ps) &&
		(sort_of(s) != NULL ||
		 la_runahead_may_fetch(&s->demand, ps->state, queued, s->returned));
}

/* The n-th row behind the current one. */
static TupleTableSlot *
row_at(const NodeRows *s, int n)
{
	const LaChildQueue *queue = s->queue;

	if (n == 0)
		return s->current;
	return queue->head + n - 1 < queue->tail ? la_childqueue_at(queue, queue->head + n - 1) : NULL;
}

/* LaComingValues.is_known */
static bool
is_known(void *arg, int n, uint64 *id)
{
	const NodeRows *s = arg;

	*id = s->number + n;
	return row_at(s, n) != NULL;
}

/* LaComingValues.values */
static void
values(void *arg, int n, la_value_function add, void *to)
{
	const NodeRows *s = arg;
	TupleTableSlot *slot = row_at(s, n);

	for (int i = 0; i < s->columns.n; i++)
	{
		bool		isnull;
		Datum		value = slot_getattr(slot, s->columns.numbers[i], &isnull);

		if (!isnull && !add(to, value))
			break;
	}
}

/* ---- begin and end ----------------------------------------------------------------- */

static bool
is_in_memory(const SortState *sort)
{
	TuplesortInstrumentation stats;

	tuplesort_get_stats(sort->tuplesortstate, &stats);
	return stats.spaceType == SORT_SPACE_TYPE_MEMORY;
}

/* Why rows may not be taken ahead, or NULL. */
static const char *
refuses_rows(const NodeRows *s)
{
	PlanState  *ps = s->interposer.node;
	LaRunAhead	ahead = {.join = ps,.outer = ps,.context = s->demand};
	const char *reason;

	if (sort_of(s) != NULL)
		return is_in_memory(sort_of(s)) ? NULL : "the sort is not in memory";
	reason = la_runahead_refuses_outer(&ahead);
	return reason != NULL ? reason :
		la_runahead_refuses_reading(la_runahead_takes_all(&s->demand, ps->state), ps->state);
}

static void
on_rescan(LaInterposer *interposer)
{
	NodeRows   *s = la_interpose_container(NodeRows, interposer);

	if (s->follower != NULL)
		s->follower->clear(s->follower);
	if (s->queue != NULL)
		la_childqueue_clear(s->queue);
	s->returned = 0;
}

static void
on_end(LaInterposer *interposer)
{
	la_budget_end(&la_interpose_container(NodeRows, interposer)->budget);
}

/* Follow the rows from this one on, if it has a value. */
static void
begin(NodeRows *s)
{
	PlanState  *ps = s->interposer.node;
	EState	   *estate = ps->state;
	LaComingValues coming = {s, is_known, values};

	if (s->looked == 0)
	{
		la_demand_context(ps, &s->demand);
		s->given_up = refuses_rows(s) != NULL;
	}
	else if (sort_of(s) != NULL)
		s->given_up = !is_in_memory(sort_of(s));
	if (s->given_up)
		return;
	s->follower = la_passedrows_follow(ps, &coming);
	if (s->follower == NULL)
	{
		s->given_up = ++s->looked >= MOST_LOOKED;
		return;
	}
	s->budget.limit = (Size) la_scan_memory * 1024;
	/* it tells of the end of the query; of a rescan, is_begun() does as well */
	s->interposer.listens_to = CreateExprContext(estate);
	s->queue = MemoryContextAllocZero(estate->es_query_cxt, sizeof(LaChildQueue));
	la_childqueue_init(s->queue, &s->interposer, estate->es_query_cxt, &s->budget);
	s->queue->may_fetch = may_fetch;
	s->queue->arg = s;
}

/* ---- the node ------------------------------------------------------------------------ */

static TupleTableSlot *
next_row(NodeRows *s)
{
	LaChildQueue *queue = s->queue;

	if (queue == NULL)
		return s->interposer.below(s->interposer.node);
	if ((s->follower != NULL && s->follower->attends) || la_childqueue_has_rows(queue) ||
		queue->at_end)
		return la_childqueue_head(queue) == NULL ? NULL : la_childqueue_return_head(queue);
	la_childqueue_release(queue);
	return s->interposer.below(s->interposer.node);
}

/* The current row is about to be returned. */
static void
follow(NodeRows *s)
{
	/* the node's own slot must not be used again yet */
	if (s->follower->attends && s->queue->returned != NULL)
	{
		s->ahead = true;
		(void) la_childqueue_row(s->queue, s->queue->head + WANTED - 1, true);
		s->ahead = false;
	}
	if (la_follow(s->follower))
		return;
	s->follower = NULL;
	s->given_up = true;
}

static TupleTableSlot *
exec_node(PlanState *ps)
{
	NodeRows   *s = la_interpose_container(NodeRows, la_interpose_enter(ps, LA_LAYER_NODE));
	TupleTableSlot *slot;

	if (s->given_up &&
		(s->queue == NULL || (!la_childqueue_has_rows(s->queue) && !s->queue->at_end)))
	{
		la_interpose_end(&s->interposer);
		return s->interposer.below(ps);
	}
	if (!is_begun(ps))
		on_rescan(&s->interposer);
	slot = next_row(s);
	s->current = slot;
	if (TupIsNull(slot))
		return slot;
	s->number++;
	s->returned++;
	if (s->queue == NULL && !s->given_up)
		begin(s);
	if (s->follower != NULL)
		follow(s);
	return slot;
}

/*
 * Does the node use a row of its outer side, or some rows, and then ask for the next one?  A
 * window's rows are mostly used as they come.
 */
static bool
uses_rows_in_turn(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Limit:
		case T_Result:
		case T_ProjectSet:
		case T_Unique:
		case T_Agg:
		case T_Group:
		case T_WindowAgg:
		case T_NestLoop:
		case T_HashJoin:
		case T_MergeJoin:
		case T_ModifyTable:
			return true;
		default:
			return false;
	}
}

/* Are there only such nodes above? */
static bool
is_near_top(const PlanState *ps)
{
	const Plan *plan = ps->state->es_plannedstmt->planTree;

	while (plan != NULL && plan != ps->plan)
	{
		if (IsA(plan, SubqueryScan))
			plan = ((const SubqueryScan *) plan)->subplan;
		else if (uses_rows_in_turn(plan))
			plan = outerPlan(plan);
		else
			return false;
	}
	return plan != NULL;
}

/* Columns that are returned, and may have values out of line.  False if there are none. */
static bool
find_columns(LaToastColumns *c, const PlanState *ps)
{
	TupleDesc	desc = ps->ps_ResultTupleDesc;
	ListCell   *lc;

	foreach(lc, ps->plan->targetlist)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (!entry->resjunk && c->n < LA_TOAST_COLUMNS &&
			TupleDescAttr(desc, entry->resno - 1)->attlen == -1)
			c->numbers[c->n++] = entry->resno;
	}
	return c->n > 0;
}

static LaNodeKind *
kind_of(const PlanState *ps)
{
	return IsA(ps, SortState) ? &sorts : IsA(ps, GatherState) ? &gathers : &merging_gathers;
}

/* la_attach_function */
bool
la_noderows_attach(PlanState *ps)
{
	LaToastColumns columns = {0};
	NodeRows   *s;

	if (!la_enable_toast || !pgstat_track_counts || IsParallelWorker() ||
		(IsA(ps, SortState) && ((SortState *) ps)->randomAccess) || !is_near_top(ps) ||
		!find_columns(&columns, ps) || !la_interpose_is_possible(ps, kind_of(ps)))
		return false;
	s = MemoryContextAllocZero(ps->state->es_query_cxt, sizeof(NodeRows));
	s->columns = columns;
	s->interposer.on_rescan = on_rescan;
	s->interposer.on_end = on_end;
	la_interpose_begin(&s->interposer, ps, LA_LAYER_NODE, exec_node);
	return true;
}
