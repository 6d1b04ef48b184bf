/*
 * leafbatch.c
 *	  One index leaf page that was read ahead, and nbtree's state for it.
 *
 * A batch is a copy of BTScanOpaque->currPos as nbtree left it after reading a
 * leaf page: items, page number, links, LSN and, if nbtree holds one, a pin.
 * leaf.c keeps them in a ring and tells the whole story; its behaviours are
 * cited here.  This file moves state between nbtree and batches: it makes and
 * frees them, applies kills (B), gives positions and marks back (C, D), and
 * keeps the array keys right (G).
 *
 * Invariants:
 *	- a batch with a valid pos->buf owns one pin of it, which is counted in the scan's
 *	  budget, until la_leafbatch_free;
 *	- killed[] names items of this batch only, and is applied with this batch's
 *	  position in place, so that _bt_killitems sees the page number, LSN and pin
 *	  that belong to them;
 *	- a position given to nbtree has a pin of its own.
 *
 * src/scan/leafbatch.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "scan/leafbatch.h"

/*
 * How many items of its current leaf page has a scan taken, before or without a
 * shim?
 */
int
la_leafbatch_items_taken(IndexScanDesc scan, ScanDirection dir)
{
	BTScanPos	pos = &((BTScanOpaque) scan->opaque)->currPos;

	if (!BTScanPosIsValid(*pos))
		return 0;
	return 1 + (ScanDirectionIsBackward(dir) ? pos->lastItem - pos->itemIndex :
				pos->itemIndex - pos->firstItem);
}

/* Bytes that a batch may take. */
Size
la_leafbatch_most_bytes(const LaLeafBatches *bs)
{
	Size		bytes = sizeof(LaLeafBatch) + sizeof(BTScanPosData);

	if (bs->ls->kind == LA_KIND_INDEX_ONLY_SCAN)
		bytes += BLCKSZ + MaxTIDsPerBTreePage;
	return bytes;
}

/*
 * Note what a batch takes.  Its few bytes of array elements are not counted.
 */
static void
account(LaLeafBatches *bs, LaLeafBatch *b)
{
	Size		bytes = sizeof(LaLeafBatch) + offsetof(BTScanPosData, items) +
		b->max_items * sizeof(BTScanPosItem);

	if (b->tuples)
		bytes += BLCKSZ;
	if (b->heap)
		bytes += MaxTIDsPerBTreePage;
	if (b->killed)
		bytes += MaxTIDsPerBTreePage * sizeof(int);
	la_budget_return(&bs->ls->budget, b->bytes);
	la_budget_take(&bs->ls->budget, bytes);
	b->bytes = bytes;
}

static void
free_memory(LaLeafBatches *bs, LaLeafBatch *b)
{
	la_budget_return(&bs->ls->budget, b->bytes);
	pfree(b->pos);
	if (b->tuples)
		pfree(b->tuples);
	if (b->heap)
		pfree(b->heap);
	if (b->killed)
		pfree(b->killed);
	if (b->elements)
		pfree(b->elements);
	pfree(b);
}

/*
 * The pin of a batch's page is the batch's own.
 */
void
la_leafbatch_own_pin(LaLeafBatches *bs)
{
	la_budget_take_pin(&bs->ls->budget, RelationUsesLocalBuffers(bs->ls->real));
}

void
la_leafbatch_free(LaLeafBatches *bs, LaLeafBatch *b)
{
	if (BufferIsValid(b->pos->buf))
	{
		ReleaseBuffer(b->pos->buf);
		la_budget_return_pin(&bs->ls->budget,
							 RelationUsesLocalBuffers(bs->ls->real));
	}
	b->pos->buf = InvalidBuffer;
	b->nkilled = 0;

	if (bs->spare == NULL)
		bs->spare = b;
	else
		free_memory(bs, b);
}

void
la_leafbatch_free_spare(LaLeafBatches *bs)
{
	if (bs->spare)
		free_memory(bs, bs->spare);
	bs->spare = NULL;
	if (bs->kill_state)
		pfree(bs->kill_state);
	bs->kill_state = NULL;
}

/*
 * Make a batch of a position of nbtree's.  The caller cares for the pin.
 */
LaLeafBatch *
la_leafbatch_copy(LaLeafBatches *bs, BTScanPos pos, const char *tuples)
{
	LaScan	   *ls = bs->ls;
	LaLeafBatch *b = bs->spare;
	int			nitems = pos->lastItem + 1;

	bs->spare = NULL;
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
		if (b->tuples == NULL)
			b->tuples = MemoryContextAlloc(ls->context, BLCKSZ);
		if (b->heap == NULL)
			b->heap = MemoryContextAlloc(ls->context, MaxTIDsPerBTreePage);
		memcpy(b->tuples, tuples, pos->nextTupleOffset);
		memset(b->heap, HEAP_UNKNOWN, nitems);
	}
	account(bs, b);
	return b;
}

