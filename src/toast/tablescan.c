/*
 * tablescan.c
 *	  Between a sequential, bitmap heap or TID range scan and heapam.
 *
 *		executor, COPY TO ...:	table_scan_getnextslot(scan), table_scan_bitmap_next_tuple(scan)
 *						| scan->rs_rd->rd_tableam->scan_getnextslot
 *						v
 *		shadow Relation (a copy, this scan's own) ---> our routine ---> heapam's
 *						|
 *						+--> the follower looks at the rows to come
 *
 * As an index scan's descriptor is pointed at a copy of the index (scan/shim.c), a table scan's is
 * pointed at a copy of the table's descriptor, whose routine is ours, and back at the table around
 * every call of heapam.  An error in heapam leaves the table there; no scan goes on after an error.
 * The copy is taken out for good when the scan ends, or when there is nothing to follow it for.
 * Until 17 the node of a bitmap heap scan uses the Relation in the descriptor for its prefetch, too
 * (base/compat_bitmap.h).
 *
 * The rows to come are found by rows/tablecursor.c.  Of a scan that returns all versions of rows
 * (VACUUM FULL: SnapshotAny), those that the statement's own snapshot sees have values that will be
 * fetched, and are sure to be there still (rewrite.c).
 *
 * src/toast/tablescan.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "attach/descriptors.h"
#include "base/compat.h"
#include "base/compat_bitmap.h"
#include "rows/rows.h"
#include "toast/toast_int.h"

typedef struct TableScan
{
	RelationData shadow;		/* must be first: scan->rs_rd points here */
	Relation	real;
	TableScanDesc scan;
	LaTableCursor cursor;		/* its rows to come */
	LaFollower *follower;
	MemoryContext context;
	MemoryContextCallback callback;
	bool		owns_context;
} TableScan;

/* Ours, for all scans. */
static TableAmRoutine routine;

/* ---- our routine ------------------------------------------------------------------ */

/* Take the copy out. */
static void
leave(TableScan *s)
{
	s->scan->rs_rd = s->real;
	s->follower = NULL;
	la_shadow_leave(&s->shadow);
	la_tablecursor_restart(&s->cursor);
}

/* ... and put in again, after a call of heapam. */
static void
enter(TableScan *s)
{
	la_shadow_enter(&s->shadow, s->real);
	s->scan->rs_rd = &s->shadow;
}

static void
on_context_reset(void *arg)
{
	la_shadow_leave(&((TableScan *) arg)->shadow);
}

/* The scan ends, or is followed no more. */
static void
forget(TableScan *s)
{
	leave(s);
	if (s->owns_context)
		MemoryContextDelete(s->context);
}

/* heapam has looked for the next row. */
static void
follow_row(TableScan *s, ScanDirection direction, bool found)
{
	enter(s);
	if (!ScanDirectionIsForward(direction))
		s->follower->clear(s->follower);
	else if (found && !la_follow(s->follower))
		forget(s);
}

static bool
shim_getnextslot(TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot)
{
	TableScan  *s = (TableScan *) scan->rs_rd;
	bool		found;

	scan->rs_rd = s->real;
	found = s->real->rd_tableam->scan_getnextslot(scan, direction, slot);
	follow_row(s, direction, found);
	return found;
}

static bool
shim_getnextslot_tidrange(TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot)
{
	TableScan  *s = (TableScan *) scan->rs_rd;
	bool		found;

	scan->rs_rd = s->real;
	found = s->real->rd_tableam->scan_getnextslot_tidrange(scan, direction, slot);
	follow_row(s, direction, found);
	return found;
}

static void
shim_set_tidrange(TableScanDesc scan, ItemPointer first, ItemPointer last)
{
	TableScan  *s = (TableScan *) scan->rs_rd;

	scan->rs_rd = s->real;
	s->real->rd_tableam->scan_set_tidrange(scan, first, last);
	enter(s);
}

/* Until 17: the scan turns to a page. */
static bool
shim_bitmap_next_block(TableScanDesc scan, struct TBMIterateResult *page)
{
	TableScan  *s = (TableScan *) scan->rs_rd;
	bool		found;

	scan->rs_rd = s->real;
	found = la_bitmap_next_block(s->real, scan, page);
	enter(s);
	return found;
}

