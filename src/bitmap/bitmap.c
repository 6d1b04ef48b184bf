/*
 * bitmap.c
 *	  Bitmap scans that look ahead: the heap side, and which index scans below are eligible.
 *
 *		BitmapHeapScan			heap blocks, in their order: the server's own prefetch
 *		  BitmapAnd, BitmapOr
 *			BitmapIndexScan		pages of the index: getbitmap.c
 *
 * After ExecutorStart a function of ours is put in front of that of each bitmap heap scan
 * (attach/interpose_node.c).  At the node's first execution it takes itself out, and does for the
 * node and the index scans below it what follows, and offers the node to a room that follows its
 * rows.  Nodes that are never executed are never attached.
 *
 * Heap blocks: DISTANCE
 *		A bitmap names all its blocks, and the node prefetches them.  How many at a time is
 *		prefetch_maximum, before PostgreSQL 18 a field of the node, which is
 *		effective_io_concurrency, or the tablespace's setting of that name.  Its default, 1, keeps
 *		one read in flight.  So it is raised to max_distance:
 *		- not from 0, which turns prefetch off (and decides whether there is a prefetch iterator,
 *		  which all processes of a parallel scan have to agree on);
 *		- not where the tablespace has a setting of its own (la_config_reads());
 *		- not if index scans of the same index have found reads of the table to be fast
 *		  (window/history.c).
 *		The node starts with one block and doubles the number with each block, or adds one with
 *		each row, until the limit.  It prefetches each block once, whatever the limit is: a higher
 *		one costs nothing where nothing waits, and with a LIMIT no more than the ramp.
 *		From 18 on, the node's stream reads 16 blocks ahead by default.  The stream takes its limit
 *		from the settings when it is created, there is none in the node, and so it is left alone.
 *
 * Index pages: eligible are scans of GIN (gin.c) and btree indexes (range.c) of tables whose access
 * method is heap, under an MVCC snapshot, whose descriptor has the Relation that the node has
 * opened: another extension may have put one of its own there.  Not eligible are
 *		- hash: one bucket, whose overflow pages are known one by one;
 *		- GiST and SP-GiST: what a page leads to is known when its entries have been compared, and
 *		  the scan does that depth first, in a stack of its own;
 *		- BRIN: the ranges are read in the order of the file, which the kernel reads ahead.
 *
 * src/bitmap/bitmap.c
 */
#include "postgres.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "utils/snapmgr.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "bitmap/bitmap.h"
#include "bitmap/bitmap_int.h"
#include "window/window.h"

/* A bitmap heap scan with a longer distance. */
typedef struct HeapScan
{
	BitmapHeapScanState *node;
	Oid			relid;
	LaCounters	counters;
	MemoryContextCallback callback;
} HeapScan;

static LaNodeKind heap_scans;

/* ---- heap blocks ---------------------------------------------------------------- */

/* Callback of the query's memory context. */
static void
end_heap_scan(void *arg)
{
	HeapScan   *hs = arg;

	hs->counters.c[LA_BLOCKS_FORESEEN] = la_bitmap_heap_blocks(hs->node);
	la_stats_publish(LA_KIND_BITMAP_HEAP_SCAN, hs->relid, InvalidOid, &hs->counters);
}

/* The index of the first of the index scans below. */
static Relation
first_index(PlanState *ps)
{
	while (ps != NULL && !IsA(ps, BitmapIndexScanState))
		ps = la_node_child(ps, 0);
	return ps == NULL ? NULL : ((BitmapIndexScanState *) ps)->biss_RelationDesc;
}

/* DISTANCE */
static void
lengthen(BitmapHeapScanState *node)
{
	int		   *limit = la_bitmap_prefetch_limit(node);
	Relation	heap = node->ss.ss_currentRelation;
	Relation	index = first_index(outerPlanState(node));
	LaIoPolicyConfig config;
	HeapScan   *hs;

	if (limit == NULL || *limit <= 0 || index == NULL)
		return;
	config = la_config_reads_now(heap, true, RelationGetRelid(index));
	if (!config.advice_works || config.max_distance <= *limit ||
		(!la_force && la_history_known_fast(RelationGetRelid(index))))
		return;
	hs = MemoryContextAllocZero(node->ss.ps.state->es_query_cxt, sizeof(HeapScan));
	hs->node = node;
	hs->relid = RelationGetRelid(heap);
	la_stats_open(&hs->counters, node->ss.ps.state);
	hs->counters.c[LA_SCANS_ATTACHED] = hs->counters.c[LA_SCANS_ACTIVATED] = 1;
	hs->counters.c[LA_DISTANCE_CAPACITY] = config.max_distance;
	hs->callback.func = end_heap_scan;
	hs->callback.arg = hs;
	MemoryContextRegisterResetCallback(node->ss.ps.state->es_query_cxt, &hs->callback);
	*limit = config.max_distance;
}

/* ---- index scans ------------------------------------------------------------------ */

/* Attach all eligible index scans of a bitmap. */
static void
attach_index_scans(PlanState *ps)
{
	PlanState  *member;

	if (!IsA(ps, BitmapIndexScanState))
	{
		for (int i = 0; (member = la_node_child(ps, i)) != NULL; i++)
			attach_index_scans(member);
	}
	else
	{
		BitmapIndexScanState *node = (BitmapIndexScanState *) ps;
		IndexScanDesc scan = node->biss_ScanDesc;

		if (scan != NULL && scan->indexRelation == node->biss_RelationDesc &&
			la_getbitmap_is_eligible(scan->indexRelation))
			la_getbitmap_install(scan, ps->state);
	}
}

/* ---- the node ----------------------------------------------------------------------- */

/*
 * An extension that has wrapped this function may go on calling it: only the call in which the
 * bitmap is going to be made attaches anything.
 */
static TupleTableSlot *
first_execution(PlanState *ps)
{
	BitmapHeapScanState *node = (BitmapHeapScanState *) ps;

	la_interpose_replace(ps, first_execution, heap_scans.stock);
	if (!node->initialized && la_enable &&
		la_gate_is_heap(node->ss.ss_currentRelation) &&
		IsMVCCSnapshot(ps->state->es_snapshot))
	{
		if (la_enable_bitmap_scan)
		{
			lengthen(node);
			attach_index_scans(outerPlanState(ps));
		}
		(void) la_follow_scan(&node->ss);
	}
	return heap_scans.stock(ps);
}

/* What is wanted of the node's rows matters only to a room that follows them. */
static bool
attach_bitmap_scan(PlanState *ps)
{
	if (!la_interpose_is_possible(ps, &heap_scans))
		return false;
	la_interpose_replace(ps, heap_scans.stock, first_execution);
	return la_enable_toast;
}

static const LaCounters *
explain_source(PlanState *ps)
{
	LaBitmapScan *bs;

	if (!IsA(ps, BitmapIndexScanState))
		return NULL;
	bs = la_getbitmap_of(((BitmapIndexScanState *) ps)->biss_ScanDesc);
	return bs == NULL ? NULL : &bs->counters;
}

void
la_bitmap_init(void)
{
	la_attach_register(T_BitmapHeapScanState, attach_bitmap_scan);
	la_explain_register(explain_source);
}
