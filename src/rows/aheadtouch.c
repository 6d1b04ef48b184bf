/*
 * aheadtouch.c
 *	  Cached pages that rows to come will need, touched in steps.
 *
 * Where nothing has to be read, what repeats a plan for each row waits for memory: the leaf page's
 * header, its items during the binary search, the heap page's line pointer, the tuple.  For one row
 * each of these accesses depends on the one before.  So each is a step, and the rows that are known
 * go through the steps one behind the other, at these distances from the head:
 *
 *		 K                 3/4 K              K/2               1/4 K           0
 *		 |-----------------|------------------|-----------------|---------------|
 *		 find_leaves:      touch_items:       find_matches:     touch_tuples    its turn
 *		 their headers     where the search   their heap pages
 *		 are touched       of them begins     are touched
 *
 * (Asynchronous memory access chaining: Kocberber, Falsafi, Grot, 2015.)  That is faster only where
 * the server does not search again (nestloop/reuse.c), and even then not always.  So the policy
 * LaAhead.touch times rows with and without it.
 *
 * A row that needs a page outside shared buffers is left to the server.  Its read is a miss for the
 * policy, which ends this.
 *
 * src/rows/aheadtouch.c
 */
#include "postgres.h"

#include "storage/bufmgr.h"

#include "rows/rows_int.h"
#include "window/window.h"

/* Nothing more is touched for the row. */
static void
leave(LaAheadRow *row)
{
	row->nfirst = row->nvisits = 0;
	row->located = true;
}

static void
find_leaves(LaAhead *a, uint64 n, LaAheadRow *row)
{
	for (int i = 0; !row->located && i < row->nfirst; i++)
	{
		LaRowVisit *v = &row->visits[i];

		if (la_ahead_find_leaf(a, n, v, false) &&
			la_issue_is_cached(a->rels[v->rel], v->block, &v->recent))
			la_issue_touch_page(v->recent, FirstOffsetNumber);
		else
			leave(row);
	}
}

static void
touch_items(LaAhead *a, uint64 n, LaAheadRow *row)
{
	for (int i = 0; !row->located && i < row->nfirst; i++)
	{
		if (BufferIsValid(row->visits[i].recent))
			la_issue_touch_items(row->visits[i].recent);
	}
}

/* Search the leaf pages.  One whose leaf page is not known yet has been known before TOUCHED. */
static void
search_leaves(LaAhead *a, uint64 n, LaAheadRow *row)
{
	bool		known = false;

	row->located = true;
	for (int i = 0; i < row->nfirst && !known; i++)
	{
		LaRowVisit *v = &row->visits[i];
		Buffer		buffer = InvalidBuffer;

		if (v->state != ROW_VISIT_KNOWN)
			continue;
		(void) la_issue_read(a->rels[v->rel], v->block, v->recent, false, false, &buffer);
		known = la_ahead_search_leaf(a, n, row, i, buffer);
	}
}

static void
find_matches(LaAhead *a, uint64 n, LaAheadRow *row)
{
	LaCounters *counters = &a->second.reads.counters;

	if (row->located)
		return;
	search_leaves(a, n, row);
	for (int i = row->nfirst; i < row->nvisits; i++)
	{
		LaRowVisit *v = &row->visits[i];

		counters->c[LA_BLOCKS_FORESEEN]++;
		if (la_issue_is_cached(a->rels[v->rel], v->block, &v->recent))
		{
			counters->c[LA_BLOCKS_CACHED]++;
			la_issue_touch_page(v->recent, v->offset);
		}
		else
			v->recent = InvalidBuffer;
	}
}

static void
touch_tuples(LaAhead *a, uint64 n, LaAheadRow *row)
{
	for (int i = row->nfirst; i < row->nvisits; i++)
	{
		const LaRowVisit *v = &row->visits[i];

		if (BufferIsValid(v->recent))
			la_issue_touch_tuple(v->recent, v->offset);
	}
}

static void (*const steps[LA_TOUCH_STEPS]) (LaAhead *, uint64, LaAheadRow *) =
{
	find_leaves, touch_items, find_matches, touch_tuples
};

/*
 * It is the turn of the row at the head: advance each step to its distance.  The first one fetches
 * rows, the others do not overtake the step before them.
 */
void
la_ahead_touch_rows(LaAhead *a)
{
	uint64		distance = a->touch.config.distance;

	for (int i = 0; i < LA_TOUCH_STEPS; i++)
	{
		uint64	   *next = &a->touch_next[i];
		uint64		end = a->head + distance * (LA_TOUCH_STEPS - i) / LA_TOUCH_STEPS + 1;

		if (i > 0)
			end = Min(end, next[-1]);
		for (*next = Max(*next, a->head); *next < end; (*next)++)
		{
			LaAheadRow *row = la_ahead_fetch_row(a, *next);

			if (row == NULL)
				break;
			steps[i] (a, *next, row);
		}
	}
}