static bool
shim_bitmap_next_tuple(LA_BITMAP_NEXT_ARGS)
{
	TableScan  *s = (TableScan *) scan->rs_rd;
	bool		found;

	scan->rs_rd = s->real;
	found = s->real->rd_tableam->scan_bitmap_next_tuple(LA_BITMAP_NEXT_PASS);
	follow_row(s, ForwardScanDirection, found);
	return found;
}

static void
shim_rescan(TableScanDesc scan, struct ScanKeyData *key, bool set_params, bool allow_strat,
			bool allow_sync, bool allow_pagemode)
{
	TableScan  *s = (TableScan *) scan->rs_rd;

	s->follower->clear(s->follower);
	la_tablecursor_restart(&s->cursor);
	scan->rs_rd = s->real;
	s->real->rd_tableam->scan_rescan(scan, key, set_params, allow_strat, allow_sync,
									 allow_pagemode);
	enter(s);
}

static void
shim_end(TableScanDesc scan)
{
	TableScan  *s = (TableScan *) scan->rs_rd;
	Relation	real = s->real;

	s->follower->end(s->follower);
	forget(s);
	real->rd_tableam->scan_end(scan);
}

static void
init_routine(const TableAmRoutine *heapam)
{
	if (routine.type == T_TableAmRoutine)
		return;
	routine = *heapam;
	routine.scan_getnextslot = shim_getnextslot;
	routine.scan_getnextslot_tidrange = shim_getnextslot_tidrange;
	routine.scan_set_tidrange = shim_set_tidrange;
	la_bitmap_set_block_function(&routine, shim_bitmap_next_block);
	routine.scan_bitmap_next_tuple = shim_bitmap_next_tuple;
	routine.scan_rescan = shim_rescan;
	routine.scan_end = shim_end;
}

/*
 * Have the rows of a scan of a heap table followed, whose values may be read ahead.  The context
 * lives as long as the scan.  node is NULL where there is no plan; desc, where it is the table's.
 */
void
la_tablescan_follow(TableScanDesc scan, PlanState *node, const LaToastColumns *columns,
					TupleDesc desc, MemoryContext context)
{
	TableScan  *s;
	bool		all_versions = scan->rs_snapshot == SnapshotAny && ActiveSnapshotSet();
	LaValueScan values = {
		.node = node,
		.rows.table = scan->rs_rd,
		.rows.desc = desc,
		.rows.snapshot = all_versions ? GetActiveSnapshot() : scan->rs_snapshot,
		.rows.versions = true,
		.rows.strategy = &la_heap_scan(scan, scan->rs_rd)->rs_strategy,
		.rows.columns = *columns,
		.context = context
	};

	if ((scan->rs_flags & SO_ALLOW_PAGEMODE) == 0 && !all_versions)
		return;
	init_routine(scan->rs_rd->rd_tableam);

	/*
	 * a statement without a plan may scan many tables, and EXPLAIN does not
	 * ask
	 */
	if (node == NULL)
		values.context = context = AllocSetContextCreate(context, "pg_lookahead table scan",
														 ALLOCSET_SMALL_SIZES);
	s = MemoryContextAllocZero(context, sizeof(TableScan));
	s->owns_context = node == NULL;
	memcpy(&s->shadow, scan->rs_rd, sizeof(RelationData));
	s->shadow.rd_tableam = &routine;
	s->shadow.rd_smgr = NULL;
	s->real = scan->rs_rd;
	s->scan = scan;
	s->context = context;
	s->cursor.table = s->real;
	s->cursor.scan = &s->scan;
	if (node != NULL && IsA(node, BitmapHeapScanState))
		s->cursor.bitmap = (BitmapHeapScanState *) node;
	s->cursor.reads_on = true;
	s->cursor.context = context;
	s->callback.func = on_context_reset;
	s->callback.arg = s;
	MemoryContextRegisterResetCallback(context, &s->callback);
	values.coming.arg = &s->cursor;
	values.coming.peek = la_tablecursor_peek;
	s->follower = la_valueahead_create(&values);
	enter(s);
}
