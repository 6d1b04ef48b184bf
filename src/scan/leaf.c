/*
 * leaf.c
 *	  Index leaf pages read ahead of the scan, as a ring of batches (nbtree).
 *
 * nbtree reads a leaf page at once into BTScanOpaque->currPos and then hands
 * out its items one by one.  A batch is a copy of currPos.  Moving
 * currPos.itemIndex to its last item makes the next call of the real
 * btgettuple step to the next leaf page: so the access method runs a page at a
 * time, and we hand out the items.
 *
 *		 head (consumer)							 tail - 1
 *		+-----------+-----------+-----------+-----------+
 *		| batch	  k |	 k + 1	|	 k + 2	|	 k + 3	|	so->currPos is the
 *		| ^ index	|			|	 ^		|			|	page of the last one,
 *		+-----------+-----------+----|------+-----------+	at its last item
 *								  foreseen (the window's producer)
 *
 * A batch holds what currPos held: items, page number, links, LSN, and, when
 * nbtree keeps the page pinned (index-only scans, unlogged and temporary
 * indexes), a pin of its own.  Those pins keep VACUUM from removing what the
 * batch points to until its rows are returned, exactly as nbtree's one pin does;
 * at most MAX_PINNED batches hold one, and no more than the budget of pins allows.
 *
 * Behaviours:
 *	A. Begin: the page in currPos becomes the first batch; killed items and the
 *	   mark move from nbtree's state into ours.
 *	B. Kills: a dead entry reported by the executor is remembered in the batch
 *	   that it came from.  When the batch is left, _bt_killitems is called on a
 *	   copy of the scan state that holds this batch, and applies its own rule:
 *	   pinned since it was read, or the page's LSN unchanged.
 *	C. Mark and restore: a mark is a batch and an item.  A marked batch that is
 *	   left is kept aside.  Restoring within the current batch moves the item;
 *	   restoring to another one ends look-ahead first (D) and is nbtree's work.
 *	D. End: the mark is put back into nbtree's state.  Where the scan has been
 *	   read to its end, nbtree is already there.  Otherwise the consumer's batch
 *	   and item are put into currPos, as btrestrpos puts a mark there.
 *	E. Change of direction (scrollable cursors): D, and nbtree goes on.
 *	F. Disarmed by the policy: batches are used up, none is read ahead; at the
 *	   end of the last one nbtree stands exactly there and goes on.
 *	G. Array keys ("= ANY", skip scan).  Until 16, each combination of elements
 *	   is a primitive scan of its own: a batch keeps the elements' indexes.  From
 *	   17 on, nbtree restores a mark by starting the arrays again in the scan's
 *	   direction and lets the next page set them; we do the same, in the
 *	   direction that the next page will be read in (la_leafbatch_turn_array_keys).  A
 *	   page after which another primitive scan is due must not look like the
 *	   scan's end: its copy gets moreRight (moreLeft), as in _bt_steppage.
 *	H. SERIALIZABLE: reading a leaf page takes a predicate lock.  No page is
 *	   read that stock would not have read by then: look-ahead ends at the
 *	   current page.
 *	I. LIMIT: no more items are foreseen than rows can still be wanted.
 *	J. Parallel scans: a page read ahead is one that other workers do not get,
 *	   so a worker keeps at most PARALLEL_BATCHES.
 *
 * src/scan/leaf.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/xact.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "scan/leafbatch.h"
#include "scan/arraykeys.h"
#include "scan/shim.h"
#include "window/issue.h"
#include "window/window.h"

#define MAX_PINNED			8
#define PARALLEL_BATCHES	4

typedef struct Position
{
	uint64		batch;
	int			item;
} Position;

struct LaLeaves
{
	LaScan	   *ls;
	LaWindow   *window;
	Size		bytes;			/* taken from the scan's budget */
	LaLeafBatches batches;
	ScanDirection dir;
	bool		read_to_end;	/* nbtree has no more pages */
	bool		fetch_first;	/* begin found the first row of the scan */

	uint64		head;			/* consumer's batch */
	uint64		tail;			/* next batch to be read */
	int			item;			/* consumer's item in the head batch */
	BlockNumber heap_block;		/* heap block visited last */

	Position	foreseen;		/* next item for the window */
	BlockNumber foreseen_block; /* heap block told to the window last */
	int64		nforeseen;		/* items, counted like nconsumed */
	int64		nconsumed;

	bool		marked;
	Position	mark;			/* valid unless kept */
	LaLeafBatch *kept;			/* the marked batch, once it left the ring */

	LaArrayKeys *elements;		/* of an IN list, or NULL */

	LaLeafBatch **ring;			/* max_leaf_batches of them */
};

