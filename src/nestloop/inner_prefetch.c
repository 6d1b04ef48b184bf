/*
 * inner_prefetch.c
 *	  What the inner scans of queued outer rows read, started ahead of them.
 *
 *	outer child --> [ row | row | row | row | row | row | row ] --> join (stock)
 *	                 tail    ^             ^             ^ head
 *	                    leaf page       leaf read,    heap blocks
 *	                    found, its      heap blocks   visited, row
 *	                    read started    issued        returned
 *
 * Two windows, one behind the other.  The heap window's producer needs a row's matches, so it
 * visits the row's leaf page; the leaf window's producer needs a row's leaf page, so it
 * searches the inner pages, and fetches rows from the outer child.  Each window has its own
 * policy: only the heap window is used in a join whose leaf pages are cached, only the other
 * in an index-only scan.
 *
 * Behaviours
 *	RAMP: a row is fetched when a window asks for visits beyond the last row.  So the number
 *	   of queued rows follows the policy's distance, which begins at 2 and doubles, unless all
 *	   rows will be taken, or it is known from earlier executions how many.
 *	VISIT: before a row is returned, its heap blocks are visited through the window, as an
 *	   index scan's are: read into shared buffers, timed, and released.  The join's inner scan
 *	   finds them there.  It may end before it has come to all of them, so that one which cannot
 *	   be read is left to it.
 *	SHARED LEAF: successive rows that share a leaf page make one visit of it.
 *	DEFERRED ROW: where an inner page is not cached, its read is started, and the search
 *	   repeated when the row is half as far away.  The leaf page is then issued without the
 *	   window.
 *	REUSE: where the key is all that the inner scan searches for, the scan takes the matches
 *	   instead of searching again.  Rooms do not call each other, so attach/ passes on a
 *	   LaTidSource, a callback that returns row addresses:
 *
 *		once for each inner scan: offer_matches() --> la_attach_tidsource() --> scan/ keeps it
 *		for each outer row: rescan of the inner scan --> scan/ --> begin_scan() --> matches,
 *			or false: then the access method searches as usual
 *
 *	   The callback's row is `current`, which was returned last.
 *	CACHE PREFETCH: where nothing has to be read, rows go through cache_prefetch.c instead of
 *	   the windows.
 *
 * Invariants
 *	- An error of the prefetch costs time only, since the join evaluates everything again.
 *	  Where matches are reused, they are what the inner scan would have found.
 *	- A window gets the visits that its producer named, in that order, and no others: leaf
 *	  pages of rows with leaf_foreseen, and all heap blocks of all rows.
 *	- No buffer is pinned and no lock held when a row is returned or fetched, except for a pin
 *	  on one page of the visibility map.
 *
 * src/nestloop/inner_prefetch.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "attach/attach.h"
#include "base/base.h"
#include "nestloop/nestloop_int.h"
#include "rows/rows.h"
#include "window/window.h"

#define MAX_OFFERS		4		/* to an inner scan that does not take matches */

/* The producer of the leaf window.  Leaf pages are numbers made by leaf_id(). */
typedef struct LeafProducer
{
	uint64		next_row;		/* to be foreseen */
	uint64		foreseen_leaf;	/* last */
	uint64		visited_row;	/* last, or being visited */
	uint64		visited_leaf;	/* last */
	bool		deferred;		/* rows before next_row may be deferred */
} LeafProducer;

/* The producer of the heap window. */
typedef struct HeapProducer
{
	uint64		next_row;		/* to be foreseen */
	int			next_visit;		/* of that row */
	int			current_visit;	/* of the row at the head */
} HeapProducer;

struct LaInnerPrefetch
{
	LaNestLoop *join;
	LeafProducer leaf;
	HeapProducer heap;
	LaOuterRow	observed;		/* in state OBSERVE; not in the queue */
	LaOuterRow *current;		/* returned last, if it was searched for */
	bool		reading;		/* looking ahead through the windows */
	bool		touching;		/* looking ahead in cached pages; stays set
								 * while reading */
	LaOuterQueue queue;
	LaInnerSearch search;
	LaCachePrefetch cache;
};

static inline uint64
leaf_id(const LaOuterRow *row)
{
	return la_block_id(row->inner, row->leaf);
}

