/*
 * outerqueue.c
 *	  The queue of outer rows that were fetched before the join asked for them.
 *
 * Behaviours (the picture is in inner_prefetch.c)
 *	BOUNDED: where the join may end early, the queue holds at most one row more than were
 *	   returned since the join started or was rescanned, and below a LIMIT no more than will be
 *	   wanted at the rate so far.  pg_lookahead.force lifts this.
 *	COPIED: rows are copied into slots of the outer child's own kind, since compiled
 *	   expressions of the join may rely on it.  The copies hold no pin on a buffer.  When they
 *	   have used up the budget, no row is fetched.  A copy lives until the join asks for the
 *	   next row, as long as the row in the outer child's own slot would.
 *	COUNTED WHEN RETURNED: rows are fetched below the outer child's instrumentation
 *	   (attach/interpose_node.c), so EXPLAIN ANALYZE counts a row of the outer child when it is
 *	   returned to the join.  Nodes below the outer child have counted it by then.
 *
 * Invariant: rows are returned in the order in which they were fetched, each once.
 *
 * src/nestloop/outerqueue.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "nestloop/outerqueue.h"

/* Behaviour BOUNDED. */
static bool
may_fetch(const LaOuterQueue *queue)
{
	LaNestLoop *join = queue->join;
	const LimitState *limit;
	int64		queued = queue->tail - queue->head;
	int64		wanted;

	if (queue->at_end || queued >= LA_QUEUE_SIZE - 1 ||
		(queued > 0 && !la_nestloop_reads_ahead(join) && !la_cache_policy_is_armed(&join->rows)))
		return false;
	if (queued == 0 || join->heap.policy.config.force || la_nestloop_takes_all(join))
		return true;
	if (queued > join->returned)
		return false;
	limit = join->ahead.context.limit;
	wanted = la_demand_rows_wanted(limit);
	return wanted == PG_INT64_MAX || limit->position <= 0 ||
		queued <= 1 + (double) wanted * join->returned / limit->position;
}

/* Behaviour COPIED: is there memory for one more copy? */
static bool
has_memory(LaOuterQueue *queue)
{
	LaBudget   *budget = &queue->join->budget;
	uint64		queued = queue->tail - queue->head;
	Size		now = la_budget_follow(budget, queue->context, &queue->accounted);

	return queued == 0 || la_budget_has(budget, now / queued);
}

/* The join is done with the row that was returned last. */
static void
clear_returned(LaOuterQueue *queue)
{
	if (queue->returned != NULL)
		ExecClearTuple(queue->returned);
	queue->returned = NULL;
}

/* Forget what is known of the row's inner side. */
void
la_outerqueue_reset_row(LaOuterRow *row)
{
	row->state = ROW_FRESH;
	row->inner = LA_NO_INNER;
	row->leaf_foreseen = row->matches_kept = false;
	row->nvisits = row->nmatches = 0;
}

static void
append(LaOuterQueue *queue, TupleTableSlot *slot)
{
	LaOuterRow *row = la_outerqueue_at(queue, queue->tail);
	MemoryContext old = MemoryContextSwitchTo(queue->context);

	if (row->slot == NULL)
	{
		PlanState  *outer = queue->join->outer;
		bool		fixed;
		const TupleTableSlotOps *ops = ExecGetResultSlotOps(outer, &fixed);

		row->slot = la_alloc_table_slot(&outer->state->es_tupleTable, ExecGetResultType(outer),
										fixed ? ops : &TTSOpsVirtual);
	}
	ExecCopySlot(row->slot, slot);
	ExecMaterializeSlot(row->slot);
	MemoryContextSwitchTo(old);
	la_outerqueue_reset_row(row);
	queue->tail++;
}

/* Row number n; rows up to it are fetched.  NULL if that is not possible now. */
LaOuterRow *
la_outerqueue_row(LaOuterQueue *queue, uint64 n)
{
	Assert(n >= queue->head);
	while (queue->tail <= n)
	{
		TupleTableSlot *slot;

		if (!may_fetch(queue) || !has_memory(queue))
			return NULL;
		slot = la_nestloop_outer_row(queue->join);
		if (TupIsNull(slot))
		{
			queue->at_end = true;
			return NULL;
		}
		append(queue, slot);
	}
	return la_outerqueue_at(queue, n);
}

/* The join asks for the next row.  Returns NULL if there is none. */
LaOuterRow *
la_outerqueue_head(LaOuterQueue *queue)
{
	clear_returned(queue);
	return la_outerqueue_row(queue, queue->head);
}

/* Return that row to the join. */
TupleTableSlot *
la_outerqueue_return_head(LaOuterQueue *queue)
{
	queue->returned = la_outerqueue_at(queue, queue->head)->slot;
	queue->head++;
	return queue->returned;
}

void
la_outerqueue_clear(LaOuterQueue *queue)
{
	clear_returned(queue);
	for (; queue->head < queue->tail; queue->head++)
		ExecClearTuple(la_outerqueue_at(queue, queue->head)->slot);
	queue->at_end = false;
}
