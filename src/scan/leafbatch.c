/*
 * leafbatch.c
 *	  One index leaf page that was read ahead, and nbtree's state for it.
 *
 * A batch has what BTScanOpaque->currPos had after nbtree read a leaf page: items, page number,
 * links, LSN and, if nbtree holds one, a pin.  This file moves state between nbtree and batches:
 * it makes and frees them, has killed items marked, puts positions and marks back into nbtree's
 * state, and keeps the array keys right.  The behaviours KILLED, MARK, END and ARRAYS are those of
 * leaf.c, which keeps the batches in a ring.
 *
 * Invariants:
 *	- a batch with a valid pos->buf owns one pin of it, which is counted in the scan's budget,
 *	  until la_leafbatch_free();
 *	- killed[] names items of this batch only, and is applied with this batch's position in place,
 *	  so that _bt_killitems sees the page number, LSN and pin that belong to them;
 *	- a position that is put back into nbtree's state gets a pin of its own.
 *
 * src/scan/leafbatch.c
 */
#include "postgres.h"

#include "storage/bufmgr.h"

#include "base/compat.h"
#include "base/compat_btree.h"
#include "scan/scan_int.h"

/* The most bytes that a batch takes. */
Size
la_leafbatch_most_bytes(const LaLeafBatchPool *pool)
{
	Size		bytes = sizeof(LaLeafBatch) + sizeof(BTScanPosData);

	if (pool->ls->kind == LA_KIND_INDEX_ONLY_SCAN)
		bytes += BLCKSZ + MaxTIDsPerBTreePage;
	return bytes;
}

/* Take from the budget what a batch needs, except for its few bytes of array elements. */
static void
account(LaLeafBatchPool *pool, LaLeafBatch *b)
{
	Size		bytes = sizeof(LaLeafBatch) + offsetof(BTScanPosData, items) +
		b->max_items * sizeof(BTScanPosItem);

	if (b->tuples)
		bytes += b->tuples_size;
	if (b->heap)
		bytes += b->heap_size;
	if (b->killed)
		bytes += MaxTIDsPerBTreePage * sizeof(int);
	la_budget_return(&pool->ls->budget, b->bytes);
	la_budget_take(&pool->ls->budget, bytes);
	b->bytes = bytes;
}

static void
free_memory(LaLeafBatchPool *pool, LaLeafBatch *b)
{
	la_budget_return(&pool->ls->budget, b->bytes);
	pfree(b->pos);
	if (b->tuples)
		pfree(b->tuples);
	if (b->heap)
		pfree(b->heap);
	if (b->killed)
		pfree(b->killed);
	if (b->array_elems)
		pfree(b->array_elems);
	pfree(b);
}

/* Count a pin that a batch owns from now on. */
void
la_leafbatch_own_pin(LaLeafBatchPool *pool)
{
	la_budget_take_pin(&pool->ls->budget, RelationUsesLocalBuffers(pool->ls->real));
}

void
la_leafbatch_free(LaLeafBatchPool *pool, LaLeafBatch *b)
{
	if (BufferIsValid(b->pos->buf))
	{
		ReleaseBuffer(b->pos->buf);
		la_budget_return_pin(&pool->ls->budget, RelationUsesLocalBuffers(pool->ls->real));
	}
	b->pos->buf = InvalidBuffer;
	b->nkilled = 0;

	if (pool->spare == NULL)
		pool->spare = b;
	else
		free_memory(pool, b);
}

void
la_leafbatch_free_spare(LaLeafBatchPool *pool)
{
	if (pool->spare)
		free_memory(pool, pool->spare);
	pool->spare = NULL;
	if (pool->kill_state)
		pfree(pool->kill_state);
	pool->kill_state = NULL;
}

/* Memory of `needed` bytes, or of as many as are usual; *size: of what there is. */
static void *
reserve(LaScan *ls, void *memory, int *size, int needed, int usual)
{
	if (memory != NULL && *size >= needed)
		return memory;
	if (memory != NULL)
		pfree(memory);
	*size = Max(usual, needed);
	return MemoryContextAlloc(ls->context, *size);
}