/* Find the heap blocks of row n, or of the observed row. */
static void
locate(LaInnerPrefetch *prefetch, LaOuterRow *row, uint64 n)
{
	LaReads    *reads = &prefetch->join->leaf;
	LeafProducer *leaf = &prefetch->leaf;
	Buffer		buffer = InvalidBuffer;
	bool		queued = row != &prefetch->observed;
	bool		was_deferred = row->state == ROW_DEFERRED;
	bool		through_window;

	if (row->state == ROW_LOCATED)
		return;
	CHECK_FOR_INTERRUPTS();
	(void) la_innersearch_find_leaf(&prefetch->search, row, true);
	if (row->state == ROW_LOCATED)
		return;
	if (queued && n >= leaf->next_row)
	{
		/* ahead of the leaf window's producer, which continues behind it */
		row->leaf_foreseen = leaf_id(row) != leaf->foreseen_leaf;
		leaf->foreseen_leaf = leaf_id(row);
		leaf->next_row = n + 1;
	}
	through_window = queued ? row->leaf_foreseen && !was_deferred :
		leaf_id(row) != leaf->visited_leaf;

	leaf->visited_row = n;
	if (through_window)
		la_reads_visit(reads, row->inner, row->leaf, queued, &buffer);
	else
	{
		(void) la_issue_read(reads->rels[row->inner], row->leaf, InvalidBuffer,
							 false, false, &buffer);
		la_reads_no_visit(reads);
	}
	leaf->visited_leaf = leaf_id(row);

	la_innersearch_search_leaf(&prefetch->search, row, &buffer);
}

/* Behaviour DEFERRED ROW: repeat the search for rows that are half as far away. */
static void
search_deferred(LaInnerPrefetch *prefetch)
{
	LaInnerSearch *search = &prefetch->search;
	uint64		first = prefetch->heap.next_row;
	uint64		last = prefetch->leaf.next_row;
	uint64		end = first + (last > first ? (last - first) / 2 : 0);

	if (!prefetch->leaf.deferred)
		return;
	prefetch->leaf.deferred = false;
	for (uint64 n = first; n < last; n++)
	{
		LaOuterRow *row = la_outerqueue_at(&prefetch->queue, n);

		if (row->state != ROW_DEFERRED)
			continue;
		prefetch->leaf.deferred = true;
		if (n >= end)
			break;
		CHECK_FOR_INTERRUPTS();
		if (la_innersearch_find_leaf(search, row, true) && row->state == ROW_LEAF)
			la_descent_issue(la_innersearch_inner(search, row)->s.descent, row->leaf);
	}
}

/* The leaf window wants one more visit. */
static bool
next_leaf(void *arg, LaForeseen *visit)
{
	LaInnerPrefetch *prefetch = ((LaNestLoop *) arg)->prefetch;
	LeafProducer *leaf = &prefetch->leaf;
	uint64		ahead = la_io_policy_visits_ahead(&prefetch->join->leaf.policy);

	search_deferred(prefetch);
	while (leaf->next_row < Max(prefetch->heap.next_row, leaf->visited_row) + 1 + ahead)
	{
		LaOuterRow *row = la_outerqueue_row(&prefetch->queue, leaf->next_row);

		if (row == NULL)
			return false;
		leaf->next_row++;
		row->leaf_foreseen = false;
		if (!la_innersearch_find_leaf(&prefetch->search, row, false))
		{
			leaf->deferred = true;
			continue;
		}
		if (row->state != ROW_LEAF || leaf_id(row) == leaf->foreseen_leaf)
			continue;
		row->leaf_foreseen = true;
		leaf->foreseen_leaf = leaf_id(row);
		visit->rel = row->inner;
		visit->block = row->leaf;
		visit->offset = FirstOffsetNumber;
		return true;
	}
	return false;
}

/* The leaf window starts over behind the visit that is being made. */
static void
restart_leaf(void *arg)
{
	LaInnerPrefetch *prefetch = ((LaNestLoop *) arg)->prefetch;
	LeafProducer *leaf = &prefetch->leaf;

	leaf->next_row = leaf->visited_row + 1;
	leaf->foreseen_leaf = leaf_id(la_outerqueue_at(&prefetch->queue, leaf->visited_row));
}

