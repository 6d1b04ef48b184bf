/*
 * heappage.c
 *	  The rows of a page that a scan of a table will come to.
 *
 * What is found here is a hint: nothing is kept of it when the scan comes to the page.  A page
 * may be damaged, and the scan may never come to it; so a line pointer and what it points to are
 * checked, and what leads out of the page is no row.  (fits.c does the same for a row's values.)
 *
 * src/rows/heappage.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/base.h"
#include "rows/rows.h"

/*
 * Set t_data and t_len to the row at this place of a page that is locked, or a copy.  Returns
 * false if there is none.
 */
bool
la_heappage_row(Page page, OffsetNumber offset, HeapTuple tuple)
{
	ItemId		item;

	if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(page) ||
		offset > (BLCKSZ - SizeOfPageHeaderData) / sizeof(ItemIdData))
		return false;
	item = PageGetItemId(page, offset);
	if (!ItemIdIsNormal(item) || !la_item_fits(item, SizeofHeapTupleHeader, BLCKSZ))
		return false;
	tuple->t_data = (HeapTupleHeader) ((char *) page + ItemIdGetOffset(item));
	tuple->t_len = ItemIdGetLength(item);
	return tuple->t_data->t_hoff >= SizeofHeapTupleHeader &&
		tuple->t_data->t_hoff == MAXALIGN(tuple->t_data->t_hoff) &&
		tuple->t_data->t_hoff <= tuple->t_len;
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
		if (!la_heappage_row(page, i, &tuple))
			continue;
		ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(buffer), i);
		if (all_visible || HeapTupleSatisfiesVisibility(&tuple, snapshot, buffer))
			offsets[n++] = i;
	}
	return n;
}

/* Does the snapshot see the row at this address, on a page that is pinned and locked? */
bool
la_heappage_is_visible(Relation rel, Snapshot snapshot, Buffer buffer, const ItemPointerData *tid,
					   HeapTuple tuple)
{
	if (!la_heappage_row(BufferGetPage(buffer), ItemPointerGetOffsetNumberNoCheck(tid), tuple))
		return false;
	tuple->t_tableOid = RelationGetRelid(rel);
	tuple->t_self = *tid;
	return HeapTupleSatisfiesVisibility(tuple, snapshot, buffer);
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
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	TransactionId previous = InvalidTransactionId;

	for (int i = 0; i < MaxHeapTuplesPerPage; i++)
	{
		if (i == 0 && offset >= FirstOffsetNumber &&
			offset <= Min(PageGetMaxOffsetNumber(page), MaxHeapTuplesPerPage) &&
			ItemIdIsRedirected(PageGetItemId(page, offset)))
		{
			offset = ItemIdGetRedirect(PageGetItemId(page, offset));
			continue;
		}
		if (!la_heappage_row(page, offset, tuple))
			return false;
		tuple->t_tableOid = RelationGetRelid(rel);
		ItemPointerSet(&tuple->t_self, block, offset);
		if (TransactionIdIsValid(previous) &&
			!TransactionIdEquals(previous, HeapTupleHeaderGetXmin(tuple->t_data)))
			return false;
		if (HeapTupleSatisfiesVisibility(tuple, snapshot, buffer))
			return true;
		if (!HeapTupleIsHotUpdated(tuple) ||
			ItemPointerGetBlockNumberNoCheck(&tuple->t_data->t_ctid) != block)
			return false;
		previous = HeapTupleHeaderGetUpdateXid(tuple->t_data);
		offset = ItemPointerGetOffsetNumberNoCheck(&tuple->t_data->t_ctid);
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
