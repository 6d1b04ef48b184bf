/*
 * rowqueue.c
 *	  Rows read ahead through any access method's amgettuple, as a queue.
 *
 *		 head (next row to return)			 foreseen		  tail
 *		+---------+---------+---------+---------+---------+
 *		|   row   |	  row	|   row   |	  row	|	row	  |	 <- the access
 *		+---------+---------+---------+---------+---------+		method stands on
 *		  ^ current is the one before							the last of them
 *
 * A queued row is all that amgettuple left in the scan descriptor: TID, recheck
 * flags, ORDER BY distances, and copies of the tuples of index-only scans, whose
 * memory is the access method's.  The access method finds the descriptor as it
 * has left it each time it is called (GiST frees what it finds in xs_hitup), and
 * the executor as if the row had been fetched just now.
 *
 * Behaviours:
 *	A. Begin: the access method stands on the row returned last, the queue is
 *	   empty.  Nothing has to move.
 *	B. Dead entries are collected for each index page and handed over when the
 *	   consumer leaves that page, and at the end (method.c).  To methods that we
 *	   do not know, a report is passed on as long as it is about the row on which
 *	   they stand.
 *	C. End: only when the queue is empty, so there is no position to give back.
 *	   Disarmed by the policy, rows are used up and none is read ahead.  A scan
 *	   that starts over or ends early drops the queue.
 *	D. After the last row the access method is not called again: that would
 *	   start a hash scan over.
 *	E. Forward only, no marks: scans that may turn, or return to a mark, are not
 *	   taken (scan.c).  No core method but btree has marks, and none but btree
 *	   and hash goes backward.
 *	F. SERIALIZABLE: methods that lock index pages are not run ahead, since the
 *	   locks would be seen (by others, as conflicts).
 *	G. LIMIT: no more rows are foreseen than can still be wanted.  For ORDER BY
 *	   distance LIMIT k that makes look-ahead end at the k-th row.
 *	H. Index-only scans: see method.c.
 *
 * src/scan/rowqueue.c
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/htup_details.h"
#include "access/itup.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/memutils.h"

#include "scan/graph.h"
#include "scan/method.h"
#include "scan/shim.h"
#include "window/issue.h"
#include "window/window.h"

#define ROWS_PER_VISIT	16		/* queue slots per block of max_distance */

/* What amgettuple returns, but for the distances. */
typedef struct Returned
{
	ItemPointerData tid;
	bool		recheck;
	bool		recheckorderby;
	IndexTuple	itup;
	HeapTuple	hitup;
} Returned;

typedef struct Row
{
	Returned	returned;
	LaIndexEntry entry;
	uint8		heap;			/* HEAP_xxx */
} Row;

struct LaRowQueue
{
	LaScan	   *ls;
	LaWindow   *window;
	Size		bytes;			/* taken from the scan's budget */
	LaKilledItems dead;

	uint64		rows_before;	/* visits, and so at most rows, before that */
	uint64		head;			/* next row to be returned */
	uint64		tail;			/* next row to be read */
	Row			current;		/* returned last */
	bool		read_to_end;	/* the access method has no more rows */
	BlockNumber heap_block;		/* heap block visited last */

	uint64		foreseen;		/* next row for the window */
	BlockNumber foreseen_block; /* heap block told to the window last */

	Returned	left;			/* what the access method left behind */
	MemoryContext tuples;		/* copies for index-only scans */

	int			norderbys;
	Datum	   *distances;		/* norderbys for each slot, then for left */
	bool	   *nulls;			/* the same */

	uint64		nslots;			/* a power of 2 */
	Row			rows[FLEXIBLE_ARRAY_MEMBER];
};

static bool foresee_visit(void *arg, LaForeseen *visit);
static void foresee_restart(void *arg);

#define slot_of(q, n)	((n) & ((q)->nslots - 1))
#define row_of(q, n)	(&(q)->rows[slot_of(q, n)])

/* ------------------------------------------------------------------
 *		The descriptor
 * ------------------------------------------------------------------
 */

/*
 * Are there distances in the descriptor?  Methods that need no reordering leave
 * even the pointers to them uninitialized.
 */
static bool
has_distances(LaRowQueue *q, const Returned *r)
{
	return q->norderbys > 0 && (q->ls->method->sets_distances || r->recheckorderby);
}

