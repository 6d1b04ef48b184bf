/*
 * leaf.c
 *	  Index leaf pages read ahead of the scan, as a ring of batches (nbtree).
 *
 * nbtree reads the matching items of a leaf page at once, into BTScanOpaque->currPos, and returns
 * them one by one.  A batch is a copy of currPos (leafbatch.c).  With currPos.itemIndex at the last
 * item, the next call of btgettuple steps to the next leaf page: so nbtree runs ahead a page at a
 * time, and rows are returned from the batches.
 *
 *		 head (consumer)							 tail - 1
 *		+-----------+-----------+-----------+-----------+
 *		| batch	  k |	 k + 1	|	 k + 2	|	 k + 3	|	so->currPos is the
 *		| ^ item	|			|	 ^		|			|	page of the last one,
 *		+-----------+-----------+----|------+-----------+	at its last item
 *								  foreseen (the window's producer)
 *
 * When nbtree keeps a page pinned (index-only scans, unlogged and temporary indexes), its batch has
 * a pin of its own.  These pins keep VACUUM from removing what the batch points to until its rows
 * are returned, as nbtree's one pin does.  At most MAX_PINNED batches hold one, and no more than
 * the budget of pins allows.
 *
 * Behaviours:
 *	BEGIN		The page in currPos becomes the first batch.  Killed items and the mark are taken
 *				over from nbtree's state.
 *	KILLED		An entry that the executor reports dead is remembered in the batch that it came
 *				from.  When the batch is left, _bt_killitems is called on a copy of the scan state
 *				that has this batch, and applies its own rule: pinned since it was read, or the
 *				page's LSN unchanged.
 *	MARK		A mark is a batch and an item.  A marked batch that is left is kept aside.
 *				Restoring within the current batch moves the item; for another batch, look-ahead
 *				ends first (END), and nbtree restores.
 *	END			The mark is put back into nbtree's state.  If the scan has been read to its end,
 *				nbtree is already there.  Otherwise the consumer's batch and item are put into
 *				currPos, as btrestrpos puts a mark there.
 *	TURN		A change of direction (scrollable cursors) ends look-ahead, too.
 *	DISARMED	When the policy has disarmed, no page is read ahead.  nbtree stands at
 *				the end of the last batch, and goes on from there.
 *	ARRAYS		Array keys ("= ANY", skip scan).  Until 16, each combination of elements is a
 *				primitive scan of its own: a batch has the elements' indexes.  From 17 on, nbtree
 *				restores a mark by starting the arrays again in the scan's direction and lets the
 *				next page set them; so does leafbatch.c, in the direction in which the next page
 *				will be read.  A page after which another primitive scan is due must not look like
 *				the scan's end: its copy gets moreRight (moreLeft), as in _bt_steppage.
 *	BARREN		An index-only scan of all-visible pages visits no heap block, and each row has been
 *				looked up in the visibility map once more for that.  After BARREN_PAGES of them,
 *				look-ahead is held off; btree/leafahead.c goes on without batches.
 *	LOCKS		Under SERIALIZABLE, reading a leaf page takes a predicate lock.  No page is read
 *				that stock would not have read by then: look-ahead ends at the current page.  So it
 *				does where comparing entries early could be noticed (early.c).
 *	LIMIT		No more items are foreseen than rows can still be wanted.
 *	NEXT		As soon as a page is read, the read of the next one is started.  Where that is not
 *				early enough, btree/leafahead.c starts those of the pages after it.
 *	PARALLEL	A page read ahead is one that other workers do not get, so a worker keeps at most
 *				PARALLEL_BATCHES.
 *
 * src/scan/leaf.c
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/bufmgr.h"

#include "attach/attach.h"
#include "base/compat.h"
#include "base/compat_btree.h"
#include "scan/scan_int.h"
#include "window/window.h"

#define MAX_PINNED			8
#define PARALLEL_BATCHES	4
#define BARREN_PAGES		4

typedef struct Position
{
	uint64		batch;
	int			item;
} Position;

typedef struct LeafRing
{
	LaScan	   *ls;
	LaWindow   *window;
	Size		bytes;			/* taken from the scan's budget */
	LaLeafBatchPool pool;
	ScanDirection dir;
	bool		read_to_end;	/* nbtree has no more pages */
	bool		fetch_first;	/* the first row was found by leaf_begin() */

	uint64		head;			/* consumer's batch */
	uint64		tail;			/* next batch to be read */
	int			item;			/* consumer's item in the head batch */
	BlockNumber heap_block;		/* heap block visited last */
	uint64		fruitful;		/* the last batch with a visit, or the first */

	Position	foreseen;		/* next item for the window */
	BlockNumber foreseen_block; /* heap block foreseen last */
	int64		nforeseen;		/* items foreseen, and returned */
	int64		nconsumed;

	bool		marked;
	Position	mark;			/* only its item, if the batch is kept */
	LaLeafBatch *kept;			/* the marked batch, once it left the ring */

	LaLeafBatch **slots;		/* max_leaf_pages of them */
} LeafRing;

