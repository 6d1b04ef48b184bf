/*
 * index_rows.c
 *	  The rows to come of an index scan.
 *
 * The access method has read a leaf page as a whole, or the room of index scans some of them, so
 * the addresses of the rows behind the current one are known (la_attach_peek()):
 *
 *		current row --> [ tid | tid | tid | tid | tid | tid | tid ]
 *		                        ^ read             ^ issued
 *
 * A row has to be read before what is looked up by its values is known, so the reads of the rows'
 * own blocks are started LEAD addresses earlier.  It is the scan that would read them next.
 *
 * Of an index-only scan the values are in the index: its rows are taken from there.
 *
 * Invariants
 *	- These are hints: the scan fetches its rows itself.
 *	- No buffer is pinned or locked between calls.
 *	- No predicate lock is taken: this is not for SERIALIZABLE transactions.
 *
 * src/nestloop/index_rows.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"

#include "attach/attach.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "nestloop/nestloop_int.h"
#include "window/window.h"

#define LEAD			32

typedef struct IndexRows
{
	LaRowsToCome base;
	ScanState  *scan;
	LaRowFilter *filter;
	TupleTableSlot *slot;
	MemoryContext context;		/* of the row in it */
	TupleDesc	index_desc;		/* of an index-only scan, or NULL */
	BlockNumber heap_size;		/* see la_issue_exists() */
	uint64		last;			/* the row taken last */
	int			place;			/* ... behind the scan's current row; 0: none */
	int			issued;			/* likewise, the last one issued */
	int			taken;			/* rows since the restart */
} IndexRows;

static void
restart(LaRowsToCome *rows)
{
	IndexRows  *r = (IndexRows *) rows;

	r->place = r->issued = r->taken = 0;
}

/* The scan has gone on: find the row that was taken last.  It may have overtaken that. */
static void
catch_up(IndexRows *r)
{
	LaComingRow row;

	while (r->place > 0 &&
		   !(la_attach_peek(r->scan, r->place, &row) && row.id == r->last))
	{
		r->place--;
		r->issued--;
	}
}

/* Start the reads of rows further on; not of more than have been taken. */
static void
issue_ahead(IndexRows *r)
{
	Relation	heap = r->scan->ss_currentRelation;
	int			end = r->place + Min(LEAD, r->taken + 1);
	LaComingRow row;

	for (r->issued = Max(r->issued, r->place);
		 r->issued < end && la_attach_peek(r->scan, r->issued + 1, &row); r->issued++)
	{
		BlockNumber block = ItemPointerGetBlockNumberNoCheck(&row.tid);
		Buffer		recent;

		if (la_issue_exists(heap, block, &r->heap_size))
			(void) la_issue_block(heap, block, &recent);
	}
}

/* Put a row into the slot.  Returns false if it is not visible. */
static bool
fetch(IndexRows *r, ItemPointerData tid)
{
	Relation	heap = r->scan->ss_currentRelation;
	Buffer		buffer = InvalidBuffer;
	HeapTupleData tuple;
	HeapTuple	copy = NULL;
	MemoryContext old;

	if (!la_issue_exists(heap, ItemPointerGetBlockNumberNoCheck(&tid), &r->heap_size))
		return false;
	(void) la_issue_read(heap, ItemPointerGetBlockNumberNoCheck(&tid), InvalidBuffer, false, false,
						 &buffer);
	old = MemoryContextSwitchTo(r->context);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (heap_hot_search_buffer(&tid, heap, buffer, r->scan->ps.state->es_snapshot, &tuple, NULL,
							   true))
		copy = heap_copytuple(&tuple);
	UnlockReleaseBuffer(buffer);
	MemoryContextSwitchTo(old);
	if (copy == NULL || !la_fits_row(copy, RelationGetDescr(heap)))
		return false;
	ExecStoreHeapTuple(copy, r->slot, false);
	/* a value that is stored out of line would be read */
	return HeapTupleHasExternal(copy) || la_rowfilter_passes(r->filter, r->slot);
}

/* The same for an index-only scan.  Whether the row is visible is not asked. */
static bool
fetch_from_index(IndexRows *r, IndexTuple tuple)
{
	if (tuple == NULL || !la_fits_entry(tuple, r->index_desc))
		return false;
	index_deform_tuple(tuple, r->index_desc, r->slot->tts_values, r->slot->tts_isnull);
	ExecStoreVirtualTuple(r->slot);
	return la_rowfilter_passes(r->filter, r->slot);
}

static TupleTableSlot *
next(LaRowsToCome *rows)
{
	IndexRows  *r = (IndexRows *) rows;
	LaComingRow row;

	if (RelationUsesLocalBuffers(r->scan->ss_currentRelation) || IsolationIsSerializable())
		return NULL;
	catch_up(r);
	while (la_attach_peek(r->scan, r->place + 1, &row))
	{
		ExecClearTuple(r->slot);
		r->last = row.id;
		r->place++;
		r->taken++;
		if (r->index_desc != NULL)
		{
			if (fetch_from_index(r, row.tuple))
				return r->slot;
			continue;
		}
		MemoryContextReset(r->context);
		issue_ahead(r);
		if (fetch(r, row.tid))
			return r->slot;
	}
	return NULL;
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
la_indexrows_create(ScanState *scan, const LaRunAhead *hints)
{
	IndexRows  *r = palloc0(sizeof(IndexRows));
	EState	   *estate = scan->ps.state;
	TupleDesc	desc = RelationGetDescr(scan->ss_currentRelation);

	r->base.restart = restart;
	r->base.next = next;
	r->scan = scan;
	r->heap_size = InvalidBlockNumber;
	if (IsA(scan, IndexOnlyScanState))
	{
		desc = r->index_desc =
			RelationGetDescr(((IndexOnlyScanState *) scan)->ioss_RelationDesc);
		if (has_cstrings(desc))
			return NULL;
	}
	r->filter = la_rowfilter_create(scan, hints);
	r->context = AllocSetContextCreate(CurrentMemoryContext, "pg_lookahead rows to come",
									   ALLOCSET_DEFAULT_SIZES);
	r->slot = la_alloc_table_slot(&estate->es_tupleTable, desc,
								  r->index_desc != NULL ? &TTSOpsVirtual : &TTSOpsHeapTuple);
	return &r->base;
}
