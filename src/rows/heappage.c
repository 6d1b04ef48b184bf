/*
 * heappage.c
 *	  The pages that a sequential scan will come to, and their rows.
 *
 * What is found here is a hint: nothing is kept of it when the scan comes to the page.
 *
 * src/rows/heappage.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "rows/heappage.h"

/* The block behind this one in the scan's order, or InvalidBlockNumber at its end. */
BlockNumber
la_heappage_after(const HeapScanDescData *scan, BlockNumber block)
{
	BlockNumber next = block + 1 < scan->rs_nblocks ? block + 1 : 0;

	return next == scan->rs_startblock ? InvalidBlockNumber : next;
}

/*
 * The rows that the snapshot sees, of a page that is pinned and locked.  Returns their number;
 * offsets has room for MaxHeapTuplesPerPage.
 */
int
la_heappage_visible(Relation rel, Snapshot snapshot, Buffer buffer, OffsetNumber *offsets)
{
	Page		page = BufferGetPage(buffer);
	bool		all_visible = PageIsAllVisible(page) && !snapshot->takenDuringRecovery;
	OffsetNumber max = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
	HeapTupleData tuple;
	int			n = 0;

	tuple.t_tableOid = RelationGetRelid(rel);
	for (OffsetNumber i = FirstOffsetNumber; i <= max && n < MaxHeapTuplesPerPage; i++)
	{
		ItemId		item = PageGetItemId(page, i);

		if (!ItemIdIsNormal(item))
			continue;
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple.t_len = ItemIdGetLength(item);
		ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), i);
		if (all_visible || HeapTupleSatisfiesVisibility(&tuple, snapshot, buffer))
			offsets[n++] = i;
	}
	return n;
}
