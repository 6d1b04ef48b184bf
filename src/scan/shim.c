/*
 * shim.c
 *	  Between an index scan and its access method.
 *
 *		executor:	index_getnext_tid(scan)
 *						| scan->indexRelation->rd_indam->amgettuple
 *						v
 *		shadow Relation (a copy, this scan's own) ---> shim routine (here)
 *						|
 *			 +----------+------------------+
 *			 | passive					   | active
 *			 v							   v
 *		real amgettuple				  leaf.c: batches of leaf pages that the
 *									  real amgettuple has read ahead
 *
 * The executor reaches the access method only through
 * scan->indexRelation->rd_indam.  We point indexRelation at a copy of the
 * Relation whose rd_indam is ours, and put the real one back around every call
 * of the real access method.  Rechecks, HOT chains, visibility checks,
 * projection and instrumentation are the executor's and heapam's as always.
 *
 * Behaviours:
 *	A. Passive, the real access method owns the scan's position, its mark and its
 *	   killed items; a row of the same heap block as the previous one costs two
 *	   comparisons and the indirection, which matters to index-only scans.
 *	B. Passive in state OBSERVE, the heap block of the row about to be returned
 *	   is read here and timed.  heapam then finds it in place (issue.c).
 *	C. Active, leaf.c owns the position and the mark.  It hands them back when
 *	   it ends, so nothing needs to know of both.
 *	D. Results are written to the descriptor last.  Running the access method
 *	   ahead overwrites xs_heaptid and xs_itup; an older value there would be a
 *	   wrong row, and then a live index entry marked dead.
 *
 * Lifetime: the LaScan lives in the query's memory context.  index_endscan
 * normally ends it (amendscan drops pins and restores indexRelation); after an
 * error, pins are the resource owner's to release, and the callback on the
 * context publishes the counters either way.
 *
 * A stale copy: DDL on the index while a cursor is open can rebuild the real
 * relcache entry.  Only rd_indam and pgstat_info of the copy are ever used, by
 * indexam.c; the real access method is called through the real entry, read
 * afresh each time.
 *
 * src/scan/shim.c
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "utils/memutils.h"

#include "attach/attach.h"
#include "base/accessmethod.h"
#include "base/compat.h"
#include "base/guc.h"
#include "catalog/pg_am.h"
#include "scan/leafbatch.h"
#include "scan/graph.h"
#include "scan/method.h"
#include "scan/shim.h"
#include "window/history.h"
#include "window/issue.h"
#include "window/window.h"

/* The shim's routine for btree: one for all scans. */
static IndexAmRoutine shim_routine;

static bool shim_gettuple_btree(IndexScanDesc scan, ScanDirection dir);
static bool shim_gettuple_other(IndexScanDesc scan, ScanDirection dir);

LaScan *
la_shim_of(IndexScanDesc scan)
{
	amgettuple_function gettuple = scan->indexRelation->rd_indam->amgettuple;

	if (gettuple != shim_gettuple_btree && gettuple != shim_gettuple_other)
		return NULL;
	return (LaScan *) scan->indexRelation;
}

bool
la_shim_real_gettuple(LaScan *ls, ScanDirection dir)
{
	bool		found;

	ls->scan->indexRelation = ls->real;
	found = ls->graph ? la_graph_gettuple(ls, dir) :
		ls->real->rd_indam->amgettuple(ls->scan, dir);
	ls->scan->indexRelation = &ls->shadow;
	ls->last_dir = dir;
	return found;
}

static bool
heap_needed(LaScan *ls, ItemPointer tid)
{
	if (ls->kind != LA_KIND_INDEX_ONLY_SCAN)
		return true;
	return !la_issue_all_visible(ls->scan->heapRelation,
								 ItemPointerGetBlockNumber(tid), &ls->vmbuf,
								 &ls->budget);
}

/*
 * Will the executor fetch the heap row of this entry?  In an index-only scan it
 * does so unless the page is all-visible.  The executor looks for itself; ours
 * only decides what to foresee.  *known remembers the answer, so that foreseeing
 * a row and returning it never disagree.
 */
bool
la_shim_heap_needed(LaScan *ls, ItemPointer tid, uint8 *known)
{
	if (*known == HEAP_UNKNOWN)
		*known = heap_needed(ls, tid) ? HEAP_NEEDED : HEAP_NOT_NEEDED;
	return *known == HEAP_NEEDED;
}