static void
save_returned(LaRowQueue *q, Returned *r, uint64 distances_at)
{
	IndexScanDesc scan = q->ls->scan;

	r->tid = scan->xs_heaptid;
	r->recheck = scan->xs_recheck;
	r->recheckorderby = scan->xs_recheckorderby;
	r->itup = scan->xs_itup;
	r->hitup = scan->xs_hitup;
	if (has_distances(q, r))
	{
		memcpy(q->distances + distances_at * q->norderbys,
			   scan->xs_orderbyvals, q->norderbys * sizeof(Datum));
		memcpy(q->nulls + distances_at * q->norderbys,
			   scan->xs_orderbynulls, q->norderbys * sizeof(bool));
	}
}

static void
restore_returned(LaRowQueue *q, const Returned *r, uint64 distances_at)
{
	IndexScanDesc scan = q->ls->scan;

	scan->xs_heaptid = r->tid;
	scan->xs_recheck = r->recheck;
	scan->xs_recheckorderby = r->recheckorderby;
	scan->xs_itup = r->itup;
	scan->xs_hitup = r->hitup;
	if (has_distances(q, r))
	{
		memcpy(scan->xs_orderbyvals,
			   q->distances + distances_at * q->norderbys,
			   q->norderbys * sizeof(Datum));
		memcpy(scan->xs_orderbynulls,
			   q->nulls + distances_at * q->norderbys,
			   q->norderbys * sizeof(bool));
	}
}

static void
free_tuples(Returned *r)
{
	if (r->itup)
		pfree(r->itup);
	if (r->hitup)
		heap_freetuple(r->hitup);
	r->itup = NULL;
	r->hitup = NULL;
}

static void
copy_tuples(LaRowQueue *q, Returned *r)
{
	MemoryContext old;

	if (!q->ls->scan->xs_want_itup)
	{
		r->itup = NULL;
		r->hitup = NULL;
		return;
	}
	old = MemoryContextSwitchTo(q->tuples);
	if (r->itup)
		r->itup = CopyIndexTuple(r->itup);
	if (r->hitup)
		r->hitup = heap_copytuple(r->hitup);
	MemoryContextSwitchTo(old);
}

/* ------------------------------------------------------------------
 *		Reading rows
 * ------------------------------------------------------------------
 */

/*
 * Let the access method return its next row, and queue it.  dead tells that the
 * one on which it stands is.
 */
static bool
read_row(LaRowQueue *q, bool dead)
{
	LaScan	   *ls = q->ls;
	Row		   *row = row_of(q, q->tail);
	int64		buffers = la_issue_buffers_used();
	bool		found;

	if (q->read_to_end)
		return false;
	restore_returned(q, &q->left, q->nslots);
	ls->scan->kill_prior_tuple = dead;
	found = la_shim_real_gettuple(ls, ForwardScanDirection);
	ls->scan->kill_prior_tuple = false;
	save_returned(q, &q->left, q->nslots);
	if (!found)
	{
		q->read_to_end = true;
		return false;
	}

	save_returned(q, &row->returned, slot_of(q, q->tail));
	copy_tuples(q, &row->returned);
	row->heap = HEAP_UNKNOWN;
	row->entry.tid = row->returned.tid;
	row->entry.page = InvalidBlockNumber;
	row->entry.lsn = InvalidXLogRecPtr;
	if (ls->method->locate)
		ls->method->locate(ls, &q->dead, &row->entry);
	q->tail++;

	/* it has turned to another index page: which ones are next? */
	if (ls->method->issue_pages && buffers != la_issue_buffers_used() &&
		ls->policy.state == LA_ARMED &&
		la_shim_rows_wanted(ls, ForwardScanDirection) >
		(int64) (q->tail - q->head))
		ls->method->issue_pages(ls);
	return true;
}

static bool
may_read_ahead(LaRowQueue *q)
{
	LaScan	   *ls = q->ls;

	if (q->read_to_end || q->tail - q->head >= q->nslots)
		return false;
	if (ls->graph && !la_graph_may_run_ahead(ls->graph, q->rows_before + q->tail))
		return false;
	/* H */
	return ls->kind != LA_KIND_INDEX_ONLY_SCAN ||
		ls->method->rows_on_page(ls) > 0;
}

static bool
heap_needed(LaRowQueue *q, Row *row)
{
	return la_shim_heap_needed(q->ls, &row->returned.tid, &row->heap);
}

/* ------------------------------------------------------------------
 *		Beginning and ending
 * ------------------------------------------------------------------
 */

static uint64
slots_of_queue(LaScan *ls)
{
	return pg_nextpower2_64(ROWS_PER_VISIT * ls->policy.config.max_distance);
}

