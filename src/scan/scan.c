/*
 * scan.c
 *	  Index and index-only scans that look ahead: who is eligible, and when the
 *	  shim gets between the node and the access method.
 *
 * The node stays stock.  attach/ shows us each IndexScanState and
 * IndexOnlyScanState after ExecutorStart; we put a function of our own in place
 * of its ExecProcNodeReal.  At the node's first execution that function makes
 * sure that the node's scan descriptor exists (the node would create it at that
 * very moment; a parallel scan already has one), lets shim.c install itself in
 * the descriptor, restores the node's own function and calls it.  A node that is
 * never executed is never touched.
 *
 * Eligible is a scan
 *	- of an index whose access method returns rows one by one (amgettuple), may be
 *	  run ahead (base/accessmethod.c), and is not in
 *	  pg_lookahead.excluded_access_methods; one that is not btree only if the scan cannot turn or return to a mark, is not
 *	  parallel, and orders by distances that are passed by value (rowqueue.c);
 *	- of a table whose access method is heap,
 *	- under an MVCC snapshot,
 *	- not in EvalPlanQual, and not where old_snapshot_threshold (15, 16) could
 *	  make an early read fail;
 *	- that can return more than one row.  A look-up by all columns of a unique
 *	  index visits one heap block and is not even observed;
 *	- whose ExecProcNodeReal is still the server's: where another extension has
 *	  replaced it for some nodes, those stay as they are.
 *
 * Small scans of cached blocks are not touched either, since even the shim's
 * installation would show in a query over a thousand partitions that takes five
 * rows of each.  A btree scan without a filter (each call returns one row) and
 * without a Limit above it (which might end at the first of many dead rows) is
 * attached late: by the call after the first one that had to read a block, or
 * when it has taken attach_delay items of a leaf page.
 *
 *		first execution -> deferred -> deferred -> attach -> stock node + shim
 *								(a block was read,	^
 *								 or attach_delay) --+
 *
 * That needs no state of ours: nbtree's position tells how many items were
 * taken.  Installing the shim between two rows is no different from installing
 * it before the first, because a passive shim leaves position, mark and kills to
 * the access method.
 *
 * src/scan/scan.c
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "catalog/pg_am.h"
#include "executor/executor.h"
#include "utils/snapmgr.h"

#include "attach/attach.h"
#include "attach/takeover.h"
#include "base/accessmethod.h"
#include "base/compat.h"
#include "base/explain.h"
#include "base/guc.h"
#include "scan/leafbatch.h"
#include "scan/scan.h"
#include "scan/shim.h"
#include "window/issue.h"

static LaNodeKind index_scans;
static LaNodeKind index_only_scans;

/*
 * Do the keys fix all columns of a unique index?
 */
static bool
at_most_one_row(Relation index, ScanKey keys, int nkeys)
{
	uint32		fixed = 0;
	int			ncolumns = IndexRelationGetNumberOfKeyAttributes(index);

	if (!index->rd_index->indisunique)
		return false;
	for (int i = 0; i < nkeys; i++)
	{
		if (keys[i].sk_strategy == BTEqualStrategyNumber &&
			(keys[i].sk_flags & (SK_SEARCHARRAY | SK_SEARCHNULL |
								 SK_SEARCHNOTNULL | SK_ROW_HEADER)) == 0)
			fixed |= (uint32) 1 << (keys[i].sk_attno - 1);
	}
	return fixed == (uint32) (((uint64) 1 << ncolumns) - 1);
}

/* An access method that is run ahead by rowqueue.c. */
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
		ps->state->es_epq_active != NULL ||
		index == NULL ||
		index->rd_indam->amgettuple == NULL ||
		heap->rd_tableam != GetHeapamTableAmRoutine() ||
		!IsMVCCSnapshot(ps->state->es_snapshot) ||
		la_early_reads_may_fail() ||
		la_am_is_excluded(index->rd_rel->relam))
		return false;
	return index->rd_rel->relam == BTREE_AM_OID || eligible_other(ps, heap, index);
}

