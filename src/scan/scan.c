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
 *	  parallel, and orders by distances that are passed by value (queue.c);
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
#include "base/accessmethod.h"
#include "base/compat.h"
#include "base/explain.h"
#include "base/guc.h"
#include "scan/batch.h"
#include "scan/scan.h"
#include "scan/shim.h"
#include "window/issue.h"

/*
 * Limits found by the walk wait here for the first execution of their scans.
 * They are looked up by the scan's PlanState, and live as long as the query.
 */
typedef struct PendingLimit
{
	PlanState  *planstate;
	LimitState *limit;
	MemoryContextCallback callback;
	struct PendingLimit *next;
} PendingLimit;

static PendingLimit *pending_limits = NULL;

/* The server's own functions for these nodes, learnt from the first seen. */
static ExecProcNodeMtd exec_index_scan = NULL;
static ExecProcNodeMtd exec_index_only_scan = NULL;

static void
forget_limit(void *arg)
{
	PendingLimit **p = &pending_limits;

	while (*p != NULL && *p != (PendingLimit *) arg)
		p = &(*p)->next;
	if (*p != NULL)
		*p = (*p)->next;
}

static void
remember_limit(PlanState *ps, LimitState *limit)
{
	PendingLimit *p;

	if (limit == NULL)
		return;
	p = MemoryContextAlloc(ps->state->es_query_cxt, sizeof(PendingLimit));
	p->planstate = ps;
	p->limit = limit;
	p->next = pending_limits;
	pending_limits = p;
	p->callback.func = forget_limit;
	p->callback.arg = p;
	MemoryContextRegisterResetCallback(ps->state->es_query_cxt, &p->callback);
}

static LimitState *
limit_of(PlanState *ps)
{
	for (PendingLimit *p = pending_limits; p != NULL; p = p->next)
	{
		if (p->planstate == ps)
			return p->limit;
	}
	return NULL;
}

/* Undo what attach_node() did; see ExecProcNodeFirst() for the two fields. */
static void
restore_exec(PlanState *ps, ExecProcNodeMtd original)
{
	ps->ExecProcNodeReal = original;
	if (!ps->instrument)
		ps->ExecProcNode = original;
}

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

/* An access method that is run ahead by queue.c. */
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
install(PlanState *ps, IndexScanDesc scan, LaKind kind, LaDemand demand,
		bool missed)
{
	LaScan	   *ls = la_shim_install(scan, kind, limit_of(ps),
									 la_attach_is_all(demand, ps->state),
									 ps->state->es_query_cxt);

	if (missed)
		la_policy_on_pass(&ls->policy, true);
}