/* The heap window wants one more visit. */
static bool
next_heap(void *arg, LaForeseen *visit)
{
	LaInnerPrefetch *prefetch = ((LaNestLoop *) arg)->prefetch;
	LaInnerSearch *search = &prefetch->search;
	HeapProducer *heap = &prefetch->heap;
	uint64		ahead = la_io_policy_visits_ahead(&prefetch->join->heap.policy);

	while (heap->next_row < prefetch->queue.rows.head + 1 + ahead)
	{
		LaOuterRow *row = la_outerqueue_row(&prefetch->queue, heap->next_row);

		if (row == NULL || (row->state != ROW_LOCATED && !la_innersearch_has_room(search)))
			return false;
		locate(prefetch, row, heap->next_row);
		if (heap->next_visit < row->nvisits)
		{
			*visit = *la_innersearch_visit(search, row, heap->next_visit);
			heap->next_visit++;
			return true;
		}
		heap->next_row++;
		heap->next_visit = 0;
	}
	return false;
}

static void
restart_heap(void *arg)
{
	LaInnerPrefetch *prefetch = ((LaNestLoop *) arg)->prefetch;

	prefetch->heap.next_row = prefetch->queue.rows.head;
	prefetch->heap.next_visit = prefetch->heap.current_visit + 1;
}

/* Behaviour VISIT. */
static void
visit_heap(LaInnerPrefetch *prefetch, const LaOuterRow *row, bool queued)
{
	LaReads    *reads = &prefetch->join->heap;

	for (int i = 0; i < row->nvisits; i++)
	{
		prefetch->heap.current_visit = i;
		la_reads_visit(reads, row->inner,
					   la_innersearch_visit(&prefetch->search, row, i)->block,
					   queued, NULL);
	}
	if (row->nvisits == 0)
		la_reads_no_visit(reads);
}

/* Behaviour REUSE: may the inner scan take the matches from here? */
bool
la_innerprefetch_may_reuse(LaInner *inner)
{
	return la_nestloop_reuse_tids && la_scankeys_get(&inner->s, &inner->join->rows) != NULL &&
		la_scankeys_are_complete(inner->s.keys) && inner->offers < MAX_OFFERS;
}

/* The callback: the inner scan begins, or is rescanned. */
static bool
begin_scan(void *arg, ItemPointer *tids, int *ntids)
{
	LaInner    *inner = arg;
	LaInnerPrefetch *prefetch = inner->join->prefetch;
	LaOuterRow *row = prefetch->current;

	if (row == NULL || !row->matches_kept ||
		inner != la_innersearch_inner(&prefetch->search, row))
		return false;
	*tids = la_innersearch_matches(&prefetch->search, row);
	*ntids = row->nmatches;
	return true;
}

/* Offer them to the inner scan, which can take them once it has been executed. */
static void
offer_matches(LaInnerPrefetch *prefetch, const LaOuterRow *row)
{
	LaTidSource source = {NULL, begin_scan};
	LaInner    *inner;

	if (row->inner == LA_NO_INNER)
		return;
	source.arg = inner = la_innersearch_inner(&prefetch->search, row);
	if (inner->takes_matches || *inner->s.scandesc == NULL ||
		!la_innerprefetch_may_reuse(inner))
		return;
	inner->takes_matches = la_attach_tidsource(inner->s.scan, &source);
	inner->offers++;
}

/* Clear the windows when they are no longer used: what they hold gets stale. */
static void
stop_reading(LaInnerPrefetch *prefetch)
{
	if (!prefetch->reading)
		return;
	prefetch->reading = false;
	la_window_clear(prefetch->join->leaf.window);
	la_window_clear(prefetch->join->heap.window);
}

/* Have the producers skip rows that have been returned. */
static void
catch_up(LaInnerPrefetch *prefetch)
{
	uint64		head = prefetch->queue.rows.head;

	if (prefetch->heap.next_row < head)
	{
		prefetch->heap.next_row = head;
		prefetch->heap.next_visit = 0;
	}
	if (prefetch->leaf.next_row < head)
	{
		prefetch->leaf.next_row = head;
		prefetch->leaf.foreseen_leaf = LA_NO_BLOCK;
	}
}