/* Bytes taken from the budget as long as the queue exists. */
static Size
own_bytes(LaScan *ls)
{
	return offsetof(LaRowQueue, rows) + slots_of_queue(ls) *
		(sizeof(Row) +
		 ls->scan->numberOfOrderBys * (sizeof(Datum) + sizeof(bool))) +
		la_window_size(&ls->scan->heapRelation, 1, &ls->policy);
}

bool
la_rowqueue_may_begin(LaScan *ls, ScanDirection dir)
{
	if (!ScanDirectionIsForward(dir))
		return false;
	if (ls->queue == NULL && !la_budget_has(&ls->budget, own_bytes(ls)))
		return false;
	/* F */
	if (IsolationIsSerializable() && ls->real->rd_indam->ampredlocks)
		return false;
	return ls->kind != LA_KIND_INDEX_ONLY_SCAN ||
		(ls->method->rows_on_page != NULL && ls->scan->numberOfOrderBys == 0);
}

static LaRowQueue *
create(LaScan *ls)
{
	MemoryContext old = MemoryContextSwitchTo(ls->context);
	uint64		nslots = slots_of_queue(ls);
	LaRowQueue *q = palloc(offsetof(LaRowQueue, rows) + nslots * sizeof(Row));
	LaProducer	producer = {q, foresee_visit, foresee_restart};

	memset(q, 0, offsetof(LaRowQueue, rows));
	q->ls = ls;
	q->nslots = nslots;
	q->norderbys = ls->scan->numberOfOrderBys;
	if (q->norderbys > 0)
	{
		q->distances = palloc0((nslots + 1) * q->norderbys * sizeof(Datum));
		q->nulls = palloc0((nslots + 1) * q->norderbys * sizeof(bool));
	}
	if (ls->kind == LA_KIND_INDEX_ONLY_SCAN)
		q->tuples = AllocSetContextCreate(ls->context, "pg_lookahead tuples",
										  ALLOCSET_DEFAULT_SIZES);
	q->window = la_window_create(&ls->scan->heapRelation, 1, producer,
								 &ls->policy, &ls->counters, &ls->budget);
	q->bytes = own_bytes(ls);
	la_budget_take(&ls->budget, q->bytes);
	MemoryContextSwitchTo(old);
	return q;
}

/* See release() of leaf.c. */
static void
release(LaScan *ls)
{
	LaRowQueue *q = ls->queue;

	Assert(!ls->active);
	la_budget_return(&ls->budget, q->bytes);
	if (q->tuples)
		MemoryContextDelete(q->tuples);
	if (q->norderbys > 0)
	{
		pfree(q->distances);
		pfree(q->nulls);
	}
	if (q->dead.entries)
		pfree(q->dead.entries);
	if (q->dead.work)
		pfree(q->dead.work);
	la_window_free(q->window);
	pfree(q);
	ls->queue = NULL;
}

/*
 * Behaviour A, and the row that was asked for.
 */
bool
la_rowqueue_begin(LaScan *ls, ScanDirection dir)
{
	IndexFetchHeapData *hscan = la_heap_fetch(ls);
	LaRowQueue *q = ls->queue;

	if (q == NULL)
		q = ls->queue = create(ls);
	q->rows_before = ls->policy.total - ls->policy.scan_start;
	q->head = q->tail = 0;
	q->read_to_end = false;
	q->current.entry.tid = ls->scan->xs_heaptid;
	q->current.entry.page = InvalidBlockNumber;
	q->current.entry.lsn = InvalidXLogRecPtr;
	q->current.returned.itup = NULL;
	q->current.returned.hitup = NULL;
	if (ls->last_dir != NoMovementScanDirection && ls->method->locate)
		ls->method->locate(ls, &q->dead, &q->current.entry);
	if (ls->last_dir != NoMovementScanDirection && ls->method->take_dead)
		ls->method->take_dead(ls, &q->dead);
	q->heap_block = BufferIsValid(hscan->xs_cbuf) ?
		BufferGetBlockNumber(hscan->xs_cbuf) : InvalidBlockNumber;
	/* before the first row, nobody has set it */
	if (ls->last_dir == NoMovementScanDirection)
		ls->scan->xs_recheckorderby = false;
	save_returned(q, &q->left, q->nslots);

	ls->active = true;
	ls->ended = false;
	ls->counters.c[LA_SCANS_ACTIVATED]++;
	return la_rowqueue_gettuple(ls, dir);
}

/* The queue is empty, or what it holds is not wanted. */
static void
end_active(LaRowQueue *q)
{
	la_window_clear(q->window);
	for (; q->head < q->tail; q->head++)
		free_tuples(&row_of(q, q->head)->returned);
	la_killed_flush(q->ls, &q->dead);
	la_killed_unpin(&q->dead);
	q->ls->active = false;
}