#define ring_slot(lv, n)	((lv)->ring[(n) % (lv)->ls->max_leaf_batches])
#define step(lv)			(ScanDirectionIsForward((lv)->dir) ? 1 : -1)

static bool foresee_visit(void *arg, LaForeseen *visit);
static void foresee_restart(void *arg);

/* ------------------------------------------------------------------
 *		Batches
 * ------------------------------------------------------------------
 */

/*
 * Copy so->currPos as the newest batch, and make the real access method step
 * off that page when it is called next.
 */
static LaLeafBatch *
push_current_page(LaLeaves *lv)
{
	LaScan	   *ls = lv->ls;
	BTScanOpaque so = la_bt_opaque(ls);
	bool		forward = ScanDirectionIsForward(lv->dir);
	LaLeafBatch *b = la_leafbatch_copy(&lv->batches, &so->currPos, so->currTuples);

	if (BufferIsValid(so->currPos.buf))
	{
		IncrBufferRefCount(so->currPos.buf);
		la_leafbatch_own_pin(&lv->batches);
	}
	la_leafbatch_save_elements(&lv->batches, b, false);
#ifdef LA_BT_ARRAYS_IN_SCAN
	if (so->needPrimScan)
	{
		if (ScanDirectionIsForward(so->currPos.dir))
			b->pos->moreRight = true;
		else
			b->pos->moreLeft = true;
	}
#endif
	ring_slot(lv, lv->tail) = b;
	lv->tail++;
	so->currPos.itemIndex = forward ? so->currPos.lastItem :
		so->currPos.firstItem;
	return b;
}

/*
 * Start the read of the leaf page after the one in currPos.  Where it is the
 * next block of the file, as in an index that was just built, the kernel's
 * read-ahead is on its way, and advice would keep it from setting in.
 */
static void
issue_next_leaf(LaLeaves *lv)
{
	LaScan	   *ls = lv->ls;
	BTScanOpaque so = la_bt_opaque(ls);
	BlockNumber next;

#ifdef LA_BT_ARRAYS_IN_SCAN
	if (so->needPrimScan)
		return;					/* it will be found by a descent */
#endif
	if (ScanDirectionIsForward(lv->dir))
		next = so->currPos.moreRight ? so->currPos.nextPage : P_NONE;
	else
		next = so->currPos.moreLeft ? la_bt_prev_page(&so->currPos) : P_NONE;
	if (next == P_NONE || next == InvalidBlockNumber ||
		(next == so->currPos.currPage + 1 && !ls->policy.config.force))
		return;
	(void) la_shim_issue_index_page(ls, next);
}

/*
 * Let the real access method load the next leaf page.  The consumer may always
 * ask for it; look-ahead is subject to limits.
 */
static bool
read_leaf(LaLeaves *lv)
{
	LaScan	   *ls = lv->ls;
	LaLeafBatch *b;

	if (lv->read_to_end)
		return false;
	if (lv->elements && ls->policy.state == LA_ARMED && ls->policy.io)
		la_arraykeys_advance(lv->elements, lv->dir,
							 la_shim_rows_wanted(ls, lv->dir));
	ls->scan->kill_prior_tuple = false;
	if (!la_shim_real_gettuple(ls, lv->dir))
	{
		lv->read_to_end = true;
		return false;
	}
	b = push_current_page(lv);
	if (ls->policy.state == LA_ARMED &&
		la_shim_rows_wanted(ls, lv->dir) > b->pos->lastItem - b->pos->firstItem)
		issue_next_leaf(lv);
	return true;
}

static bool
may_read_ahead(LaLeaves *lv)
{
	LaScan	   *ls = lv->ls;
	uint64		nbatches = lv->tail - lv->head;
	uint64		most = ls->max_leaf_batches;

	if (lv->read_to_end || IsolationIsSerializable())
		return false;
	if (BufferIsValid(ring_slot(lv, lv->head)->pos->buf))
	{
		if (!la_budget_has_pin(RelationUsesLocalBuffers(ls->real)))
			return false;
		most = Min(most, MAX_PINNED);
	}
	if (ls->scan->parallel_scan != NULL)
		most = Min(most, PARALLEL_BATCHES);
	return nbatches < most &&
		la_budget_has(&ls->budget, la_leafbatch_most_bytes(&lv->batches));
}

