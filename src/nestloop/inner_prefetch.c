/*
 * inner_prefetch.c
 *	  What the inner scans of the queued outer rows will read.
 *
 *	outer child --> [ row | row | row | row | row | row | row ] --> join (stock)
 *	   (run ahead)    tail    ^             ^             ^ head
 *						leaf page       leaf read,    heap blocks
 *						found, its      heap blocks   visited, row
 *						read started    issued        handed over
 *
 * Two windows, one behind the other.  The heap window's producer needs to know a row's
 * matches, so it visits the row's leaf page; the leaf window's producer needs to
 * know a row's leaf page, so it searches the inner pages, and pulls rows from the
 * outer child.  Each window has its own policy: in a join whose leaf pages
 * are cached, only the heap window works, in an index-only scan only the other.
 *
 * Behaviours (A, B, C, H: outerqueue.c)
 *	A. A row is pulled when a window asks for visits beyond the last row.  So the number
 *	   of queued rows follows the policy's distance, which begins at 2 and
 *	   doubles unless all rows will be taken.
 *	D. When a row is handed over, its blocks are visited through the window, as an
 *	   index scan's are: read into shared buffers, timed, and released.  The join's
 *	   inner scan finds them there.
 *	E. A leaf page is visited once for rows in a row that share it.
 *	F. Where an inner page is not cached, it is issued, and the row put off
 *	   until it is half as near; then its leaf page is issued without the window.
 *	G. Where the key is all that the inner scan searches for, the scan does not search
 *	   once more: it takes the row addresses from here (scan/tidsource.c).
 *	I. Where nothing has to be read, cache_prefetch.c does the looking ahead.
 *	K. Of several inner scans, partitions of one table, a row has the one that
 *	   prune.c names.  All of them share the windows.  A row that has none, or more
 *	   than one, is not looked at.
 *
 * Invariants
 *	- Whatever the prefetch does wrong costs time: the join evaluates everything anew.
 *	  Where addresses are reused, they are what the inner scan would have found.
 *	- The windows are told visits in the order in which they are made: `told`
 *	  rows for leaf pages, all blocks of all rows for the heap.
 *	- No buffer is pinned and no lock held when this file returns or pulls a row, but
 *	  for one page of the visibility map.
 *
 * src/nestloop/inner_prefetch.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "base/guc.h"
#include "nestloop/inner_prefetch.h"
#include "window/issue.h"

#define MAX_OFFERS		4		/* of matches, to the inner scan */

static bool next_leaf(void *arg, LaForeseen *visit);
static void restart_leaf(void *arg);
static bool next_heap(void *arg, LaForeseen *visit);
static void restart_heap(void *arg);

/*
 * Returns NULL if the budget has no room.
 */
LaInnerPrefetch *
la_innerprefetch_create(LaNestLoop *join)
{
	LaProducer	leaf = {join, next_leaf, restart_leaf};
	LaProducer	heap = {join, next_heap, restart_heap};
	Size		size = sizeof(LaInnerPrefetch) +
		la_window_size(join->leaf.rels, join->ninners, &join->leaf.policy) +
		la_window_size(join->heap.rels, join->ninners, &join->heap.policy);
	MemoryContext old;
	LaInnerPrefetch *prefetch;

	if (!la_budget_has(&join->budget, size))
		return NULL;
	la_budget_take(&join->budget, size);

	old = MemoryContextSwitchTo(join->context);
	prefetch = palloc(sizeof(LaInnerPrefetch));
	memset(prefetch, 0, offsetof(LaInnerPrefetch, visits));
	la_outerqueue_init(join, prefetch);
	prefetch->vmbuf = InvalidBuffer;
	prefetch->read_leaf = prefetch->told_leaf = LA_NO_BLOCK;
	join->leaf.window = la_window_create(join->leaf.rels, join->ninners, leaf,
										 &join->leaf.policy,
										 &join->leaf.counters,
										 &join->budget);
	join->heap.window = la_window_create(join->heap.rels, join->ninners, heap,
										 &join->heap.policy,
										 &join->heap.counters,
										 &join->budget);
	MemoryContextSwitchTo(old);
	return prefetch;
}