/*
 * The scan starts over or ends.  The tuple that was returned last is the
 * executor's until now.
 */
void
la_rowqueue_drop(LaScan *ls)
{
	LaRowQueue *q = ls->queue;

	if (ls->active)
	{
		/* what is in the descriptor is the access method's again */
		restore_returned(q, &q->left, q->nslots);
		end_active(q);
	}
	if (q->tuples)
		MemoryContextReset(q->tuples);
}

/* ------------------------------------------------------------------
 *		The window's producer
 * ------------------------------------------------------------------
 */

/*
 * The next visit after those told so far: the next row whose heap block differs
 * from that of the row before it.
 */
static bool
foresee_visit(void *arg, LaForeseen *visit)
{
	LaRowQueue *q = (LaRowQueue *) arg;
	int64		wanted = la_shim_rows_wanted(q->ls, ForwardScanDirection);

	/* G; the row at the head is the one about to be returned */
	while ((int64) (q->foreseen - q->head) <= wanted)
	{
		Row		   *row;
		BlockNumber block;

		if (q->foreseen == q->tail &&
			(!may_read_ahead(q) || !read_row(q, false)))
			return false;
		row = row_of(q, q->foreseen);
		q->foreseen++;
		block = ItemPointerGetBlockNumber(&row->returned.tid);
		if (block == q->foreseen_block || !heap_needed(q, row))
			continue;
		q->foreseen_block = block;
		visit->block = block;
		visit->offset = ItemPointerGetOffsetNumber(&row->returned.tid);
		return true;
	}
	return false;
}

static void
foresee_restart(void *arg)
{
	LaRowQueue *q = (LaRowQueue *) arg;

	q->foreseen = q->head + 1;
	q->foreseen_block = q->heap_block;
}

/* ------------------------------------------------------------------
 *		The consumer
 * ------------------------------------------------------------------
 */

/*
 * Return the row at the head, whose heap block is made the current one first.
 * The row keeps its slot meanwhile, and the descriptor is written last: looking
 * ahead uses both.
 */
static bool
return_row(LaRowQueue *q)
{
	LaScan	   *ls = q->ls;
	Row		   *row = row_of(q, q->head);
	BlockNumber block = ItemPointerGetBlockNumber(&row->returned.tid);

	/* B */
	if (row->entry.page != q->current.entry.page)
		la_killed_flush(ls, &q->dead);

	if (block != q->heap_block && heap_needed(q, row))
	{
		q->heap_block = block;
		la_shim_turn_to(ls, q->window, block);
	}

	restore_returned(q, &row->returned, slot_of(q, q->head));
	free_tuples(&q->current.returned);
	q->current = *row;
	q->head++;
	if (q->foreseen < q->head)
	{
		q->foreseen = q->head;
		q->foreseen_block = q->heap_block;
	}
	return true;
}

/* Behaviour C: the access method goes on alone, or has ended. */
static void
hand_over(LaRowQueue *q)
{
	LaScan	   *ls = q->ls;

	restore_returned(q, &q->left, q->nslots);
	free_tuples(&q->current.returned);
	if (!q->read_to_end && ls->method->give_dead)
		(void) ls->method->give_dead(ls, &q->dead);
	end_active(q);
	ls->seen_buffer = la_heap_fetch(ls)->xs_cbuf;
}

bool
la_rowqueue_gettuple(LaScan *ls, ScanDirection dir)
{
	LaRowQueue *q = ls->queue;
	bool		dead = ls->scan->kill_prior_tuple;

	if (!ScanDirectionIsForward(dir))
		elog(ERROR, "index scan that looks ahead cannot turn");

	ls->scan->kill_prior_tuple = false;
	if (dead && (ls->method->kill || q->head < q->tail || q->read_to_end))
	{
		/* B */
		la_killed_add(ls, &q->dead, &q->current.entry);
		dead = false;
	}
	if (q->head < q->tail)
		return return_row(q);

	if (q->read_to_end ||
		(ls->policy.state == LA_ARMED && !read_row(q, dead)))
	{
		/* D */
		hand_over(q);
		ls->ended = true;
		if (ls->policy.scans == 0)
			release(ls);
		return false;
	}
	if (q->head < q->tail)
		return return_row(q);

	hand_over(q);
	ls->scan->kill_prior_tuple = dead;
	ls->ended = !la_shim_real_gettuple(ls, dir);
	ls->seen_reads = la_issue_blocks_read();
	return !ls->ended;
}
