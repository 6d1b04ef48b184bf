/*
 * cache_prefetch.c
 *	  Rows whose pages are all in shared buffers: the CPU is told ahead.
 *
 * Where nothing has to be read, what a nested loop waits for is memory: the leaf
 * page's header, its items during the binary search, the heap page's line pointer, the
 * tuple.  Each of these depends on the one before, so for one row they are waited for
 * in turn; but not for many rows in turn, a stage of each at a time:
 *
 *		distance:     K            3/4 K           K/2             K/4          0
 *		         leaf page     its middle     searched for     the tuples    handed
 *		         found and      items are     the matches,     are touched   over, with
 *		         touched         touched      whose pages are                its matches
 *		                                      touched
 *
 * (Asynchronous memory access chaining: Kocberber, Falsafi, Grot, 2015.)  It pays only
 * because the inner scan does not search once more (inner_prefetch.c, behaviour G), and not always
 * then.  So it is gated by the time that rows take: LaNestLoop.rows is a policy of which a
 * visit is an outer row (window/cache_policy.c).
 *
 * A row one of whose pages is not in shared buffers is left to the inner scan.  The
 * queue then is told of a miss, and this ends.
 *
 * src/nestloop/cache_prefetch.c
 */
#include "postgres.h"

#include "storage/bufmgr.h"

#include "nestloop/inner_prefetch.h"
#include "window/issue.h"

/* Stage 1.  Returns false if there is no such row. */
static bool
find(LaNestLoop *join, uint64 n)
{
	Row		   *row = la_outerqueue_row(join, n);

	if (row == NULL)
		return false;
	if (la_innerprefetch_find_leaf(join, row, false) && row->state == ROW_LEAF &&
		la_issue_is_cached(inner_of(join, row)->index, row->leaf, &row->recent))
		la_issue_touch_page(row->recent, FirstOffsetNumber);
	else
		row->state = ROW_LOCATED;	/* with nothing to show for it */
	return true;
}

/* Stage 3. */
static void
search(LaNestLoop *join, Row *row)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	Buffer		buffer = InvalidBuffer;

	if (!la_innerprefetch_has_room(prefetch))
	{
		row->state = ROW_LOCATED;
		return;
	}
	(void) la_issue_read(inner_of(join, row)->index, row->leaf, row->recent, false,
						 false, &buffer);
	la_innerprefetch_search_leaf(join, row, &buffer);
	for (int i = 0; i < row->nvisits; i++)
	{
		LaForeseen *visit = visit_of(prefetch, row->first_visit + i);
		Buffer	   *recent = recent_of(prefetch, row->first_visit + i);

		join->heap.counters.c[LA_BLOCKS_FORESEEN]++;
		if (la_issue_is_cached(inner_of(join, row)->heap, visit->block, recent))
		{
			join->heap.counters.c[LA_BLOCKS_CACHED]++;
			la_issue_touch_page(*recent, visit->offset);
		}
		else
			*recent = InvalidBuffer;
	}
}

/* Stage 4. */
static void
touch_tuples(LaInnerPrefetch *prefetch, Row *row)
{
	for (int i = 0; i < row->nvisits; i++)
	{
		LaForeseen *visit = visit_of(prefetch, row->first_visit + i);
		Buffer		recent = *recent_of(prefetch, row->first_visit + i);

		if (BufferIsValid(recent))
			la_issue_touch_tuple(recent, visit->offset);
	}
}

/*
 * The row at the head is about to be handed over: bring each stage as far as it should
 * be.
 */
void
la_cacheprefetch_rows(LaNestLoop *join)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	uint64		distance = join->rows.config.distance;
	uint64		end;

	prefetch->to_find = Max(prefetch->to_find, prefetch->head);
	while (prefetch->to_find <= prefetch->head + distance && find(join, prefetch->to_find))
		prefetch->to_find++;

	end = Min(prefetch->to_find, prefetch->head + distance * 3 / 4 + 1);
	prefetch->to_touch_items = Max(prefetch->to_touch_items, prefetch->head);
	for (; prefetch->to_touch_items < end; prefetch->to_touch_items++)
	{
		Row		   *row = row_of(prefetch, prefetch->to_touch_items);

		if (row->state == ROW_LEAF)
			la_issue_touch_items(row->recent);
	}

	end = Min(prefetch->to_find, prefetch->head + distance / 2 + 1);
	prefetch->to_locate = Max(prefetch->to_locate, prefetch->head);
	for (; prefetch->to_locate < end; prefetch->to_locate++)
	{
		Row		   *row = row_of(prefetch, prefetch->to_locate);

		if (row->state == ROW_LEAF)
			search(join, row);
	}

	end = Min(prefetch->to_locate, prefetch->head + distance / 4 + 1);
	prefetch->to_touch_tuples = Max(prefetch->to_touch_tuples, prefetch->head);
	for (; prefetch->to_touch_tuples < end; prefetch->to_touch_tuples++)
		touch_tuples(prefetch, row_of(prefetch, prefetch->to_touch_tuples));
}
