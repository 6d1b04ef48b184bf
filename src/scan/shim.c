/*
 * shim.c
 *	  Between an index scan and its access method.
 *
 *		executor:	index_getnext_tid(scan)
 *						| scan->indexRelation->rd_indam->amgettuple
 *						v
 *		shadow Relation (a copy, this scan's own) ---> shim routine (here)
 *						|
 *			 +----------+----------------+
 *			 | owner NULL: AM_OWNS		 | owner set: WAY_OWNS
 *			 v							 v
 *		the access method's amgettuple	leaf.c, rowqueue.c or tidsource.c
 *
 * The executor reaches the access method only through scan->indexRelation->rd_indam.
 * indexRelation is pointed at a copy of the Relation whose rd_indam is ours, and back at the real
 * one around every call of the access method.  Rechecks, HOT chains, visibility checks, projection
 * and instrumentation remain those of the executor and heapam.
 *
 * Behaviours:
 *	AM_OWNS		The access method owns the scan's position, its mark and its killed items.  A row
 *				of the same heap block as the previous one costs two comparisons and the
 *				indirection, which matters to index-only scans.
 *	WAY_OWNS	A way of looking ahead (LaScanOps) owns the position and the mark.  When it ends,
 *				it puts both back into the access method's state, so there is one position at any
 *				time.
 *	WRITE_LAST	Results are written to the descriptor after everything else.  Running the access
 *				method ahead overwrites xs_heaptid and xs_itup; an older value there would be a
 *				wrong row, and then a live index entry marked dead.
 *	AFTER_ERROR	An error inside the access method leaves the real Relation in the descriptor.  No
 *				scan goes on after an error; if one is ended, the access method's amendscan is
 *				called directly.
 *	LIFETIME	The LaScan lives in the query's memory context.  amendscan drops pins and restores
 *				indexRelation.  After an error the resource owner releases the pins.  The
 *				callback on the context publishes the counters in either case.
 *	STALE_COPY	DDL on the index while a cursor is open can rebuild the real relcache entry.  Of
 *				the copy only rd_indam and pgstat_info are used, by indexam.c; the access method
 *				is called through the real entry.
 *
 * src/scan/shim.c
 */
#include "postgres.h"

#include "catalog/pg_am.h"
#include "storage/fd.h"

#include "attach/attach.h"
#include "attach/descriptors.h"
#include "base/base.h"
#include "base/compat_btree.h"
#include "scan/scan_int.h"
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

/* Out of line, since its callers are the fast path. */
static pg_noinline bool
am_gettuple(LaScan *ls, ScanDirection dir)
{
	return la_scan_am_gettuple(ls, dir);
}

/* May nbtree leave its page, or begin to look ahead from its first one, in the next call? */
static bool
may_step(LaScan *ls, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(ls);
	BTScanPos	pos = &so->currPos;

	if (!la_leaf_policy_is_enabled(&ls->leaf.policy))
		return false;
	if (!BTScanPosIsValid(*pos))
		return la_leaf_policy_is_armed(&ls->leaf.policy);
	if (ScanDirectionIsForward(dir) ? pos->itemIndex < pos->lastItem :
		pos->itemIndex > pos->firstItem)
		return false;
	return la_leafahead_has_more(so, dir) || la_bt_descent_is_next(so) || so->numArrayKeys > 0;
}

/* The next row of nbtree, which may be on another page. */
static pg_noinline bool
nbtree_gettuple(LaScan *ls, ScanDirection dir)
{
	return may_step(ls, dir) ? la_leaf_step(ls, dir, la_scan_rows_wanted(ls, dir)) :
		la_scan_am_gettuple(ls, dir);
}

/* The next row of a passive btree scan. */
static inline bool
next_btree_row(LaScan *ls, ScanDirection dir)
{
	if (!la_btree_step(ls->scan, dir))
		return nbtree_gettuple(ls, dir);
	ls->last_dir = dir;
	return true;
}

/* Begin to look ahead and find the next row.  Returns false if that is not possible now. */
static bool
begin(LaScan *ls, ScanDirection dir, bool *found)
{
	const LaScanOps *ops = ls->ahead.ops;

	if (!ops->may_begin(ls, dir))
		return false;
	*found = ops->begin(ls, dir);
	ls->ended = !*found;
	if (*found)
	{
		ls->owner = ops;
		ls->counters.c[LA_SCANS_ACTIVATED]++;
		*found = ops->gettuple(ls, dir);
	}
	return true;
}

