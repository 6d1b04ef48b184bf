/*
 * scan.c
 *	  Index and index-only scans that look ahead: who is eligible, and when the
 *	  shim gets between the node and the access method.
 *
 * After ExecutorStart a function of ours is put in front of the node's own
 * (attach/interpose_node.c).  At the node's first execution it takes itself out, creates the
 * node's scan descriptor if there is none yet, as the node would do in that call, and has shim.c
 * install itself in the descriptor, or deferred.c in its place.  A node that is never executed is
 * never attached.
 *
 *		first_execution --> attached: stock node + shim
 *			 \--> deferred: stock node + deferred.c --^
 *								a block was read, or attach_threshold entries were taken
 *
 * Eligible is a scan
 *	- of an index whose access method returns rows one by one (amgettuple), may be run ahead
 *	  (base/accessmethod.c), and is not in pg_lookahead.excluded_access_methods; one that is
 *	  not btree only if the scan cannot turn or return to a mark, is not parallel, and orders
 *	  by distances that are passed by value (rowqueue.c);
 *	- of a table whose access method is heap, under an MVCC snapshot;
 *	- not where old_snapshot_threshold (15, 16) could make an early read fail;
 *	- that can return more than one row: a look-up by all columns of a unique index visits
 *	  one heap block;
 *	- whose function is the server's own.
 *
 * Deferred are btree scans, unless the last scans of the index have begun with waits
 * (window/history.c).
 *
 * Rows to come.  Where nbtree owns the position, these are the rest of the leaf page, in currPos;
 * where leaf.c does, the rest of its batches.  An entry's identity is its leaf page and its place
 * there, which both have alike.  Nothing is read or taken over for it.  A heap block that is not
 * cached may be read ahead of its visit once it is in the nearer half of what the window has
 * foreseen: its read was started a while ago then.
 *
 * src/scan/scan.c
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/pg_am.h"
#include "executor/executor.h"
#include "utils/snapmgr.h"

#include "attach/attach.h"
#include "attach/descriptors.h"
#include "base/base.h"
#include "base/compat.h"
#include "scan/scan.h"
#include "scan/scan_int.h"
#include "window/window.h"

#define SINGLE_READS 2			/* see note_single_read() */

/* Is a scan of an access method that rowqueue.c runs ahead eligible? */
static bool
eligible_other(PlanState *ps, Relation heap, Relation index)
{
	const IndexAmRoutine *am = index->rd_indam;

	if (am->ammarkpos != NULL || ps->plan->parallel_aware ||
		(ps->state->es_top_eflags & EXEC_FLAG_BACKWARD) != 0)
		return false;
	if (IsA(ps, IndexScanState))
	{
		IndexScanState *node = (IndexScanState *) ps;

		for (int i = 0; i < node->iss_NumOrderByKeys; i++)
		{
			if (!node->iss_OrderByTypByVals[i])
				return false;
		}
	}
	if (!la_am_may_run_ahead(index->rd_rel->relam))
	{
		la_stats_refuse(ps->state, IsA(ps, IndexScanState) ?
						LA_KIND_INDEX_SCAN : LA_KIND_INDEX_ONLY_SCAN,
						RelationGetRelid(heap), RelationGetRelid(index),
						"the index's access method is not known to allow it");
		return false;
	}
	return true;
}

static bool
eligible(PlanState *ps, Relation heap, Relation index)
{
	if (!la_enable ||
		index == NULL ||
		index->rd_indam->amgettuple == NULL ||
		!la_gate_is_heap(heap) ||
		!IsMVCCSnapshot(ps->state->es_snapshot) ||
		la_early_reads_may_fail() ||
		la_am_is_excluded(index->rd_rel->relam))
		return false;
	return index->rd_rel->relam == BTREE_AM_OID || eligible_other(ps, heap, index);
}

/* ---- the node, before the shim is installed ----------------------------------- */

static LaNodeKind *
kind_of(const PlanState *ps)
{
	static LaNodeKind index_scans;
	static LaNodeKind index_only_scans;

	return IsA(ps, IndexScanState) ? &index_scans : &index_only_scans;
}