/* ------------------------------------------------------------------
 *		Beginning, ending, moving
 * ------------------------------------------------------------------
 */

static void
forget_mark(LaLeaves *lv)
{
	if (lv->kept)
		la_leafbatch_free(&lv->batches, lv->kept);
	lv->kept = NULL;
	lv->marked = false;
}

/* Leave the head batch. */
static void
pop_batch(LaLeaves *lv)
{
	LaLeafBatch *b = ring_slot(lv, lv->head);

	la_leafbatch_apply_kills(&lv->batches, b);
	if (lv->marked && lv->kept == NULL && lv->mark.batch == lv->head)
		lv->kept = b;
	else
		la_leafbatch_free(&lv->batches, b);
	lv->head++;
}

/* Behaviour A: nbtree's mark becomes ours. */
static void
take_mark(LaLeaves *lv)
{
	BTScanOpaque so = la_bt_opaque(lv->ls);

	Assert(!lv->marked);
	if (so->markItemIndex >= 0)
	{
		/* it is on the page of the first batch; markPos is an older one */
		BTScanPosInvalidate(so->markPos);
		lv->marked = true;
		lv->mark.batch = lv->head;
		lv->mark.item = so->markItemIndex;
		so->markItemIndex = -1;
	}
	else if (BTScanPosIsValid(so->markPos))
	{
		lv->kept = la_leafbatch_copy(&lv->batches, &so->markPos, so->markTuples);
		la_leafbatch_save_elements(&lv->batches, lv->kept, true);
		lv->marked = true;
		lv->mark.item = so->markPos.itemIndex;
		/* its pin is the batch's now */
		if (BufferIsValid(so->markPos.buf))
			la_leafbatch_own_pin(&lv->batches);
		BTScanPosInvalidate(so->markPos);
	}
}

/* Behaviour D: our mark becomes nbtree's. */
static void
give_mark(LaLeaves *lv)
{
	if (!lv->marked)
		return;
	la_leafbatch_give_mark(&lv->batches,
						   lv->kept ? lv->kept : ring_slot(lv, lv->mark.batch),
						   lv->mark.item);
	forget_mark(lv);
}

/* Give up all batches; the position has been given back, or is not wanted. */
static void
end_active(LaLeaves *lv)
{
	la_window_clear(lv->window);
	while (lv->head < lv->tail)
		pop_batch(lv);
	forget_mark(lv);
	lv->ls->active = false;
}

/* nbtree goes on with the scan: what shim.c compares starts from here. */
static void
hand_over(LaLeaves *lv)
{
	give_mark(lv);
	end_active(lv);
	lv->ls->seen_buffer = la_heap_fetch(lv->ls)->xs_cbuf;
	lv->ls->seen_reads = la_issue_blocks_read();
}

/* Bytes taken from the budget as long as the structure exists. */
static Size
own_bytes(LaScan *ls)
{
	return sizeof(LaLeaves) + ls->max_leaf_batches * sizeof(LaLeafBatch *) +
		la_window_size(&ls->scan->heapRelation, 1, &ls->policy);
}

/*
 * May the position be taken over now?  Either the scan has not started, or the
 * current page was read in the direction that is wanted.
 */
bool
la_leaf_may_begin(LaScan *ls, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(ls);

	if (ScanDirectionIsNoMovement(dir))
		return false;
	if (ls->leaves == NULL && !la_budget_has(&ls->budget, own_bytes(ls)))
		return false;
	if (!BTScanPosIsValid(so->currPos))
		return true;
#ifdef LA_BT_ARRAYS_IN_SCAN
	if (so->currPos.dir != dir)
		return false;
#endif
	return ls->last_dir == dir;
}

static LaLeaves *
create(LaScan *ls)
{
	MemoryContext old = MemoryContextSwitchTo(ls->context);
	LaLeaves   *lv = palloc0(sizeof(LaLeaves));
	LaProducer	producer = {lv, foresee_visit, foresee_restart};

	lv->ls = ls;
	lv->batches.ls = ls;
	lv->ring = palloc0(ls->max_leaf_batches * sizeof(LaLeafBatch *));
	lv->window = la_window_create(&ls->scan->heapRelation, 1, producer,
								  &ls->policy, &ls->counters, &ls->budget);
	lv->bytes = own_bytes(ls);
	la_budget_take(&ls->budget, lv->bytes);
	MemoryContextSwitchTo(old);
	return lv;
}

