/*
 * toast.c
 *	  Scans whose rows may have values that are stored out of line: how they are reached.
 *
 *		SeqScan		a function in front of the node's own until the scan has returned
 *					LA_FEW_ROWS rows, or a page of them, or begins with a filter that may
 *					fetch values; then tablescan.c
 *		TidRangeScan	a function in front of the node's own, likewise; then tablescan.c
 *		TidScan		tidscan.c
 *		IndexScan	offered by the room of index scans, when it attaches one (attach/attach.h)
 *		BitmapHeapScan	offered by the room of bitmap scans, before its first execution; then
 *					tablescan.c
 *		Sort, Gather	noderows.c, where its rows are used in turn
 *		HashJoin	offered by the room of hash joins, once a look-up finds a value; passedrows.c
 *		COPY TO		copyto.c, as it has no plan (unplanned.c)
 *		VACUUM FULL, ALTER TABLE	rewrite.c, likewise
 *
 * Not reached: values that are fetched later than before the next row: those of rows that another
 * sort, a hash table of several batches or a parallel worker has passed on.
 *
 * src/toast/toast.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "executor/executor.h"
#include "utils/snapmgr.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "base/compat_bitmap.h"
#include "toast/toast.h"
#include "toast/toast_int.h"

/* 18 has a function for each combination of filter and projection of a sequential scan. */
static LaNodeKind *
kind_of(const PlanState *ps)
{
	static LaNodeKind kinds[4];
	static LaNodeKind tid_range;

	if (IsA(ps, TidRangeScanState))
		return &tid_range;
	return &kinds[(ps->qual != NULL ? 1 : 0) + (ps->ps_ProjInfo != NULL ? 2 : 0)];
}

static bool
is_possible(const ScanState *scan)
{
	return la_valueahead_is_possible(scan->ss_currentRelation) &&
		IsMVCCSnapshot(scan->ps.state->es_snapshot);
}

/* ---- sequential and TID range scans ----------------------------------------------- */

/* Has the scan returned so many rows that it is worth while to follow it? */
static bool
has_taken_rows(const TableScanDescData *scan)
{
	const HeapScanDescData *heap = (const HeapScanDescData *) scan;

	return la_force || (int) heap->rs_cindex + 1 >= la_few_rows() ||
		(int) heap->rs_ntuples < la_few_rows();
}

/* Follow the scan, if it has values that may be fetched, and is heapam's. */
static void
follow_table_scan(ScanState *node)
{
	LaToastColumns columns;

	if (node->ss_currentScanDesc->rs_rd == node->ss_currentRelation &&
		is_possible(node) && la_toastcolumns_of_scan(&columns, node))
		la_tablescan_follow(node->ss_currentScanDesc, &node->ps, &columns, NULL,
							node->ps.state->es_query_cxt);
}

static TupleTableSlot *
scan_execution(PlanState *ps)
{
	ScanState  *node = (ScanState *) ps;
	TupleTableSlot *slot = kind_of(ps)->stock(ps);
	TableScanDesc scan = node->ss_currentScanDesc;

	if (scan == NULL || (!TupIsNull(slot) && !has_taken_rows(scan)))
		return slot;
	la_interpose_replace(ps, scan_execution, kind_of(ps)->stock);
	if (!TupIsNull(slot))
		follow_table_scan(node);
	return slot;
}

/*
 * In front of a sequential scan whose filter may fetch values, and take all rows in one execution:
 * create the scan descriptor as SeqNext() would in the same call.  (For a TID range scan the range
 * would have to be computed.)
 */
static TupleTableSlot *
filter_execution(PlanState *ps)
{
	ScanState  *node = (ScanState *) ps;

	if (!la_toastcolumns_of_filter(node))
	{
		la_interpose_replace(ps, filter_execution, scan_execution);
		return scan_execution(ps);
	}
	la_interpose_replace(ps, filter_execution, kind_of(ps)->stock);
	if (node->ss_currentScanDesc == NULL)
		node->ss_currentScanDesc = la_table_beginscan(node, ps->state->es_snapshot);
	follow_table_scan(node);
	return kind_of(ps)->stock(ps);
}

static bool
attach_table_scan(PlanState *ps)
{
	bool		has_filter = ps->qual != NULL && IsA(ps, SeqScanState);

	if (!la_valueahead_is_possible(((ScanState *) ps)->ss_currentRelation) ||
		!la_interpose_is_possible(ps, kind_of(ps)))
		return false;
	la_interpose_replace(ps, kind_of(ps)->stock, has_filter ? filter_execution : scan_execution);
	return true;
}

/* ---- bitmap heap scans ------------------------------------------------------------ */

/*
 * As of a sequential scan whose filter may fetch values; else if so many rows are expected that it
 * is worth while.
 */
static void
follow_bitmap_scan(ScanState *node)
{
	if (!is_possible(node) ||
		(!la_force && node->ps.plan->plan_rows < la_few_rows() &&
		 !la_toastcolumns_of_filter(node)))
		return;
	/* as its first execution does otherwise */
	if (node->ss_currentScanDesc == NULL)
		node->ss_currentScanDesc = la_table_beginscan_bm(node, node->ps.state->es_snapshot);
	follow_table_scan(node);
}

/* ---- index scans ------------------------------------------------------------------ */

static LaFollower *
follow_index_scan(ScanState *scan)
{
	LaValueScan values = {
		.node = &scan->ps,
		.rows.table = scan->ss_currentRelation,
		.rows.snapshot = scan->ps.state->es_snapshot,
		.coming = {scan, la_attach_peek},
		.context = scan->ps.state->es_query_cxt
	};

	return is_possible(scan) ? la_valueahead_create(&values) : NULL;
}

/* la_follow_function */
static LaFollower *
follow_scan(ScanState *scan)
{
	if (!IsA(scan, BitmapHeapScanState))
		return follow_index_scan(scan);
	follow_bitmap_scan(scan);
	return NULL;
}

static const LaCounters *
explain_source(PlanState *ps)
{
	switch (nodeTag(ps))
	{
		case T_SeqScanState:
		case T_TidRangeScanState:
		case T_TidScanState:
		case T_IndexScanState:
		case T_BitmapHeapScanState:
		case T_SortState:
		case T_GatherState:
		case T_GatherMergeState:
		case T_HashJoinState:
			return la_valueahead_counters(ps);
		default:
			return NULL;
	}
}

void
la_toast_init(void)
{
	la_attach_register(T_SeqScanState, attach_table_scan);
	la_attach_register(T_TidRangeScanState, attach_table_scan);
	la_attach_register(T_SortState, la_noderows_attach);
	la_attach_register(T_GatherState, la_noderows_attach);
	la_attach_register(T_GatherMergeState, la_noderows_attach);
	la_follow_register(follow_scan, la_passedrows_follow);
	la_tidscan_init();
	la_unplanned_init();
	la_copyto_init();
	la_rewrite_init();
	la_toasttable_init();
	la_explain_register_part(explain_source, "Toast ");
}