static Relation
index_of(PlanState *ps)
{
	return IsA(ps, IndexScanState) ? ((IndexScanState *) ps)->iss_RelationDesc :
		((IndexOnlyScanState *) ps)->ioss_RelationDesc;
}

static IndexScanDesc
descriptor_of(PlanState *ps)
{
	return IsA(ps, IndexScanState) ? ((IndexScanState *) ps)->iss_ScanDesc :
		((IndexOnlyScanState *) ps)->ioss_ScanDesc;
}

/* The direction in which the plan reads the index. */
static ScanDirection
order_of(PlanState *ps)
{
	ScanDirection order = IsA(ps, IndexScanState) ? ((IndexScan *) ps->plan)->indexorderdir :
		((IndexOnlyScan *) ps->plan)->indexorderdir;

	/* before 16, indexes without an order have NoMovementScanDirection */
	return ScanDirectionIsBackward(order) ? BackwardScanDirection : ForwardScanDirection;
}

/* Create the descriptor as ExecIndexScan() would in the same call. */
static void
begin_index_scan(IndexScanState *node)
{
	node->iss_ScanDesc = la_index_beginscan(&node->ss, node->iss_RelationDesc,
											node->ss.ps.state->es_snapshot,
											la_iss_instrument(node),
											node->iss_NumScanKeys,
											node->iss_NumOrderByKeys);
	if (node->iss_NumRuntimeKeys == 0 || node->iss_RuntimeKeysReady)
		index_rescan(node->iss_ScanDesc,
					 node->iss_ScanKeys, node->iss_NumScanKeys,
					 node->iss_OrderByKeys, node->iss_NumOrderByKeys);
}

/* The same for ExecIndexOnlyScan(). */
static void
begin_index_only_scan(IndexOnlyScanState *node)
{
	node->ioss_ScanDesc = la_index_beginscan(&node->ss, node->ioss_RelationDesc,
											 node->ss.ps.state->es_snapshot,
											 la_ioss_instrument(node),
											 node->ioss_NumScanKeys,
											 node->ioss_NumOrderByKeys);
	node->ioss_ScanDesc->xs_want_itup = true;
	node->ioss_VMBuffer = InvalidBuffer;
	if (node->ioss_NumRuntimeKeys == 0 || node->ioss_RuntimeKeysReady)
		index_rescan(node->ioss_ScanDesc,
					 node->ioss_ScanKeys, node->ioss_NumScanKeys,
					 node->ioss_OrderByKeys, node->ioss_NumOrderByKeys);
}

static void
begin_scan(PlanState *ps)
{
	if (descriptor_of(ps) != NULL)
		return;
	if (IsA(ps, IndexOnlyScanState))
		begin_index_only_scan((IndexOnlyScanState *) ps);
	else
		begin_index_scan((IndexScanState *) ps);
}

/* Install the shim, if the scan is eligible, has none and, after a row, may return another one. */
static void
attach(PlanState *ps, bool after_row)
{
	bool		index_only = IsA(ps, IndexOnlyScanState);
	LaDemandContext context;
	LaScanDemand demand;
	LaScan	   *ls;

	if ((descriptor_of(ps) != NULL && la_shim_of(descriptor_of(ps)) != NULL) ||
		!eligible(ps, ((ScanState *) ps)->ss_currentRelation, index_of(ps)))
		return;
	begin_scan(ps);
	(void) la_deferred_remove(descriptor_of(ps));

	la_demand_context(ps, &context);
	if (after_row && la_demand_rows_wanted(context.limit) == 0)
		return;
	demand.limit = context.limit;
	demand.read_to_end = la_demand_is_all(context.demand, ps->state);
	demand.rows = ps->plan->plan_rows;
	demand.identity = la_history_scan_of(RelationGetRelid(index_of(ps)),
										 (uint64) ps->state->es_plannedstmt->queryId,
										 ps->plan->plan_node_id);
	ls = la_shim_install(descriptor_of(ps),
						 index_only ? LA_KIND_INDEX_ONLY_SCAN : LA_KIND_INDEX_SCAN,
						 &demand, ps->state->es_query_cxt);
	ls->node = ps;
	ls->order = order_of(ps);
	if (!index_only && ls->ahead.ops == &la_leaf_ops)
		ls->follower = la_follow_scan((ScanState *) ps);
	la_stats_open(&ls->counters, ps->state);
}