#define batch_of(ring, n)	((ring)->slots[(n) % (ring)->ls->max_leaf_pages])
#define step(ring)			(ScanDirectionIsForward((ring)->dir) ? 1 : -1)

static bool foresee_visit(void *arg, LaForeseen *visit);
static void foresee_restart(void *arg);

/* ---- Batches ------------------------------------------------------------- */

/* Make so->currPos the newest batch, and have nbtree leave that page when it is called next. */
static LaLeafBatch *
push_current_page(LeafRing *ring)
{
	LaScan	   *ls = ring->ls;
	BTScanOpaque so = la_bt_opaque(ls);
	bool		forward = ScanDirectionIsForward(ring->dir);
	LaLeafBatch *b = la_leafbatch_copy(&ring->pool, &so->currPos, so->currTuples);

	if (BufferIsValid(so->currPos.buf))
	{
		IncrBufferRefCount(so->currPos.buf);
		la_leafbatch_own_pin(&ring->pool);
	}
	la_leafbatch_save_array_keys(&ring->pool, b, false);
	batch_of(ring, ring->tail) = b;
	ring->tail++;
	so->currPos.itemIndex = forward ? so->currPos.lastItem : so->currPos.firstItem;
	return b;
}

/*
 * Start the read of the leaf page after the one in currPos.  If that is the next block of the file,
 * as in an index that was just built, advice would prevent the kernel's own read-ahead.
 */
static void
issue_next_leaf(LeafRing *ring)
{
	LaScan	   *ls = ring->ls;
	BTScanOpaque so = la_bt_opaque(ls);
	BlockNumber next;

	if (la_bt_descent_is_next(so))
		return;
	if (ScanDirectionIsForward(ring->dir))
		next = so->currPos.moreRight ? so->currPos.nextPage : P_NONE;
	else
		next = so->currPos.moreLeft ? la_bt_prev_page(&so->currPos) : P_NONE;
	if (next == P_NONE || next == InvalidBlockNumber ||
		(next == so->currPos.currPage + 1 && !ls->policy.config.force))
		return;
	(void) la_leafahead_issue_page(&ls->leaf, next);
}

/*
 * The next row of nbtree, which is likely to be on another page, with the reads of those to come.
 * rows_wanted: rows that can be wanted behind it.
 */
bool
la_leaf_step(LaScan *ls, ScanDirection dir, int64 rows_wanted)
{
	int64		reads_before = la_issue_blocks_read();
	bool		found;

	if (BTScanPosIsValid(la_bt_opaque(ls)->currPos))
		la_arraykeys_advance(ls, dir, rows_wanted);
	ls->leaf.is_counted = ls->owner == NULL;
	la_leafahead_begin_step(&ls->leaf);
	found = la_scan_am_gettuple(ls, dir);
	if (!found && ls->leaf.policy.io.length.scans == 0)
		la_arraykeys_forget(ls);
	la_leafahead_end_step(&ls->leaf, found, dir, rows_wanted);
	/* these reads are none of heap blocks */
	ls->seen_reads += la_issue_blocks_read() - reads_before;
	return found;
}