/*
 * Start the read of an index page, if it is not cached.
 */
bool
la_shim_issue_index_page(LaScan *ls, BlockNumber page)
{
	Buffer		recent;

	if (!la_issue_exists(ls->real, page, &ls->index_size) ||
		la_issue_block(ls->real, page, &recent) != LA_ISSUE_STARTED)
		return false;
	ls->counters.c[LA_LEAF_PAGES_ISSUED]++;
	return true;
}

/* How many rows the Limit above may still take after the current one. */
int64
la_shim_rows_wanted(LaScan *ls, ScanDirection dir)
{
	return ScanDirectionIsForward(dir) ? la_attach_rows_wanted(ls->limit) :
		PG_INT64_MAX;
}

static inline void
pass_visit(LaScan *ls, bool missed)
{
	la_policy_on_pass(&ls->policy, missed);
	if (la_policy_clock_due(&ls->policy))
		la_policy_on_clock(&ls->policy, la_issue_clock_us());
}

/*
 * Behaviour B: in state OBSERVE, make the block current now, and time that.
 */
static void
observe(LaScan *ls, BlockNumber block)
{
	Buffer	   *current = &la_heap_fetch(ls)->xs_cbuf;
	LaVisitResult result;
	double		us;

	if (BufferIsValid(*current) && BufferGetBlockNumber(*current) == block)
		return;
	result = la_window_read_observed(ls->scan->heapRelation, block,
									 ls->observed_block, current, &us);
	la_heap_turned_to(la_heap_fetch(ls), block);
	ls->observed_block = block;
	ls->seen_buffer = *current;
	la_policy_on_visit(&ls->policy, result, us);
}

/*
 * leaf.c or rowqueue.c returns a row of another block.  While the policy is not
 * armed, what is still in the window is not waited for; and what was read since
 * the last time is the previous block, if it was not cached.
 */
void
la_shim_turn_to(LaScan *ls, LaWindow *window, BlockNumber block)
{
	int64		reads = la_issue_blocks_read();

	if (ls->policy.state == LA_ARMED)
	{
		la_window_visit(window, 0, block, &la_heap_fetch(ls)->xs_cbuf);
		la_heap_turned_to(la_heap_fetch(ls), block);
		return;
	}
	la_window_clear(window);
	if (ls->policy.state == LA_PASS)
		pass_visit(ls, reads != ls->seen_reads);
	if (ls->policy.state == LA_OBSERVE)
		observe(ls, block);
	ls->seen_reads = la_issue_blocks_read();
}

/*
 * The next row, passive, of btree.  Where it is on the leaf page that nbtree stands on, we
 * take the step that _bt_next would take; so a scan that is observed is no
 * slower than one that is not.  Everything else is the access method's.
 */
static inline bool
next_btree_row(LaScan *ls, ScanDirection dir)
{
	IndexScanDesc scan = ls->scan;
	BTScanOpaque so = (BTScanOpaque) scan->opaque;
	BTScanPosItem *item;

	if (scan->kill_prior_tuple || !BTScanPosIsValid(so->currPos))
		return la_shim_real_gettuple(ls, dir);
	if (ScanDirectionIsForward(dir) &&
		so->currPos.itemIndex < so->currPos.lastItem)
		item = &so->currPos.items[++so->currPos.itemIndex];
	else if (ScanDirectionIsBackward(dir) &&
			 so->currPos.itemIndex > so->currPos.firstItem)
		item = &so->currPos.items[--so->currPos.itemIndex];
	else
		return la_shim_real_gettuple(ls, dir);

	ls->last_dir = dir;
	scan->xs_recheck = false;
	scan->xs_heaptid = item->heapTid;
	if (scan->xs_want_itup)
		scan->xs_itup = (IndexTuple) (so->currTuples + item->tupleOffset);
	return true;
}

static inline bool
next_row(LaScan *ls, ScanDirection dir)
{
	return ls->method ? la_shim_real_gettuple(ls, dir) :
		next_btree_row(ls, dir);
}

/* Look-ahead begins, if it may, and answers. */
static bool
begin(LaScan *ls, ScanDirection dir, bool *found)
{
	if (ls->method ? !la_rowqueue_may_begin(ls, dir) : !la_leaf_may_begin(ls, dir))
		return false;
	*found = ls->method ? la_rowqueue_begin(ls, dir) : la_leaf_begin(ls, dir);
	return true;
}