/*
 * Blocks were read before the scan was attached.  That is a miss only if a heap block was visited:
 * an index-only scan of all-visible pages has read others.
 */
static void
note_early_miss(LaScan *ls)
{
	if (BufferIsValid(la_scan_heap(ls)->xs_cbuf))
		la_scan_policy_on_pass(&ls->policy, &ls->cache_policy, true);
}

/* la_deferred_end */
static void
attach_deferred(PlanState *ps, bool read)
{
	LaScan	   *ls;

	if (la_enable_index_scan)
		attach(ps, false);
	ls = la_shim_of(descriptor_of(ps));
	if (ls != NULL && read)
		note_early_miss(ls);
	else if (ls != NULL && !IsA(ps, IndexOnlyScanState))
		la_scan_policy_begin_late(&ls->policy, &ls->cache_policy, la_attach_threshold);
}

/* Is the scan to look ahead from its first row on (BEGIN in io_policy.c)? */
static bool
begins_cold(const PlanState *ps, Relation index)
{
	return ps->plan->plan_rows > 1.0 && !la_deferred_was_quiet(index) &&
		la_history_begins_cold(RelationGetRelid(index));
}

/* Before its first row: attach it, or defer that. */
static void
attach_or_defer(PlanState *ps)
{
	Relation	index = index_of(ps);

	if (index == NULL || index->rd_rel->relam != BTREE_AM_OID || la_force ||
		la_attach_threshold == 0 || begins_cold(ps, index))
		attach(ps, false);
	else if (la_enable && la_gate_is_heap(((ScanState *) ps)->ss_currentRelation))
	{
		begin_scan(ps);
		/* unless it has been attached or deferred before */
		if (descriptor_of(ps)->indexRelation == index)
			la_deferred_install(descriptor_of(ps), ps, attach_deferred);
	}
}

/* ---- functions that stand in front of the node's own until it is attached ------ */

/* The reads of a row, and their time. */
typedef struct FirstRow
{
	int64		reads;
	double		us;
} FirstRow;

/* Execute the node for its first row: behaviour FIRST ROW in io_policy.c. */
static TupleTableSlot *
execute_stock(PlanState *ps, FirstRow *row)
{
	int64		reads = la_issue_blocks_read();
	double		start = la_issue_clock_us();
	TupleTableSlot *slot = kind_of(ps)->stock(ps);

	row->reads = la_issue_blocks_read() - reads;
	row->us = row->reads > 0 ? la_issue_clock_us() - start : 0.0;
	return slot;
}

/*
 * The reads of a first row are single ones: they were made one after the other.  More of them are
 * those of an index that nobody has read for long, and the first of these waits for the file, too.
 */
static void
note_single_read(const LaScan *ls, const FirstRow *first)
{
	Relation	heap = ls->scan->heapRelation;

	if (first->reads <= SINGLE_READS && !RelationUsesLocalBuffers(heap))
		la_history_note_single_read(heap->rd_rel->reltablespace,
									first->us / (double) first->reads);
}

/* Start the reads of the leaf pages to come, if their rows will be wanted: FIRST in leafahead.c. */
static void
begin_leaves(PlanState *ps, LaScan *ls, int64 reads)
{
	ScanDirection dir = ps->state->es_direction * order_of(ps);

	if (ls->ahead.ops == &la_leaf_ops &&
		(ls->policy.config.read_to_end || ls->demand.limit != NULL))
		la_leafahead_begin(&ls->leaf, dir, la_scan_rows_wanted(ls, dir), reads);
}

/* The scan's first row had reads: attach it, if it is deferred, and tell its policy of them. */
static void
note_first_row(PlanState *ps, const FirstRow *first, bool found)
{
	IndexScanDesc scan = descriptor_of(ps);
	bool		deferred;
	LaScan	   *ls;

	if (scan == NULL)
		return;
	deferred = found && la_deferred_remove(scan);
	if (deferred && la_enable_index_scan)
		attach(ps, true);
	ls = la_shim_of(scan);
	if (ls == NULL)
		return;
	if (la_io_policy_on_first_row(&ls->policy, first->reads, first->us))
	{
		note_single_read(ls, first);
		if (found)
			begin_leaves(ps, ls, first->reads);
	}
	/* only now: whether reads are waits decides what a miss means */
	if (deferred)
		note_early_miss(ls);
}