/*
 * Visit a block of a lane, whatever its state.  The row in state OBSERVE is not in the
 * queue, and still in the outer child's slot: while it is looked at, there is no
 * looking ahead, even if the policy arms.
 */
static void
visit(LaLane *lane, int rel, BlockNumber block, bool queued, Buffer *buffer)
{
	LaPolicy   *policy = &lane->policy;
	LaVisitResult result;
	LaReadResult r;
	double		us;

	if (queued && policy->state == LA_ARMED)
	{
		la_window_visit(lane->window, rel, block, buffer);
		return;
	}
	la_window_clear(lane->window);
	if (policy->state == LA_OBSERVE)
	{
		result = la_window_read_observed(lane->rels[rel], block,
										 rel == lane->last_rel ?
										 lane->last_block : InvalidBlockNumber,
										 buffer, &us);
		la_policy_on_visit(policy, result, us);
	}
	else
	{
		r = la_issue_read(lane->rels[rel], block, InvalidBuffer, false, false,
						  buffer);
		if (policy->state == LA_PASS)
			la_policy_on_pass(policy, r.missed);
	}
	lane->last_block = block;
	lane->last_rel = rel;
}

/* Nothing was to be read for a row. */
static void
no_visit(LaLane *lane)
{
	if (lane->policy.state == LA_OBSERVE)
		la_policy_on_visit(&lane->policy, LA_VISIT_HIT, 0.0);
}

/* Behaviour K.  Returns false if the row's inner scan cannot be known. */
static bool
choose_inner(LaNestLoop *join, Row *row)
{
	int			inner = join->route == NULL ? 0 :
		la_prune_find(join->route, row->slot);

	if (inner < 0 || la_innerkeys_of(&join->inners[inner]) == NULL)
		return false;
	row->inner = inner;
	return true;
}

/*
 * Find the row's leaf page.  Returns false if it cannot be known now.
 */
bool
la_innerprefetch_find_leaf(LaNestLoop *join, Row *row, bool may_wait)
{
	LaDescentResult result = LA_DESCENT_NOTHING;
	LaInnerKeys *keys;

	if (row->state >= ROW_LEAF)
		return true;
	if (row->state == ROW_FRESH && !choose_inner(join, row))
	{
		row->state = ROW_LOCATED;
		return true;
	}
	keys = inner_of(join, row)->keys;
	if (la_innerkeys_set(keys, row->slot) == LA_KEY_SET)
		result = la_descent_find_leaf(la_innerkeys_descent(keys), may_wait,
									  &row->leaf);
	switch (result)
	{
		case LA_DESCENT_FOUND:
			row->state = ROW_LEAF;
			return true;
		case LA_DESCENT_PENDING:
			row->state = ROW_PUT_OFF;
			return false;
		case LA_DESCENT_NOTHING:
			break;
	}
	row->state = ROW_LOCATED;
	return true;
}

static bool
is_all_visible(LaInnerPrefetch *prefetch, int inner, Relation heap, BlockNumber block,
			   LaBudget *budget)
{
	/* it would be taken for the same page of another heap's map */
	if (inner != prefetch->vm_inner)
		la_issue_release_map(&prefetch->vmbuf, budget);
	prefetch->vm_inner = inner;
	return la_issue_all_visible(heap, block, &prefetch->vmbuf, budget);
}

/* The heap blocks of the matches, without repetitions. */
static void
note_matches(LaNestLoop *join, Row *row, const LaMatches *matches)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	LaInner    *inner = inner_of(join, row);
	BlockNumber last = InvalidBlockNumber;

	for (int i = 0; i < matches->count && row->nvisits < MAX_ROW_VISITS; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&matches->tids[i]);
		LaForeseen *v = visit_of(prefetch, prefetch->end_visit);

		if (block == last)
			continue;
		last = block;
		if (inner->index_only &&
			is_all_visible(prefetch, row->inner, inner->heap, block, &join->budget))
			continue;
		v->rel = row->inner;
		v->block = block;
		v->offset = ItemPointerGetOffsetNumber(&matches->tids[i]);
		prefetch->end_visit++;
		row->nvisits++;
		if (inner->first_match_only)
			break;
	}
}