static void
attach_to_index_scan(PlanState *ps, LaDemand demand, bool missed)
{
	IndexScanState *node = castNode(IndexScanState, ps);

	restore_exec(ps, exec_index_scan);
	if (!eligible(ps, node->ss.ss_currentRelation, node->iss_RelationDesc))
		return;
	if (node->iss_ScanDesc == NULL)
	{
		node->iss_ScanDesc =
			la_index_beginscan(node->ss.ss_currentRelation,
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
	install(ps, node->iss_ScanDesc, LA_KIND_INDEX_SCAN, demand, missed);
}

static void
attach_to_index_only_scan(PlanState *ps, LaDemand demand, bool missed)
{
	IndexOnlyScanState *node = castNode(IndexOnlyScanState, ps);

	restore_exec(ps, exec_index_only_scan);
	if (!eligible(ps, node->ss.ss_currentRelation, node->ioss_RelationDesc))
		return;
	if (node->ioss_ScanDesc == NULL)
	{
		node->ioss_ScanDesc =
			la_index_beginscan(node->ss.ss_currentRelation,
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
	install(ps, node->ioss_ScanDesc, LA_KIND_INDEX_ONLY_SCAN, demand, missed);
}

/* What attaches a node of one kind: attach_to_index_scan() or the other. */
typedef void (*attach_function) (PlanState *ps, LaDemand demand, bool missed);

static inline TupleTableSlot *
first_execution(PlanState *ps, LaDemand demand, ExecProcNodeMtd exec,
				attach_function attach)
{
	attach(ps, demand, false);
	return exec(ps);
}

static inline TupleTableSlot *
deferred_execution(PlanState *ps, LaDemand demand, ExecProcNodeMtd exec,
				   attach_function attach, IndexScanDesc scan,
				   ScanDirection order)
{
	int64		reads = la_issue_blocks_read();
	ScanDirection dir = ps->state->es_direction * order;
	TupleTableSlot *slot;

	if (scan != NULL && la_batch_items_taken(scan, dir) >= la_attach_delay)
		return first_execution(ps, demand, exec, attach);
	slot = exec(ps);
	if (la_issue_blocks_read() != reads && !TupIsNull(slot))
		attach(ps, demand, true);
	return slot;
}

static inline TupleTableSlot *
first_index_scan(PlanState *ps, LaDemand demand)
{
	return first_execution(ps, demand, exec_index_scan, attach_to_index_scan);
}

static inline TupleTableSlot *
deferred_index_scan(PlanState *ps, LaDemand demand)
{
	return deferred_execution(ps, demand, exec_index_scan, attach_to_index_scan,
							  castNode(IndexScanState, ps)->iss_ScanDesc,
							  ((IndexScan *) ps->plan)->indexorderdir);
}

static inline TupleTableSlot *
first_index_only_scan(PlanState *ps, LaDemand demand)
{
	return first_execution(ps, demand, exec_index_only_scan,
						   attach_to_index_only_scan);
}

static inline TupleTableSlot *
deferred_index_only_scan(PlanState *ps, LaDemand demand)
{
	return deferred_execution(ps, demand, exec_index_only_scan,
							  attach_to_index_only_scan,
							  castNode(IndexOnlyScanState, ps)->ioss_ScanDesc,
							  ((IndexOnlyScan *) ps->plan)->indexorderdir);
}

/*
 * The functions that stand in front of a node's own.  There is no room in the
 * node for the demand, so each demand has functions of its own.
 */
#define DEFINE_ENTRY(kind, name, demand) \
static TupleTableSlot * \
kind##_##name(PlanState *ps) \
{ \
	return kind(ps, demand); \
}
#define DEFINE_ENTRIES(kind) \
	DEFINE_ENTRY(kind, some, LA_DEMAND_SOME) \
	DEFINE_ENTRY(kind, run, LA_DEMAND_RUN) \
	DEFINE_ENTRY(kind, all, LA_DEMAND_ALL) \
static const ExecProcNodeMtd kind##_entry[LA_NUM_DEMANDS] = { \
	[LA_DEMAND_SOME] = kind##_some, \
	[LA_DEMAND_RUN] = kind##_run, \
	[LA_DEMAND_ALL] = kind##_all \
};

DEFINE_ENTRIES(first_index_scan)
DEFINE_ENTRIES(deferred_index_scan)
DEFINE_ENTRIES(first_index_only_scan)
DEFINE_ENTRIES(deferred_index_only_scan)

/*
 * Put a function of ours in front of the node's own, for now.
 */
static void
attach_node(PlanState *ps, const LaAttachContext *context, Relation index,
			ScanKey keys, int nkeys, ExecProcNodeMtd *original,
			const ExecProcNodeMtd *first, const ExecProcNodeMtd *deferred)
{
	bool		btree = index && index->rd_rel->relam == BTREE_AM_OID;

	if (*original == NULL)
		*original = ps->ExecProcNodeReal;
	if (!la_enable_index_scan)
		return;
	if (ps->ExecProcNodeReal != *original)
		return;
	if (btree && !la_force && at_most_one_row(index, keys, nkeys))
		return;
	if (btree && !la_force && la_attach_delay > 0 &&
		ps->qual == NULL && context->limit == NULL)
		ps->ExecProcNodeReal = deferred[context->demand];
	else
		ps->ExecProcNodeReal = first[context->demand];
	remember_limit(ps, context->limit);
}

static void
attach_index_scan(PlanState *ps, const LaAttachContext *context)
{
	IndexScanState *node = castNode(IndexScanState, ps);

	attach_node(ps, context, node->iss_RelationDesc, node->iss_ScanKeys,
				node->iss_NumScanKeys, &exec_index_scan,
				first_index_scan_entry, deferred_index_scan_entry);
}

static void
attach_index_only_scan(PlanState *ps, const LaAttachContext *context)
{
	IndexOnlyScanState *node = castNode(IndexOnlyScanState, ps);

	attach_node(ps, context, node->ioss_RelationDesc, node->ioss_ScanKeys,
				node->ioss_NumScanKeys, &exec_index_only_scan,
				first_index_only_scan_entry, deferred_index_only_scan_entry);
}

/* Nobody else has replaced the node's function. */
static bool
is_stock_or_ours(PlanState *ps)
{
	if (ps->ExecProcNodeReal == exec_index_scan)
		return true;
	for (int i = 0; i < LA_NUM_DEMANDS; i++)
	{
		if (ps->ExecProcNodeReal == first_index_scan_entry[i] ||
			ps->ExecProcNodeReal == deferred_index_scan_entry[i])
			return true;
	}
	return false;
}

/*
 * Another room knows the rows of this scan, which has been executed before.  Attach it
 * if it is not yet.
 */
static bool
feed_index_scan(PlanState *ps, const LaFeed *feed)
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
		if (exec_index_scan == NULL || !is_stock_or_ours(ps))
			return false;
		attach_to_index_scan(ps, LA_DEMAND_SOME, false);
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
