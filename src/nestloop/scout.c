/*
 * scout.c
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
 * Behaviours (A, B, C, H: queue.c)
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
 *	   once more: it takes the row addresses from here (scan/fed.c).
 *	I. Where nothing has to be read, touch.c does the looking ahead.
 *	K. Of several inner scans, partitions of one table, a row has the one that
 *	   route.c names.  All of them share the windows.  A row that has none, or more
 *	   than one, is not looked at.
 *
 * Invariants
 *	- Whatever the scout does wrong costs time: the join evaluates everything anew.
 *	  Where addresses are reused, they are what the inner scan would have found.
 *	- The windows are told visits in the order in which they are made: `told`
 *	  rows for leaf pages, all blocks of all rows for the heap.
 *	- No buffer is pinned and no lock held when this file returns or pulls a row, but
 *	  for one page of the visibility map.
 *
 * src/nestloop/scout.c
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
#include "nestloop/scout.h"
#include "window/issue.h"

#define MAX_OFFERS		4		/* of matches, to the inner scan */

static bool next_leaf(void *arg, LaForeseen *visit);
static void restart_leaf(void *arg);
static bool next_heap(void *arg, LaForeseen *visit);
static void restart_heap(void *arg);

/*
 * Returns NULL if the budget has no room.
 */
