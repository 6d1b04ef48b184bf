/*
 * values.c
 *	  The values of a row that are stored out of line.
 *
 * The row is looked at on its page, share-locked.  Of the versions that an index entry leads to it
 * is the one that the scan's snapshot sees, which the scan will return (rows/heappage.c).  A scan
 * that is not by an index names versions.
 *
 * src/toast/values.c
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/heapam.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"

#include "base/compat.h"
#include "rows/rows.h"
#include "toast/toast_int.h"
#include "window/window.h"

/* The page of a row, pinned, or InvalidBuffer. */
static Buffer
page_of(const LaValueRows *rows, const LaComingRow *row)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(&row->tid);
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

/* Where a value is; false if it is not out of line. */
bool
la_values_pointer(Datum value, struct varatt_external *pointer)
{
	if (!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value)))
		return false;
	VARATT_EXTERNAL_GET_POINTER(*pointer, (struct varlena *) DatumGetPointer(value));
	return true;
}

/* Add one to those of a row, if it is in this toast table. */
void
la_values_add(LaRowValues *values, Datum value, Oid toast_table)
{
	struct varatt_external pointer;

	/* while a table is rewritten, values are still in the old one's */
	if (!la_values_pointer(value, &pointer) || pointer.va_toastrelid != toast_table)
		return;
	values->ids[values->n++] = pointer.va_valueid;
	values->chunks += (VARATT_EXTERNAL_GET_EXTSIZE(pointer) - 1) / TOAST_MAX_CHUNK_SIZE + 1;
}

static inline TupleDesc
desc_of(const LaValueRows *rows)
{
	return rows->desc != NULL ? rows->desc : RelationGetDescr(rows->table);
}

static void
add_values(const LaValueRows *rows, HeapTuple tuple, LaRowValues *values)
{
	for (int i = 0; i < rows->columns.n; i++)
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, rows->columns.numbers[i], desc_of(rows), &isnull);

		if (!isnull)
			la_values_add(values, value, rows->toast_table);
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
	if ((rows->versions ?
		 la_heappage_is_visible(rows->table, rows->snapshot, buffer, &row->tid, &tuple) :
		 la_heappage_version(rows->table, rows->snapshot, buffer, &row->tid, &tuple)) &&
		la_fits_row(&tuple, desc_of(rows)))
		add_values(rows, &tuple, values);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (buffer != row->buffer)
		ReleaseBuffer(buffer);
	return true;
}
