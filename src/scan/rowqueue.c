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
 * A queued row is all that amgettuple left in the scan descriptor: TID, recheck flags, ORDER BY
 * distances, and copies of the tuples of index-only scans, whose memory is the access method's.
 * At each call, the access method finds the descriptor as it has left it (GiST frees what it finds
 * in xs_hitup), and the executor finds it as if the row had been fetched just now.
 *
 * Behaviours:
 *	BEGIN		The access method stands on the row returned last, and the queue is empty.
 *	KILLED		Entries reported dead are collected for each index page, and marked when the
 *				consumer leaves that page, and at the end (killed.c, method.c).  An access method
 *				that method.c does not know gets a report if it stands on the row in question.
 *	END			Only when the queue is empty, so there is no position to restore.  When the policy
 *				has disarmed, no row is read ahead.  A scan that starts over or ends early drops
 *				the queue.
 *	LAST_ROW	After the last row the access method is not called again: that would start a hash
 *				scan over.
 *	FORWARD		Scans that may turn, or return to a mark, are not eligible (scan.c).  No core
 *				method but btree has marks, and none but btree and hash goes backward.
 *	LOCKS		Under SERIALIZABLE, methods that lock index pages are not run ahead, since others
 *				would see the locks as conflicts.
 *	PAGES		Where what the access method calls for its pages could be noticed to be early
 *				(early.c), the scan is not run ahead.
 *	KEPT ERROR	If only an error could show that (keeps_errors), it is kept, and raised when the row
 *				that it is raised for has its turn.  The access method is not called again before
 *				it starts over.
 *	LIMIT		No more rows are foreseen than can still be wanted.  With ORDER BY distance LIMIT k
 *				look-ahead ends at the k-th row.
 *	INDEX_ONLY	Rows are foreseen only on the current index page: see method.c.
 *
 * src/scan/rowqueue.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/itup.h"
#include "access/xact.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "scan/scan_int.h"
#include "window/window.h"

#define ROWS_PER_VISIT	16		/* queue slots per block of max_distance */

/* What amgettuple returns, except the distances. */
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
	uint8		heap;			/* LA_HEAP_xxx */
} Row;

typedef struct RowQueue
{
	LaScan	   *ls;
	const LaMethod *method;
	LaWindow   *window;
	Size		bytes;			/* taken from the scan's budget */
	LaKilledItems killed;

	uint64		head;			/* next row to be returned */
	uint64		tail;			/* next row to be read */
	Row			current;		/* returned last */
	bool		read_to_end;	/* the access method has no more rows */
	bool		found;			/* by its last call */
	ErrorData  *error;			/* of that call, or NULL */
	BlockNumber heap_block;		/* heap block visited last */

	uint64		foreseen;		/* next row for the window */
	BlockNumber foreseen_block; /* heap block foreseen last */

	Returned	left;			/* what the access method left behind */
	MemoryContext tuples;		/* copies for index-only scans */

	int			norderbys;
	Datum	   *distances;		/* norderbys for each slot, then for left */
	bool	   *nulls;			/* the same */

	uint64		nslots;			/* a power of 2 */
	Row			rows[FLEXIBLE_ARRAY_MEMBER];
} RowQueue;

static bool foresee_visit(void *arg, LaForeseen *visit);
static void foresee_restart(void *arg);

#define slot_of(q, n)	((n) & ((q)->nslots - 1))
#define row_of(q, n)	(&(q)->rows[slot_of(q, n)])

/* ---- The descriptor ------------------------------------------------------ */

/*
 * Are there distances in the descriptor?  Where no reordering is needed, even the pointers to them
 * may be uninitialized.
 */
static bool
has_distances(RowQueue *q, const Returned *r)
{
	return q->norderbys > 0 && (q->method->sets_distances || r->recheckorderby);
}

