/*
 * innersearch.c
 *	  The leaf page, the matches and the heap blocks that an outer row's inner scan needs.
 *
 * The inner scan's search is made early, in two steps, each of which may need a read:
 *
 *		              inner pages                  leaf page
 *		ROW_FRESH ------------------> ROW_LEAF --------------> ROW_LOCATED
 *		    |                            ^                          ^
 *		    +----> ROW_DEFERRED ---------+                          |
 *		    |      an inner page is not cached: its read is started |
 *		    +-------------------------------------------------------+
 *		           no entry can match, or the search key is not known
 *
 * Behaviours
 *	ONE PARTITION: of several inner scans, a row needs the one that prune.c returns.  A row that
 *	   needs none, or more than one, is not searched for.
 *	HEAP BLOCKS: the blocks of the matches are noted in the order of the index, without
 *	   successive repetitions; of an index-only scan, those that are not all-visible; of a join
 *	   that needs one match, the first.  What exceeds MAX_ROW_VISITS is left to the inner scan.
 *	KEPT MATCHES: all row addresses are kept side by side, if the inner scan takes them
 *	   (inner_prefetch.c) and there is room.
 *
 * Invariant: the key is set for each step, as it may have been used for another row in between.
 *
 * src/nestloop/innersearch.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/xact.h"
#include "storage/bufmgr.h"

#include "nestloop/nestloop_int.h"
#include "rows/rows.h"
#include "window/window.h"

#define MAX_ROW_TIDS	128		/* of one row: found on the leaf page */
#define MAX_ROW_VISITS	32		/* ... noted */
#define MAX_ROW_MATCHES 64		/* ... kept */

/* Is there room for the visits of one more row? */
bool
la_innersearch_has_room(const LaInnerSearch *search)
{
	return search->end_visit - search->first_visit <= LA_MAX_VISITS - MAX_ROW_VISITS;
}

/* Behaviour ONE PARTITION.  Returns false if the row's inner scan cannot be known. */
static bool
choose_inner(LaNestLoop *join, LaOuterRow *row)
{
	int			inner = join->prune == NULL ? 0 : la_prune_find(join->prune, row->slot);

	if (inner < 0 || la_scankeys_get(&join->inners[inner].s, &join->rows) == NULL)
		return false;
	row->inner = inner;
	return true;
}

/*
 * Find the row's leaf page.  Returns false if an inner page has to be read for that, and
 * may_wait is false.
 */
bool
la_innersearch_find_leaf(LaInnerSearch *search, LaOuterRow *row, bool may_wait)
{
	LaDescentResult result = LA_DESCENT_NOTHING;
	LaInner    *inner;

	if (row->state >= ROW_LEAF)
		return true;
	if (row->state == ROW_FRESH && !choose_inner(search->join, row))
	{
		row->state = ROW_LOCATED;
		return true;
	}
	inner = la_innersearch_inner(search, row);
	if (la_scankeys_set(inner->s.keys, row->slot))
		result = la_descent_find_leaf(inner->s.descent, may_wait, &row->leaf);
	if (result == LA_DESCENT_PENDING)
	{
		row->state = ROW_DEFERRED;
		return false;
	}
	row->state = result == LA_DESCENT_FOUND ? ROW_LEAF : ROW_LOCATED;
	return true;
}

/* Behaviour HEAP BLOCKS. */
static void
note_heap_blocks(LaInnerSearch *search, LaOuterRow *row, const LaMatches *matches)
{
	LaInner    *inner = la_innersearch_inner(search, row);
	BlockNumber last = InvalidBlockNumber;

	for (int i = 0; i < matches->count && row->nvisits < MAX_ROW_VISITS; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumberNoCheck(&matches->tids[i]);
		LaForeseen *visit = la_innersearch_visit(search, row, row->nvisits);

		if (block == last)
			continue;
		last = block;
		if (inner->s.index_only &&
			la_issue_all_visible(inner->s.heap, block, &search->map, &search->join->budget))
			continue;
		visit->rel = row->inner;
		visit->block = block;
		visit->offset = ItemPointerGetOffsetNumberNoCheck(&matches->tids[i]);
		visit->more = 0;
		search->end_visit++;
		row->nvisits++;
		if (inner->first_match_only)
			break;
	}
}

/* Behaviour KEPT MATCHES. */
static void
keep_matches(LaInnerSearch *search, LaOuterRow *row, const LaMatches *matches)
{
	uint32		first = search->end_match;

	row->matches_kept = false;
	if (!la_innersearch_inner(search, row)->takes_matches || !matches->complete ||
		matches->count > MAX_ROW_MATCHES)
		return;
	if ((first & (LA_MAX_MATCHES - 1)) + matches->count > LA_MAX_MATCHES)
		first = (first | (LA_MAX_MATCHES - 1)) + 1;
	if (first + matches->count - search->first_match > LA_MAX_MATCHES)
		return;
	row->first_match = first;
	row->nmatches = matches->count;
	row->matches_kept = true;
	memcpy(la_innersearch_matches(search, row), matches->tids,
		   matches->count * sizeof(ItemPointerData));
	search->end_match = first + matches->count;
}

/* Find the row's matches on its leaf page, *buffer, whose pin is released. */
void
la_innersearch_search_leaf(LaInnerSearch *search, LaOuterRow *row, Buffer *buffer)
{
	LaInner    *inner = la_innersearch_inner(search, row);
	ItemPointerData tids[MAX_ROW_TIDS];
	LaMatches	matches = {tids, MAX_ROW_TIDS, 0, false};
	OffsetNumber position;

	row->state = ROW_LOCATED;
	row->first_visit = search->end_visit;
	if (!la_scankeys_set(inner->s.keys, row->slot))
	{
		ReleaseBuffer(*buffer);
		return;
	}
	if (!la_descent_search_leaf(inner->s.descent, buffer, &position))
		return;
	la_descent_matches(inner->s.descent, *buffer, position,
					   !TransactionStartedDuringRecovery(), &matches);
	_bt_relbuf(inner->s.index, *buffer);
	note_heap_blocks(search, row, &matches);
	keep_matches(search, row, &matches);
}

/* The row is returned to the join.  Its visits are released, and matches of rows before it. */
void
la_innersearch_release(LaInnerSearch *search, const LaOuterRow *row)
{
	if (row->nvisits > 0)
		search->first_visit = row->first_visit + row->nvisits;
	if (row->matches_kept)
		search->first_match = row->first_match;
}

/* The queue is empty. */
void
la_innersearch_release_all(LaInnerSearch *search)
{
	search->first_visit = search->end_visit;
	search->first_match = search->end_match;
}