LaScout *
la_scout_create(LaJoin *join)
{
	LaProducer	leaf = {join, next_leaf, restart_leaf};
	LaProducer	heap = {join, next_heap, restart_heap};
	Size		size = sizeof(LaScout) +
		la_window_size(join->leaf.rels, join->ninners, &join->leaf.policy) +
		la_window_size(join->heap.rels, join->ninners, &join->heap.policy);
	MemoryContext old;
	LaScout    *scout;

	if (!la_budget_has(&join->budget, size))
		return NULL;
	la_budget_take(&join->budget, size);

	old = MemoryContextSwitchTo(join->context);
	scout = palloc(sizeof(LaScout));
	memset(scout, 0, offsetof(LaScout, visits));
	/* touch_tuples() may come to rows that were located for the windows */
	memset(scout->recent, 0, sizeof(scout->recent));
	la_queue_init(join, scout);
	scout->vmbuf = InvalidBuffer;
	scout->read_leaf = scout->told_leaf = LA_NO_PLACE;
	join->leaf.window = la_window_create(join->leaf.rels, join->ninners, leaf,
										 &join->leaf.policy,
										 &join->leaf.counters,
										 &join->budget);
	join->heap.window = la_window_create(join->heap.rels, join->ninners, heap,
										 &join->heap.policy,
										 &join->heap.counters,
										 &join->budget);
	MemoryContextSwitchTo(old);
	return scout;
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
choose_inner(LaJoin *join, Row *row)
{
	int			inner = join->route == NULL ? 0 :
		la_route_find(join->route, row->slot);

	if (inner < 0 || la_keys_of(&join->inners[inner]) == NULL)
		return false;
	row->inner = inner;
	return true;
}

/*
 * Find the row's leaf page.  Returns false if it cannot be known now.
 */
bool
la_scout_find_leaf(LaJoin *join, Row *row, bool may_wait)
{
	LaDescentResult result = LA_DESCENT_NOTHING;
	LaKeys	   *keys;

	if (row->state >= ROW_LEAF)
		return true;
	if (row->state == ROW_FRESH && !choose_inner(join, row))
	{
		row->state = ROW_LOCATED;
		return true;
	}
	keys = inner_of(join, row)->keys;
	if (la_keys_set(keys, row->slot) == LA_KEY_SET)
		result = la_descent_find_leaf(la_keys_descent(keys), may_wait,
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
is_all_visible(LaScout *scout, int inner, Relation heap, BlockNumber block,
			   LaBudget *budget)
{
	/* it would be taken for the same page of another heap's map */
	if (inner != scout->vm_inner)
		la_issue_release_map(&scout->vmbuf, budget);
	scout->vm_inner = inner;
	return la_issue_all_visible(heap, block, &scout->vmbuf, budget);
}

/* The heap blocks of the matches, without repetitions. */
static void
note_matches(LaJoin *join, Row *row, const LaMatches *matches)
{
	LaScout    *scout = join->scout;
	LaInner    *inner = inner_of(join, row);
	BlockNumber last = InvalidBlockNumber;

	for (int i = 0; i < matches->count && row->nvisits < MAX_ROW_VISITS; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&matches->tids[i]);
		LaForeseen *v = visit_of(scout, scout->end_visit);

		if (block == last)
			continue;
		last = block;
		if (inner->index_only &&
			is_all_visible(scout, row->inner, inner->heap, block, &join->budget))
			continue;
		v->rel = row->inner;
		v->block = block;
		v->offset = ItemPointerGetOffsetNumber(&matches->tids[i]);
		scout->end_visit++;
		row->nvisits++;
		if (inner->first_match_only)
			break;
	}
}

/* Behaviour G: keep all row addresses, side by side, if there is room. */
static void
keep_matches(LaJoin *join, Row *row, const LaMatches *matches)
{
	LaScout    *scout = join->scout;
	uint32		first = scout->end_match;

	row->complete = false;
	if (!inner_of(join, row)->feeds || !matches->complete ||
		matches->count > MAX_ROW_MATCHES)
		return;
	if ((first & (MAX_MATCHES - 1)) + matches->count > MAX_MATCHES)
		first = (first | (MAX_MATCHES - 1)) + 1;
	if (first + matches->count - scout->first_match > MAX_MATCHES)
		return;
	memcpy(&scout->matches[first & (MAX_MATCHES - 1)], matches->tids,
		   matches->count * sizeof(ItemPointerData));
	row->first_match = first;
	row->nmatches = matches->count;
	row->complete = true;
	scout->end_match = first + matches->count;
}

/* The inner scan starts over: for the row that was handed over last. */
static bool
feed_row(void *arg, ItemPointer *tids, int *ntids)
{
	LaInner    *inner = arg;
	LaScout    *scout = inner->join->scout;
	Row		   *row = scout->current;

	if (row == NULL || !row->complete || inner != inner_of(inner->join, row))
		return false;
	*tids = &scout->matches[row->first_match & (MAX_MATCHES - 1)];
	*ntids = row->nmatches;
	return true;
}

/*
 * The row's leaf page is pinned: find its matches there.  *buffer is released.
 */
void
la_scout_search_leaf(LaJoin *join, Row *row, Buffer *buffer)
{
	LaScout    *scout = join->scout;
	LaKeys	   *keys = inner_of(join, row)->keys;
	LaDescent  *descent = la_keys_descent(keys);
	LaMatches	matches = {scout->tids, MAX_TIDS, 0, false};
	OffsetNumber position;

	row->state = ROW_LOCATED;
	row->first_visit = scout->end_visit;
	/* the key may have been used for another row */
	if (la_keys_set(keys, row->slot) != LA_KEY_SET)
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
locate(LaJoin *join, Row *row, uint64 n)
{
	LaScout    *scout = join->scout;
	Buffer		buffer = InvalidBuffer;
	bool		put_off = row->state == ROW_PUT_OFF;

	if (row->state == ROW_LOCATED)
		return;
	CHECK_FOR_INTERRUPTS();
	(void) la_scout_find_leaf(join, row, true);
	if (row->state == ROW_LOCATED)
		return;
	if (row != &scout->single && n >= scout->leaf_row)
	{
		/* the leaf window's producer has not come so far */
		row->told = leaf_place(row) != scout->told_leaf;
		scout->told_leaf = leaf_place(row);
		scout->leaf_row = n + 1;
	}

	/* E: what the window was told must be visited through it, nothing else */
	scout->visited_row = n;
	if (row == &scout->single ? leaf_place(row) == scout->read_leaf :
		put_off || !row->told)
	{
		(void) la_issue_read(inner_of(join, row)->index, row->leaf,
							 InvalidBuffer, false, false, &buffer);
		no_visit(&join->leaf);
	}
	else
		visit(&join->leaf, row->inner, row->leaf, row != &scout->single,
			  &buffer);
	scout->read_leaf = leaf_place(row);

	la_scout_search_leaf(join, row, &buffer);
}

/*
 * Behaviour F: rows that were put off and are near by now.
 */
static void
retry(LaJoin *join)
{
	LaScout    *scout = join->scout;
	uint64		end = scout->heap_row +
		(scout->leaf_row > scout->heap_row ?
		 (scout->leaf_row - scout->heap_row) / 2 : 0);

	if (!scout->put_off)
		return;
	scout->put_off = false;
	for (uint64 n = scout->heap_row; n < scout->leaf_row; n++)
	{
		Row		   *row = row_of(scout, n);

		if (row->state != ROW_PUT_OFF)
			continue;
		scout->put_off = true;
		if (n >= end)
			break;
		CHECK_FOR_INTERRUPTS();
		if (la_scout_find_leaf(join, row, true) && row->state == ROW_LEAF)
			la_descent_issue(la_keys_descent(inner_of(join, row)->keys),
							 row->leaf);
	}
}

/*
 * The leaf window wants one more visit.
 */
static bool
next_leaf(void *arg, LaForeseen *visit)
{
	LaJoin	   *join = arg;
	LaScout    *scout = join->scout;
	uint64		ahead = la_policy_visits_ahead(&join->leaf.policy);

	retry(join);
	while (scout->leaf_row < Max(scout->heap_row, scout->visited_row) + 1 + ahead)
	{
		Row		   *row = la_queue_row(join, scout->leaf_row);

		if (row == NULL)
			return false;
		scout->leaf_row++;
		row->told = false;
		if (!la_scout_find_leaf(join, row, false))
		{
			scout->put_off = true;
			continue;
		}
		if (row->state != ROW_LEAF || leaf_place(row) == scout->told_leaf)
			continue;
		row->told = true;
		scout->told_leaf = leaf_place(row);
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
	LaScout    *scout = ((LaJoin *) arg)->scout;

	scout->leaf_row = scout->visited_row + 1;
	scout->told_leaf = leaf_place(row_of(scout, scout->visited_row));
}

/*
 * The heap window wants one more visit.
 */
static bool
next_heap(void *arg, LaForeseen *visit)
{
	LaJoin	   *join = arg;
	LaScout    *scout = join->scout;
	uint64		ahead = la_policy_visits_ahead(&join->heap.policy);

	while (scout->heap_row < scout->head + 1 + ahead)
	{
		Row		   *row = la_queue_row(join, scout->heap_row);

		if (row == NULL || (row->state != ROW_LOCATED && !la_scout_has_room(scout)))
			return false;
		locate(join, row, scout->heap_row);
		if (scout->heap_visit < row->nvisits)
		{
			*visit = *visit_of(scout, row->first_visit + scout->heap_visit);
			scout->heap_visit++;
			return true;
		}
		scout->heap_row++;
		scout->heap_visit = 0;
	}
	return false;
}

static void
restart_heap(void *arg)
{
	LaScout    *scout = ((LaJoin *) arg)->scout;

	scout->heap_row = scout->head;
	scout->heap_visit = scout->visited + 1;
}

/* Behaviour D. */
static void
visit_heap(LaJoin *join, const Row *row, bool queued)
{
	for (int i = 0; i < row->nvisits; i++)
	{
		Buffer		buffer = InvalidBuffer;

		join->scout->visited = i;
		visit(&join->heap, row->inner,
			  visit_of(join->scout, row->first_visit + i)->block, queued,
			  &buffer);

		/* the next visit may pull rows */
		ReleaseBuffer(buffer);
	}
	if (row->nvisits == 0)
		no_visit(&join->heap);
}

/* Nobody looks ahead at the moment: what the windows hold gets stale. */
static void
rest(LaJoin *join)
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
la_scout_observe(LaJoin *join, TupleTableSlot *outer)
{
	Row		   *row = &join->scout->single;

	rest(join);
	row->slot = outer;
	la_queue_reset_row(row);
	locate(join, row, 0);
	visit_heap(join, row, false);
	join->scout->first_visit = join->scout->end_visit;
	join->scout->first_match = join->scout->end_match - row->nmatches;
	join->scout->current = row;
}

/* A row is handed over that was never looked at. */
void
la_scout_pass(LaJoin *join)
{
	if (join->scout == NULL)
		return;
	rest(join);
	join->scout->current = NULL;
}

/*
 * Behaviour G: may the inner scan take the matches from here?
 */
bool
la_scout_may_reuse(LaInner *inner)
{
	return la_nestloop_reuse && la_keys_of(inner) != NULL &&
		la_keys_are_all(inner->keys) && inner->offers < MAX_OFFERS;
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
offer(LaJoin *join, const Row *row)
{
	LaInner    *inner = inner_of(join, row);
	LaFeed		feed = {inner, feed_row};

	if (row->inner == NO_INNER || inner->feeds || !has_begun(inner) ||
		!la_scout_may_reuse(inner))
		return;
	inner->feeds = la_attach_feed(inner->scan, &feed);
	inner->offers++;
}

/* The producers never stand behind the row that is handed over next. */
static void
catch_up(LaScout *scout)
{
	if (scout->heap_row < scout->head)
	{
		scout->heap_row = scout->head;
		scout->heap_visit = 0;
	}
	if (scout->leaf_row < scout->head)
	{
		scout->leaf_row = scout->head;
		scout->told_leaf = LA_NO_PLACE;
	}
}

/*
 * The next outer row, looking ahead.  NULL at the end.
 */
TupleTableSlot *
la_scout_next(LaJoin *join)
{
	LaScout    *scout = join->scout;
	Row		   *row = la_queue_head(join);

	scout->current = row;
	if (row == NULL)
		return NULL;
	catch_up(scout);
	if (la_join_is(join, LA_ARMED))
	{
		if (!join->looking)
			join->heap.counters.c[LA_SCANS_ARMED]++;
		join->looking = true;
		locate(join, row, scout->head);
		offer(join, row);
		visit_heap(join, row, true);
	}
	else
	{
		rest(join);
		if (join->rows.state == LA_ARMED)
		{
			if (!join->touching)
				join->heap.counters.c[LA_SCANS_ARMED]++;
			join->touching = true;
			la_touch_rows(join);
			offer(join, row);
		}
		else
			join->touching = false;
	}
	return la_queue_hand_over(join);
}

/*
 * Forget the rows: the join is rescanned, or ends.
 */
void
la_scout_clear(LaJoin *join)
{
	LaScout    *scout = join->scout;

	if (scout == NULL)
		return;
	la_window_clear(join->leaf.window);
	la_window_clear(join->heap.window);
	la_queue_clear(scout);
	scout->current = NULL;
	scout->put_off = false;
	scout->leaf_row = scout->heap_row = scout->head;
	scout->heap_visit = 0;
	scout->told_leaf = scout->read_leaf = LA_NO_PLACE;
	la_issue_release_map(&scout->vmbuf, &join->budget);
}