/*
 * Passive, with something to do: the scan turned to another heap block, or the
 * policy has left state PASS.
 */
static pg_noinline bool
attend(LaScan *ls, ScanDirection dir)
{
	IndexScanDesc scan = ls->scan;
	Buffer		buffer = la_heap_fetch(ls)->xs_cbuf;
	bool		found;

	if (buffer != ls->seen_buffer)
	{
		ls->seen_buffer = buffer;
		if (ls->policy.state == LA_PASS && BufferIsValid(buffer))
			pass_visit(ls, la_issue_blocks_read() != ls->seen_reads);
	}
	if (ls->policy.state == LA_ARMED && begin(ls, dir, &found))
		return found;

	if (ls->moved_page != InvalidBlockNumber)
		la_leafbatch_turn_array_keys(ls, dir);
	found = next_row(ls, dir);
	ls->ended = !found;
	if (ls->policy.state == LA_OBSERVE && found)
	{
		if (heap_needed(ls, &scan->xs_heaptid))
			observe(ls, ItemPointerGetBlockNumber(&scan->xs_heaptid));
		else
			/* or an all-visible table would be observed for ever */
			la_policy_on_visit(&ls->policy, LA_VISIT_HIT, 0.0);
	}
	ls->seen_reads = la_issue_blocks_read();
	return found;
}

/* Passive in state PASS: two comparisons, and the next row. */
static inline bool
pass_row(LaScan *ls, ScanDirection dir, bool btree)
{
	Buffer		buffer;
	bool		found;

	if (ls->policy.state != LA_PASS || ls->moved_page != InvalidBlockNumber)
		return attend(ls, dir);
	buffer = la_heap_fetch(ls)->xs_cbuf;
	if (buffer != ls->seen_buffer)
	{
		if (la_issue_blocks_read() != ls->seen_reads ||
			!la_policy_quiet_visit(&ls->policy))
			return attend(ls, dir);
		ls->seen_buffer = buffer;
	}

	/* leaf pages read here count for the next visit: no harm */
	found = btree ? next_btree_row(ls, dir) : la_shim_real_gettuple(ls, dir);
	ls->ended = !found;
	return found;
}

static bool
shim_gettuple_btree(IndexScanDesc scan, ScanDirection dir)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	if (ls->active)
		return la_leaf_gettuple(ls, dir);
	if (ls->fed)
		return la_tidsource_gettuple(ls, dir);
	return pass_row(ls, dir, true);
}

static bool
shim_gettuple_other(IndexScanDesc scan, ScanDirection dir)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	return ls->active ? la_rowqueue_gettuple(ls, dir) : pass_row(ls, dir, false);
}

/*
 * Before the scan starts over or ends: what leaf.c or rowqueue.c holds goes, and the policy
 * learns how long the scan was.
 */
static void
finish_scan(LaScan *ls)
{
	bool		started = ls->last_dir != NoMovementScanDirection;

	la_tidsource_settle(ls);
	if (ls->leaves != NULL)
		la_leaf_drop(ls);
	if (ls->queue != NULL)
		la_rowqueue_drop(ls);
	if (started)
		la_policy_rescan(&ls->policy, !ls->ended);
	la_history_note(ls->indexrelid, &ls->policy);
	ls->ended = false;
	ls->moved_page = InvalidBlockNumber;
	ls->last_dir = NoMovementScanDirection;
}

static void
shim_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
			int norderbys)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	finish_scan(ls);
	if (ls->feed.begin != NULL && la_tidsource_begin(ls, keys, nkeys))
		return;
	scan->indexRelation = ls->real;
	ls->real->rd_indam->amrescan(scan, keys, nkeys, orderbys, norderbys);
	scan->indexRelation = &ls->shadow;
	ls->seen_buffer = la_heap_fetch(ls)->xs_cbuf;
	ls->seen_reads = la_issue_blocks_read();
}

static void
shim_parallelrescan(IndexScanDesc scan)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	scan->indexRelation = ls->real;
	ls->real->rd_indam->amparallelrescan(scan);
	scan->indexRelation = &ls->shadow;
}

static void
shim_markpos(IndexScanDesc scan)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	if (ls->active)
	{
		la_leaf_mark(ls);
		return;
	}
	scan->indexRelation = ls->real;
	ls->real->rd_indam->ammarkpos(scan);
	scan->indexRelation = &ls->shadow;
}

