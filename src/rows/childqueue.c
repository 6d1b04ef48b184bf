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
 *	KEPT ERROR: if the child may fail (keeps_errors), an error of a row that is fetched early is
 *	   kept and raised when the parent asks for that row.  The child is not executed again.
 *
 * Invariant: rows are returned in the order in which they were fetched, each once.
 *
 * src/rows/childqueue.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "base/base.h"
#include "base/compat.h"
#include "rows/rows.h"

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

static void
execute_child(void *arg)
{
	LaChildQueue *queue = arg;

	queue->fetched = queue->interposer->below(queue->child);
}

/* Have the child return its next row.  Returns false if there is none, or it has failed. */
static bool
fetch(LaChildQueue *queue, bool early)
{
	if (early && queue->keeps_errors)
		queue->error = la_attempt_compute_kept(execute_child, queue, queue->context);
	else
		execute_child(queue);
	if (queue->error != NULL)
		return false;
	queue->at_end = TupIsNull(queue->fetched);
	return !queue->at_end;
}

/*
 * Row number n; rows up to it are fetched.  NULL if that is not possible now.  early: the parent
 * has not asked for the first row of the queue yet.
 */
TupleTableSlot *
la_childqueue_row(LaChildQueue *queue, uint64 n, bool early)
{
	Assert(n >= queue->head);
	while (queue->tail <= n)
	{
		int64		queued = queue->tail - queue->head;

		early |= queued > 0;
		if (queue->error != NULL && !early)
			la_attempt_raise(queue->error);
		if (queue->at_end || queue->error != NULL || queued >= LA_QUEUE_SIZE - 1 ||
			(early && queue->keeps_errors && !la_attempt_is_allowed()) ||
			!queue->may_fetch(queue->arg, queued) || !has_memory(queue) ||
			!fetch(queue, early))
			return NULL;
		append(queue, queue->fetched);
	}
	return la_childqueue_at(queue, n);
}

/* The parent asks for the next row.  Returns NULL if there is none. */
TupleTableSlot *
la_childqueue_head(LaChildQueue *queue)
{
	la_childqueue_release(queue);
	return la_childqueue_row(queue, queue->head, false);
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