/*
 * A scan that has come to its end, and was never repeated, is not likely to be:
 * so that a query over many partitions need not keep the memory of them all.
 */
static void
release(LaScan *ls)
{
	LaLeaves   *lv = ls->leaves;

	Assert(!ls->active);
	la_leafbatch_free_spare(&lv->batches);
	if (lv->elements)
		la_arraykeys_free(ls, lv->elements);
	la_budget_return(&ls->budget, lv->bytes);
	la_window_free(lv->window);
	pfree(lv->ring);
	pfree(lv);
	ls->leaves = NULL;
}

/*
 * Behaviour A, and the row that was asked for.
 */
bool
la_leaf_begin(LaScan *ls, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(ls);
	IndexFetchHeapData *hscan = la_heap_fetch(ls);
	LaLeaves   *lv = ls->leaves;
	bool		fresh = !BTScanPosIsValid(so->currPos);
	LaLeafBatch *b;

	if (fresh && !la_shim_real_gettuple(ls, dir))
	{
		ls->ended = true;
		return false;
	}
	if (lv == NULL)
		lv = ls->leaves = create(ls);

	lv->dir = dir;
	lv->read_to_end = false;
	lv->fetch_first = fresh;
	lv->head = lv->tail = 0;
	lv->item = so->currPos.itemIndex;
	lv->nconsumed = lv->nforeseen = 0;
	lv->heap_block = BufferIsValid(hscan->xs_cbuf) ?
		BufferGetBlockNumber(hscan->xs_cbuf) : InvalidBlockNumber;

	/* the arrays may be others in each scan */
	if (lv->elements)
		la_arraykeys_free(ls, lv->elements);
	lv->elements = la_arraykeys_create(ls);

	b = push_current_page(lv);
	for (int i = 0; i < so->numKilled; i++)
		la_leafbatch_kill(&lv->batches, b, so->killedItems[i]);
	so->numKilled = 0;
	take_mark(lv);
	if (!IsolationIsSerializable() &&
		la_shim_rows_wanted(ls, dir) > (ScanDirectionIsForward(dir) ?
										b->pos->lastItem - lv->item :
										lv->item - b->pos->firstItem))
		issue_next_leaf(lv);

	ls->active = true;
	ls->ended = false;
	ls->counters.c[LA_SCANS_ACTIVATED]++;
	return la_leaf_gettuple(ls, dir);
}

/*
 * The scan starts over or ends: nothing is given back but the pins.
 */
void
la_leaf_drop(LaScan *ls)
{
	if (ls->active)
		end_active(ls->leaves);
}

/* ------------------------------------------------------------------
 *		The window's producer
 * ------------------------------------------------------------------
 */

/* Index scans that are not index-only need every heap row. */
static bool
heap_needed(LaLeaves *lv, LaLeafBatch *b, int item)
{
	return b->heap == NULL ||
		la_shim_heap_needed(lv->ls, &b->pos->items[item].heapTid,
							&b->heap[item]);
}

static bool
outside(LaLeaves *lv, const LaLeafBatch *b, int item)
{
	return ScanDirectionIsForward(lv->dir) ? item > b->pos->lastItem :
		item < b->pos->firstItem;
}

static int
first_item(LaLeaves *lv, const LaLeafBatch *b)
{
	return ScanDirectionIsForward(lv->dir) ? b->pos->firstItem :
		b->pos->lastItem;
}

/*
 * The next visit after those told so far: the next item whose heap block
 * differs from the one before it.
 */
static bool
foresee_visit(void *arg, LaForeseen *visit)
{
	LaLeaves   *lv = (LaLeaves *) arg;
	int64		wanted = la_shim_rows_wanted(lv->ls, lv->dir);

	while (lv->nforeseen - lv->nconsumed < wanted)
	{
		LaLeafBatch *b;
		ItemPointer tid;
		BlockNumber block;
		int			item;

		if (lv->foreseen.batch == lv->tail)
		{
			if (!may_read_ahead(lv) || !read_leaf(lv))
				return false;
			lv->foreseen.item = first_item(lv, ring_slot(lv, lv->tail - 1));
		}
		b = ring_slot(lv, lv->foreseen.batch);
		item = lv->foreseen.item;
		if (outside(lv, b, item))
		{
			lv->foreseen.batch++;
			if (lv->foreseen.batch < lv->tail)
				lv->foreseen.item =
					first_item(lv, ring_slot(lv, lv->foreseen.batch));
			continue;
		}

		lv->foreseen.item += step(lv);
		lv->nforeseen++;
		tid = &b->pos->items[item].heapTid;
		block = ItemPointerGetBlockNumber(tid);
		if (block == lv->foreseen_block || !heap_needed(lv, b, item))
			continue;
		lv->foreseen_block = block;
		visit->block = block;
		visit->offset = ItemPointerGetOffsetNumber(tid);
		return true;
	}
	return false;
}

