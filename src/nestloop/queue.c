/*
 * queue.c
 *	  Outer rows that were taken before their turn.
 *
 *	outer child --> [ row | row | row | row | row | row | row ] --> join (stock)
 *	   (run ahead)    tail                               head
 *
 * Behaviours
 *	A. A row is pulled when somebody wants to look at it, never for its own sake.
 *	B. Where rows may be left, no more are pulled ahead than were handed over since
 *	   the join started or was rescanned, and below a LIMIT no more than will
 *	   be wanted at the rate so far.
 *	C. Rows are copied into slots of the outer child's own kind (compiled
 *	   expressions of the join may rely on it), without a pin on any buffer.  When
 *	   the copies have taken the memory that the budget allows, none are pulled.  A
 *	   copy lives until the next row is handed over, as long as the outer child's
 *	   own slot would.
 *	H. Rows are pulled below the outer child's instrumentation (attach/takeover.c), so
 *	   EXPLAIN ANALYZE counts a row of the outer child when it is handed over.  (Nodes
 *	   below the outer child have counted it by then.)
 *
 * Invariant: rows are handed over in the order in which they were pulled, each once.
 *
 * src/nestloop/queue.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "nestloop/scout.h"

void
la_queue_init(LaJoin *join, LaScout *scout)
{
	bool		fixed;

	scout->context = AllocSetContextCreate(join->context,
										   "pg_lookahead outer rows",
										   ALLOCSET_DEFAULT_SIZES);
	scout->ops = ExecGetResultSlotOps(join->outer, &fixed);
	if (!fixed)
		scout->ops = &TTSOpsVirtual;
	scout->desc = ExecGetResultType(join->outer);
}

/* Behaviour B. */
static bool
may_pull(LaJoin *join)
{
	LaScout    *scout = join->scout;
	const LimitState *limit;
	int64		queued = scout->tail - scout->head;
	int64		wanted;

	if (scout->eof || queued >= MAX_ROWS - 1 ||
		(queued > 0 && !la_join_looks_ahead(join)))
		return false;
	if (queued == 0 || join->heap.policy.config.force ||
		la_join_takes_all(join))
		return true;
	if (queued > join->handed)
		return false;
	limit = join->ahead.context.limit;
	wanted = la_attach_rows_wanted(limit);
	return wanted == PG_INT64_MAX || limit->position <= 0 ||
		queued <= 1 + (double) wanted * join->handed / limit->position;
}

/* Behaviour C. */
static bool
has_room(LaJoin *join)
{
	LaScout    *scout = join->scout;
	uint64		queued = scout->tail - scout->head;
	Size		now = MemoryContextMemAllocated(scout->context, false);

	if (now > scout->accounted)
		la_budget_take(&join->budget, now - scout->accounted);
	else
		la_budget_return(&join->budget, scout->accounted - now);
	scout->accounted = now;
	return queued == 0 || la_budget_has(&join->budget, now / queued);
}

/* The join is done with the row handed over last. */
static void
forget_last(LaScout *scout)
{
	if (scout->last != NULL)
		ExecClearTuple(scout->last);
	scout->last = NULL;
}

void
la_queue_reset_row(Row *row)
{
	row->state = ROW_FRESH;
	row->inner = NO_INNER;
	row->told = row->complete = false;
	row->nvisits = row->nmatches = 0;
}

static void
keep(LaScout *scout, Row *row, TupleTableSlot *slot, EState *estate)
{
	MemoryContext old = MemoryContextSwitchTo(scout->context);

	if (row->slot == NULL)
		row->slot = la_alloc_table_slot(&estate->es_tupleTable, scout->desc,
										scout->ops);
	ExecCopySlot(row->slot, slot);
	ExecMaterializeSlot(row->slot);
	MemoryContextSwitchTo(old);
	la_queue_reset_row(row);
}

/*
 * The row of that number; pulls up to it.  NULL if it cannot be had now.
 */
Row *
la_queue_row(LaJoin *join, uint64 n)
{
	LaScout    *scout = join->scout;

	Assert(n >= scout->head);
	while (scout->tail <= n)
	{
		TupleTableSlot *slot;

		if (!may_pull(join) || !has_room(join))
			return NULL;
		slot = la_join_outer_row(join);
		if (TupIsNull(slot))
		{
			scout->eof = true;
			return NULL;
		}
		keep(scout, row_of(scout, scout->tail), slot, join->estate);
		scout->tail++;
	}
	return row_of(scout, n);
}

/*
 * The row that is to be handed over next, NULL if there is none.
 */
Row *
la_queue_head(LaJoin *join)
{
	forget_last(join->scout);
	return la_queue_row(join, join->scout->head);
}

/* It goes to the join. */
TupleTableSlot *
la_queue_hand_over(LaJoin *join)
{
	LaScout    *scout = join->scout;
	Row		   *row = row_of(scout, scout->head);

	if (row->nvisits > 0)
		scout->first_visit = row->first_visit + row->nvisits;
	if (row->complete)
		scout->first_match = row->first_match;
	scout->head++;
	scout->last = row->slot;
	return row->slot;
}

bool
la_scout_has_rows(LaJoin *join)
{
	return join->scout != NULL && join->scout->head < join->scout->tail;
}

/* Has the outer child said that it has no more?  It must not be asked again. */
bool
la_scout_is_at_end(LaJoin *join)
{
	return join->scout != NULL && join->scout->eof &&
		join->scout->head == join->scout->tail;
}

void
la_queue_clear(LaScout *scout)
{
	forget_last(scout);
	for (; scout->head < scout->tail; scout->head++)
		ExecClearTuple(row_of(scout, scout->head)->slot);
	scout->first_visit = scout->end_visit;
	scout->first_match = scout->end_match;
	scout->eof = false;
}