/* Install the shim; a read before it counts as the scan's first miss. */
static void
install(PlanState *ps, IndexScanDesc scan, LaKind kind, bool missed)
{
	LaAttachContext context;
	LaScan	   *ls;

	la_attach_context(ps, &context);
	ls = la_shim_install(scan, kind, context.limit,
						 la_attach_is_all(context.demand, ps->state),
						 ps->state->es_query_cxt);
	if (missed)
		la_policy_on_pass(&ls->policy, true);
}

static void
attach_to_index_scan(PlanState *ps, bool missed)
{
	IndexScanState *node = castNode(IndexScanState, ps);

	if ((node->iss_ScanDesc != NULL && la_shim_of(node->iss_ScanDesc) != NULL) ||
		!eligible(ps, node->ss.ss_currentRelation, node->iss_RelationDesc))
		return;
	if (node->iss_ScanDesc == NULL)
	{
		node->iss_ScanDesc =
			la_index_beginscan(&node->ss,
							   node->iss_RelationDesc,
							   ps->state->es_snapshot,
							   la_iss_instrument(node),
							   node->iss_NumScanKeys,
							   node->iss_NumOrderByKeys);
		if (node->iss_NumRuntimeKeys == 0 || node->iss_RuntimeKeysReady)
			index_rescan(node->iss_ScanDesc,
						 node->iss_ScanKeys, node->iss_NumScanKeys,
						 node->iss_OrderByKeys, node->iss_NumOrderByKeys);
	}
	install(ps, node->iss_ScanDesc, LA_KIND_INDEX_SCAN, missed);
}

