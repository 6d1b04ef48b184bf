/*
 * tidblocks.c
 *	  The blocks of a TID scan's rows, read ahead.
 *
 * The source is the node's sorted list of addresses (the picture is in tidscan.c), and the need is
 * the block of each.  The list has only addresses within the table, as the server has checked.
 *
 * Behaviours
 *	PASSED OVER	The node passes over addresses of dead rows, and of rows that its filter rejects, in
 *		the call that returns the row behind them.  They have their turn together with that row.
 *	BOUNDED	As in nestloop/nestloop.c.
 *
 * src/toast/tidblocks.c
 */
#include "postgres.h"

#include "attach/attach.h"
#include "base/base.h"
#include "rows/rows.h"
#include "toast/toast_int.h"
#include "window/window.h"

struct LaTidBlocks
{
	TidScanState *node;
	LaAhead    *ahead;			/* row n is the address at place n - base */
	int64		base;
	int			heap_number;	/* of the table, in ahead */
	LaDemandContext context;
	int64		returned;		/* rows */
	int64		seen_reads;		/* blocks read before the next one */
	bool		missed;			/* one was read for the last one */
	MemoryContextCallback callback;
};

bool
la_tidblocks_is_possible(const TidScanState *node)
{
	Relation	table = node->ss.ss_currentRelation;

	return la_enable && la_enable_tid_scan && la_gate_is_heap(table) &&
		!RelationUsesLocalBuffers(table);
}

static BlockNumber
block_at(const LaTidBlocks *b, int64 place)
{
	return ItemPointerGetBlockNumberNoCheck(&b->node->tss_TidList[place]);
}

/* ---- LaRowSource ---- */

static bool
fetch(void *arg, uint64 n)
{
	LaTidBlocks *b = arg;
	int64		ahead = n - la_ahead_next_row(b->ahead);

	if ((int64) n - b->base >= b->node->tss_NumTids)
		return false;
	return ahead == 0 || la_force ||
		(la_ahead_is_armed(b->ahead) &&
		 la_runahead_may_fetch(&b->context, b->node->ss.ps.state, ahead, b->returned));
}

static void
plan_visits(void *arg, uint64 n, LaAheadRow *row)
{
	LaTidBlocks *b = arg;
	int64		place = (int64) n - b->base;

	if (place == 0 || block_at(b, place) != block_at(b, place - 1))
		(void) la_ahead_add_block(row, b->heap_number, block_at(b, place));
}

/* ---- the scan ---- */

static void
on_end(void *arg)
{
	LaTidBlocks *b = arg;
	Oid			table = RelationGetRelid(b->node->ss.ss_currentRelation);

	la_ahead_end(b->ahead, LA_KIND_TID_SCAN, table, table);
}

/* NULL if there is no memory. */
LaTidBlocks *
la_tidblocks_create(TidScanState *node)
{
	EState	   *estate = node->ss.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	LaTidBlocks *b = palloc0(sizeof(LaTidBlocks));
	LaRowSource source = {.arg = b,.fetch = fetch,.plan = plan_visits};
	LaAheadConfig config = {
		.rel = node->ss.ss_currentRelation,
		.known_by = RelationGetRelid(node->ss.ss_currentRelation),
		.estate = estate,
		.order = LA_ORDER_OF_TABLE
	};

	b->node = node;
	la_demand_context(&node->ss.ps, &b->context);
	config.takes_all = la_runahead_takes_all(&b->context, estate);
	b->ahead = la_ahead_create(&source, &config);
	if (b->ahead != NULL)
		b->heap_number = la_ahead_add_relation(b->ahead, config.rel, NULL);
	MemoryContextSwitchTo(old);
	if (b->ahead == NULL || b->heap_number < 0)
		return NULL;
	b->callback.func = on_end;
	b->callback.arg = b;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, &b->callback);
	return b;
}

/* The node is about to return the next row.  Behaviour PASSED OVER. */
void
la_tidblocks_next(LaTidBlocks *b)
{
	int64		place = b->node->tss_TidPtr + 1;

	/* until the first call after a rescan there is no list */
	if (b->node->tss_TidList != NULL)
	{
		bool		is_due = la_ahead_next(b->ahead, b->missed);

		if (!la_ahead_has_rows(b->ahead))
			b->base = (int64) la_ahead_next_row(b->ahead) - place;
		while (is_due &&
			   (int64) la_ahead_next_row(b->ahead) - b->base <= place &&
			   la_ahead_turn(b->ahead))
			;
	}
	b->seen_reads = la_issue_blocks_read();
}

/* It has returned one. */
void
la_tidblocks_returned(LaTidBlocks *b)
{
	b->returned++;
	b->missed = la_issue_blocks_read() != b->seen_reads;
}

/* It is rescanned, or has come to its end. */
void
la_tidblocks_clear(LaTidBlocks *b)
{
	b->returned = 0;
	la_ahead_clear(b->ahead);
}

const LaCounters *
la_tidblocks_counters(LaTidBlocks *b)
{
	return la_ahead_counters(b->ahead);
}