/* Have nbtree read the next leaf page.  Returns false if there is none. */
static bool
read_leaf(LeafRing *ring)
{
	LaScan	   *ls = ring->ls;
	int64		wanted = la_scan_rows_wanted(ls, ring->dir);
	LaLeafBatch *b;

	if (ring->read_to_end)
		return false;
	ls->scan->kill_prior_tuple = false;
	if (!la_leaf_step(ls, ring->dir, wanted - Max(ring->nforeseen - ring->nconsumed, 0)))
	{
		ring->read_to_end = true;
		return false;
	}
	b = push_current_page(ring);
	if (ls->policy.state == LA_ARMED && !la_leaf_policy_is_armed(&ls->leaf.policy) &&
		wanted > b->pos->lastItem - b->pos->firstItem)
		issue_next_leaf(ring);
	return true;
}

/* May the next leaf page be read before the consumer asks for it? */
static bool
may_read_ahead(LeafRing *ring)
{
	LaScan	   *ls = ring->ls;
	uint64		nbatches = ring->tail - ring->head;
	uint64		most = ls->max_leaf_pages;

	if (ring->read_to_end || IsolationIsSerializable() || la_early_refuses_pages(ls))
		return false;
	if (BufferIsValid(batch_of(ring, ring->head)->pos->buf))
	{
		if (!la_gate_allows_pin(RelationUsesLocalBuffers(ls->real)))
			return false;
		most = Min(most, MAX_PINNED);
	}
	if (ls->scan->parallel_scan != NULL)
		most = Min(most, PARALLEL_BATCHES);
	return nbatches < most && la_budget_has(&ls->budget, la_leafbatch_most_bytes(&ring->pool));
}

/* ---- Beginning, ending, moving ------------------------------------------- */

static void
forget_mark(LeafRing *ring)
{
	if (ring->kept)
		la_leafbatch_free(&ring->pool, ring->kept);
	ring->kept = NULL;
	ring->marked = false;
}

/* Leave the head batch. */
static void
pop_batch(LeafRing *ring)
{
	LaLeafBatch *b = batch_of(ring, ring->head);

	la_leafbatch_apply_killed(&ring->pool, b);
	if (ring->marked && ring->kept == NULL && ring->mark.batch == ring->head)
		ring->kept = b;
	else
		la_leafbatch_free(&ring->pool, b);
	ring->head++;
}

/* BEGIN: nbtree's mark becomes ours. */
static void
take_mark(LeafRing *ring)
{
	BTScanOpaque so = la_bt_opaque(ring->ls);

	Assert(!ring->marked);
	if (so->markItemIndex >= 0)
	{
		/* it is on the page of the first batch; markPos is an older one */
		BTScanPosInvalidate(so->markPos);
		ring->marked = true;
		ring->mark.batch = ring->head;
		ring->mark.item = so->markItemIndex;
		so->markItemIndex = -1;
	}
	else if (BTScanPosIsValid(so->markPos))
	{
		ring->kept = la_leafbatch_copy(&ring->pool, &so->markPos, so->markTuples);
		la_leafbatch_save_array_keys(&ring->pool, ring->kept, true);
		ring->marked = true;
		ring->mark.item = so->markPos.itemIndex;
		/* its pin is the batch's now */
		if (BufferIsValid(so->markPos.buf))
			la_leafbatch_own_pin(&ring->pool);
		BTScanPosInvalidate(so->markPos);
	}
}

/* END: our mark becomes nbtree's. */
static void
return_mark(LeafRing *ring)
{
	if (!ring->marked)
		return;
	la_leafbatch_restore_mark(&ring->pool,
							  ring->kept ? ring->kept : batch_of(ring, ring->mark.batch),
							  ring->mark.item);
	forget_mark(ring);
}

/* Free all batches.  The position is nbtree's again, or is not needed. */
static void
free_batches(LeafRing *ring)
{
	la_window_clear(ring->window);
	while (ring->head < ring->tail)
		pop_batch(ring);
	forget_mark(ring);
	ring->ls->owner = NULL;
}

/* END: nbtree goes on with the scan, and shim.c compares with the present state. */
static void
end_lookahead(LeafRing *ring)
{
	return_mark(ring);
	free_batches(ring);
	ring->ls->seen_buffer = la_scan_heap(ring->ls)->xs_cbuf;
	ring->ls->seen_reads = la_issue_blocks_read();
}