/* Behaviour G: keep all row addresses, side by side, if there is room. */
static void
keep_matches(LaNestLoop *join, Row *row, const LaMatches *matches)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	uint32		first = prefetch->end_match;

	row->complete = false;
	if (!inner_of(join, row)->feeds || !matches->complete ||
		matches->count > MAX_ROW_MATCHES)
		return;
	if ((first & (MAX_MATCHES - 1)) + matches->count > MAX_MATCHES)
		first = (first | (MAX_MATCHES - 1)) + 1;
	if (first + matches->count - prefetch->first_match > MAX_MATCHES)
		return;
	memcpy(&prefetch->matches[first & (MAX_MATCHES - 1)], matches->tids,
		   matches->count * sizeof(ItemPointerData));
	row->first_match = first;
	row->nmatches = matches->count;
	row->complete = true;
	prefetch->end_match = first + matches->count;
}

/* The inner scan starts over: for the row that was handed over last. */
static bool
feed_row(void *arg, ItemPointer *tids, int *ntids)
{
	LaInner    *inner = arg;
	LaInnerPrefetch *prefetch = inner->join->prefetch;
	Row		   *row = prefetch->current;

	if (row == NULL || !row->complete || inner != inner_of(inner->join, row))
		return false;
	*tids = &prefetch->matches[row->first_match & (MAX_MATCHES - 1)];
	*ntids = row->nmatches;
	return true;
}

/*
 * The row's leaf page is pinned: find its matches there.  *buffer is released.
 */
void
la_innerprefetch_search_leaf(LaNestLoop *join, Row *row, Buffer *buffer)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	LaInnerKeys *keys = inner_of(join, row)->keys;
	LaDescent  *descent = la_innerkeys_descent(keys);
	LaMatches	matches = {prefetch->tids, MAX_TIDS, 0, false};
	OffsetNumber position;

	row->state = ROW_LOCATED;
	row->first_visit = prefetch->end_visit;
	/* the key may have been used for another row */
	if (la_innerkeys_set(keys, row->slot) != LA_KEY_SET)
	{
		ReleaseBuffer(*buffer);
		return;
	}
	if (!la_descent_search_leaf(descent, buffer, &position))
		return;
	la_descent_matches(descent, *buffer, position,
					   !TransactionStartedDuringRecovery(), &matches);
	_bt_relbuf(inner_of(join, row)->index, *buffer);
	note_matches(join, row, &matches);
	keep_matches(join, row, &matches);
}

/*
 * Find the heap blocks of row n: the row itself, or in state OBSERVE the one that is
 * not in the queue.
 */
static void
locate(LaNestLoop *join, Row *row, uint64 n)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	Buffer		buffer = InvalidBuffer;
	bool		put_off = row->state == ROW_PUT_OFF;

	if (row->state == ROW_LOCATED)
		return;
	CHECK_FOR_INTERRUPTS();
	(void) la_innerprefetch_find_leaf(join, row, true);
	if (row->state == ROW_LOCATED)
		return;
	if (row != &prefetch->single && n >= prefetch->leaf_row)
	{
		/* the leaf window's producer has not come so far */
		row->told = leaf_place(row) != prefetch->told_leaf;
		prefetch->told_leaf = leaf_place(row);
		prefetch->leaf_row = n + 1;
	}

	/* E: what the window was told must be visited through it, nothing else */
	prefetch->visited_row = n;
	if (row == &prefetch->single ? leaf_place(row) == prefetch->read_leaf :
		put_off || !row->told)
	{
		(void) la_issue_read(inner_of(join, row)->index, row->leaf,
							 InvalidBuffer, false, false, &buffer);
		no_visit(&join->leaf);
	}
	else
		visit(&join->leaf, row->inner, row->leaf, row != &prefetch->single,
			  &buffer);
	prefetch->read_leaf = leaf_place(row);

	la_innerprefetch_search_leaf(join, row, &buffer);
}

