/*
 * tidscan.c
 *	  Scans of rows by their addresses: ctid = ANY (...).
 *
 * The node sorts the addresses when it is executed first, and fetches one row after the other.
 *
 *		tss_TidList:	[ tid | tid | tid | tid | tid ]
 *							^ tss_TidPtr: the row that it has returned
 *
 * So all rows to come are known, and their pages are read for it, a moment before the node comes
 * to them.  The node may pass rows over: those that are dead, or that its filter rejects.
 *
 * Left alone are scans of few rows (attach_threshold), and those that turn.
 *
 * src/toast/tidscan.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/snapmgr.h"

#include "attach/interpose_node.h"
#include "base/guc.h"
#include "toast/tidscan.h"
#include "toast/valueahead.h"

#define ROWS_READ		64		/* rows ahead whose pages are read */

typedef struct TidRows
{
	LaInterposer interposer;
	LaFollower *follower;		/* NULL until there are enough rows */
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
on_rescan(LaInterposer *interposer)
{
	TidRows    *t = la_interpose_container(TidRows, interposer);

	if (t->follower != NULL)
		t->follower->clear(t->follower);
}

static void
begin(TidRows *t)
{
	ScanState  *node = (ScanState *) t->interposer.node;
	LaValueScan scan = {
		.node = &node->ps,
		.table = node->ss_currentRelation,
		.snapshot = node->ps.state->es_snapshot,
		.versions = true,
		.may_skip = true,
		.coming = {t, peek},
		.context = node->ps.state->es_query_cxt
	};

	t->follower = la_valueahead_create(&scan);
}

/* Does the scan go on as in stock? */
static bool
is_left_alone(const TidScanState *node)
{
	return node->tss_isCurrentOf || !ScanDirectionIsForward(node->ss.ps.state->es_direction) ||
		(!la_force && node->tss_NumTids < la_attach_threshold);
}

static TupleTableSlot *
exec_tid_scan(PlanState *ps)
{
	TidRows    *t = la_interpose_container(TidRows, la_interpose_enter(ps, LA_LAYER_NODE));
	TupleTableSlot *slot = t->interposer.below(ps);

	if (TupIsNull(slot))
	{
		/* often the end of the scan */
		if (t->follower != NULL)
			t->follower->clear(t->follower);
		return slot;
	}
	if (is_left_alone((TidScanState *) ps))
	{
		if (t->follower != NULL)
			t->follower->end(t->follower);
		la_interpose_end(&t->interposer);
		return slot;
	}
	if (t->follower == NULL)
		begin(t);
	if (!la_follow(t->follower))
		la_interpose_end(&t->interposer);
	return slot;
}

/* More than one address? */
static bool
may_have_rows(const TidScan *plan)
{
	return list_length(plan->tidquals) > 1 || IsA(linitial(plan->tidquals), ScalarArrayOpExpr);
}

/* la_attach_function */
bool
la_tidscan_attach(PlanState *ps, bool limited)
{
	TidRows    *t;

	if (!may_have_rows((const TidScan *) ps->plan) ||
		!la_valueahead_is_possible(((ScanState *) ps)->ss_currentRelation) ||
		!IsMVCCSnapshot(ps->state->es_snapshot) || !la_interpose_is_possible(ps, &kind))
		return false;
	t = MemoryContextAllocZero(ps->state->es_query_cxt, sizeof(TidRows));
	t->interposer.listens_to = ps->ps_ExprContext;
	t->interposer.on_rescan = on_rescan;
	la_interpose_begin(&t->interposer, ps, LA_LAYER_NODE, exec_tid_scan);
	return true;
}
