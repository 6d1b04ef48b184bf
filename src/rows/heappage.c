/*
 * heappage.c
 *	  The pages that a scan of a table will come to, and their rows.
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

/*
 * Follow a chain of versions, on a page that is pinned and locked, to the one that the snapshot
 * sees: as heapam does, but that nothing is noted for SERIALIZABLE.
 */
bool
la_heappage_version(Relation rel, Snapshot snapshot, Buffer buffer, const ItemPointerData *tid,
					HeapTuple tuple)
{
	Page		page = BufferGetPage(buffer);
	BlockNumber block = BufferGetBlockNumber(buffer);
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);
	TransactionId previous = InvalidTransactionId;

	for (int i = 0; i < MaxHeapTuplesPerPage; i++)
	{
		ItemId		item;

		if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(page))
			return false;
		item = PageGetItemId(page, offset);
		if (i == 0 && ItemIdIsRedirected(item))
		{
			offset = ItemIdGetRedirect(item);
			continue;
		}
		if (!ItemIdIsNormal(item))
			return false;
		tuple->t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple->t_len = ItemIdGetLength(item);
		tuple->t_tableOid = RelationGetRelid(rel);
		ItemPointerSet(&tuple->t_self, block, offset);
		if (TransactionIdIsValid(previous) &&
			!TransactionIdEquals(previous, HeapTupleHeaderGetXmin(tuple->t_data)))
			return false;
		if (HeapTupleSatisfiesVisibility(tuple, snapshot, buffer))
			return true;
		if (!HeapTupleIsHotUpdated(tuple) ||
			ItemPointerGetBlockNumber(&tuple->t_data->t_ctid) != block)
			return false;
		previous = HeapTupleHeaderGetUpdateXid(tuple->t_data);
		offset = ItemPointerGetOffsetNumber(&tuple->t_data->t_ctid);
	}
	return false;
}

/*
 * The rows that the snapshot sees, of those whose first versions are at the n places in offsets.
 * They replace these; returns their number.  The page is pinned and locked.
 */
int
la_heappage_versions(Relation rel, Snapshot snapshot, Buffer buffer, OffsetNumber *offsets, int n)
{
	int			found = 0;

	for (int i = 0; i < n; i++)
	{
		ItemPointerData tid;
		HeapTupleData tuple;

		ItemPointerSet(&tid, BufferGetBlockNumber(buffer), offsets[i]);
		if (la_heappage_version(rel, snapshot, buffer, &tid, &tuple))
			offsets[found++] = ItemPointerGetOffsetNumber(&tuple.t_self);
	}
	return found;
}