/* Behaviour G: the state of the array keys that belongs to a batch. */
void
la_leafbatch_save_elements(LaLeafBatches *bs, LaLeafBatch *b, bool of_mark)
{
#ifndef LA_BT_ARRAYS_IN_SCAN
	BTScanOpaque so = la_bt_opaque(bs->ls);

	if (so->numArrayKeys <= 0)
		return;
	if (b->elements)
		pfree(b->elements);
	b->elements = NULL;
	b->elements = MemoryContextAlloc(bs->ls->context,
									 so->numArrayKeys * sizeof(int));
	for (int i = 0; i < so->numArrayKeys; i++)
		b->elements[i] = of_mark ? so->arrayKeys[i].mark_elem :
			so->arrayKeys[i].cur_elem;
#endif
}

/* Behaviour B */
void
la_leafbatch_kill(LaLeafBatches *bs, LaLeafBatch *b, int item)
{
	if (b->killed == NULL)
	{
		b->killed = MemoryContextAlloc(bs->ls->context,
									   MaxTIDsPerBTreePage * sizeof(int));
		account(bs, b);
	}
	if (b->nkilled < MaxTIDsPerBTreePage)
		b->killed[b->nkilled++] = item;
}

void
la_leafbatch_apply_kills(LaLeafBatches *bs, LaLeafBatch *b)
{
	LaScan	   *ls = bs->ls;
	IndexScanDesc scan = ls->scan;
	BTScanOpaque so = la_bt_opaque(ls);
	BTScanOpaque ks = bs->kill_state;

	if (b->nkilled == 0)
		return;
	if (ks == NULL)
		ks = bs->kill_state = MemoryContextAlloc(ls->context,
												 sizeof(BTScanOpaqueData));

	memcpy(ks, so, offsetof(BTScanOpaqueData, currPos));
	memcpy(&ks->currPos, b->pos, la_pos_size(b->pos));
	ks->killedItems = b->killed;
	ks->numKilled = b->nkilled;

	scan->opaque = ks;
	la_scan_call_am(ls, _bt_killitems(scan));
	scan->opaque = so;

	ls->counters.c[LA_ENTRIES_KILLED] += b->nkilled;
	b->nkilled = 0;
}

/*
 * Put an item of a batch into so->currPos, for nbtree to go on from there in
 * direction dir.
 */
void
la_leafbatch_give_position(LaLeafBatches *bs, LaLeafBatch *b, int item,
						   ScanDirection dir)
{
	LaScan	   *ls = bs->ls;
	BTScanOpaque so = la_bt_opaque(ls);

	if (BTScanPosIsValid(so->currPos))
		BTScanPosUnpinIfPinned(so->currPos);
	memcpy(&so->currPos, b->pos, la_pos_size(b->pos));
	if (BufferIsValid(b->pos->buf))
		IncrBufferRefCount(b->pos->buf);
	if (b->tuples)
		memcpy(so->currTuples, b->tuples, b->pos->nextTupleOffset);
	so->currPos.itemIndex = item;

	if (so->numArrayKeys <= 0)
		return;
#ifdef LA_BT_ARRAYS_IN_SCAN
	la_scan_call_am(ls, _bt_start_array_keys(ls->scan, dir));
	so->needPrimScan = false;
	ls->moved_page = so->currPos.currPage;
#else
	/* overwrites the elements of nbtree's mark; leaf.c has taken that mark */
	for (int i = 0; i < so->numArrayKeys; i++)
		so->arrayKeys[i].mark_elem = b->elements[i];
	la_scan_call_am(ls, _bt_restore_array_keys(ls->scan));
	so->arraysStarted = true;
#endif
}

/*
 * Make an item of a batch nbtree's mark (behaviour D).
 */
void
la_leafbatch_give_mark(LaLeafBatches *bs, LaLeafBatch *b, int item)
{
	BTScanOpaque so = la_bt_opaque(bs->ls);

	Assert(!BTScanPosIsPinned(so->markPos));
	memcpy(&so->markPos, b->pos, la_pos_size(b->pos));
	if (BufferIsValid(b->pos->buf))
		IncrBufferRefCount(b->pos->buf);
	if (b->tuples)
		memcpy(so->markTuples, b->tuples, b->pos->nextTupleOffset);
	so->markPos.itemIndex = item;
	so->markItemIndex = -1;
#ifndef LA_BT_ARRAYS_IN_SCAN
	for (int i = 0; i < so->numArrayKeys; i++)
		so->arrayKeys[i].mark_elem = b->elements[i];
#endif
}

/*
 * Behaviour G, from 17 on: after la_leafbatch_give_position() the array keys stand
 * at their first elements in the direction that was expected.  If the scan turns
 * before it has left that page, they have to stand at the other end.
 */
void
la_leafbatch_turn_array_keys(LaScan *ls, ScanDirection dir)
{
#ifdef LA_BT_ARRAYS_IN_SCAN
	BTScanOpaque so = la_bt_opaque(ls);

	if (!BTScanPosIsValid(so->currPos) ||
		so->currPos.currPage != ls->moved_page)
	{
		ls->moved_page = InvalidBlockNumber;
		return;
	}
	if (dir != ls->last_dir && so->numArrayKeys > 0)
	{
		la_scan_call_am(ls, _bt_start_array_keys(ls->scan, dir));
		so->needPrimScan = false;
	}
#endif
}
