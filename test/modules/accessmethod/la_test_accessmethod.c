/*
 * la_test_accessmethod.c
 *	  An index access method with a function that tells of the current row, and a copy of an
 *	  index's Relation in its scans.
 *
 * The access method is GiST, but remembers which row it has returned last, as those of
 * search extensions remember a score or where a match was.  la_test_row() returns the
 * address of that row.  Called for a row that a scan has just returned, it must return
 * that row's own address; it cannot where the access method was run ahead.
 *
 * la_test_copies(true) has all bitmap index scans of later statements, of any access method,
 * begin with a copy of the index's Relation in their descriptors, whose amgetbitmap is
 * another one.  la_test_copied() returns how often that was called.
 *
 * test/modules/accessmethod/la_test_accessmethod.c
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/gist_private.h"
#include "access/relscan.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "storage/itemptr.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(la_test_handler);
PG_FUNCTION_INFO_V1(la_test_row);
PG_FUNCTION_INFO_V1(la_test_copies);
PG_FUNCTION_INFO_V1(la_test_copied);

static ItemPointerData current;

/* What stands for the index in a descriptor. */
typedef struct Copy
{
	RelationData copy;			/* must be first */
	Relation	real;
	IndexAmRoutine routine;
} Copy;

static bool copies = false;
static int	copied = 0;
static ExecutorStart_hook_type previous_start = NULL;

static bool
get_tuple(IndexScanDesc scan, ScanDirection dir)
{
	if (!gistgettuple(scan, dir))
		return false;
	current = scan->xs_heaptid;
	return true;
}

Datum
la_test_handler(PG_FUNCTION_ARGS)
{
	/* the server frees it, or, from 19 on, keeps it */
	IndexAmRoutine *routine = MemoryContextAlloc(TopMemoryContext, sizeof(IndexAmRoutine));

	*routine = *GetIndexAmRoutine(F_GISTHANDLER);
	routine->amgettuple = get_tuple;
	PG_RETURN_POINTER(routine);
}

Datum
la_test_row(PG_FUNCTION_ARGS)
{
	ItemPointer row = palloc(sizeof(ItemPointerData));

	*row = current;
	PG_RETURN_POINTER(row);
}

/* ---- copies ------------------------------------------------------------------ */

static int64
get_bitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	Copy	   *c = (Copy *) scan->indexRelation;
	int64		n;

	copied++;
	scan->indexRelation = c->real;
	n = c->real->rd_indam->amgetbitmap(scan, tbm);
	scan->indexRelation = &c->copy;
	return n;
}

static void
rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	Copy	   *c = (Copy *) scan->indexRelation;

	scan->indexRelation = c->real;
	c->real->rd_indam->amrescan(scan, keys, nkeys, orderbys, norderbys);
	scan->indexRelation = &c->copy;
}

static void
end_scan(IndexScanDesc scan)
{
	scan->indexRelation = ((Copy *) scan->indexRelation)->real;
	scan->indexRelation->rd_indam->amendscan(scan);
}

static bool
put_copies(PlanState *ps, void *context)
{
	if (IsA(ps, BitmapIndexScanState) && ((BitmapIndexScanState *) ps)->biss_ScanDesc != NULL)
	{
		IndexScanDesc scan = ((BitmapIndexScanState *) ps)->biss_ScanDesc;
		Copy	   *c = MemoryContextAlloc(ps->state->es_query_cxt, sizeof(Copy));

		c->copy = *scan->indexRelation;
		c->real = scan->indexRelation;
		c->routine = *c->real->rd_indam;
		c->routine.amgetbitmap = get_bitmap;
		c->routine.amrescan = rescan;
		c->routine.amendscan = end_scan;
		c->copy.rd_indam = &c->routine;
		scan->indexRelation = &c->copy;
	}
	return planstate_tree_walker(ps, put_copies, context);
}

static void
start(QueryDesc *desc, int eflags)
{
	if (previous_start != NULL)
		previous_start(desc, eflags);
	else
		standard_ExecutorStart(desc, eflags);
	if (copies && desc->planstate != NULL)
		put_copies(desc->planstate, NULL);
}

Datum
la_test_copies(PG_FUNCTION_ARGS)
{
	copies = PG_GETARG_BOOL(0);
	if (ExecutorStart_hook != start)
	{
		previous_start = ExecutorStart_hook;
		ExecutorStart_hook = start;
	}
	PG_RETURN_VOID();
}

Datum
la_test_copied(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(copied);
}
