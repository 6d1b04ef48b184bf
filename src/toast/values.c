/*
 * values.c
 *	  The values of a row that are stored out of line.
 *
 * The row is looked at on its page, share-locked.  Of the versions that an index entry leads to it
 * is the one that the scan's snapshot sees, which the scan will return; it is found as heapam finds
 * it, but that nothing is noted for SERIALIZABLE.
 *
 * src/toast/values.c
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/heapam.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"

#include "base/compat.h"
#include "toast/values.h"
#include "window/issue.h"

/* The page of a row, pinned, or InvalidBuffer. */
static Buffer
page_of(const LaValueRows *rows, const LaComingRow *row)
{
	BlockNumber block = ItemPointerGetBlockNumber(&row->tid);
	BlockNumber size = InvalidBlockNumber;
	Buffer		recent;

	if (BufferIsValid(row->buffer))
		return row->buffer;
	if (!la_issue_is_cached(rows->table, block, &recent) &&
		!(row->may_read && la_issue_exists(rows->table, block, &size)))
		return InvalidBuffer;
	return ReadBufferExtended(rows->table, MAIN_FORKNUM, block, RBM_NORMAL,
							  rows->strategy == NULL ? NULL : *rows->strategy);
}

/* Follow a chain of versions on a page to the one that the snapshot sees. */
static bool
find_version(const LaValueRows *rows, Buffer buffer, const ItemPointerData *tid, HeapTuple tuple)
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
		tuple->t_tableOid = RelationGetRelid(rows->table);
		ItemPointerSet(&tuple->t_self, block, offset);
		if (TransactionIdIsValid(previous) &&
			!TransactionIdEquals(previous, HeapTupleHeaderGetXmin(tuple->t_data)))
			return false;
		if (HeapTupleSatisfiesVisibility(tuple, rows->snapshot, buffer))
			return true;
		if (!HeapTupleIsHotUpdated(tuple) ||
			ItemPointerGetBlockNumber(&tuple->t_data->t_ctid) != block)
			return false;
		previous = HeapTupleHeaderGetUpdateXid(tuple->t_data);
		offset = ItemPointerGetOffsetNumber(&tuple->t_data->t_ctid);
	}
	return false;
}

static void
add_values(const LaValueRows *rows, HeapTuple tuple, LaRowValues *values)
{
	for (int i = 0; i < rows->columns.n; i++)
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, rows->columns.numbers[i],
										 RelationGetDescr(rows->table), &isnull);
		struct varatt_external pointer;

		if (isnull || !VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value)))
			continue;
		VARATT_EXTERNAL_GET_POINTER(pointer, (struct varlena *) DatumGetPointer(value));
		/* while a table is rewritten, values are still in the old one's */
		if (pointer.va_toastrelid != rows->toast_table)
			continue;
		values->ids[values->n++] = pointer.va_valueid;
		values->chunks += (VARATT_EXTERNAL_GET_EXTSIZE(pointer) - 1) / TOAST_MAX_CHUNK_SIZE + 1;
	}
}

/*
 * Find the values of a row; none if the scan will not return it.  False if its page is not there
 * yet.
 */
bool
la_values_find(const LaValueRows *rows, const LaComingRow *row, LaRowValues *values)
{
	Buffer		buffer = page_of(rows, row);
	HeapTupleData tuple;

	values->n = 0;
	values->chunks = 0;
	if (!BufferIsValid(buffer))
		return false;
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (find_version(rows, buffer, &row->tid, &tuple))
		add_values(rows, &tuple, values);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (buffer != row->buffer)
		ReleaseBuffer(buffer);
	return true;
}