/* Bytes taken from the budget as long as the structure exists. */
static Size
own_bytes(LaScan *ls)
{
	return sizeof(LeafRing) + ls->max_leaf_pages * sizeof(LaLeafBatch *) +
		la_window_size(&ls->scan->heapRelation, 1, &ls->policy);
}

/* Is the next heap block that nbtree's current page names near the one that the scan is on? */
static bool
next_is_near(LaScan *ls, ScanDirection dir)
{
	BTScanPos	pos = &la_bt_opaque(ls)->currPos;
	int			way = ScanDirectionIsForward(dir) ? 1 : -1;
	BlockNumber here = la_scan_heap_block(ls);

	if (here == InvalidBlockNumber)
		return false;
	for (int i = pos->itemIndex + way; i >= pos->firstItem && i <= pos->lastItem; i += way)
	{
		BlockNumber next = ItemPointerGetBlockNumberNoCheck(&pos->items[i].heapTid);

		if (next != here)
			return (next > here ? next - here : here - next) <= LA_NEAR_BLOCKS;
	}
	return false;
}

/* Possible before the scan has started, or if its current page was read in direction dir. */
static bool
leaf_may_begin(LaScan *ls, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(ls);

	if (ScanDirectionIsNoMovement(dir))
		return false;
	if (ls->policy.assumed && !ls->policy.config.force && BTScanPosIsValid(so->currPos) &&
		next_is_near(ls, dir))
	{
		la_io_policy_doubt(&ls->policy);
		return false;
	}
	if (ls->ahead.state == NULL && !la_budget_has(&ls->budget, own_bytes(ls)))
		return false;
	return !BTScanPosIsValid(so->currPos) || (la_bt_was_read_in(so, dir) && ls->last_dir == dir);
}

static LeafRing *
create(LaScan *ls)
{
	MemoryContext old = MemoryContextSwitchTo(ls->context);
	LeafRing   *ring = palloc0(sizeof(LeafRing));
	LaProducer	producer = {ring, foresee_visit, foresee_restart};

	ring->ls = ls;
	ring->pool.ls = ls;
	ring->slots = palloc0(ls->max_leaf_pages * sizeof(LaLeafBatch *));
	ring->window = la_window_create(&ls->scan->heapRelation, 1, producer,
									&ls->policy, &ls->cache_policy, &ls->counters,
									&ls->budget);
	ring->bytes = own_bytes(ls);
	la_budget_take(&ls->budget, ring->bytes);
	MemoryContextSwitchTo(old);
	return ring;
}

/*
 * Free all memory, at the end of a scan that was never repeated: it is unlikely to be, and a query
 * over many partitions need not keep the memory for all of them.
 */
static void
release(LaScan *ls)
{
	LeafRing   *ring = ls->ahead.state;

	Assert(ls->owner == NULL);
	la_leafbatch_free_spare(&ring->pool);
	la_budget_return(&ls->budget, ring->bytes);
	la_window_free(ring->window);
	pfree(ring->slots);
	pfree(ring);
	ls->ahead.state = NULL;
}

/* BEGIN.  A scan that has not started finds its first row here. */
static bool
leaf_begin(LaScan *ls, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(ls);
	LeafRing   *ring = ls->ahead.state;
	bool		fresh = !BTScanPosIsValid(so->currPos);
	LaLeafBatch *b;

	if (fresh && !la_scan_am_gettuple(ls, dir))
		return false;
	if (ring == NULL)
		ring = ls->ahead.state = create(ls);

	ring->dir = dir;
	ring->read_to_end = false;
	ring->fetch_first = fresh;
	ring->head = ring->tail = ring->fruitful = 0;
	ring->item = so->currPos.itemIndex;
	ring->nconsumed = ring->nforeseen = 0;
	ring->heap_block = la_scan_heap_block(ls);

	la_arraykeys_forget(ls);
	if (la_leaf_policy_is_armed(&ls->leaf.policy))
		la_leafahead_issue(&ls->leaf, dir, la_scan_rows_wanted(ls, dir));
	b = push_current_page(ring);
	for (int i = 0; i < so->numKilled; i++)
		la_leafbatch_kill(&ring->pool, b, so->killedItems[i]);
	so->numKilled = 0;
	take_mark(ring);
	if (!IsolationIsSerializable() && !la_leaf_policy_is_armed(&ls->leaf.policy) &&
		la_scan_rows_wanted(ls, dir) > (ScanDirectionIsForward(dir) ?
										b->pos->lastItem - ring->item :
										ring->item - b->pos->firstItem))
		issue_next_leaf(ring);
	return true;
}

