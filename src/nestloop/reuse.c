/*
 * reuse.c
 *	  What was found for an outer row becomes the result of its inner scan.
 *
 * Where the key is all that the inner scan searches for, the scan takes the row addresses that were
 * found early, instead of searching again.  Rooms do not call each other, so attach/ passes on a
 * LaTidSource, a callback that returns row addresses:
 *
 *		once for each inner scan: offer() --> la_attach_tidsource() --> scan/ keeps it
 *		for each outer row: rescan of the inner scan --> scan/ --> begin_scan() --> addresses,
 *			or false: then the access method searches as usual
 *
 * The addresses of the rows that are known lie side by side in a ring, in the order of the rows.
 * They are kept if all of a row's are known, in the index's order, and there is room.
 *
 * Invariant: what begin_scan() returns is of the row returned to the join last, and is all that the
 * inner scan would have found (scan/tidsource.c).
 *
 * src/nestloop/reuse.c
 */
#include "postgres.h"

#include "attach/attach.h"
#include "base/base.h"
#include "nestloop/nestloop_int.h"

#define MAX_OFFERS		4		/* to an inner scan that does not take matches */
#define MAX_KEPT		64		/* of one row */
#define RING_SIZE		4096	/* of all rows that are known; a power of 2 */

struct LaReuse
{
	const LaKept *current;		/* of the row returned last, or NULL */
	uint32		first;			/* of that row */
	uint32		end;
	ItemPointerData matches[RING_SIZE];
};

/* The argument of the callback. */
typedef struct Taker
{
	LaReuse    *reuse;
	LaKeyedScan *scan;
} Taker;

/* NULL if the budget has no room. */
LaReuse *
la_reuse_create(LaBudget *budget)
{
	LaReuse    *reuse;

	if (!la_budget_has(budget, sizeof(LaReuse)))
		return NULL;
	la_budget_take(budget, sizeof(LaReuse));
	reuse = palloc(sizeof(LaReuse));
	memset(reuse, 0, offsetof(LaReuse, matches));
	return reuse;
}

/* May this scan, whose keys were tried, take matches? */
bool
la_reuse_is_possible(const LaKeyedScan *scan)
{
	return la_nestloop_reuse_tids && scan->keys != NULL && scan->scandesc != NULL &&
		!scan->last_first && la_scankeys_are_complete(scan->keys) && scan->offers < MAX_OFFERS;
}

static inline ItemPointer
place_of(LaReuse *reuse, uint32 first)
{
	return &reuse->matches[first & (RING_SIZE - 1)];
}

/* Keep what was found for a row, if the scan will take it. */
void
la_reuse_keep(LaReuse *reuse, LaKept *kept, LaKeyedScan *scan, const LaMatches *matches)
{
	uint32		first = reuse->end;

	kept->scan = scan;
	kept->complete = false;
	if (!scan->takes_matches || !matches->complete || matches->count > MAX_KEPT)
		return;
	if ((first & (RING_SIZE - 1)) + matches->count > RING_SIZE)
		first = (first | (RING_SIZE - 1)) + 1;
	if (first + matches->count - reuse->first > RING_SIZE)
		return;
	kept->first = first;
	kept->count = matches->count;
	kept->complete = true;
	memcpy(place_of(reuse, first), matches->tids, matches->count * sizeof(ItemPointerData));
	reuse->end = first + matches->count;
}

/* The callback: the inner scan begins, or is rescanned. */
static bool
begin_scan(void *arg, ItemPointer *tids, int *ntids)
{
	const Taker *taker = arg;
	const LaKept *kept = taker->reuse->current;

	if (kept == NULL || !kept->complete || kept->scan != taker->scan)
		return false;
	*tids = place_of(taker->reuse, kept->first);
	*ntids = kept->count;
	return true;
}

/* Offer matches to the inner scan, which can take them once it has been executed. */
static void
offer(LaReuse *reuse, LaKeyedScan *scan)
{
	LaTidSource source = {NULL, begin_scan};
	Taker	   *taker;

	if (scan->takes_matches || !la_reuse_is_possible(scan) || *scan->scandesc == NULL)
		return;
	taker = MemoryContextAlloc(scan->scan->state->es_query_cxt, sizeof(Taker));
	taker->reuse = reuse;
	taker->scan = scan;
	source.arg = taker;
	scan->takes_matches = la_attach_tidsource(scan->scan, &source);
	scan->offers++;
}

/* A row is returned to the join; kept: of that row, or NULL.  What earlier rows had is released. */
void
la_reuse_turn(LaReuse *reuse, const LaKept *kept)
{
	reuse->current = kept;
	if (kept == NULL || kept->scan == NULL)
		return;
	offer(reuse, kept->scan);
	if (kept->complete)
		reuse->first = kept->first;
}

/* No row is known. */
void
la_reuse_clear(LaReuse *reuse)
{
	reuse->current = NULL;
	reuse->first = reuse->end;
}
