/*
 * cache_prefetch.c
 *	  Cached pages, touched in stages for many outer rows.
 *
 * Where nothing has to be read, a nested loop waits for memory: the leaf page's header, its
 * items during the binary search, the heap page's line pointer, the tuple.  For one row each of
 * these accesses depends on the one before.  So each is a stage, and the rows in the queue go
 * through the stages one behind the other, at these distances from the head:
 *
 *		 K                 3/4 K              K/2               1/4 K           0
 *		 |-----------------|------------------|-----------------|---------------|
 *		 find_leaf:        touch_items:       find_matches:     touch_tuples    returned,
 *		 its header is     where the search   their heap pages                  with its
 *		 touched           of it will begin   are touched                       matches
 *
 * (Asynchronous memory access chaining: Kocberber, Falsafi, Grot, 2015.)  That is faster only
 * because the inner scan does not search again (behaviour REUSE of inner_prefetch.c), and even
 * then not always.  So LaNestLoop.rows, a policy whose visits are outer rows, times rows with
 * and without it.
 *
 * A row that needs a page outside shared buffers is left to the inner scan.  Its read is a
 * miss for the policy, which ends the cache prefetch.
 *
 * src/nestloop/cache_prefetch.c
 */
#include "postgres.h"

#include "storage/bufmgr.h"

#include "nestloop/nestloop_int.h"
#include "window/window.h"

static Buffer *
recent_of(LaCachePrefetch *cache, const LaOuterRow *row, int i)
{
	return &cache->recent[(row->first_visit + i) & (LA_MAX_VISITS - 1)];
}

static void
find_leaf(LaCachePrefetch *cache, LaOuterRow *row)
{
	LaInnerSearch *search = cache->search;

	if (la_innersearch_find_leaf(search, row, false) && row->state == ROW_LEAF &&
		la_issue_is_cached(la_innersearch_inner(search, row)->s.index, row->leaf,
						   &row->leaf_recent))
		la_issue_touch_page(row->leaf_recent, FirstOffsetNumber);
	else
		row->state = ROW_LOCATED;	/* without heap blocks */
}

static void
touch_items(LaCachePrefetch *cache, LaOuterRow *row)
{
	if (row->state == ROW_LEAF)
		la_issue_touch_items(row->leaf_recent);
}

static void
find_matches(LaCachePrefetch *cache, LaOuterRow *row)
{
	LaInnerSearch *search = cache->search;
	LaCounters *counters = &search->join->heap.counters;
	Buffer		buffer = InvalidBuffer;
	LaInner    *inner;

	if (row->state != ROW_LEAF)
		return;
	if (!la_innersearch_has_room(search))
	{
		row->state = ROW_LOCATED;
		return;
	}
	inner = la_innersearch_inner(search, row);
	(void) la_issue_read(inner->s.index, row->leaf, row->leaf_recent, false, false, &buffer);
	la_innersearch_search_leaf(search, row, &buffer);
	for (int i = 0; i < row->nvisits; i++)
	{
		LaForeseen *visit = la_innersearch_visit(search, row, i);
		Buffer	   *recent = recent_of(cache, row, i);

		counters->c[LA_BLOCKS_FORESEEN]++;
		if (la_issue_is_cached(inner->s.heap, visit->block, recent))
		{
			counters->c[LA_BLOCKS_CACHED]++;
			la_issue_touch_page(*recent, visit->offset);
		}
		else
			*recent = InvalidBuffer;
	}
}

static void
touch_tuples(LaCachePrefetch *cache, LaOuterRow *row)
{
	for (int i = 0; i < row->nvisits; i++)
	{
		Buffer		recent = *recent_of(cache, row, i);

		if (BufferIsValid(recent))
			la_issue_touch_tuple(recent,
								 la_innersearch_visit(cache->search, row, i)->offset);
	}
}

static void (*const stages[LA_CACHE_STAGES]) (LaCachePrefetch *, LaOuterRow *) =
{
	find_leaf, touch_items, find_matches, touch_tuples
};

/*
 * The row at the head is about to be returned: advance each stage to its distance.  The first
 * one fetches rows, the others do not overtake the stage before them.
 */
void
la_cacheprefetch_advance(LaCachePrefetch *cache)
{
	LaOuterQueue *queue = cache->queue;
	uint64		distance = cache->search->join->cached_rows.config.distance;

	for (int i = 0; i < LA_CACHE_STAGES; i++)
	{
		uint64	   *next = &cache->next[i];
		uint64		end = queue->rows.head + distance * (LA_CACHE_STAGES - i) / LA_CACHE_STAGES + 1;

		if (i > 0)
			end = Min(end, next[-1]);
		for (*next = Max(*next, queue->rows.head); *next < end; (*next)++)
		{
			LaOuterRow *row = la_outerqueue_row(queue, *next);

			if (row == NULL)
				break;
			stages[i] (cache, row);
		}
	}
}
