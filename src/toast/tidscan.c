/*
 * tidscan.c
 *	  Scans of rows by their addresses, ctid = ANY (...): a source of rows.
 *
 * The node sorts the addresses when it is executed first, and fetches one row after the other.
 *
 *		tss_TidList:	[ tid | tid | tid | tid | tid ]
 *							^ tss_TidPtr: the row that it has returned
 *
 * So all rows to come are known.  Their blocks are read ahead (tidblocks.c), and the values that
 * they have out of line (valueahead.c), for which their pages are read as well.  The node may pass
 * rows over: those that are dead, or that its filter rejects.
 *
 * Left alone are scans of few rows (LA_FEW_ROWS), and those that turn.
 *
 * src/toast/tidscan.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/snapmgr.h"

#include "attach/attach.h"
#include "base/base.h"
#include "toast/toast_int.h"

#define ROWS_READ		64		/* rows ahead whose pages are read */

typedef struct TidRows
{
	LaInterposer interposer;
	bool		begun;			/* there are enough rows */
	LaFollower *follower;		/* of values, or NULL */
	LaTidBlocks *blocks;		/* or NULL */
} TidRows;

static LaNodeKind kind;

/* LaComing.peek */
static bool
peek(void *arg, int n, LaComingRow *row)
{
	const TidScanState *node = (TidScanState *) ((TidRows *) arg)->interposer.node;
	int			place = node->tss_TidPtr + n;

	if (node->tss_TidList == NULL || place < 0 || place >= node->tss_NumTids)
		return false;
	row->tid = node->tss_TidList[place];
	row->id = place;
	row->buffer = InvalidBuffer;
	row->may_read = n <= ROWS_READ;
	return true;
}

static void
clear(TidRows *t)
{
	if (t->follower != NULL)
		t->follower->clear(t->follower);
	if (t->blocks != NULL)
		la_tidblocks_clear(t->blocks);
}

static void
on_rescan(LaInterposer *interposer)
{
	clear(la_interpose_container(TidRows, interposer));
}

static void
begin(TidRows *t)
{
	ScanState  *node = (ScanState *) t->interposer.node;
	LaValueScan scan = {
		.node = &node->ps,
		.rows.table = node->ss_currentRelation,
		.rows.snapshot = node->ps.state->es_snapshot,
		.rows.versions = true,
		.may_skip = true,
		.coming = {t, peek},
		.context = node->ps.state->es_query_cxt
	};

	t->begun = true;
	if (la_valueahead_is_possible(scan.rows.table) && IsMVCCSnapshot(scan.rows.snapshot))
		t->follower = la_valueahead_create(&scan);
	if (la_tidblocks_is_possible((TidScanState *) node))
		t->blocks = la_tidblocks_create((TidScanState *) node);
}

/* Does the scan go on as in stock? */
static bool
is_left_alone(const TidScanState *node)
{
	return node->tss_isCurrentOf || !ScanDirectionIsForward(node->ss.ps.state->es_direction) ||
		(!la_force && node->tss_NumTids < la_few_rows());
}

static TupleTableSlot *
exec_tid_scan(PlanState *ps)
{
	TidRows    *t = la_interpose_container(TidRows, la_interpose_enter(ps, LA_LAYER_NODE));
	TupleTableSlot *slot;

	if (t->blocks != NULL && !is_left_alone((TidScanState *) ps))
		la_tidblocks_next(t->blocks);
	slot = t->interposer.below(ps);
	if (TupIsNull(slot))
	{
		/* often the end of the scan */
		clear(t);
		return slot;
	}
	if (is_left_alone((TidScanState *) ps))
	{
		clear(t);
		if (t->follower != NULL)
			t->follower->end(t->follower);
		la_interpose_end(&t->interposer);
		return slot;
	}
	if (!t->begun)
		begin(t);
	if (t->blocks != NULL)
		la_tidblocks_returned(t->blocks);
	if (t->follower != NULL && !la_follow(t->follower))
		t->follower = NULL;
	if (t->follower == NULL && t->blocks == NULL)
		la_interpose_end(&t->interposer);
	return slot;
}

/* More than one address? */
static bool
may_have_rows(const TidScan *plan)
{
	return list_length(plan->tidquals) > 1 || IsA(linitial(plan->tidquals), ScalarArrayOpExpr);
}

static bool
is_possible(TidScanState *node)
{
	return (la_valueahead_is_possible(node->ss.ss_currentRelation) &&
			IsMVCCSnapshot(node->ss.ps.state->es_snapshot)) || la_tidblocks_is_possible(node);
}

/* la_attach_function */
static bool
attach(PlanState *ps)
{
	TidRows    *t;

	if (!may_have_rows((const TidScan *) ps->plan) || !is_possible((TidScanState *) ps) ||
		!la_interpose_is_possible(ps, &kind))
		return false;
	t = MemoryContextAllocZero(ps->state->es_query_cxt, sizeof(TidRows));
	t->interposer.listens_to = ps->ps_ExprContext;
	t->interposer.on_rescan = on_rescan;
	la_interpose_begin(&t->interposer, ps, LA_LAYER_NODE, exec_tid_scan);
	return true;
}

static const LaCounters *
explain_source(PlanState *ps)
{
	LaInterposer *interposer = IsA(ps, TidScanState) ? la_interpose_find(ps, LA_LAYER_NODE) : NULL;
	TidRows    *t;

	if (interposer == NULL || interposer->function != exec_tid_scan)
		return NULL;
	t = la_interpose_container(TidRows, interposer);
	return t->blocks == NULL ? NULL : la_tidblocks_counters(t->blocks);
}

void
la_tidscan_init(void)
{
	la_attach_register(T_TidScanState, attach);
	la_explain_register(explain_source);
}
