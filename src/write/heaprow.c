/*
 * heaprow.c
 *	  Copies of rows that the statement has written.
 *
 * Pages are read only if they are cached, which those are that have just been written, and
 * share-locked while a row is copied.
 *
 * src/write/heaprow.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "rows/rows.h"
#include "window/window.h"
#include "write/write_int.h"

/* Is it a transaction ID of the running transaction? */
bool
la_heaprow_is_own(TransactionId xid)
{
	return TransactionIdIsNormal(xid) && TransactionIdIsCurrentTransactionId(xid);
}

/* Has the running transaction updated or deleted the row?  Not, if it has only locked it. */
bool
la_heaprow_is_replaced(HeapTupleHeader row)
{
	return (row->t_infomask & HEAP_XMAX_IS_MULTI) == 0 &&
		!HEAP_XMAX_IS_LOCKED_ONLY(row->t_infomask) &&
		la_heaprow_is_own(HeapTupleHeaderGetRawXmax(row));
}

static HeapTuple
copy_from(Relation table, Page page, const ItemPointerData *tid, LaRowFilter filter)
{
	HeapTupleData row;

	if (!la_heappage_row(page, ItemPointerGetOffsetNumber(tid), &row) ||
		!la_fits_row(&row, RelationGetDescr(table)))
		return NULL;
	row.t_self = *tid;
	row.t_tableOid = RelationGetRelid(table);
	return filter == NULL || filter(row.t_data) ? heap_copytuple(&row) : NULL;
}

/* The row at this place; NULL if it is not cached, or not what the filter looks for. */
HeapTuple
la_heaprow_copy(Relation table, const ItemPointerData *tid, LaRowFilter filter)
{
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	BlockNumber size = InvalidBlockNumber;
	HeapTuple	row;
	Buffer		buffer;

	if (!la_issue_exists(table, block, &size) || !la_issue_is_cached(table, block, &buffer))
		return NULL;
	buffer = ReadBuffer(table, block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	row = copy_from(table, BufferGetPage(buffer), tid, filter);
	UnlockReleaseBuffer(buffer);
	return row;
}

/*
 * Set *next to the first row that the filter looks for, of those on its page from there on; to the
 * beginning of the page behind it if there is none.
 */
void
la_heaprow_seek(Relation table, ItemPointer next, LaRowFilter filter)
{
	BlockNumber block = ItemPointerGetBlockNumber(next);
	BlockNumber size = InvalidBlockNumber;
	OffsetNumber offset = ItemPointerGetOffsetNumber(next);
	Buffer		buffer;
	Page		page;

	if (!la_issue_exists(table, block, &size) || !la_issue_is_cached(table, block, &buffer))
		return;
	buffer = ReadBuffer(table, block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	for (; offset <= PageGetMaxOffsetNumber(page); offset++)
	{
		HeapTupleData row;

		if (la_heappage_row(page, offset, &row) && filter(row.t_data))
			break;
	}
	if (offset <= PageGetMaxOffsetNumber(page))
		ItemPointerSet(next, block, offset);
	else
		ItemPointerSet(next, block + 1, FirstOffsetNumber);
	UnlockReleaseBuffer(buffer);
}

/*
 * The row at *next, or at the beginning of the page behind it; *next is then the place behind
 * the row.
 */
HeapTuple
la_heaprow_next(Relation table, ItemPointer next, LaRowFilter filter)
{
	HeapTuple	row = la_heaprow_copy(table, next, filter);
	ItemPointerData behind;

	if (row == NULL)
	{
		ItemPointerSet(&behind, ItemPointerGetBlockNumber(next) + 1, FirstOffsetNumber);
		row = la_heaprow_copy(table, &behind, filter);
	}
	if (row != NULL)
		ItemPointerSet(next, ItemPointerGetBlockNumber(&row->t_self),
					   ItemPointerGetOffsetNumber(&row->t_self) + 1);
	return row;
}
