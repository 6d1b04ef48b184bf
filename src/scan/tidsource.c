/*
 * tidsource.c
 *	  An index scan whose row addresses another room has found already.
 *
 * The nested loop's scout descends the index for outer rows ahead of their turn.
 * When the inner scan starts over for such a row, its descent would find what the
 * scout has found; so it is left out, and amgettuple returns the scout's row
 * addresses, in the scan's direction.
 *
 *		amrescan --> feed.begin --> { tid, tid, tid }  --amgettuple--> node
 *					  |  not known, or not all of them
 *					  v
 *					the access method's own amrescan, as if there were no feed
 *
 * Why the rows are the same.  The feed holds all entries of the index that matched the
 * scan's keys when the scout looked, a moment before the scan would have looked; and
 * the scan's keys are equality keys of leading columns only, so that there is
 * nothing left to check.  Under an MVCC snapshot the moment makes no difference:
 *	- entries added since then are of row versions that the snapshot cannot see (the
 *	  command's own, too: its snapshot is older than what it writes);
 *	- entries removed since then are of versions dead to everybody, and if their
 *	  address was given to another row meanwhile, that one is invisible as well.
 * nbtree relies on the same when it returns items of a page that it has unpinned.
 * Entries with equal keys are in the order of their addresses in both cases.
 *
 * Dead entries.  Stock marks an entry dead when the heap says that all versions are,
 * and if its page has not changed since before the heap was asked.  The scout's look
 * at the page is too old for that: meanwhile a vacuum may have removed the entry, and
 * an insert have brought another one with the same address.  So with the first dead
 * entry the feeding ends: the access method makes the scan, forward to that entry,
 * which is returned once more.  The executor asks the heap again, finds it dead
 * again, and everything else is the access method's.
 *
 * Not fed: index-only scans, which need the tuple; SERIALIZABLE, since stock's descent
 * takes predicate locks; parallel scans; scans of a standby, which ignore dead marks.
 * The feeding room sees to keys and snapshots.
 *
 * src/scan/tidsource.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/xact.h"
#include "pgstat.h"

#include "base/compat.h"
#include "scan/shim.h"

/*
 * The scan starts over.  Returns false if it has to look for itself.
 */
bool
la_tidsource_begin(LaScan *ls, ScanKey keys, int nkeys)
{
	IndexScanDesc scan = ls->scan;
	BTScanOpaque so = (BTScanOpaque) scan->opaque;

	ls->fed = false;
	if (scan->parallel_scan != NULL || IsolationIsSerializable() ||
		scan->xactStartedInRecovery ||
		!ls->feed.begin(ls->feed.arg, &ls->fed_tids, &ls->nfed))
		return false;

	/* what is left of a scan of its own is the access method's to put away */
	if (BTScanPosIsValid(so->currPos) || BTScanPosIsValid(so->markPos))
		la_scan_call_am(ls, ls->real->rd_indam->amrescan(scan, keys, nkeys, NULL, 0));
	else if (keys != NULL && nkeys > 0)
		memmove(scan->keyData, keys, nkeys * sizeof(ScanKeyData));
	ls->fed = true;
	ls->fed_ended = ls->fed_tried_to_end = false;
	ls->next_fed = 0;
	return true;
}

/*
 * Statistics count the scan that stock would have counted when it began.  (EXPLAIN ANALYZE,
 * which may look at any time, has been told at once.)
 */
void
la_tidsource_settle(LaScan *ls)
{
	if (!ls->fed_uncounted)
		return;
	ls->fed_uncounted = false;
	pgstat_count_index_scan(ls->real);
}

/*
 * The entry returned last is dead: go on with the access method's own scan, beginning
 * with that entry.  Returns false if it is no longer there.
 */
static bool
end_feeding(LaScan *ls, ScanDirection dir, ItemPointerData tid)
{
	IndexScanDesc scan = ls->scan;

	scan->kill_prior_tuple = false;
	la_scan_call_am(ls, ls->real->rd_indam->amrescan(scan, NULL, 0, NULL, 0));
	/* the access method counts its own */
	ls->fed_uncounted = false;
	la_count_index_search(scan, -1);
	while (la_shim_real_gettuple(ls, dir))
	{
		if (ItemPointerEquals(&scan->xs_heaptid, &tid))
		{
			ls->fed = false;
			return true;
		}
	}
	ls->last_dir = NoMovementScanDirection;
	return false;
}

bool
la_tidsource_gettuple(LaScan *ls, ScanDirection dir)
{
	IndexScanDesc scan = ls->scan;
	int			step = ScanDirectionIsForward(dir) ? 1 : -1;
	ItemPointer next = ls->fed_tids +
		(step > 0 ? ls->next_fed : ls->nfed - 1 - ls->next_fed);

	if (ls->next_fed == 0 && !ls->fed_ended)
	{
		ls->fed_uncounted = true;
		la_count_index_search(scan, 1);
	}
	if (scan->kill_prior_tuple && ls->next_fed > 0 && !ls->fed_tried_to_end)
	{
		ls->fed_tried_to_end = true;
		if (end_feeding(ls, dir, next[-step]))
			return true;
	}
	if (ls->next_fed >= ls->nfed)
	{
		ls->fed_ended = true;
		la_tidsource_settle(ls);
		return false;
	}
	scan->xs_heaptid = *next;
	scan->xs_recheck = false;
	ls->next_fed++;
	return true;
}