/* AM_OWNS: the scan has turned to another heap block, or the policy has left state PASS. */
static pg_noinline bool
attend(LaScan *ls, ScanDirection dir)
{
	IndexScanDesc scan = ls->scan;
	Buffer		buffer = la_scan_heap(ls)->xs_cbuf;
	bool		found;

	if (buffer != ls->seen_buffer)
	{
		ls->seen_buffer = buffer;
		if (ls->policy.state == LA_PASS && BufferIsValid(buffer))
			la_heapvisit_pass(ls, la_issue_blocks_read() != ls->seen_reads);
	}
	if (ls->policy.state == LA_ARMED && begin(ls, dir, &found))
		return found;

	if (ls->moved_page != InvalidBlockNumber)
		la_leafbatch_turn_array_keys(ls, dir);
	found = ls->ahead.ops == &la_leaf_ops ? next_btree_row(ls, dir) : am_gettuple(ls, dir);
	ls->ended = !found;
	if (ls->policy.state == LA_OBSERVE && found)
	{
		if (la_heapvisit_is_needed(ls, &scan->xs_heaptid))
			la_heapvisit_observe(ls, ItemPointerGetBlockNumberNoCheck(&scan->xs_heaptid));
		else
			/* otherwise an all-visible table would be observed until its end */
			la_scan_policy_on_visit(&ls->policy, &ls->cache_policy, LA_VISIT_HIT, 0.0);
	}
	ls->seen_reads = la_issue_blocks_read();
	return found;
}

/* AM_OWNS, in state PASS: two comparisons, and the next row. */
static inline bool
pass_row(LaScan *ls, ScanDirection dir, bool btree)
{
	Buffer		buffer;
	bool		found;

	if (ls->policy.state != LA_PASS || ls->moved_page != InvalidBlockNumber)
		return attend(ls, dir);
	buffer = la_scan_heap(ls)->xs_cbuf;
	if (buffer != ls->seen_buffer)
	{
		if (la_issue_blocks_read() != ls->seen_reads ||
			!la_scan_policy_quiet_visit(&ls->policy, &ls->cache_policy))
			return attend(ls, dir);
		ls->seen_buffer = buffer;
	}

	found = btree ? next_btree_row(ls, dir) : am_gettuple(ls, dir);
	ls->ended = !found;
	return found;
}

static bool
shim_gettuple_btree(IndexScanDesc scan, ScanDirection dir)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	bool		found = ls->owner ? ls->owner->gettuple(ls, dir) : pass_row(ls, dir, true);

	if (ls->follower != NULL && found && !la_follow(ls->follower))
		ls->follower = NULL;
	return found;
}

static bool
shim_gettuple_other(IndexScanDesc scan, ScanDirection dir)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	return ls->owner ? ls->owner->gettuple(ls, dir) : pass_row(ls, dir, false);
}

/*
 * What the scan has learnt of reads: of heap blocks, or else that leaf pages are waits.  of_first:
 * what its first execution has, if that ends now.
 */
static LaIoVerdict
verdict_on_reads(const LaScan *ls, LaIoVerdict of_first)
{
	if (ls->policy.verdict != LA_READS_UNKNOWN)
		return ls->policy.verdict;
	return ls->leaf.policy.io.verdict == LA_READS_SLOW ? LA_READS_SLOW : of_first;
}

/* The first scan of the execution ends: its history is for the first scans of others. */
static void
note_first_scan(LaScan *ls)
{
	const LaIoPolicy *policy = &ls->policy;

	if (policy->config.expected > 1)
		la_history_note_begin(ls->indexrelid, la_io_policy_began_cold(policy));
	if (!ls->demand.read_to_end)
		la_history_note_demand(ls->demand.identity, la_scan_length_visits(&policy->length),
							   !ls->ended);
}

/* The scan starts over or ends: drop the position, and have the policies learn its length. */
static void
finish_scan(LaScan *ls)
{
	bool		started = ls->last_dir != NoMovementScanDirection;
	LaIoVerdict of_first = LA_READS_UNKNOWN;

	if (ls->follower != NULL)
		ls->follower->clear(ls->follower);
	if (ls->source.state != NULL)
		ls->source.ops->drop(ls);
	if (ls->ahead.state != NULL)
		ls->ahead.ops->drop(ls);
	Assert(ls->owner == NULL);
	if (started && ls->policy.length.scans == 0)
	{
		of_first = la_io_policy_verdict(&ls->policy);
		note_first_scan(ls);
	}
	if (started)
	{
		la_scan_policy_rescan(&ls->policy, &ls->cache_policy, !ls->ended);
		la_leafahead_rescan(&ls->leaf, !ls->ended);
		la_arraykeys_forget(ls);
	}
	la_history_note(ls->indexrelid, verdict_on_reads(ls, of_first), ls->cache_policy.verdict);
	ls->ended = false;
	ls->moved_page = InvalidBlockNumber;
	ls->last_dir = NoMovementScanDirection;
	ls->nrows = 0;
}

static void
shim_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	finish_scan(ls);
	if (ls->source.state != NULL && ls->source.ops->rescan(ls, keys, nkeys))
		return;
	la_shadow_call(ls, ls->real->rd_indam->amrescan(scan, keys, nkeys, orderbys, norderbys));
	la_early_rescan(ls);
	ls->seen_buffer = la_scan_heap(ls)->xs_cbuf;
	ls->seen_reads = la_issue_blocks_read();
}

static void
shim_parallelrescan(IndexScanDesc scan)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	la_shadow_call(ls, ls->real->rd_indam->amparallelrescan(scan));
}

