/*
 * la_test_accessmethod.c
 *	  An index access method with a function that tells of the current row.
 *
 * The access method is GiST, but remembers which row it has returned last, as those of
 * search extensions remember a score or where a match was.  la_test_row() returns the
 * address of that row.  Called for a row that a scan has just returned, it must return
 * that row's own address; it cannot where the access method was run ahead.
 *
 * test/modules/accessmethod/la_test_accessmethod.c
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/gist_private.h"
#include "access/relscan.h"
#include "fmgr.h"
#include "storage/itemptr.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(la_test_handler);
PG_FUNCTION_INFO_V1(la_test_row);

static ItemPointerData current;

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