static void
leaf_drop(LaScan *ls)
{
	if (ls->owner == &la_leaf_ops)
		free_batches(ls->ahead.state);
}

/* ---- The window's producer ----------------------------------------------- */

/* Will the executor fetch the heap row of an item? */
static bool
heap_needed(LeafRing *ring, LaLeafBatch *b, int item)
{
	return b->heap == NULL ||
		la_heapvisit_is_known_needed(ring->ls, &b->pos->items[item].heapTid, &b->heap[item]);
}

static bool
outside(LeafRing *ring, const LaLeafBatch *b, int item)
{
	return ScanDirectionIsForward(ring->dir) ? item > b->pos->lastItem :
		item < b->pos->firstItem;
}

static int
first_item(LeafRing *ring, const LaLeafBatch *b)
{
	return ScanDirectionIsForward(ring->dir) ? b->pos->firstItem : b->pos->lastItem;
}

/* The next visit to foresee: an item whose heap block differs from that of the one before. */
static bool
foresee_visit(void *arg, LaForeseen *visit)
{
	LeafRing   *ring = (LeafRing *) arg;
	int64		wanted = la_scan_rows_wanted(ring->ls, ring->dir);

	while (ring->nforeseen - ring->nconsumed < wanted)
	{
		LaLeafBatch *b;
		ItemPointer tid;
		BlockNumber block;
		int			item;

		if (ring->foreseen.batch == ring->tail)
		{
			if (!may_read_ahead(ring) || !read_leaf(ring))
				return false;
			ring->foreseen.item = first_item(ring, batch_of(ring, ring->tail - 1));
		}
		b = batch_of(ring, ring->foreseen.batch);
		item = ring->foreseen.item;
		if (outside(ring, b, item))
		{
			ring->foreseen.batch++;
			if (ring->foreseen.batch < ring->tail)
				ring->foreseen.item = first_item(ring, batch_of(ring, ring->foreseen.batch));
			continue;
		}

		ring->foreseen.item += step(ring);
		ring->nforeseen++;
		tid = &b->pos->items[item].heapTid;
		block = ItemPointerGetBlockNumberNoCheck(tid);
		if (block == ring->foreseen_block || !heap_needed(ring, b, item))
			continue;
		ring->foreseen_block = block;
		visit->block = block;
		visit->offset = ItemPointerGetOffsetNumberNoCheck(tid);
		return true;
	}
	return false;
}

static void
foresee_restart(void *arg)
{
	LeafRing   *ring = (LeafRing *) arg;

	ring->foreseen.batch = ring->head;
	ring->foreseen.item = ring->item + step(ring);
	ring->foreseen_block = ring->heap_block;
	ring->nforeseen = ring->nconsumed;
}

/* ---- The consumer -------------------------------------------------------- */

/*
 * Return the row at the consumer's position, after its heap block has been made the current one
 * (WRITE_LAST in shim.c).
 */
static bool
return_item(LeafRing *ring)
{
	LaScan	   *ls = ring->ls;
	IndexScanDesc scan = ls->scan;
	LaLeafBatch *b = batch_of(ring, ring->head);
	BTScanPosItem *item = &b->pos->items[ring->item];
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(&item->heapTid);

	ring->nconsumed++;
	if (block == ring->heap_block)
		ring->fruitful = ring->head;
	else if (heap_needed(ring, b, ring->item))
	{
		ring->heap_block = block;
		ring->fruitful = ring->head;
		la_heapvisit_turn_to(ls, ring->window, block);
	}

	scan->xs_heaptid = item->heapTid;
	scan->xs_recheck = false;
	if (scan->xs_want_itup)
		scan->xs_itup = (IndexTuple) (b->tuples + item->tupleOffset);
	return true;
}

