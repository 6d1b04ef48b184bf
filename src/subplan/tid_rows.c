/*
 * tid_rows.c
 *	  The rows to come of an index scan.
 *
 * The access method has read a leaf page as a whole, or the room of index scans some of them, so the
 * addresses of the rows behind the current one are known (la_attach_tids_to_come()):
 *
 *		current row --> [ tid | tid | tid | tid | tid | tid | tid ]
 *		                        ^ read             ^ issued
 *
 * A row has to be read before what is looked up by its values is known, so the reads of the rows'
 * own blocks are started LEAD addresses earlier.  It is the scan that would read them next.
 *
 * Invariants
 *	- These are hints: the scan fetches its rows itself.
 *	- No buffer is pinned or locked between calls.
 *	- No predicate lock is taken: this is not for SERIALIZABLE transactions.
 *
 * src/subplan/tid_rows.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"

#include "attach/attach.h"
#include "base/compat.h"
#include "subplan/tid_rows.h"
#include "window/issue.h"

#define MAX_TIDS		2048
#define LEAD			32

typedef struct TidRows
{
	LaRowsToCome base;
	ScanState  *scan;
	LaRowFilter *filter;
	TupleTableSlot *slot;
	MemoryContext context;		/* of the row in it */
	BlockNumber heap_size;		/* see la_issue_exists() */
	bool		started;
	ItemPointerData last;		/* address of the last row */
	int			n;				/* addresses */
	int			next;			/* the row that is next */
	int			issued;			/* the address that is next to be issued */
	int			taken;			/* rows since the restart */
	ItemPointerData tids[MAX_TIDS];
} TidRows;

static void
restart(LaRowsToCome *rows)
{
	TidRows    *r = (TidRows *) rows;

	r->started = false;
	r->n = r->next = r->issued = r->taken = 0;
}

/* Ask for the addresses behind the last row.  Returns false if there are none now. */
static bool
refill(TidRows *r)
{
	r->n = la_attach_tids_to_come(&r->scan->ps, r->tids, MAX_TIDS);
	r->next = 0;
	for (int i = 0; r->started && i < r->n; i++)
	{
		if (ItemPointerEquals(&r->tids[i], &r->last))
			r->next = i + 1;
	}
	r->issued = r->next;
	return r->next < r->n;
}

/* Start the reads of rows further on; not of more than have been taken. */
static void
issue_ahead(TidRows *r)
{
	Relation	heap = r->scan->ss_currentRelation;
	int			end = Min(r->n, r->next + Min(LEAD, r->taken + 1));

	for (r->issued = Max(r->issued, r->next); r->issued < end; r->issued++)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&r->tids[r->issued]);
		Buffer		recent;

		if (la_issue_exists(heap, block, &r->heap_size))
			(void) la_issue_block(heap, block, &recent);
	}
}

/* Put a row into the slot.  Returns false if it is not visible. */
static bool
fetch(TidRows *r, ItemPointerData tid)
{
	Relation	heap = r->scan->ss_currentRelation;
	Buffer		buffer = InvalidBuffer;
	HeapTupleData tuple;
	HeapTuple	copy = NULL;
	MemoryContext old;

	if (!la_issue_exists(heap, ItemPointerGetBlockNumber(&tid), &r->heap_size))
		return false;
	(void) la_issue_read(heap, ItemPointerGetBlockNumber(&tid), InvalidBuffer, false, false,
						 &buffer);
	old = MemoryContextSwitchTo(r->context);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (heap_hot_search_buffer(&tid, heap, buffer, r->scan->ps.state->es_snapshot, &tuple, NULL,
							   true))
		copy = heap_copytuple(&tuple);
	UnlockReleaseBuffer(buffer);
	MemoryContextSwitchTo(old);
	if (copy == NULL)
		return false;
	ExecStoreHeapTuple(copy, r->slot, false);
	/* a value that is stored out of line would be read */
	return HeapTupleHasExternal(copy) || la_rowfilter_passes(r->filter, r->slot);
}

static TupleTableSlot *
next(LaRowsToCome *rows)
{
	TidRows    *r = (TidRows *) rows;

	if (RelationUsesLocalBuffers(r->scan->ss_currentRelation) || IsolationIsSerializable())
		return NULL;
	while (r->next < r->n || refill(r))
	{
		ExecClearTuple(r->slot);
		MemoryContextReset(r->context);
		issue_ahead(r);
		r->last = r->tids[r->next++];
		r->started = true;
		r->taken++;
		if (fetch(r, r->last))
			return r->slot;
	}
	return NULL;
}

/* In the current memory context, which is the query's. */
LaRowsToCome *
la_tidrows_create(ScanState *scan, const LaRunAhead *hints)
{
	TidRows    *r = palloc(sizeof(TidRows));
	EState	   *estate = scan->ps.state;

	memset(r, 0, offsetof(TidRows, tids));
	r->base.restart = restart;
	r->base.next = next;
	r->scan = scan;
	r->heap_size = InvalidBlockNumber;
	r->filter = la_rowfilter_create(scan, hints);
	r->context = AllocSetContextCreate(CurrentMemoryContext, "pg_lookahead row to come",
									   ALLOCSET_SMALL_SIZES);
	r->slot = la_alloc_table_slot(&estate->es_tupleTable,
								  RelationGetDescr(scan->ss_currentRelation), &TTSOpsHeapTuple);
	return &r->base;
}