/* Make a batch of a position of nbtree's.  The pin is the caller's responsibility. */
LaLeafBatch *
la_leafbatch_copy(LaLeafBatchPool *pool, BTScanPos pos, const char *tuples)
{
	LaScan	   *ls = pool->ls;
	LaLeafBatch *b = pool->spare;
	int			nitems = pos->lastItem + 1;

	pool->spare = NULL;
	if (b == NULL)
		b = MemoryContextAllocZero(ls->context, sizeof(LaLeafBatch));
	if (b->max_items < nitems)
	{
		if (b->pos)
			pfree(b->pos);
		b->pos = NULL;
		b->max_items = 0;
		b->pos = MemoryContextAlloc(ls->context, la_pos_size(pos));
		b->max_items = nitems;
	}
	memcpy(b->pos, pos, la_pos_size(pos));

	if (ls->kind == LA_KIND_INDEX_ONLY_SCAN)
	{
		/*
		 * if lengths of a page are damaged, tuples can be more than fit on
		 * one
		 */
		b->tuples = reserve(ls, b->tuples, &b->tuples_size, pos->nextTupleOffset, BLCKSZ);
		b->heap = reserve(ls, b->heap, &b->heap_size, nitems, MaxTIDsPerBTreePage);
		memcpy(b->tuples, tuples, pos->nextTupleOffset);
		memset(b->heap, LA_HEAP_UNKNOWN, nitems);
	}
	account(pool, b);
	return b;
}

/* ---- Array keys, in the form that this server has (ARRAYS) --------------- */

#ifdef LA_BT_ARRAYS_IN_SCAN

/*
 * Keep with a batch the state of the array keys at its page, or at nbtree's mark.  From 17 on that
 * is only whether nbtree goes on by a descent where the page has no successor.
 */
void
la_leafbatch_save_array_keys(LaLeafBatchPool *pool, LaLeafBatch *b, bool of_mark)
{
	BTScanOpaque so = la_bt_opaque(pool->ls);

	if (of_mark || !so->needPrimScan)
		return;
	if (ScanDirectionIsForward(so->currPos.dir))
		b->pos->moreRight = true;
	else
		b->pos->moreLeft = true;
}

static void
set_marked_elements(BTScanOpaque so, LaLeafBatch *b)
{
}

static void
restore_array_keys(LaScan *ls, LaLeafBatch *b, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(ls);

	la_shadow_call(ls, _bt_start_array_keys(ls->scan, dir));
	so->needPrimScan = false;
	ls->moved_page = so->currPos.currPage;
}

/*
 * After restore_array_keys() the arrays are at their first elements in the direction that was
 * expected.  If the scan turns before it has left that page, they have to be at the other end.
 */
void
la_leafbatch_turn_array_keys(LaScan *ls, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(ls);

	if (!BTScanPosIsValid(so->currPos) || so->currPos.currPage != ls->moved_page)
		ls->moved_page = InvalidBlockNumber;
	else if (dir != ls->last_dir && so->numArrayKeys > 0)
	{
		la_shadow_call(ls, _bt_start_array_keys(ls->scan, dir));
		so->needPrimScan = false;
	}
}

#else

void
la_leafbatch_save_array_keys(LaLeafBatchPool *pool, LaLeafBatch *b, bool of_mark)
{
	BTScanOpaque so = la_bt_opaque(pool->ls);

	if (so->numArrayKeys <= 0)
		return;
	if (b->array_elems)
		pfree(b->array_elems);
	b->array_elems = NULL;
	b->array_elems = MemoryContextAlloc(pool->ls->context, so->numArrayKeys * sizeof(int));
	for (int i = 0; i < so->numArrayKeys; i++)
		b->array_elems[i] = of_mark ? so->arrayKeys[i].mark_elem : so->arrayKeys[i].cur_elem;
}