static void
shim_restrpos(IndexScanDesc scan)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	ls->ended = false;
	if (ls->active && la_leaf_restore(ls))
		return;
	Assert(!ls->active);
	scan->indexRelation = ls->real;
	ls->real->rd_indam->amrestrpos(scan);
	scan->indexRelation = &ls->shadow;
}

/*
 * index_endscan goes on with scan->indexRelation, so it must be the real one.
 * The LaScan itself stays until its context goes.
 */
static void
shim_endscan(IndexScanDesc scan)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	finish_scan(ls);
	la_issue_release_map(&ls->vmbuf, &ls->budget);
	scan->indexRelation = ls->real;
	ls->real->rd_indam->amendscan(scan);
}

/* The scan's memory goes. */
static void
end_scan(void *arg)
{
	LaScan	   *ls = (LaScan *) arg;

	la_budget_end(&ls->budget);
	la_stats_publish(ls->kind, ls->heaprelid, ls->indexrelid, &ls->counters);
}

static void
read_settings(LaScan *ls)
{
	LaPolicyConfig config = la_window_config(ls->scan->heapRelation,
											 ls->read_to_end, ls->indexrelid);

	config.known_unhelpful = la_history_known_unhelpful(ls->indexrelid);
	la_policy_init(&ls->policy, &config);
	ls->max_leaf_batches = la_max_leaf_pages;
	ls->budget.limit = (Size) la_scan_memory * 1024;
}

/*
 * The scan is there to be fed, and is not to look ahead.
 */
void
la_shim_only_feed(LaScan *ls)
{
	LaPolicyConfig config = {.max_distance = 1,.memory_threshold = -1};

	la_policy_init(&ls->policy, &config);
}

/*
 * The shim's routine for an access method.
 */
static IndexAmRoutine *
routine_for(Relation real, MemoryContext context)
{
	bool		btree = real->rd_rel->relam == BTREE_AM_OID;
	IndexAmRoutine *routine = &shim_routine;

	if (btree && routine->type == T_IndexAmRoutine)
		return routine;
	if (!btree)
		routine = MemoryContextAlloc(context, sizeof(IndexAmRoutine));
	*routine = *real->rd_indam;
	routine->amgettuple = btree ? shim_gettuple_btree : shim_gettuple_other;
	routine->amrescan = shim_rescan;
	routine->amendscan = shim_endscan;
	if (btree)
	{
		routine->ammarkpos = shim_markpos;
		routine->amrestrpos = shim_restrpos;
		routine->amparallelrescan = shim_parallelrescan;
	}
	return routine;
}

LaScan *
la_shim_install(IndexScanDesc scan, LaKind kind, LimitState *limit,
				bool read_to_end, MemoryContext context)
{
	Relation	real = scan->indexRelation;
	LaScan	   *ls = MemoryContextAlloc(context, sizeof(LaScan));

	/* the copy must find the statistics entry that the real one uses */
	(void) pgstat_should_count_relation(real);

	ls->shadow = *real;
	ls->shadow.rd_indam = routine_for(real, context);
	memset((char *) ls + sizeof(RelationData), 0,
		   sizeof(LaScan) - sizeof(RelationData));
	ls->real = real;
	ls->scan = scan;
	ls->context = context;
	ls->kind = kind;
	ls->heaprelid = RelationGetRelid(scan->heapRelation);
	ls->indexrelid = RelationGetRelid(real);
	ls->limit = limit;
	ls->read_to_end = read_to_end;
	ls->method = real->rd_rel->relam == BTREE_AM_OID ? NULL :
		la_method_of(real->rd_rel->relam);
	ls->vmbuf = InvalidBuffer;
	ls->moved_page = InvalidBlockNumber;
	ls->index_size = InvalidBlockNumber;
	ls->observed_block = InvalidBlockNumber;
	ls->last_dir = NoMovementScanDirection;
	read_settings(ls);
	ls->seen_buffer = la_heap_fetch(ls)->xs_cbuf;
	ls->seen_reads = la_issue_blocks_read();
	ls->counters.c[LA_SCANS_ATTACHED] = 1;

	ls->callback.func = end_scan;
	ls->callback.arg = ls;
	MemoryContextRegisterResetCallback(context, &ls->callback);

	/* its pages are looked at closely later */
	if (la_am_of(real->rd_rel->relam) == LA_AM_HNSW)
		ls->graph = la_graph_create(ls);
	scan->indexRelation = &ls->shadow;
	return ls;
}
