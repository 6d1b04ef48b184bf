/*
 * range.c
 *	  Leaf pages of a btree index that a bitmap index scan is going to read.
 *
 * btgetbitmap() adds the entries of one leaf page after the other to the bitmap.  It calls nothing
 * between two pages, so its loop is made here, by the functions that it calls:
 *
 *		_bt_first -> all of the leaf page -> _bt_next -> all of the leaf page -> ...
 *
 * nbtree descends, reads pages, checks keys, takes predicate locks and decides when the scan ends.
 * Each page that it comes to is a step of btree/leafahead.c, which starts the reads of those to
 * come.
 *
 *	AGAIN	From 17 on, a scan with "= ANY" or skipped columns may descend again, to a page farther
 *			on: that is part of the step.  Before 17, each value of an array is a scan of its own,
 *			and such scans are left to btgetbitmap().
 *	VERDICT	What is learnt of reads is kept for later bitmap scans of the index.  It says nothing of
 *			reads of the table, and what index scans have learnt of these says nothing here.
 *
 * src/bitmap/range.c
 */
#include "postgres.h"

#include "access/nbtree.h"

#include "attach/descriptors.h"
#include "base/compat_btree.h"
#include "bitmap/bitmap_int.h"
#include "window/window.h"

bool
la_range_is_stock(const IndexAmRoutine *am)
{
	return am->amgetbitmap == btgetbitmap;
}

/* The scan is one of a btree index. */
void
la_range_init(LaBitmapScan *bs)
{
	la_leafahead_init(&bs->leaf, bs->real, bs->scan, bs->context, &bs->budget, &bs->counters);
	bs->config = la_config_reads(bs->real, true, bs->indexrelid);
	bs->config.known_slow = la_history_pages_known_slow(bs->indexrelid,
														bs->real->rd_rel->reltablespace);
	la_leaf_policy_init(&bs->leaf.policy, &bs->config);
	bs->counters.c[LA_DISTANCE_CAPACITY] = bs->config.max_distance;
}

/* The first page with entries, or the next one.  Returns false at the end. */
static bool
find_page(IndexScanDesc scan, bool first)
{
	if (first ? _bt_first(scan, ForwardScanDirection) : _bt_next(scan, ForwardScanDirection))
		return true;
	while (la_bt_begin_next_scan(scan, la_btree_scan(scan)))
	{
		/* AGAIN */
		if (_bt_first(scan, ForwardScanDirection))
			return true;
	}
	return false;
}

static bool
step(LaBitmapScan *bs, bool first)
{
	bool		found;

	la_leafahead_begin_step(&bs->leaf);
	found = find_page(bs->scan, first);
	la_leafahead_end_step(&bs->leaf, found, ForwardScanDirection, PG_INT64_MAX);
	return found;
}

/* Add all entries of the leaf page, from the current one on, to the bitmap. */
static int64
add_page(BTScanOpaque so, TIDBitmap *tbm)
{
	BTScanPosData *pos = &so->currPos;
	int64		n = pos->lastItem - pos->itemIndex + 1;

	for (int i = pos->itemIndex; i <= pos->lastItem; i++)
		tbm_add_tuples(tbm, &pos->items[i].heapTid, 1, false);
	pos->itemIndex = pos->lastItem;
	return n;
}

/* Do what btgetbitmap() does, with look-ahead where there is evidence. */
int64
la_range_getbitmap(LaBitmapScan *bs, TIDBitmap *tbm)
{
	BTScanOpaque so = la_btree_scan(bs->scan);
	LaLeafPolicy *policy = &bs->leaf.policy;
	int64		ntids = 0;

	/* before 19, another extension may have exchanged it in the index's entry */
	if (!la_range_is_stock(bs->real->rd_indam) || !la_leaf_policy_is_enabled(policy) ||
		la_bt_arrays_are_scans(so))
		return bs->real->rd_indam->amgetbitmap(bs->scan, tbm);

	if (la_leaf_policy_is_armed(policy))
		bs->counters.c[LA_SCANS_ACTIVATED]++;
	for (bool found = step(bs, true); found; found = step(bs, false))
		ntids += add_page(so, tbm);
	la_leafahead_rescan(&bs->leaf, false);
	la_history_note_pages(bs->indexrelid, la_io_policy_verdict(&policy->io));
	return ntids;
}
