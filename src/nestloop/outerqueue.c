/*
 * outerqueue.c
 *	  The queue of outer rows that were fetched before the join asked for them, and what their
 *	  inner scans will need.
 *
 * Behaviour BOUNDED (the picture is in inner_prefetch.c): where the join may end early, the queue
 * holds at most one row more than were returned since the join started or was rescanned, and below
 * a LIMIT no more than will be wanted at the rate so far.  pg_lookahead.force lifts this.
 *
 * src/nestloop/outerqueue.c
 */
#include "postgres.h"

#include "nestloop/nestloop_int.h"

/* Behaviour BOUNDED. */
static bool
may_fetch(void *arg, int64 queued)
{
	const LaNestLoop *join = arg;

	if (queued > 0 && !la_nestloop_reads_ahead(join) &&
		!la_cache_policy_is_armed(&join->cached_rows))
		return false;
	return queued == 0 || join->heap.policy.config.force ||
		la_runahead_may_fetch(&join->ahead.context, join->estate, queued, join->returned);
}

void
la_outerqueue_init(LaOuterQueue *queue, LaNestLoop *join)
{
	la_childqueue_init(&queue->rows, join->interposer, join->context, &join->budget);
	queue->rows.keeps_errors = join->ahead.keeps_errors;
	queue->rows.may_fetch = may_fetch;
	queue->rows.arg = join;
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

/* Row number n; rows up to it are fetched.  NULL if that is not possible now. */
LaOuterRow *
la_outerqueue_row(LaOuterQueue *queue, uint64 n)
{
	uint64		known = queue->rows.tail;
	TupleTableSlot *slot = la_childqueue_row(&queue->rows, n, false);

	for (; known < queue->rows.tail; known++)
	{
		LaOuterRow *row = la_outerqueue_at(queue, known);

		row->slot = la_childqueue_at(&queue->rows, known);
		la_outerqueue_reset_row(row);
	}
	return slot == NULL ? NULL : la_outerqueue_at(queue, n);
}

/* The join asks for the next row.  Returns NULL if there is none. */
LaOuterRow *
la_outerqueue_head(LaOuterQueue *queue)
{
	la_childqueue_release(&queue->rows);
	return la_outerqueue_row(queue, queue->rows.head);
}