static void
shim_markpos(IndexScanDesc scan)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	if (ls->owner && ls->owner->mark)
		ls->owner->mark(ls);
	else
		la_shadow_call(ls, ls->real->rd_indam->ammarkpos(scan));
}

static void
shim_restrpos(IndexScanDesc scan)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	ls->ended = false;
	if (ls->owner && ls->owner->restore && ls->owner->restore(ls))
		return;
	Assert(ls->owner == NULL);
	la_shadow_call(ls, ls->real->rd_indam->amrestrpos(scan));
}

/* index_endscan goes on with scan->indexRelation, so it must be the real one. */
static void
shim_endscan(IndexScanDesc scan)
{
	LaScan	   *ls = (LaScan *) scan->indexRelation;

	finish_scan(ls);
	if (ls->follower != NULL)
		ls->follower->end(ls->follower);
	ls->follower = NULL;
	la_leafahead_free(&ls->leaf);
	la_issue_release_map(&ls->map, &ls->budget);
	scan->indexRelation = ls->real;
	ls->real->rd_indam->amendscan(scan);
}

/* Callback of the scan's memory context. */
static void
end_scan(void *arg)
{
	LaScan	   *ls = (LaScan *) arg;

	la_budget_end(&ls->budget);
	la_stats_publish(ls->kind, ls->heaprelid, ls->indexrelid, &ls->counters);
}

/* The shim's routine for an access method. */
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

/* How many visits does the planner expect? */
static int
expected_visits(const LaScanDemand *demand)
{
	int64		wanted = la_demand_rows_wanted(demand->limit);

	return (int) Max(Min(Min(demand->rows, PG_INT16_MAX), wanted + 1.0), 1.0);
}

static void
init_policies(LaScan *ls)
{
	LaIoPolicyConfig config = la_config_reads(ls->scan->heapRelation, ls->demand.read_to_end,
											  ls->indexrelid);
	LaCachePolicyConfig cache_config = la_config_cache(ls->indexrelid);

	config.begins_cold = la_history_begins_cold(ls->indexrelid);
	config.expected = expected_visits(&ls->demand);
	if (!config.read_to_end)
	{
		LaHistoryDemand demand = la_history_demand(ls->demand.identity);

		config.read_to_end = demand.to_end;
		config.early_visits = demand.to_end ? 0 : demand.early_visits;
	}
	la_io_policy_init(&ls->policy, &config);
	la_cache_policy_init(&ls->cache_policy, &cache_config);

	/* what is expected is in visits of heap blocks */
	config.begins_cold = false;
	config.expected = 0;
	config.early_visits = 0;
	if (ls->ahead.ops != &la_leaf_ops)
		return;
	if (ls->real->rd_rel->reltablespace != ls->scan->heapRelation->rd_rel->reltablespace)
		config = la_config_reads(ls->real, config.read_to_end, ls->indexrelid);
	/* asynchronous reads would pin pages */
	if (la_direct_io())
		config.advice_works = false;
	la_leaf_policy_init(&ls->leaf.policy, &config);
}

LaScan *
la_shim_install(IndexScanDesc scan, LaKind kind, const LaScanDemand *demand,
				MemoryContext context)
{
	Relation	real = scan->indexRelation;
	LaScan	   *ls = MemoryContextAlloc(context, sizeof(LaScan));

	la_shadow_init(&ls->shadow, real, routine_for(real, context));
	memset((char *) ls + sizeof(RelationData), 0, sizeof(LaScan) - sizeof(RelationData));
	ls->real = real;
	ls->scan = scan;
	ls->context = context;
	ls->kind = kind;
	ls->heaprelid = RelationGetRelid(scan->heapRelation);
	ls->indexrelid = RelationGetRelid(real);
	ls->demand = *demand;
	ls->order = ForwardScanDirection;
	ls->ahead.ops = real->rd_rel->relam == BTREE_AM_OID ? &la_leaf_ops : &la_rowqueue_ops;
	ls->moved_page = InvalidBlockNumber;
	ls->observed_block = InvalidBlockNumber;
	ls->last_dir = NoMovementScanDirection;
	ls->max_leaf_pages = la_max_leaf_pages;
	ls->budget.limit = (Size) la_scan_memory * 1024;
	la_leafahead_init(&ls->leaf, real, scan, context, &ls->budget, &ls->counters);
	ls->leaf.of_heap = &ls->policy;
	la_saving_init(&ls->leaf.saving, real->rd_rel->reltablespace);
	init_policies(ls);
	ls->seen_buffer = la_scan_heap(ls)->xs_cbuf;
	ls->seen_reads = la_issue_blocks_read();
	ls->counters.c[LA_SCANS_ATTACHED] = 1;

	ls->callback.func = end_scan;
	ls->callback.arg = ls;
	MemoryContextRegisterResetCallback(context, &ls->callback);

	if (la_am_of(real->rd_rel->relam) == LA_AM_HNSW)
		la_graph_watch(ls);
	scan->indexRelation = &ls->shadow;
	return ls;
}