static TupleTableSlot *
first_execution(PlanState *ps)
{
	FirstRow	first;
	TupleTableSlot *slot;

	la_interpose_replace(ps, first_execution, kind_of(ps)->stock);
	attach_or_defer(ps);
	slot = execute_stock(ps, &first);
	if (first.reads > 0)
		note_first_row(ps, &first, !TupIsNull(slot));
	return slot;
}

static bool
attach_scan(PlanState *ps)
{
	if (!la_enable_index_scan || (!la_force && la_node_has_one_row(ps)) ||
		!la_interpose_is_possible(ps, kind_of(ps)))
		return false;
	la_interpose_replace(ps, kind_of(ps)->stock, first_execution);
	return true;
}

/* Is the node's function the server's or ours, and not another extension's? */
static bool
is_stock_or_ours(PlanState *ps)
{
	ExecProcNodeMtd function = la_interpose_executing(ps);

	return function == first_execution || la_interpose_is_possible(ps, kind_of(ps));
}

/* Have a scan take its TIDs from another room.  It has been executed; attach it if it is not. */
static bool
take_tids(PlanState *ps, const LaTidSource *source)
{
	LaScan	   *ls;

	if (!IsA(ps, IndexScanState) || descriptor_of(ps) == NULL)
		return false;
	ls = la_shim_of(descriptor_of(ps));
	if (ls == NULL)
	{
		if (!is_stock_or_ours(ps))
			return false;
		attach(ps, false);
		ls = la_shim_of(descriptor_of(ps));
		if (ls == NULL)
			return false;
		if (!la_enable_index_scan)
			la_scan_disable_lookahead(ls);
	}
	return la_tidsource_set(ls, source);
}

static const LaCounters *
explain_source(PlanState *ps)
{
	LaScan	   *ls;

	if (!(IsA(ps, IndexScanState) || IsA(ps, IndexOnlyScanState)) ||
		descriptor_of(ps) == NULL)
		return NULL;
	ls = la_shim_of(descriptor_of(ps));
	return ls == NULL ? NULL : &ls->counters;
}

/* ---- rows to come ------------------------------------------------------------------- */

/* As long as the access method has the position. */
static bool
peek_current_page(BTScanOpaque so, int by, LaComingRow *row)
{
	BTScanPos	pos = &so->currPos;
	int			item = pos->itemIndex + by;

	if (!BTScanPosIsValid(*pos) || item < pos->firstItem || item > pos->lastItem)
		return false;
	la_leafbatch_coming(pos, so->currTuples, item, row);
	row->may_read = by == 0;
	return true;
}

/* LaIndexScans.peek: btree scans only, attached or not.  See "Rows to come". */
static bool
peek(PlanState *ps, int n, LaComingRow *row)
{
	IndexScanDesc scan = descriptor_of(ps);
	ScanDirection dir = ps->state->es_direction * order_of(ps);
	LaScan	   *ls;
	Buffer		current;

	if (scan == NULL || scan->opaque == NULL || index_of(ps)->rd_rel->relam != BTREE_AM_OID)
		return false;
	ls = la_shim_of(scan);
	if (ls != NULL && n > 0 && n > la_scan_rows_wanted(ls, dir))
		return false;
	if (ls == NULL || ls->owner == NULL ?
		!peek_current_page(la_btree_scan(scan), ScanDirectionIsForward(dir) ? n : -n, row) :
		ls->owner != &la_leaf_ops || !la_leaf_peek(ls, n, row))
		return false;
	current = la_heap_fetch(scan)->xs_cbuf;
	if (BufferIsValid(current) &&
		BufferGetBlockNumber(current) == ItemPointerGetBlockNumberNoCheck(&row->tid))
		row->buffer = current;
	return true;
}

void
la_scan_init(void)
{
	static const LaIndexScans functions = {take_tids, peek};

	la_attach_register(T_IndexScanState, attach_scan);
	la_attach_register(T_IndexOnlyScanState, attach_scan);
	la_attach_register_index_scans(&functions);
	la_explain_register(explain_source);
}
