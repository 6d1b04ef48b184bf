/*
 * childqueue.c
 *	  The queue of a child's rows that were fetched before the parent asked for them.
 *
 *		parent <--- head [ row | row | row | row ] tail <--- child
 *
 * Behaviours
 *	COPIED: rows are copied into slots of the child's own kind, since compiled expressions of the
 *	   parent may rely on it.  The copies hold no pin on a buffer.  When they have used up the
 *	   budget, no row is fetched.  A copy lives until the parent asks for the next row, as long as
 *	   the row in the child's own slot would.
 *	COUNTED WHEN RETURNED: rows are fetched below the child's instrumentation
 *	   (attach/interpose_node.c), so EXPLAIN ANALYZE counts a row of the child when it is
 *	   returned to the parent.  Nodes below the child have counted it by then.
 *
 * Invariant: rows are returned in the order in which they were fetched, each once.
 *
 * src/rows/childqueue.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "rows/childqueue.h"

/* The interposer is that of the child's output; context: lives as long as the query. */
void
la_childqueue_init(LaChildQueue *queue, const LaInterposer *interposer, MemoryContext context,
				   LaBudget *budget)
{
	queue->child = interposer->node;
	queue->interposer = interposer;
	queue->budget = budget;
	queue->context = AllocSetContextCreate(context, "pg_lookahead outer rows",
										   ALLOCSET_DEFAULT_SIZES);
}

/* Behaviour COPIED: is there memory for one more copy? */
static bool
has_memory(LaChildQueue *queue)
{
	uint64		queued = queue->tail - queue->head;
	Size		now = la_budget_follow(queue->budget, queue->context, &queue->accounted);

	return queued == 0 || la_budget_has(queue->budget, now / queued);
}

/* The parent is done with the row that was returned last. */
void
la_childqueue_release(LaChildQueue *queue)
{
	if (queue->returned != NULL)
		ExecClearTuple(queue->returned);
	queue->returned = NULL;
}

static void
append(LaChildQueue *queue, TupleTableSlot *slot)
{
	TupleTableSlot **copy = &queue->slots[queue->tail & (LA_QUEUE_SIZE - 1)];
	MemoryContext old = MemoryContextSwitchTo(queue->context);

	if (*copy == NULL)
	{
		PlanState  *child = queue->child;
		bool		fixed;
		const TupleTableSlotOps *ops = ExecGetResultSlotOps(child, &fixed);

		*copy = la_alloc_table_slot(&child->state->es_tupleTable, ExecGetResultType(child),
									fixed ? ops : &TTSOpsVirtual);
	}
	ExecCopySlot(*copy, slot);
	ExecMaterializeSlot(*copy);
	MemoryContextSwitchTo(old);
	queue->tail++;
}

/* Row number n; rows up to it are fetched.  NULL if that is not possible now. */
TupleTableSlot *
la_childqueue_row(LaChildQueue *queue, uint64 n)
{
	Assert(n >= queue->head);
	while (queue->tail <= n)
	{
		int64		queued = queue->tail - queue->head;
		TupleTableSlot *slot;

		if (queue->at_end || queued >= LA_QUEUE_SIZE - 1 ||
			!queue->may_fetch(queue->arg, queued) || !has_memory(queue))
			return NULL;
		slot = queue->interposer->below(queue->child);
		if (TupIsNull(slot))
		{
			queue->at_end = true;
			return NULL;
		}
		append(queue, slot);
	}
	return la_childqueue_at(queue, n);
}

/* The parent asks for the next row.  Returns NULL if there is none. */
TupleTableSlot *
la_childqueue_head(LaChildQueue *queue)
{
	la_childqueue_release(queue);
	return la_childqueue_row(queue, queue->head);
}

/* Return that row to the parent. */
TupleTableSlot *
la_childqueue_return_head(LaChildQueue *queue)
{
	queue->returned = la_childqueue_at(queue, queue->head);
	queue->head++;
	return queue->returned;
}

void
la_childqueue_clear(LaChildQueue *queue)
{
	la_childqueue_release(queue);
	for (; queue->head < queue->tail; queue->head++)
		ExecClearTuple(la_childqueue_at(queue, queue->head));
	queue->at_end = false;
}
