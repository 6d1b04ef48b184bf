/*
 * page_rows.c
 *	  The rows to come of a sequential, bitmap heap or TID range scan.
 *
 * The scan looks at a page as a whole before it returns its first row: rs_vistuples has the visible
 * rows.  So nothing is executed ahead; the page is copied, and rows behind the current one are
 * taken from the copy.  Of a sequential scan, the pages after it are known as well:
 *
 *		page of the current row       next pages, if they are in shared buffers
 *		[ done | row | row | row ]    [ row | row | row ]  [ row | ...
 *
 * Where the server does not itself read ahead of a sequential scan (until 16), the page after the
 * current one is read, by the scan's own strategy: its turn is next.
 *
 * Invariants
 *	- These are hints.  Visibility is checked as the scan will, but nothing is kept of it.
 *	- No buffer is pinned or locked between calls.
 *
 * src/nestloop/page_rows.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"

#include "attach/descriptors.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "nestloop/nestloop_int.h"
#include "window/window.h"

#define MAX_PAGES		64		/* ahead of the scan */

typedef struct PageRows
{
	LaRowsToCome base;
	ScanState  *scan;
	LaRowFilter *filter;
	TupleTableSlot *slot;
	HeapTupleData tuple;		/* in the slot */
	BlockNumber block;			/* that was copied, or InvalidBlockNumber */
	int			npages;			/* copied since the restart */
	int			n;				/* rows of the page */
	int			next;
	OffsetNumber offsets[MaxHeapTuplesPerPage];
	PGAlignedBlock page;
} PageRows;

static HeapScanDesc
descriptor_of(const PageRows *r)
{
	return la_heap_scan(r->scan->ss_currentScanDesc, r->scan->ss_currentRelation);
}

static void
restart(LaRowsToCome *rows)
{
	PageRows   *r = (PageRows *) rows;
	HeapScanDesc scan = descriptor_of(r);
	TupleTableSlot *current = r->scan->ss_ScanTupleSlot;
	OffsetNumber offset;

	r->block = InvalidBlockNumber;
	r->n = r->next = r->npages = 0;
	if (scan == NULL || TupIsNull(current) || !BufferIsValid(scan->rs_cbuf) ||
		(scan->rs_base.rs_flags & SO_ALLOW_PAGEMODE) == 0 ||
		!ScanDirectionIsForward(r->scan->ps.state->es_direction) ||
		!ItemPointerIsValid(&current->tts_tid) ||
		ItemPointerGetBlockNumber(&current->tts_tid) != BufferGetBlockNumber(scan->rs_cbuf))
		return;
	offset = ItemPointerGetOffsetNumber(&current->tts_tid);
	r->block = BufferGetBlockNumber(scan->rs_cbuf);
	for (int i = 0; i < (int) scan->rs_ntuples; i++)
	{
		if (scan->rs_vistuples[i] > offset)
			r->offsets[r->n++] = scan->rs_vistuples[i];
	}
	if (r->n == 0)
		return;
	LockBuffer(scan->rs_cbuf, BUFFER_LOCK_SHARE);
	memcpy(r->page.data, BufferGetPage(scan->rs_cbuf), BLCKSZ);
	LockBuffer(scan->rs_cbuf, BUFFER_LOCK_UNLOCK);
}

/* Copy a page that is pinned, and find its visible rows. */
static void
copy_page(PageRows *r, Buffer buffer, BlockNumber block)
{
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	r->block = block;
	r->next = 0;
	r->n = la_heappage_visible(r->scan->ss_currentRelation, descriptor_of(r)->rs_base.rs_snapshot,
							   buffer, r->offsets);
	memcpy(r->page.data, BufferGetPage(buffer), BLCKSZ);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
}

/* The page after the last one that was copied.  Returns false if it is not known now. */
static bool
next_page(PageRows *r)
{
	HeapScanDesc scan = descriptor_of(r);
	Relation	rel = r->scan->ss_currentRelation;
	BlockNumber block;
	Buffer		buffer = InvalidBuffer;
	Buffer		recent;

	if (r->block == InvalidBlockNumber || !IsA(r->scan, SeqScanState) || scan == NULL ||
		r->npages >= MAX_PAGES || RelationUsesLocalBuffers(rel))
		return false;
	block = la_heappage_after(scan, r->block);
	if (block == InvalidBlockNumber)
		return false;
	if (la_issue_is_cached(rel, block, &recent))
		(void) la_issue_read(rel, block, recent, false, false, &buffer);
	else if (la_table_scans_read_ahead || scan->rs_base.rs_parallel != NULL || r->npages > 0)
		return false;
	else
		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, scan->rs_strategy);
	copy_page(r, buffer, block);
	r->npages++;
	ReleaseBuffer(buffer);
	return true;
}

static TupleTableSlot *
next(LaRowsToCome *rows)
{
	PageRows   *r = (PageRows *) rows;

	ExecClearTuple(r->slot);
	while (r->next < r->n || next_page(r))
	{
		OffsetNumber offset;

		if (r->next >= r->n)
			continue;
		offset = r->offsets[r->next++];
		if (!la_heappage_row((Page) r->page.data, offset, &r->tuple) ||
			!la_fits_row(&r->tuple, r->slot->tts_tupleDescriptor))
			break;
		r->tuple.t_tableOid = RelationGetRelid(r->scan->ss_currentRelation);
		ItemPointerSet(&r->tuple.t_self, r->block, offset);
		ExecStoreHeapTuple(&r->tuple, r->slot, false);
		/* a value that is stored out of line would be read */
		if (HeapTupleHasExternal(&r->tuple) || la_rowfilter_passes(r->filter, r->slot))
			return r->slot;
	}
	return NULL;
}

/* In the current memory context, which is the query's. */
LaRowsToCome *
la_pagerows_create(ScanState *scan, const LaRunAhead *hints)
{
	PageRows   *r = palloc(sizeof(PageRows));
	EState	   *estate = scan->ps.state;

	memset(r, 0, offsetof(PageRows, offsets));
	r->base.restart = restart;
	r->base.next = next;
	r->scan = scan;
	r->block = InvalidBlockNumber;
	r->filter = la_rowfilter_create(scan, hints);
	r->slot = la_alloc_table_slot(&estate->es_tupleTable,
								  RelationGetDescr(scan->ss_currentRelation), &TTSOpsHeapTuple);
	return &r->base;
}