/*
 * Behaviour F: rows that were put off and are near by now.
 */
static void
retry(LaNestLoop *join)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	uint64		end = prefetch->heap_row +
		(prefetch->leaf_row > prefetch->heap_row ?
		 (prefetch->leaf_row - prefetch->heap_row) / 2 : 0);

	if (!prefetch->put_off)
		return;
	prefetch->put_off = false;
	for (uint64 n = prefetch->heap_row; n < prefetch->leaf_row; n++)
	{
		Row		   *row = row_of(prefetch, n);

		if (row->state != ROW_PUT_OFF)
			continue;
		prefetch->put_off = true;
		if (n >= end)
			break;
		CHECK_FOR_INTERRUPTS();
		if (la_innerprefetch_find_leaf(join, row, true) && row->state == ROW_LEAF)
			la_descent_issue(la_innerkeys_descent(inner_of(join, row)->keys),
							 row->leaf);
	}
}

/*
 * The leaf window wants one more visit.
 */
static bool
next_leaf(void *arg, LaForeseen *visit)
{
	LaNestLoop *join = arg;
	LaInnerPrefetch *prefetch = join->prefetch;
	uint64		ahead = la_policy_visits_ahead(&join->leaf.policy);

	retry(join);
	while (prefetch->leaf_row < Max(prefetch->heap_row, prefetch->visited_row) + 1 + ahead)
	{
		Row		   *row = la_outerqueue_row(join, prefetch->leaf_row);

		if (row == NULL)
			return false;
		prefetch->leaf_row++;
		row->told = false;
		if (!la_innerprefetch_find_leaf(join, row, false))
		{
			prefetch->put_off = true;
			continue;
		}
		if (row->state != ROW_LEAF || leaf_place(row) == prefetch->told_leaf)
			continue;
		row->told = true;
		prefetch->told_leaf = leaf_place(row);
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

	prefetch->leaf_row = prefetch->visited_row + 1;
	prefetch->told_leaf = leaf_place(row_of(prefetch, prefetch->visited_row));
}

/*
 * The heap window wants one more visit.
 */
static bool
next_heap(void *arg, LaForeseen *visit)
{
	LaNestLoop *join = arg;
	LaInnerPrefetch *prefetch = join->prefetch;
	uint64		ahead = la_policy_visits_ahead(&join->heap.policy);

	while (prefetch->heap_row < prefetch->head + 1 + ahead)
	{
		Row		   *row = la_outerqueue_row(join, prefetch->heap_row);

		if (row == NULL || (row->state != ROW_LOCATED && !la_innerprefetch_has_room(prefetch)))
			return false;
		locate(join, row, prefetch->heap_row);
		if (prefetch->heap_visit < row->nvisits)
		{
			*visit = *visit_of(prefetch, row->first_visit + prefetch->heap_visit);
			prefetch->heap_visit++;
			return true;
		}
		prefetch->heap_row++;
		prefetch->heap_visit = 0;
	}
	return false;
}

static void
restart_heap(void *arg)
{
	LaInnerPrefetch *prefetch = ((LaNestLoop *) arg)->prefetch;

	prefetch->heap_row = prefetch->head;
	prefetch->heap_visit = prefetch->visited + 1;
}

/* Behaviour D. */
static void
visit_heap(LaNestLoop *join, const Row *row, bool queued)
{
	for (int i = 0; i < row->nvisits; i++)
	{
		Buffer		buffer = InvalidBuffer;

		join->prefetch->visited = i;
		visit(&join->heap, row->inner,
			  visit_of(join->prefetch, row->first_visit + i)->block, queued,
			  &buffer);

		/* the next visit may pull rows */
		ReleaseBuffer(buffer);
	}
	if (row->nvisits == 0)
		no_visit(&join->heap);
}

/* Nobody looks ahead at the moment: what the windows hold gets stale. */
static void
rest(LaNestLoop *join)
{
	if (!join->looking)
		return;
	join->looking = false;
	la_window_clear(join->leaf.window);
	la_window_clear(join->heap.window);
}

/*
 * State OBSERVE: make the reads of this row's inner scan for it, and time them.
 */
void
la_innerprefetch_observe(LaNestLoop *join, TupleTableSlot *outer)
{
	Row		   *row = &join->prefetch->single;

	rest(join);
	row->slot = outer;
	la_outerqueue_reset_row(row);
	locate(join, row, 0);
	visit_heap(join, row, false);
	join->prefetch->first_visit = join->prefetch->end_visit;
	join->prefetch->first_match = join->prefetch->end_match - row->nmatches;
	join->prefetch->current = row;
}

/* A row is handed over that was never looked at. */
void
la_innerprefetch_pass(LaNestLoop *join)
{
	if (join->prefetch == NULL)
		return;
	rest(join);
	join->prefetch->current = NULL;
}

/*
 * Behaviour G: may the inner scan take the matches from here?
 */
bool
la_innerprefetch_may_reuse(LaInner *inner)
{
	return la_nestloop_reuse_tids && la_innerkeys_of(inner) != NULL &&
		la_innerkeys_are_all(inner->keys) && inner->offers < MAX_OFFERS;
}

static bool
has_begun(const LaInner *inner)
{
	return inner->index_only ?
		((IndexOnlyScanState *) inner->scan)->ioss_ScanDesc != NULL :
		((IndexScanState *) inner->scan)->iss_ScanDesc != NULL;
}

/*
 * ... offer them to it, which must have been executed once to take the offer.
 */
static void
offer(LaNestLoop *join, const Row *row)
{
	LaInner    *inner = inner_of(join, row);
	LaTidSource feed = {inner, feed_row};

	if (row->inner == NO_INNER || inner->feeds || !has_begun(inner) ||
		!la_innerprefetch_may_reuse(inner))
		return;
	inner->feeds = la_attach_feed(inner->scan, &feed);
	inner->offers++;
}

/* The producers never stand behind the row that is handed over next. */
static void
catch_up(LaInnerPrefetch *prefetch)
{
	if (prefetch->heap_row < prefetch->head)
	{
		prefetch->heap_row = prefetch->head;
		prefetch->heap_visit = 0;
	}
	if (prefetch->leaf_row < prefetch->head)
	{
		prefetch->leaf_row = prefetch->head;
		prefetch->told_leaf = LA_NO_BLOCK;
	}
}

/*
 * The next outer row, looking ahead.  NULL at the end.
 */
TupleTableSlot *
la_innerprefetch_next(LaNestLoop *join)
{
	LaInnerPrefetch *prefetch = join->prefetch;
	Row		   *row = la_outerqueue_head(join);

	prefetch->current = row;
	if (row == NULL)
		return NULL;
	catch_up(prefetch);
	if (la_nestloop_is(join, LA_ARMED))
	{
		if (!join->looking)
			join->heap.counters.c[LA_SCANS_ACTIVATED]++;
		join->looking = true;
		locate(join, row, prefetch->head);
		offer(join, row);
		visit_heap(join, row, true);
	}
	else
	{
		rest(join);
		if (join->rows.state == LA_ARMED)
		{
			if (!join->touching)
				join->heap.counters.c[LA_SCANS_ACTIVATED]++;
			join->touching = true;
			la_cacheprefetch_rows(join);
			offer(join, row);
		}
		else
			join->touching = false;
	}
	return la_outerqueue_hand_over(join);
}

/*
 * Forget the rows: the join is rescanned, or ends.
 */
void
la_innerprefetch_clear(LaNestLoop *join)
{
	LaInnerPrefetch *prefetch = join->prefetch;

	if (prefetch == NULL)
		return;
	la_window_clear(join->leaf.window);
	la_window_clear(join->heap.window);
	la_outerqueue_clear(prefetch);
	prefetch->current = NULL;
	prefetch->put_off = false;
	prefetch->leaf_row = prefetch->heap_row = prefetch->head;
	prefetch->heap_visit = 0;
	prefetch->told_leaf = prefetch->read_leaf = LA_NO_BLOCK;
	la_issue_release_map(&prefetch->vmbuf, &join->budget);
}
