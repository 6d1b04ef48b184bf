/*
 * la_test_example.c
 *	  The smallest look-ahead: rows of a table, fetched by their addresses.
 *
 * src/README.md shows what is between "begin" and "end", to the letter (dev/lib/example.py), as the
 * example of how a look-ahead is written.  The rest makes it a function of SQL:
 *
 *	la_test_example("table", tids)
 *		Fetches the rows at these addresses, one after the other, and returns
 *
 *		found		rows that the statement's snapshot sees
 *		foreseen	blocks that look-ahead knew before their turn
 *		issued		... whose reads it has started
 *
 * Addresses behind the end of the table are left out, as a TID scan does.
 *
 * test/modules/example/la_test_example.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "attach/attach.h"
#include "base/base.h"
#include "rows/rows.h"
#include "window/window.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

PG_FUNCTION_INFO_V1(la_test_example);

/* ---- begin ---- */
/* Rows that will be fetched, in this order: row n is the one at tids[n]. */
typedef struct Fetch
{
	Relation	table;
	ItemPointerData *tids;
	int			ntids;
	LaAhead    *ahead;			/* NULL: it does not look ahead */
	int			number;			/* of the table, in ahead */
	bool		missed;			/* a block was read for the last row */
} Fetch;

/* The source: is row n known?  Here, all are until the list ends. */
static bool
fetch(void *arg, uint64 n)
{
	return n < (uint64) ((Fetch *) arg)->ntids;
}

/* The need: which blocks will it take?  Here, the one that the address names. */
static void
plan(void *arg, uint64 n, LaAheadRow *row)
{
	Fetch	   *f = arg;

	(void) la_ahead_add_block(row, f->number, ItemPointerGetBlockNumber(&f->tids[n]));
}

/* The rule: may it be early?  Reads of an ordinary table may, if nothing else is done. */
static void
begin(Fetch *f)
{
	LaRowSource source = {.arg = f,.fetch = fetch,.plan = plan};
	LaAheadConfig config = {
		.rel = f->table,
		.known_by = RelationGetRelid(f->table),
		.takes_all = true,
		.order = LA_ORDER_OF_TABLE
	};

	if (!la_enable || !la_gate_is_heap(f->table) || RelationUsesLocalBuffers(f->table))
		return;
	f->ahead = la_ahead_create(&source, &config);
	if (f->ahead != NULL)
		f->number = la_ahead_add_relation(f->ahead, f->table, NULL);
}

/* Fetch row n.  With look-ahead or without, the server's own code finds it. */
static bool
fetch_row(Fetch *f, int n, Snapshot snapshot, TupleTableSlot *slot)
{
	int64		reads;
	bool		found;

	/* once reads are waits, it visits the row's block, and starts reads for rows behind it */
	if (f->ahead != NULL)
	{
		(void) la_ahead_next(f->ahead, f->missed);
		(void) la_ahead_turn(f->ahead);
	}
	reads = la_issue_blocks_read();
	found = table_tuple_fetch_row_version(f->table, &f->tids[n], snapshot, slot);
	f->missed = la_issue_blocks_read() != reads;
	return found;
}

/* ---- end ---- */

/* What look-ahead keeps is returned to the backend's limits, also after an error. */
typedef struct Cleanup
{
	Fetch	   *f;
	Oid			table;
	MemoryContextCallback callback;
} Cleanup;

static void
on_reset(void *arg)
{
	Cleanup    *c = arg;

	if (c->f->ahead != NULL)
		la_ahead_end(c->f->ahead, LA_KIND_TID_SCAN, c->table, c->table);
}

static void
set_addresses(Fetch *f, ArrayType *tids)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(f->table);
	Datum	   *values;
	bool	   *nulls;
	int			n;

	deconstruct_array(tids, TIDOID, sizeof(ItemPointerData), false, TYPALIGN_SHORT,
					  &values, &nulls, &n);
	f->tids = palloc(Max(n, 1) * sizeof(ItemPointerData));
	for (int i = 0; i < n; i++)
	{
		ItemPointer tid = nulls[i] ? NULL : (ItemPointer) DatumGetPointer(values[i]);

		if (ItemPointerIsValid(tid) && ItemPointerGetBlockNumber(tid) < nblocks)
			f->tids[f->ntids++] = *tid;
	}
}

Datum
la_test_example(PG_FUNCTION_ARGS)
{
	Fetch	   *f = palloc0(sizeof(Fetch));
	Cleanup    *c = palloc0(sizeof(Cleanup));
	LaSqlRow	row = {0};
	TupleTableSlot *slot;
	int64		found = 0;

	f->table = table_open(PG_GETARG_OID(0), AccessShareLock);
	set_addresses(f, PG_GETARG_ARRAYTYPE_P(1));
	c->f = f;
	c->table = RelationGetRelid(f->table);
	c->callback.func = on_reset;
	c->callback.arg = c;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &c->callback);

	begin(f);
	slot = table_slot_create(f->table, NULL);
	for (int i = 0; i < f->ntids; i++)
		found += fetch_row(f, i, GetActiveSnapshot(), slot);
	ExecDropSingleTupleTableSlot(slot);

	la_sqlrow_put(&row, Int64GetDatum(found));
	for (int i = LA_BLOCKS_FORESEEN; i <= LA_BLOCKS_ISSUED; i++)
		la_sqlrow_put(&row, Int64GetDatum(f->ahead != NULL ?
										  la_ahead_counters(f->ahead)->c[i] : 0));
	table_close(f->table, NoLock);
	return la_sqlrow_datum(&row, fcinfo);
}

/* The rooms below, as pg_lookahead.c prepares them. */
void
_PG_init(void)
{
	la_base_init();
	la_history_init();
	la_share_init();
	la_storage_init();
}
