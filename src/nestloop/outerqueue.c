/*
 * outerqueue.c
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
 *	H. Rows are pulled below the outer child's instrumentation (attach/interpose_node.c), so
 *	   EXPLAIN ANALYZE counts a row of the outer child when it is handed over.  (Nodes
 *	   below the outer child have counted it by then.)
 *
 * Invariant: rows are handed over in the order in which they were pulled, each once.
 *
 * src/nestloop/outerqueue.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "nestloop/inner_prefetch.h"

void
la_outerqueue_init(LaNestLoop *join, LaInnerPrefetch *prefetch)
{
	bool		fixed;

	prefetch->context = AllocSetContextCreate(join->context,
											  "pg_lookahead outer rows",
											  ALLOCSET_DEFAULT_SIZES);
	prefetch->ops = ExecGetResultSlotOps(join->outer, &fixed);
	if (!fixed)
		prefetch->ops = &TTSOpsVirtual;
	prefetch->desc = ExecGetResultType(join->outer);
}

/* Behaviour B. */
static bool
may_pull(LaNestLoop *join)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	const LimitState *limit;
	int64		queued = prefetch->tail - prefetch->head;
	int64		wanted;

	if (prefetch->eof || queued >= MAX_ROWS - 1 ||
		(queued > 0 && !la_nestloop_looks_ahead(join)))
		return false;
	if (queued == 0 || join->heap.policy.config.force ||
		la_nestloop_takes_all(join))
		return true;
	if (queued > join->handed)
		return false;
	limit = join->ahead.context.limit;
	wanted = la_demand_rows_wanted(limit);
	return wanted == PG_INT64_MAX || limit->position <= 0 ||
		queued <= 1 + (double) wanted * join->handed / limit->position;
}

/* Behaviour C. */
static bool
has_room(LaNestLoop *join)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	uint64		queued = prefetch->tail - prefetch->head;
	Size		now = MemoryContextMemAllocated(prefetch->context, false);

	if (now > prefetch->accounted)
		la_budget_take(&join->budget, now - prefetch->accounted);
	else
		la_budget_return(&join->budget, prefetch->accounted - now);
	prefetch->accounted = now;
	return queued == 0 || la_budget_has(&join->budget, now / queued);
}

/* The join is done with the row handed over last. */
static void
forget_last(LaInnerPrefetch *prefetch)
{
	if (prefetch->last != NULL)
		ExecClearTuple(prefetch->last);
	prefetch->last = NULL;
}

void
la_outerqueue_reset_row(Row *row)
{
	row->state = ROW_FRESH;
	row->inner = NO_INNER;
	row->told = row->complete = false;
	row->nvisits = row->nmatches = 0;
}

static void
keep(LaInnerPrefetch *prefetch, Row *row, TupleTableSlot *slot, EState *estate)
{
	MemoryContext old = MemoryContextSwitchTo(prefetch->context);

	if (row->slot == NULL)
		row->slot = la_alloc_table_slot(&estate->es_tupleTable, prefetch->desc,
										prefetch->ops);
	ExecCopySlot(row->slot, slot);
	ExecMaterializeSlot(row->slot);
	MemoryContextSwitchTo(old);
	la_outerqueue_reset_row(row);
}

/*
 * The row of that number; pulls up to it.  NULL if it cannot be had now.
 */
Row *
la_outerqueue_row(LaNestLoop *join, uint64 n)
{
	LaInnerPrefetch *prefetch = join->prefetch;

	Assert(n >= prefetch->head);
	while (prefetch->tail <= n)
	{
		TupleTableSlot *slot;

		if (!may_pull(join) || !has_room(join))
			return NULL;
		slot = la_nestloop_outer_row(join);
		if (TupIsNull(slot))
		{
			prefetch->eof = true;
			return NULL;
		}
		keep(prefetch, row_of(prefetch, prefetch->tail), slot, join->estate);
		prefetch->tail++;
	}
	return row_of(prefetch, n);
}

/*
 * The row that is to be handed over next, NULL if there is none.
 */
Row *
la_outerqueue_head(LaNestLoop *join)
{
	forget_last(join->prefetch);
	return la_outerqueue_row(join, join->prefetch->head);
}

/* It goes to the join. */
TupleTableSlot *
la_outerqueue_hand_over(LaNestLoop *join)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	Row		   *row = row_of(prefetch, prefetch->head);

	if (row->nvisits > 0)
		prefetch->first_visit = row->first_visit + row->nvisits;
	if (row->complete)
		prefetch->first_match = row->first_match;
	prefetch->head++;
	prefetch->last = row->slot;
	return row->slot;
}

bool
la_innerprefetch_has_rows(LaNestLoop *join)
{
	return join->prefetch != NULL && join->prefetch->head < join->prefetch->tail;
}

/* Has the outer child said that it has no more?  It must not be asked again. */
bool
la_innerprefetch_is_at_end(LaNestLoop *join)
{
	return join->prefetch != NULL && join->prefetch->eof &&
		join->prefetch->head == join->prefetch->tail;
}

void
la_outerqueue_clear(LaInnerPrefetch *prefetch)
{
	forget_last(prefetch);
	for (; prefetch->head < prefetch->tail; prefetch->head++)
		ExecClearTuple(row_of(prefetch, prefetch->head)->slot);
	prefetch->first_visit = prefetch->end_visit;
	prefetch->first_match = prefetch->end_match;
	prefetch->eof = false;
}
