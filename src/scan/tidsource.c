/*
 * tidsource.c
 *	  An index scan whose TIDs another room has found already.
 *
 * A room that searches the index for outer rows ahead of their turn, such as nestloop/, already
 * has what the inner scan's descent is going to find.  It offers that as a LaTidSource (attach.h).
 * When the scan starts over for such a row, the descent is omitted, and amgettuple returns the
 * source's TIDs in the scan's direction.
 *
 *		amrescan --> source.begin --> { tid, tid, tid }  --amgettuple--> node
 *					  |  not known, or not all of them
 *					  v
 *					the access method's own amrescan, as if there were no source
 *
 * Why the rows are the same: the source has all entries of the index that matched the scan's keys
 * when it looked, a moment before the scan would have looked; and the scan's keys are equality
 * keys of leading columns only, so there is nothing left to check.  Under an MVCC snapshot the
 * moment makes no difference:
 *	- entries added since then are of row versions that the snapshot cannot see (the command's own,
 *	  too: its snapshot is older than what it writes);
 *	- entries removed since then are of versions dead to everybody, and if their TID was given to
 *	  another row meanwhile, that one is invisible as well.
 * nbtree relies on the same when it returns items of a page that it has unpinned.  Entries with
 * equal keys are in the order of their TIDs in both cases, going forward.  (Going backward, nbtree
 * returns those of a posting list in that order, too: such scans are not offered any.)
 *
 * Killed items: stock marks an entry dead when the heap says that all versions are, and if its
 * page has not changed since before the heap was asked.  The source has read the page too early
 * for that: meanwhile a vacuum may have removed the entry, and an insert may have added another
 * one with the same TID.  So at the first dead entry the access method makes the scan, forward to
 * that entry, which is returned once more.  The executor finds it dead again, and everything else
 * is the access method's.
 *
 * The source is not asked in index-only scans, which need the tuple; under SERIALIZABLE, since
 * stock's descent takes predicate locks; in parallel scans; on a standby, whose scans ignore dead
 * marks.  Keys and snapshots are the responsibility of the source's room.
 *
 * src/scan/tidsource.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "pgstat.h"

#include "attach/descriptors.h"
#include "base/compat.h"
#include "scan/scan_int.h"

typedef struct TidSourceScan
{
	LaTidSource source;
	ItemPointer tids;
	int			ntids;
	int			next;
	bool		started;		/* a row was asked for */
	bool		uncounted;		/* ... and statistics do not know of it */
	bool		searched;		/* the access method looked for a dead entry */
} TidSourceScan;

/* The scan starts over. */
static bool
tidsource_rescan(LaScan *ls, ScanKey keys, int nkeys)
{
	TidSourceScan *ts = ls->source.state;
	IndexScanDesc scan = ls->scan;
	BTScanOpaque so = la_btree_scan(scan);

	if (scan->parallel_scan != NULL || IsolationIsSerializable() ||
		scan->xactStartedInRecovery ||
		!ts->source.begin(ts->source.arg, &ts->tids, &ts->ntids))
		return false;

	/* the access method ends a scan that it has made */
	if (BTScanPosIsValid(so->currPos) || BTScanPosIsValid(so->markPos))
		la_shadow_call(ls, ls->real->rd_indam->amrescan(scan, keys, nkeys, NULL, 0));
	else if (keys != NULL && nkeys > 0)
		memmove(scan->keyData, keys, nkeys * sizeof(ScanKeyData));
	ts->next = 0;
	ts->started = ts->searched = false;
	ls->owner = ls->source.ops;
	return true;
}

/*
 * Statistics count the scan, which stock would have counted when it began.  (EXPLAIN ANALYZE may
 * look at any time, so its counter is raised with the first row.)
 */
static void
count_scan(LaScan *ls, TidSourceScan *ts)
{
	if (ts->uncounted)
		pgstat_count_index_scan(ls->real);
	ts->uncounted = false;
}

static void
tidsource_drop(LaScan *ls)
{
	count_scan(ls, ls->source.state);
	if (ls->owner == ls->source.ops)
		ls->owner = NULL;
}

/*
 * The entry returned last is dead: go on with a scan of the access method, from that entry on.
 * Returns false if it is no longer there.
 */
static bool
search_again(LaScan *ls, ScanDirection dir, ItemPointerData tid)
{
	TidSourceScan *ts = ls->source.state;
	IndexScanDesc scan = ls->scan;

	scan->kill_prior_tuple = false;
	la_shadow_call(ls, ls->real->rd_indam->amrescan(scan, NULL, 0, NULL, 0));
	/* the access method counts its own */
	ts->uncounted = false;
	la_count_index_search(scan, -1);
	while (la_scan_am_gettuple(ls, dir))
	{
		if (ItemPointerEquals(&scan->xs_heaptid, &tid))
		{
			/* the caller counts it once more */
			pgstat_count_index_tuples(ls->real, -1);
			ls->owner = NULL;
			ls->seen_buffer = la_scan_heap(ls)->xs_cbuf;
			ls->seen_reads = la_issue_blocks_read();
			return true;
		}
	}
	ls->last_dir = NoMovementScanDirection;
	return false;
}

static bool
tidsource_gettuple(LaScan *ls, ScanDirection dir)
{
	TidSourceScan *ts = ls->source.state;
	IndexScanDesc scan = ls->scan;
	int			step = ScanDirectionIsForward(dir) ? 1 : -1;
	ItemPointer next = ts->tids + (step > 0 ? ts->next : ts->ntids - 1 - ts->next);

	if (!ts->started)
	{
		ts->started = ts->uncounted = true;
		la_count_index_search(scan, 1);
	}
	if (scan->kill_prior_tuple && ts->next > 0 && !ts->searched)
	{
		ts->searched = true;
		if (search_again(ls, dir, next[-step]))
			return true;
	}
	if (ts->next >= ts->ntids)
	{
		count_scan(ls, ts);
		return false;
	}
	scan->xs_heaptid = *next;
	scan->xs_recheck = false;
	ts->next++;
	return true;
}

static const LaScanOps tidsource_ops = {
	.rescan = tidsource_rescan,
	.gettuple = tidsource_gettuple,
	.drop = tidsource_drop
};

/* From the next rescan on, take TIDs from the source if it has them.  Only btree scans can. */
bool
la_tidsource_set(LaScan *ls, const LaTidSource *source)
{
	TidSourceScan *ts = ls->source.state;

	if (ls->real->rd_rel->relam != BTREE_AM_OID)
		return false;
	if (ts == NULL)
		ts = MemoryContextAllocZero(ls->context, sizeof(TidSourceScan));
	ts->source = *source;
	ls->source.ops = &tidsource_ops;
	ls->source.state = ts;
	return true;
}