static void
set_marked_elements(BTScanOpaque so, LaLeafBatch *b)
{
	for (int i = 0; i < so->numArrayKeys; i++)
		so->arrayKeys[i].mark_elem = b->array_elems[i];
}

/* Overwrites the elements of nbtree's mark, which leaf.c has taken over. */
static void
restore_array_keys(LaScan *ls, LaLeafBatch *b, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(ls);

	set_marked_elements(so, b);
	la_shadow_call(ls, _bt_restore_array_keys(ls->scan));
	so->arraysStarted = true;
}

void
la_leafbatch_turn_array_keys(LaScan *ls, ScanDirection dir)
{
}

#endif							/* LA_BT_ARRAYS_IN_SCAN */

/* ---- Killed items, positions and marks ----------------------------------- */

/* The executor has found an item of the batch dead. */
void
la_leafbatch_kill(LaLeafBatchPool *pool, LaLeafBatch *b, int item)
{
	if (b->killed == NULL)
	{
		b->killed = MemoryContextAlloc(pool->ls->context, MaxTIDsPerBTreePage * sizeof(int));
		account(pool, b);
	}
	if (b->nkilled < MaxTIDsPerBTreePage)
		b->killed[b->nkilled++] = item;
}

/* KILLED: have nbtree mark the items that were found dead. */
void
la_leafbatch_apply_killed(LaLeafBatchPool *pool, LaLeafBatch *b)
{
	LaScan	   *ls = pool->ls;
	IndexScanDesc scan = ls->scan;
	BTScanOpaque so = la_bt_opaque(ls);
	BTScanOpaque ks = pool->kill_state;

	if (b->nkilled == 0)
		return;
	if (ks == NULL)
		ks = pool->kill_state = MemoryContextAlloc(ls->context, sizeof(BTScanOpaqueData));

	memcpy(ks, so, offsetof(BTScanOpaqueData, currPos));
	memcpy(&ks->currPos, b->pos, la_pos_size(b->pos));
	ks->killedItems = b->killed;
	ks->numKilled = b->nkilled;

	scan->opaque = ks;
	la_shadow_call(ls, _bt_killitems(scan));
	/* before 15.14, 16.10 and 17.6 it keeps a pin that it has taken itself */
	if (BufferIsValid(ks->currPos.buf) && !BufferIsValid(b->pos->buf))
		ReleaseBuffer(ks->currPos.buf);
	scan->opaque = so;

	ls->counters.c[LA_ENTRIES_KILLED] += b->nkilled;
	b->nkilled = 0;
}

/* Put an item of a batch into a position of nbtree's. */
static void
put_back(LaLeafBatch *b, int item, BTScanPos pos, char *tuples)
{
	memcpy(pos, b->pos, la_pos_size(b->pos));
	if (BufferIsValid(b->pos->buf))
		IncrBufferRefCount(b->pos->buf);
	if (b->tuples)
		memcpy(tuples, b->tuples, b->pos->nextTupleOffset);
	pos->itemIndex = item;
}

/* Make an item of a batch the current one of nbtree, to go on from there in direction dir. */
void
la_leafbatch_restore_position(LaLeafBatchPool *pool, LaLeafBatch *b, int item, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(pool->ls);

	if (BTScanPosIsValid(so->currPos))
		BTScanPosUnpinIfPinned(so->currPos);
	put_back(b, item, &so->currPos, so->currTuples);
	if (so->numArrayKeys > 0)
		restore_array_keys(pool->ls, b, dir);
}

/* Make an item of a batch nbtree's mark. */
void
la_leafbatch_restore_mark(LaLeafBatchPool *pool, LaLeafBatch *b, int item)
{
	BTScanOpaque so = la_bt_opaque(pool->ls);

	Assert(!BTScanPosIsPinned(so->markPos));
	put_back(b, item, &so->markPos, so->markTuples);
	so->markItemIndex = -1;
	set_marked_elements(so, b);
}
