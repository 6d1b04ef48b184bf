/*
 * compat_bitmap.h
 *	  As compat.h, for the heap side of bitmap scans.
 *
 * src/base/compat_bitmap.h
 */
#ifndef LA_COMPAT_BITMAP_H
#define LA_COMPAT_BITMAP_H

#include "access/htup_details.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "nodes/tidbitmap.h"
#include "storage/smgr.h"
#include "utils/rel.h"

#include "base/compat.h"

/* 17 has one more argument, 19 another one. */
#if PG_VERSION_NUM >= 190000
#define la_table_beginscan_bm(ss, snapshot) \
	table_beginscan_bm((ss)->ss_currentRelation, snapshot, 0, NULL, la_table_scan_flags(ss))
#elif PG_VERSION_NUM >= 170000 && PG_VERSION_NUM < 180000
#define la_table_beginscan_bm(ss, snapshot) \
	table_beginscan_bm((ss)->ss_currentRelation, snapshot, 0, NULL, true)
#else
#define la_table_beginscan_bm(ss, snapshot) \
	table_beginscan_bm((ss)->ss_currentRelation, snapshot, 0, NULL)
#endif

/*
 * 18 gives the tuples of a bitmap's page apart from its number (commit bfe56cdf9a4e).
 * la_tbm_next() sets *n to -1 where all tuples of the page are meant; offsets has room for
 * MaxHeapTuplesPerPage.
 */
#if PG_VERSION_NUM >= 180000
#define LaTbmIterator			TBMPrivateIterator
#define la_tbm_begin(tbm)		tbm_begin_private_iterate(tbm)
#define la_tbm_end(iterator)	tbm_end_private_iterate(iterator)
#else
#define LaTbmIterator			TBMIterator
#define la_tbm_begin(tbm)		tbm_begin_iterate(tbm)
#define la_tbm_end(iterator)	tbm_end_iterate(iterator)
#endif

static inline bool
la_tbm_next(LaTbmIterator * iterator, BlockNumber *block, OffsetNumber *offsets, int *n)
{
#if PG_VERSION_NUM >= 180000
	TBMIterateResult page;

	if (!tbm_private_iterate(iterator, &page))
		return false;
	*block = page.blockno;
	*n = page.lossy ? -1 : tbm_extract_page_tuple(&page, offsets, TBM_MAX_TUPLES_PER_PAGE);
#else
	TBMIterateResult *page = tbm_iterate(iterator);

	if (page == NULL)
		return false;
	*block = page->blockno;
	*n = page->ntuples;
	if (*n > 0)
		memcpy(offsets, page->offsets, *n * sizeof(OffsetNumber));
#endif
	return true;
}

/*
 * Until 17 the node of a bitmap heap scan asks the table's access method for each block, and has
 * those ahead prefetched by the Relation in the descriptor.  So a copy that stands there needs the
 * file: until 16 as one more owner of it, which takes turns with the others (la_shadow_leave() at
 * the end); in 17 as long as the transaction lasts (commit 21d9c3ee4ef7).
 */
#if PG_VERSION_NUM >= 180000
#define LA_BITMAP_NEXT_ARGS \
	TableScanDesc scan, TupleTableSlot *slot, bool *recheck, uint64 *lossy, uint64 *exact
#define LA_BITMAP_NEXT_PASS		scan, slot, recheck, lossy, exact
#define la_bitmap_set_block_function(routine, function)	((void) (function))
#define la_bitmap_next_block(rel, scan, page)	false
#define la_bitmap_pages_advised(node)	0
#define la_shadow_enter(shadow, rel)	((void) 0)
#define la_shadow_leave(shadow)			((void) 0)
#else
#define LA_BITMAP_NEXT_ARGS \
	TableScanDesc scan, struct TBMIterateResult *page, TupleTableSlot *slot
#define LA_BITMAP_NEXT_PASS		scan, page, slot
#define la_bitmap_set_block_function(routine, function) \
	((routine)->scan_bitmap_next_block = (function))
#define la_bitmap_next_block(rel, scan, page) \
	((rel)->rd_tableam->scan_bitmap_next_block(scan, page))
#define la_bitmap_pages_advised(node)	((node)->prefetch_pages)
#if PG_VERSION_NUM >= 170000
#define la_shadow_enter(shadow, rel)	((void) ((shadow)->rd_smgr = RelationGetSmgr(rel)))
#define la_shadow_leave(shadow)			((void) 0)
#else
#define la_shadow_enter(shadow, rel)	((void) 0)
#define la_shadow_leave(shadow) \
	((shadow)->rd_smgr == NULL ? (void) 0 : smgrclearowner(&(shadow)->rd_smgr, (shadow)->rd_smgr))
#endif
#endif

#endif							/* LA_COMPAT_BITMAP_H */