/* In the current memory context.  Returns NULL if the budget has no room. */
LaInnerPrefetch *
la_innerprefetch_create(LaNestLoop *join)
{
	LaProducer	leaf = {join, next_leaf, restart_leaf};
	LaProducer	heap = {join, next_heap, restart_heap};
	Size		size = sizeof(LaInnerPrefetch) +
		la_window_size(join->leaf.rels, join->ninners, &join->leaf.policy) +
		la_window_size(join->heap.rels, join->ninners, &join->heap.policy);
	LaInnerPrefetch *prefetch;

	if (!la_budget_has(&join->budget, size))
		return NULL;
	la_budget_take(&join->budget, size);

	prefetch = palloc0(sizeof(LaInnerPrefetch));
	prefetch->join = prefetch->search.join = join;
	la_outerqueue_init(&prefetch->queue, join);
	prefetch->leaf.visited_leaf = prefetch->leaf.foreseen_leaf = LA_NO_BLOCK;
	prefetch->cache.queue = &prefetch->queue;
	prefetch->cache.search = &prefetch->search;
	join->leaf.window = la_window_create(join->leaf.rels, join->ninners, leaf,
										 &join->leaf.policy, NULL,
										 &join->leaf.counters, &join->budget);
	join->heap.window = la_window_create(join->heap.rels, join->ninners, heap,
										 &join->heap.policy, NULL,
										 &join->heap.counters, &join->budget);
	return prefetch;
}

/* The next outer row, NULL at the end.  Looks ahead if a policy is armed. */
TupleTableSlot *
la_innerprefetch_next(LaNestLoop *join)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	LaOuterRow *row = la_outerqueue_head(&prefetch->queue);

	prefetch->current = row;
	if (row == NULL)
		return NULL;
	catch_up(prefetch);
	if (la_nestloop_reads_ahead(join))
	{
		if (!prefetch->reading)
			join->heap.counters.c[LA_SCANS_ACTIVATED]++;
		prefetch->reading = true;
		locate(prefetch, row, prefetch->queue.rows.head);
		offer_matches(prefetch, row);
		visit_heap(prefetch, row, true);
	}
	else
	{
		/* behaviour CACHE PREFETCH */
		stop_reading(prefetch);
		if (la_cache_policy_is_armed(&join->cached_rows))
		{
			if (!prefetch->touching)
				join->heap.counters.c[LA_SCANS_ACTIVATED]++;
			prefetch->touching = true;
			la_cacheprefetch_advance(&prefetch->cache);
			offer_matches(prefetch, row);
		}
		else
			prefetch->touching = false;
	}
	la_innersearch_release(&prefetch->search, row);
	return la_childqueue_return_head(&prefetch->queue.rows);
}

/* State OBSERVE: make and time the reads of this row's inner scan. */
void
la_innerprefetch_observe(LaNestLoop *join, TupleTableSlot *outer)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	LaOuterRow *row = &prefetch->observed;

	la_innersearch_release_all(&prefetch->search);
	row->slot = outer;
	la_outerqueue_reset_row(row);
	locate(prefetch, row, 0);
	visit_heap(prefetch, row, false);
	la_innersearch_release(&prefetch->search, row);
	prefetch->current = row;
}

/* The next row is returned without being searched for. */
void
la_innerprefetch_pass(LaNestLoop *join)
{
	if (join->prefetch == NULL)
		return;
	stop_reading(join->prefetch);
	join->prefetch->current = NULL;
}

bool
la_innerprefetch_has_rows(const LaNestLoop *join)
{
	return join->prefetch != NULL && la_childqueue_has_rows(&join->prefetch->queue.rows);
}

/* Have all rows been returned?  If so, the outer child must not be executed again. */
bool
la_innerprefetch_is_at_end(const LaNestLoop *join)
{
	return join->prefetch != NULL && join->prefetch->queue.rows.at_end &&
		!la_innerprefetch_has_rows(join);
}

/* Forget the rows: the join is rescanned, or ends. */
void
la_innerprefetch_clear(LaNestLoop *join)
{
	LaInnerPrefetch *prefetch = join->prefetch;

	if (prefetch == NULL)
		return;
	la_window_clear(join->leaf.window);
	la_window_clear(join->heap.window);
	la_childqueue_clear(&prefetch->queue.rows);
	la_innersearch_release_all(&prefetch->search);
	la_issue_release_map(&prefetch->search.map, &join->budget);
	prefetch->current = NULL;
	prefetch->leaf.deferred = false;
	prefetch->leaf.next_row = prefetch->heap.next_row = prefetch->queue.rows.head;
	prefetch->leaf.foreseen_leaf = prefetch->leaf.visited_leaf = LA_NO_BLOCK;
	prefetch->heap.next_visit = 0;
}
