/*
 * scan_rows.c
 *	  The rows to come of a scan of a table, by its pages or by an index.
 *
 * The addresses of the rows behind the current one are known: of a scan of the table's pages by
 * rows/tablecursor.c, and of an index scan because the access method has read a leaf page as a
 * whole, or the room of index scans some of them (la_attach_peek()).  So nothing is executed ahead:
 *
 *		current row --> [ tid | tid | tid | tid | tid | tid | tid ]
 *		                        ^ taken            ^ issued
 *
 * A row has to be read before what is looked up by its values is known.  The pages of a table's
 * scan have been looked at then.  For an index scan, the reads of the rows' own blocks are started
 * LEAD addresses earlier: it is the scan that would read them next.  Of an index-only scan the
 * values are in the index, and its rows are taken from there.
 *
 * Invariants
 *	- These are hints: the scan fetches its rows itself.
 *	- No buffer is pinned or locked between calls.
 *	- No predicate lock is taken.
 *
 * src/nestloop/scan_rows.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"

#include "attach/attach.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "nestloop/nestloop_int.h"
#include "window/window.h"

#define LEAD			32
#define MAX_ROWS		1400	/* that an index scan has yet to fetch: more
								 * than a leaf page has */

typedef struct ScanRows
{
	LaRowsToCome base;
	ScanState  *scan;
	bool		by_index;
	LaTableCursor cursor;		/* of another scan */
	LaComing	coming;
	LaRowFilter *filter;
	TupleTableSlot *slot;
	HeapTupleData tuple;		/* in the slot, until it has a copy */
	TupleDesc	index_desc;		/* of an index-only scan, or NULL */
	BlockNumber heap_size;		/* see la_issue_exists() */
	uint64		last;			/* the row taken last */
	int			place;			/* ... behind the scan's current row; 0: none */
	int			issued;			/* likewise, the last one issued */
	int			taken;			/* rows since the restart */
} ScanRows;

static void
restart(LaRowsToCome *rows)
{
	ScanRows   *r = (ScanRows *) rows;

	r->place = r->issued = r->taken = 0;
}

/* The n-th row behind the scan's current one. */
static bool
peek(const ScanRows *r, int n, LaComingRow *row)
{
	return (!r->by_index || n <= MAX_ROWS) && r->coming.peek(r->coming.arg, n, row);
}

/* The scan has gone on: find the row that was taken last.  It may have overtaken that. */
static void
catch_up(ScanRows *r)
{
	LaComingRow row;

	while (r->place > 0 && !(peek(r, r->place, &row) && row.id == r->last))
	{
		r->place--;
		r->issued--;
	}
}

/* Start the reads of rows further on; not of more than have been taken. */
static void
issue_ahead(ScanRows *r)
{
	Relation	heap = r->scan->ss_currentRelation;
	int			end = r->place + Min(LEAD, r->taken + 1);
	LaComingRow row;

	for (r->issued = Max(r->issued, r->place);
		 r->issued < end && peek(r, r->issued + 1, &row); r->issued++)
	{
		BlockNumber block = ItemPointerGetBlockNumberNoCheck(&row.tid);
		Buffer		recent;

		if (la_issue_exists(heap, block, &r->heap_size))
			(void) la_issue_block(heap, block, &recent);
	}
}

/*
 * Put a row into the slot.  Returns false if it is not visible, or will not pass the filter.  Its
 * page is the scan's, or pinned as *buffer.
 */
static bool
take(ScanRows *r, const LaComingRow *row, Buffer *buffer)
{
	Relation	heap = r->scan->ss_currentRelation;
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(&row->tid);
	Buffer		page = row->buffer;
	Buffer		recent;
	bool		found;

	if (!BufferIsValid(page))
	{
		if (!la_issue_exists(heap, block, &r->heap_size))
			return false;
		(void) la_issue_is_cached(heap, block, &recent);
		(void) la_issue_read(heap, block, recent, false, !r->by_index, buffer);
		page = *buffer;
	}
	LockBuffer(page, BUFFER_LOCK_SHARE);
	found = la_heappage_version(heap, r->scan->ps.state->es_snapshot, page, &row->tid, &r->tuple);
	LockBuffer(page, BUFFER_LOCK_UNLOCK);
	if (!found || !la_fits_row(&r->tuple, RelationGetDescr(heap)))
		return false;
	ExecStoreHeapTuple(&r->tuple, r->slot, false);
	/* a value that is stored out of line would be read */
	return HeapTupleHasExternal(&r->tuple) || la_rowfilter_passes(r->filter, r->slot);
}

/* The same for an index-only scan.  Whether the row is visible is not asked. */
static bool
take_from_index(ScanRows *r, IndexTuple tuple)
{
	if (tuple == NULL || !la_fits_entry(tuple, r->index_desc))
		return false;
	index_deform_tuple(tuple, r->index_desc, r->slot->tts_values, r->slot->tts_isnull);
	ExecStoreVirtualTuple(r->slot);
	return la_rowfilter_passes(r->filter, r->slot);
}

/* Are rows known in this direction?  A table's are not if its scan goes backward. */
static bool
is_possible(const ScanRows *r)
{
	return r->by_index ? !RelationUsesLocalBuffers(r->scan->ss_currentRelation) :
		ScanDirectionIsForward(r->scan->ps.state->es_direction);
}

static TupleTableSlot *
next(LaRowsToCome *rows)
{
	ScanRows   *r = (ScanRows *) rows;
	Buffer		buffer = InvalidBuffer;
	bool		found = false;
	LaComingRow row;

	if (!is_possible(r))
		return NULL;
	catch_up(r);
	while (!found && peek(r, r->place + 1, &row))
	{
		ExecClearTuple(r->slot);
		r->last = row.id;
		r->place++;
		r->taken++;
		if (r->by_index && r->index_desc == NULL)
			issue_ahead(r);
		found = r->index_desc != NULL ? take_from_index(r, row.tuple) : take(r, &row, &buffer);
	}
	if (found)
		ExecMaterializeSlot(r->slot);
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
	return found ? r->slot : NULL;
}

/* The index has values of "name" as cstrings, which are not what an expression expects. */
static bool
has_cstrings(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->atttypid == CSTRINGOID)
			return true;
	}
	return false;
}

/* In the current memory context, which is the query's.  NULL if nothing can be known. */
LaRowsToCome *
la_scanrows_create(ScanState *scan, const LaRunAhead *hints)
{
	ScanRows   *r = palloc0(sizeof(ScanRows));
	TupleDesc	desc = RelationGetDescr(scan->ss_currentRelation);

	r->base.restart = restart;
	r->base.next = next;
	r->scan = scan;
	r->by_index = IsA(scan, IndexScanState) || IsA(scan, IndexOnlyScanState);
	r->cursor.table = scan->ss_currentRelation;
	r->cursor.scan = &scan->ss_currentScanDesc;
	r->cursor.context = CurrentMemoryContext;
	r->coming.arg = r->by_index ? (void *) scan : &r->cursor;
	r->coming.peek = r->by_index ? la_attach_peek : la_tablecursor_peek;
	r->heap_size = InvalidBlockNumber;
	if (IsA(scan, IndexOnlyScanState))
	{
		desc = r->index_desc =
			RelationGetDescr(((IndexOnlyScanState *) scan)->ioss_RelationDesc);
		if (has_cstrings(desc))
			return NULL;
	}
	r->filter = la_rowfilter_create(scan, hints);
	r->slot = la_alloc_table_slot(&scan->ps.state->es_tupleTable, desc,
								  r->index_desc != NULL ? &TTSOpsVirtual : &TTSOpsHeapTuple);
	return &r->base;
}