static void
save_returned(RowQueue *q, Returned *r, uint64 distances_at)
{
	IndexScanDesc scan = q->ls->scan;

	r->tid = scan->xs_heaptid;
	r->recheck = scan->xs_recheck;
	/* without distances, the server does not set it */
	r->recheckorderby = q->norderbys > 0 && scan->xs_recheckorderby;
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
restore_returned(RowQueue *q, const Returned *r, uint64 distances_at)
{
	IndexScanDesc scan = q->ls->scan;

	scan->xs_heaptid = r->tid;
	scan->xs_recheck = r->recheck;
	scan->xs_recheckorderby = r->recheckorderby;
	scan->xs_itup = r->itup;
	scan->xs_hitup = r->hitup;
	if (has_distances(q, r))
	{
		memcpy(scan->xs_orderbyvals, q->distances + distances_at * q->norderbys,
			   q->norderbys * sizeof(Datum));
		memcpy(scan->xs_orderbynulls, q->nulls + distances_at * q->norderbys,
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
copy_tuples(RowQueue *q, Returned *r)
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

/* ---- Reading rows -------------------------------------------------------- */

static void
call_method(void *arg)
{
	RowQueue   *q = arg;

	q->found = la_scan_am_gettuple(q->ls, ForwardScanDirection);
}

/* Behaviour KEPT ERROR: the method's state is as an error leaves it. */
static void
call_method_early(RowQueue *q)
{
	q->error = la_attempt_scan_kept(call_method, q, q->ls->context);
	if (q->error == NULL)
		return;
	q->found = false;
	q->ls->scan->indexRelation = &q->ls->shadow;
	/* it may have freed these */
	q->ls->scan->xs_itup = NULL;
	q->ls->scan->xs_hitup = NULL;
}

/*
 * Queue the access method's next row.  dead: the row that it returned last was reported dead.
 * early: the consumer has not asked for it.
 */
static bool
read_row(RowQueue *q, bool dead, bool early)
{
	LaScan	   *ls = q->ls;
	Row		   *row = row_of(q, q->tail);
	int64		buffers = la_issue_buffers_used();

	if (q->read_to_end)
		return false;
	restore_returned(q, &q->left, q->nslots);
	ls->scan->kill_prior_tuple = dead;
	if (early && ls->keeps_errors)
		call_method_early(q);
	else
		call_method(q);
	ls->scan->kill_prior_tuple = false;
	save_returned(q, &q->left, q->nslots);
	if (!q->found)
	{
		q->read_to_end = true;
		return false;
	}

	save_returned(q, &row->returned, slot_of(q, q->tail));
	copy_tuples(q, &row->returned);
	row->heap = LA_HEAP_UNKNOWN;
	row->entry = (LaIndexEntry)
	{
		.tid = row->returned.tid,.page = InvalidBlockNumber
	};
	if (q->method->locate)
		q->method->locate(ls, &q->killed, &row->entry);
	q->tail++;

	/* it has turned to another index page: which ones are next? */
	if (q->method->issue_pages && buffers != la_issue_buffers_used() &&
		ls->policy.state == LA_ARMED &&
		la_scan_rows_wanted(ls, ForwardScanDirection) > (int64) (q->tail - q->head))
		q->method->issue_pages(ls);
	return true;
}

static bool
may_read_ahead(RowQueue *q)
{
	LaScan	   *ls = q->ls;

	if (q->read_to_end || q->tail - q->head >= q->nslots ||
		(ls->keeps_errors && !la_attempt_is_allowed()))
		return false;
	if (ls->watch.ops && !ls->watch.ops->may_run_ahead(ls))
		return false;
	/* INDEX_ONLY */
	return ls->kind != LA_KIND_INDEX_ONLY_SCAN || q->method->rows_on_page(ls) > 0;
}

/* ---- Beginning and ending ------------------------------------------------ */

static uint64
slots_of_queue(LaScan *ls)
{
	return pg_nextpower2_64(ROWS_PER_VISIT * ls->policy.config.max_distance);
}

/* Bytes taken from the budget as long as the queue exists. */
static Size
own_bytes(LaScan *ls)
{
	return offsetof(RowQueue, rows) + slots_of_queue(ls) *
		(sizeof(Row) +
		 ls->scan->numberOfOrderBys * (sizeof(Datum) + sizeof(bool))) +
		la_window_size(&ls->scan->heapRelation, 1, &ls->policy);
}

static bool
rowqueue_may_begin(LaScan *ls, ScanDirection dir)
{
	/* FORWARD */
	if (!ScanDirectionIsForward(dir))
		return false;
	if (ls->ahead.state == NULL && !la_budget_has(&ls->budget, own_bytes(ls)))
		return false;
	/* LOCKS */
	if (IsolationIsSerializable() && ls->real->rd_indam->ampredlocks)
		return false;
	/* PAGES */
	if (la_early_refuses_pages(ls))
	{
		la_scan_disable_lookahead(ls);
		return false;
	}
	/* INDEX_ONLY */
	return ls->kind != LA_KIND_INDEX_ONLY_SCAN ||
		(ls->scan->numberOfOrderBys == 0 &&
		 la_method_of(ls->real->rd_rel->relam)->rows_on_page != NULL);
}

static RowQueue *
create(LaScan *ls)
{
	MemoryContext old = MemoryContextSwitchTo(ls->context);
	uint64		nslots = slots_of_queue(ls);
	RowQueue   *q = palloc(offsetof(RowQueue, rows) + nslots * sizeof(Row));
	LaProducer	producer = {q, foresee_visit, foresee_restart};

	memset(q, 0, offsetof(RowQueue, rows));
	q->ls = ls;
	q->method = la_method_of(ls->real->rd_rel->relam);
	q->killed.kill = q->method->kill;
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
								 &ls->policy, &ls->cache_policy, &ls->counters,
								 &ls->budget);
	q->bytes = own_bytes(ls);
	la_budget_take(&ls->budget, q->bytes);
	MemoryContextSwitchTo(old);
	return q;
}

/* Free all memory, in the same case as release() of leaf.c. */
static void
release(LaScan *ls)
{
	RowQueue   *q = ls->ahead.state;

	Assert(ls->owner == NULL);
	la_budget_return(&ls->budget, q->bytes);
	if (q->tuples)
		MemoryContextDelete(q->tuples);
	if (q->norderbys > 0)
	{
		pfree(q->distances);
		pfree(q->nulls);
	}
	la_killed_free(&q->killed);
	la_window_free(q->window);
	pfree(q);
	ls->ahead.state = NULL;
}

/* BEGIN */
static bool
rowqueue_begin(LaScan *ls, ScanDirection dir)
{
	RowQueue   *q = ls->ahead.state;

	if (q == NULL)
		q = ls->ahead.state = create(ls);
	q->head = q->tail = 0;
	q->read_to_end = false;
	q->error = NULL;
	q->current.entry = (LaIndexEntry)
	{
		.tid = ls->scan->xs_heaptid,.page = InvalidBlockNumber
	};
	q->current.returned.itup = NULL;
	q->current.returned.hitup = NULL;
	q->heap_block = la_scan_heap_block(ls);
	if (ls->last_dir == NoMovementScanDirection)
	{
		/* no row has set them yet */
		ls->scan->xs_recheck = false;
		ls->scan->xs_recheckorderby = false;
	}
	else
	{
		if (q->method->locate)
			q->method->locate(ls, &q->killed, &q->current.entry);
		if (q->method->take_killed)
			q->method->take_killed(ls, &q->killed);
	}
	save_returned(q, &q->left, q->nslots);
	return true;
}

/* End with an empty queue, or with one whose rows are not needed. */
static void
empty_queue(RowQueue *q)
{
	la_window_clear(q->window);
	for (; q->head < q->tail; q->head++)
		free_tuples(&row_of(q, q->head)->returned);
	la_killed_apply(q->ls, &q->killed);
	la_killed_unpin(&q->killed);
	if (q->error != NULL)
		FreeErrorData(q->error);
	q->error = NULL;
	q->ls->owner = NULL;
}

/* The scan starts over or ends: the executor no longer needs the tuple that was returned last. */
static void
rowqueue_drop(LaScan *ls)
{
	RowQueue   *q = ls->ahead.state;

	if (ls->owner == &la_rowqueue_ops)
	{
		/* what is in the descriptor is the access method's again */
		restore_returned(q, &q->left, q->nslots);
		empty_queue(q);
	}
	if (q->tuples)
		MemoryContextReset(q->tuples);
}

/* ---- The window's producer ----------------------------------------------- */

/* The next visit to foresee: a row whose heap block differs from that of the one before. */
static bool
foresee_visit(void *arg, LaForeseen *visit)
{
	RowQueue   *q = (RowQueue *) arg;
	int64		wanted = la_scan_rows_wanted(q->ls, ForwardScanDirection);

	/* LIMIT; the row at the head is the one about to be returned */
	while ((int64) (q->foreseen - q->head) <= wanted)
	{
		Row		   *row;
		BlockNumber block;

		if (q->foreseen == q->tail && (!may_read_ahead(q) || !read_row(q, false, true)))
			return false;
		row = row_of(q, q->foreseen);
		q->foreseen++;
		block = ItemPointerGetBlockNumberNoCheck(&row->returned.tid);
		if (block == q->foreseen_block ||
			!la_heapvisit_is_known_needed(q->ls, &row->returned.tid, &row->heap))
			continue;
		q->foreseen_block = block;
		visit->block = block;
		visit->offset = ItemPointerGetOffsetNumberNoCheck(&row->returned.tid);
		return true;
	}
	return false;
}

static void
foresee_restart(void *arg)
{
	RowQueue   *q = (RowQueue *) arg;

	q->foreseen = q->head + 1;
	q->foreseen_block = q->heap_block;
}

/* ---- The consumer -------------------------------------------------------- */

/*
 * Return the row at the head, after its heap block has been made the current one.  Meanwhile the
 * row keeps its slot, and the descriptor is written last, since looking ahead uses both.
 */
static bool
return_row(RowQueue *q)
{
	LaScan	   *ls = q->ls;
	Row		   *row = row_of(q, q->head);
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(&row->returned.tid);

	if (row->entry.page != q->current.entry.page)
		la_killed_apply(ls, &q->killed);

	if (block != q->heap_block &&
		la_heapvisit_is_known_needed(ls, &row->returned.tid, &row->heap))
	{
		q->heap_block = block;
		la_heapvisit_turn_to(ls, q->window, block);
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

/* END: the access method goes on alone, or has no more rows. */
static void
end_lookahead(RowQueue *q)
{
	LaScan	   *ls = q->ls;

	restore_returned(q, &q->left, q->nslots);
	free_tuples(&q->current.returned);
	if (!q->read_to_end && q->method->return_killed)
		q->method->return_killed(ls, &q->killed);
	empty_queue(q);
	ls->seen_buffer = la_scan_heap(ls)->xs_cbuf;
}

static bool
rowqueue_gettuple(LaScan *ls, ScanDirection dir)
{
	RowQueue   *q = ls->ahead.state;
	bool		dead = ls->scan->kill_prior_tuple;

	if (!ScanDirectionIsForward(dir))
		elog(ERROR, "index scan that looks ahead cannot turn");

	ls->scan->kill_prior_tuple = false;
	if (dead && (q->method->kill || q->head < q->tail || q->read_to_end))
	{
		/* KILLED */
		la_killed_add(ls, &q->killed, &q->current.entry);
		dead = false;
	}
	if (q->head < q->tail)
		return return_row(q);
	if (q->error != NULL)
		la_attempt_raise(q->error);

	if (q->read_to_end || (ls->policy.state == LA_ARMED && !read_row(q, dead, false)))
	{
		/* LAST_ROW */
		end_lookahead(q);
		ls->ended = true;
		if (ls->policy.length.scans == 0)
			release(ls);
		return false;
	}
	if (q->head < q->tail)
		return return_row(q);

	end_lookahead(q);
	ls->scan->kill_prior_tuple = dead;
	ls->ended = !la_scan_am_gettuple(ls, dir);
	ls->seen_reads = la_issue_blocks_read();
	return !ls->ended;
}

const LaScanOps la_rowqueue_ops = {
	.may_begin = rowqueue_may_begin,
	.begin = rowqueue_begin,
	.gettuple = rowqueue_gettuple,
	.drop = rowqueue_drop
};