static void
attach_to_index_only_scan(PlanState *ps, bool missed)
{
	IndexOnlyScanState *node = castNode(IndexOnlyScanState, ps);

	if ((node->ioss_ScanDesc != NULL && la_shim_of(node->ioss_ScanDesc) != NULL) ||
		!eligible(ps, node->ss.ss_currentRelation, node->ioss_RelationDesc))
		return;
	if (node->ioss_ScanDesc == NULL)
	{
		node->ioss_ScanDesc =
			la_index_beginscan(&node->ss,
							   node->ioss_RelationDesc,
							   ps->state->es_snapshot,
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
	install(ps, node->ioss_ScanDesc, LA_KIND_INDEX_ONLY_SCAN, missed);
}

/* ---- functions that stand in front of a node's own until it is attached ------ */

/* Cached rows that the scan has taken since it began. */
static bool
is_worth_attaching(PlanState *ps, IndexScanDesc scan, ScanDirection order)
{
	return scan != NULL &&
		la_leafbatch_items_taken(scan, ps->state->es_direction * order) >= la_attach_threshold;
}

/* What attaches a node of one kind; missed: its last call had to read a block. */
typedef void (*attach_function) (PlanState *ps, bool missed);

/* "self", which stands in front of the node, is taken out, and the node attached. */
static TupleTableSlot *
first_execution(PlanState *ps, ExecProcNodeMtd self, const LaNodeKind *kind,
				attach_function attach)
{
	la_takeover_remove(ps, self, kind->stock);
	attach(ps, false);
	return kind->stock(ps);
}

static inline TupleTableSlot *
deferred_execution(PlanState *ps, ExecProcNodeMtd self, const LaNodeKind *kind,
				   attach_function attach, IndexScanDesc scan, ScanDirection order)
{
	int64		reads = la_issue_blocks_read();
	TupleTableSlot *slot;

	if (is_worth_attaching(ps, scan, order))
		return first_execution(ps, self, kind, attach);
	slot = kind->stock(ps);
	if (la_issue_blocks_read() != reads && !TupIsNull(slot))
	{
		la_takeover_remove(ps, self, kind->stock);
		attach(ps, true);
	}
	return slot;
}

static TupleTableSlot *
first_index_scan(PlanState *ps)
{
	return first_execution(ps, first_index_scan, &index_scans, attach_to_index_scan);
}

static TupleTableSlot *
first_index_only_scan(PlanState *ps)
{
	return first_execution(ps, first_index_only_scan, &index_only_scans,
						   attach_to_index_only_scan);
}

static TupleTableSlot *
deferred_index_scan(PlanState *ps)
{
	return deferred_execution(ps, deferred_index_scan, &index_scans,
							  attach_to_index_scan,
							  ((IndexScanState *) ps)->iss_ScanDesc,
							  ((IndexScan *) ps->plan)->indexorderdir);
}

static TupleTableSlot *
deferred_index_only_scan(PlanState *ps)
{
	return deferred_execution(ps, deferred_index_only_scan, &index_only_scans,
							  attach_to_index_only_scan,
							  ((IndexOnlyScanState *) ps)->ioss_ScanDesc,
							  ((IndexOnlyScan *) ps->plan)->indexorderdir);
}

/*
 * May the node be attached?  *deferred, if it was true: not before it has read a block, or
 * returned some rows.
 */
static bool
may_attach(PlanState *ps, Relation index, ScanKey keys, int nkeys, LaNodeKind *kind,
		   bool *deferred)
{
	bool		btree = index && index->rd_rel->relam == BTREE_AM_OID;

	if (!la_enable_index_scan ||
		(btree && !la_force && at_most_one_row(index, keys, nkeys)))
		return false;
	*deferred &= btree && !la_force && la_attach_threshold > 0 && ps->qual == NULL;
	return la_takeover_is_possible(ps, kind);
}

static bool
attach_index_scan(PlanState *ps, bool limited)
{
	IndexScanState *node = castNode(IndexScanState, ps);
	bool		deferred = !limited;

	if (!may_attach(ps, node->iss_RelationDesc, node->iss_ScanKeys,
					node->iss_NumScanKeys, &index_scans, &deferred))
		return false;
	la_takeover_put(ps, deferred ? deferred_index_scan : first_index_scan);
	return true;
}

static bool
attach_index_only_scan(PlanState *ps, bool limited)
{
	IndexOnlyScanState *node = castNode(IndexOnlyScanState, ps);
	bool		deferred = !limited;

	if (!may_attach(ps, node->ioss_RelationDesc, node->ioss_ScanKeys,
					node->ioss_NumScanKeys, &index_only_scans, &deferred))
		return false;
	la_takeover_put(ps, deferred ? deferred_index_only_scan : first_index_only_scan);
	return true;
}

/* Nobody else has replaced the node's function. */
static bool
is_stock_or_ours(PlanState *ps)
{
	return la_takeover_is_executed_by(ps, first_index_scan) ||
		la_takeover_is_executed_by(ps, deferred_index_scan) ||
		la_takeover_is_possible(ps, &index_scans);
}

/*
 * Another room knows the rows of this scan, which has been executed before.  Attach it
 * if it is not yet.
 */
static bool
feed_index_scan(PlanState *ps, const LaTidSource *feed)
{
	IndexScanDesc scan;
	LaScan	   *ls;

	if (!IsA(ps, IndexScanState))
		return false;
	scan = ((IndexScanState *) ps)->iss_ScanDesc;
	if (scan == NULL)
		return false;
	ls = la_shim_of(scan);
	if (ls == NULL)
	{
		if (!is_stock_or_ours(ps))
			return false;
		attach_to_index_scan(ps, false);
		ls = la_shim_of(scan);
		if (ls == NULL)
			return false;
		if (!la_enable_index_scan)
			la_shim_only_feed(ls);
	}
	if (ls->method != NULL)
		return false;
	ls->feed = *feed;
	return true;
}

static const LaCounters *
explain_source(PlanState *ps)
{
	IndexScanDesc scan = NULL;
	LaScan	   *ls;

	if (IsA(ps, IndexScanState))
		scan = ((IndexScanState *) ps)->iss_ScanDesc;
	else if (IsA(ps, IndexOnlyScanState))
		scan = ((IndexOnlyScanState *) ps)->ioss_ScanDesc;
	if (scan == NULL)
		return NULL;
	ls = la_shim_of(scan);
	return ls == NULL ? NULL : &ls->counters;
}

void
la_scan_init(void)
{
	la_attach_register(T_IndexScanState, attach_index_scan);
	la_attach_register(T_IndexOnlyScanState, attach_index_only_scan);
	la_attach_register_feeder(feed_index_scan);
	la_explain_register(explain_source);
}