/* BARREN. */
static bool
is_barren(const LeafRing *ring)
{
	return ring->head - ring->fruitful >= BARREN_PAGES && !la_window_has_reads(ring->window) &&
		!ring->ls->policy.config.force;
}

/*
 * The consumer has used up the head batch: go to the next one.  Returns false if the position is
 * nbtree's again, which may have more rows (DISARMED).
 */
static bool
next_batch(LeafRing *ring)
{
	if (ring->ls->policy.state == LA_ARMED && is_barren(ring))
	{
		la_io_policy_hold_off(&ring->ls->policy);
		la_cache_policy_reset(&ring->ls->cache_policy);
	}
	if (ring->head + 1 == ring->tail &&
		(ring->ls->policy.state != LA_ARMED || !read_leaf(ring)))
	{
		end_lookahead(ring);
		return false;
	}
	pop_batch(ring);
	ring->item = first_item(ring, batch_of(ring, ring->head));
	if (ring->foreseen.batch < ring->head)
		foresee_restart(ring);
	return true;
}

static bool
leaf_gettuple(LaScan *ls, ScanDirection dir)
{
	LeafRing   *ring = ls->ahead.state;
	LaLeafBatch *b = batch_of(ring, ring->head);

	if (ring->fetch_first)
	{
		ring->fetch_first = false;
		return return_item(ring);
	}
	if (ls->scan->kill_prior_tuple)
	{
		la_leafbatch_kill(&ring->pool, b, ring->item);
		ls->scan->kill_prior_tuple = false;
	}

	if (dir != ring->dir)
	{
		/* TURN */
		la_leafbatch_restore_position(&ring->pool, b, ring->item, dir);
		end_lookahead(ring);
		return la_scan_am_gettuple(ls, dir);
	}

	ring->item += step(ring);
	if (outside(ring, b, ring->item) && !next_batch(ring))
	{
		bool		found = !ring->read_to_end && la_scan_am_gettuple(ls, dir);

		ls->seen_reads = la_issue_blocks_read();
		if (!found)
		{
			ls->ended = true;
			if (ls->policy.length.scans == 0)
				release(ls);
		}
		return found;
	}
	return return_item(ring);
}

/* The n-th item behind the consumer's one, if its page has been read (LaComing.peek). */
bool
la_leaf_peek(LaScan *ls, int n, LaComingRow *row)
{
	LeafRing   *ring = ls->ahead.state;
	int64		foreseen = ls->policy.for_reads ? ring->nforeseen - ring->nconsumed : 0;
	int			left = n;
	int			item = ring->item;

	for (uint64 i = ring->head; i < ring->tail; i++)
	{
		LaLeafBatch *b = batch_of(ring, i);
		int			behind;

		if (i > ring->head)
		{
			item = first_item(ring, b);
			left--;
		}
		behind = ScanDirectionIsForward(ring->dir) ? b->pos->lastItem - item :
			item - b->pos->firstItem;
		if (left <= behind)
		{
			la_leafbatch_coming(b->pos, b->tuples, item + left * step(ring), row);
			row->may_read = n <= foreseen / 2;
			return true;
		}
		left -= behind;
	}
	return false;
}

/* ---- MARK ---------------------------------------------------------------- */

static void
leaf_mark(LaScan *ls)
{
	LeafRing   *ring = ls->ahead.state;

	forget_mark(ring);
	ring->marked = true;
	ring->mark.batch = ring->head;
	ring->mark.item = ring->item;
}

static bool
leaf_restore(LaScan *ls)
{
	LeafRing   *ring = ls->ahead.state;

	if (ring->marked && ring->kept == NULL)
	{
		Assert(ring->mark.batch == ring->head);
		ring->item = ring->mark.item;
		ring->heap_block = InvalidBlockNumber;
		la_window_clear(ring->window);
		return true;
	}
	end_lookahead(ring);
	return false;
}

const LaScanOps la_leaf_ops = {
	.may_begin = leaf_may_begin,
	.begin = leaf_begin,
	.gettuple = leaf_gettuple,
	.mark = leaf_mark,
	.restore = leaf_restore,
	.drop = leaf_drop
};