static void
foresee_restart(void *arg)
{
	LaLeaves   *lv = (LaLeaves *) arg;

	lv->foreseen.batch = lv->head;
	lv->foreseen.item = lv->item + step(lv);
	lv->foreseen_block = lv->heap_block;
	lv->nforeseen = lv->nconsumed;
}

/* ------------------------------------------------------------------
 *		The consumer
 * ------------------------------------------------------------------
 */

/*
 * The row at the consumer's position, whose heap block is made the current one
 * first.  Behaviour D of shim.c: results are written last.
 */
static bool
return_item(LaLeaves *lv)
{
	LaScan	   *ls = lv->ls;
	IndexScanDesc scan = ls->scan;
	LaLeafBatch *b = ring_slot(lv, lv->head);
	BTScanPosItem *item = &b->pos->items[lv->item];
	BlockNumber block = ItemPointerGetBlockNumber(&item->heapTid);

	lv->nconsumed++;
	if (block != lv->heap_block && heap_needed(lv, b, lv->item))
	{
		lv->heap_block = block;
		la_shim_turn_to(ls, lv->window, block);
	}

	scan->xs_heaptid = item->heapTid;
	scan->xs_recheck = false;
	if (scan->xs_want_itup)
		scan->xs_itup = (IndexTuple) (b->tuples + item->tupleOffset);
	return true;
}

/*
 * The consumer has used up the head batch.  Go to the next one; false if the
 * position went back to nbtree, which may have more (behaviour F) or not.
 */
static bool
next_batch(LaLeaves *lv)
{
	if (lv->head + 1 == lv->tail)
	{
		if (lv->ls->policy.state != LA_ARMED || !read_leaf(lv))
		{
			hand_over(lv);
			return false;
		}
	}
	pop_batch(lv);
	lv->item = first_item(lv, ring_slot(lv, lv->head));
	if (lv->foreseen.batch < lv->head)
		foresee_restart(lv);
	return true;
}

bool
la_leaf_gettuple(LaScan *ls, ScanDirection dir)
{
	LaLeaves   *lv = ls->leaves;
	LaLeafBatch *b = ring_slot(lv, lv->head);

	if (lv->fetch_first)
	{
		lv->fetch_first = false;
		return return_item(lv);
	}
	if (ls->scan->kill_prior_tuple)
	{
		la_leafbatch_kill(&lv->batches, b, lv->item);
		ls->scan->kill_prior_tuple = false;
	}

	if (dir != lv->dir)
	{
		/* behaviour E */
		la_leafbatch_give_position(&lv->batches, b, lv->item, dir);
		hand_over(lv);
		return la_shim_real_gettuple(ls, dir);
	}

	lv->item += step(lv);
	if (outside(lv, b, lv->item) && !next_batch(lv))
	{
		bool		read_to_end = lv->read_to_end;
		bool		found = !read_to_end && la_shim_real_gettuple(ls, dir);

		ls->seen_reads = la_issue_blocks_read();
		if (!found)
		{
			ls->ended = true;
			if (ls->policy.scans == 0)
				release(ls);
		}
		return found;
	}
	return return_item(lv);
}

/* ------------------------------------------------------------------
 *		Mark and restore (behaviour C)
 * ------------------------------------------------------------------
 */

void
la_leaf_mark(LaScan *ls)
{
	LaLeaves   *lv = ls->leaves;

	forget_mark(lv);
	lv->marked = true;
	lv->mark.batch = lv->head;
	lv->mark.item = lv->item;
}

/*
 * Returns false if the restore is left to nbtree.
 */
bool
la_leaf_restore(LaScan *ls)
{
	LaLeaves   *lv = ls->leaves;

	if (lv->marked && lv->kept == NULL)
	{
		Assert(lv->mark.batch == lv->head);
		lv->item = lv->mark.item;
		lv->heap_block = InvalidBlockNumber;
		la_window_clear(lv->window);
		return true;
	}
	hand_over(lv);
	return false;
}
