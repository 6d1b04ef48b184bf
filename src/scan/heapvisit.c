/*
 * heapvisit.c
 *	  The heap blocks of a scan, as its rows are returned.
 *
 * A visit is a row on another heap block than the row before it.  What is done for it depends on
 * the policy's state:
 *
 *		PASS	 the policy learns afterwards whether a block was read
 *		OBSERVE	 the block is read here, before heapam asks for it, and timed
 *		ARMED	 the window reads the block, after it has started the read earlier (window.c)
 *
 * In the last two, the block becomes the one that heapam has pinned for the scan, so heapam does
 * not look for it again (issue.c).
 *
 * Visibility is decided by heapam, row by row.  A bitmap scan decides it for all wanted rows of a
 * page at once, under one lock of the buffer, and returns them while it has the page pinned.  Here
 * the rows of a page are wanted at different times, and the page is not pinned in between.  What
 * was decided could be kept, since no row that a registered snapshot sees is removed, nor its line
 * pointer used again.  But rows are moved within the page by pruning and VACUUM, so a page that is
 * pinned again has to be locked again before the row's bytes are looked at; and pin, lock and the
 * first look at these bytes are what a visit costs: in a cached scan of 100,000 rows that goes back
 * and forth between pages, heap_hot_search_buffer(), which waits for the row's cache lines, takes
 * 28% of the time, the lock 6%, and HeapTupleSatisfiesMVCC() less than 2%.
 *
 * src/scan/heapvisit.c
 */
#include "postgres.h"

#include "base/compat.h"
#include "scan/scan_int.h"

/*
 * Will the executor fetch the heap row of this entry?  In an index-only scan it does so unless the
 * page is all-visible.  The executor tests that itself; this only decides what is foreseen.
 */
bool
la_heapvisit_is_needed(LaScan *ls, ItemPointer tid)
{
	return ls->kind != LA_KIND_INDEX_ONLY_SCAN ||
		!la_issue_all_visible(ls->scan->heapRelation, ItemPointerGetBlockNumberNoCheck(tid),
							  &ls->map, &ls->budget);
}

/* The same, asked once: *known keeps the answer, so that foreseeing and returning a row agree. */
bool
la_heapvisit_is_known_needed(LaScan *ls, ItemPointer tid, uint8 *known)
{
	if (*known == LA_HEAP_UNKNOWN)
		*known = la_heapvisit_is_needed(ls, tid) ? LA_HEAP_NEEDED : LA_HEAP_NOT_NEEDED;
	return *known == LA_HEAP_NEEDED;
}

/* A visit in state PASS has been made. */
void
la_heapvisit_pass(LaScan *ls, bool missed)
{
	la_scan_policy_on_pass(&ls->policy, &ls->cache_policy, missed);
	if (la_cache_policy_clock_due(&ls->cache_policy))
		la_scan_policy_on_clock(&ls->policy, &ls->cache_policy, la_issue_clock_us());
}

/* A row of this block is about to be returned in state OBSERVE. */
void
la_heapvisit_observe(LaScan *ls, BlockNumber block)
{
	Buffer	   *current = &la_scan_heap(ls)->xs_cbuf;
	LaVisitResult result;
	double		us;

	if (block == la_scan_heap_block(ls))
		return;
	result = la_window_read_observed(ls->scan->heapRelation, block,
									 ls->observed_block, current, &ls->counters, &us);
	la_heap_turned_to(la_scan_heap(ls), block);
	ls->observed_block = block;
	ls->seen_buffer = *current;
	la_scan_policy_on_visit(&ls->policy, &ls->cache_policy, result, us);
}

/*
 * A way of looking ahead is about to return a row of another block.  Once the policy has disarmed,
 * what is left in the window is not wanted, and a block that was read since the last visit is the
 * previous one.
 */
void
la_heapvisit_turn_to(LaScan *ls, LaWindow *window, BlockNumber block)
{
	int64		reads = la_issue_blocks_read();

	if (ls->policy.state == LA_ARMED)
	{
		la_window_visit(window, 0, block, &la_scan_heap(ls)->xs_cbuf);
		la_heap_turned_to(la_scan_heap(ls), block);
		ls->seen_reads = la_issue_blocks_read();
		return;
	}
	la_window_clear(window);
	if (ls->policy.state == LA_PASS)
		la_heapvisit_pass(ls, reads != ls->seen_reads);
	if (ls->policy.state == LA_OBSERVE)
		la_heapvisit_observe(ls, block);
	ls->seen_reads = la_issue_blocks_read();
}
