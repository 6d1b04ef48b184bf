/*
 * la_test_tableam.c
 *	  A table access method whose pages are heap's and whose descriptors are not.
 *
 * Whoever takes its scan descriptor for one of heap finds bytes that lead nowhere: the members of
 * every access method begin as the server's do, and go on as they like.  So it does with what it
 * keeps for the fetches of an index scan.  It has no bitmap scans.
 *
 * test/modules/tableam/la_test_tableam.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "fmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(la_test_table_handler);

#define NONSENSE	0x7e

typedef struct Scan
{
	TableScanDescData base;		/* what the server knows */
	char		nonsense[2 * sizeof(HeapScanDescData)];
	TableScanDesc heap;
} Scan;

typedef struct Fetch
{
	IndexFetchTableData base;
	char		nonsense[2 * sizeof(IndexFetchHeapData)];
	IndexFetchTableData *heap;
} Fetch;

#define heapam()		GetHeapamTableAmRoutine()
#define heap_of(scan)	(((Scan *) (scan))->heap)

static TableScanDesc
scan_begin(Relation rel, Snapshot snapshot, int nkeys, struct ScanKeyData *key,
		   ParallelTableScanDesc parallel, uint32 flags)
{
	Scan	   *scan = palloc(sizeof(Scan));

	memset(scan, NONSENSE, sizeof(Scan));
	scan->heap = heapam()->scan_begin(rel, snapshot, nkeys, key, parallel, flags);
	scan->base = *scan->heap;
	return &scan->base;
}

static void
scan_end(TableScanDesc scan)
{
	heapam()->scan_end(heap_of(scan));
	pfree(scan);
}

static void
scan_rescan(TableScanDesc scan, struct ScanKeyData *key, bool set_params, bool allow_strat,
			bool allow_sync, bool allow_pagemode)
{
	heapam()->scan_rescan(heap_of(scan), key, set_params, allow_strat, allow_sync, allow_pagemode);
	scan->rs_flags = heap_of(scan)->rs_flags;
}

static bool
scan_getnextslot(TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot)
{
	return heapam()->scan_getnextslot(heap_of(scan), direction, slot);
}

static void
scan_set_tidrange(TableScanDesc scan, ItemPointer first, ItemPointer last)
{
	heapam()->scan_set_tidrange(heap_of(scan), first, last);
}

static bool
scan_getnextslot_tidrange(TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot)
{
	return heapam()->scan_getnextslot_tidrange(heap_of(scan), direction, slot);
}

static bool
scan_sample_next_block(TableScanDesc scan, struct SampleScanState *state)
{
	return heapam()->scan_sample_next_block(heap_of(scan), state);
}

static bool
scan_sample_next_tuple(TableScanDesc scan, struct SampleScanState *state, TupleTableSlot *slot)
{
	return heapam()->scan_sample_next_tuple(heap_of(scan), state, slot);
}

#if PG_VERSION_NUM < 170000
static bool
scan_analyze_next_block(TableScanDesc scan, BlockNumber block, BufferAccessStrategy strategy)
{
	return heapam()->scan_analyze_next_block(heap_of(scan), block, strategy);
}
#else
static bool
scan_analyze_next_block(TableScanDesc scan, ReadStream *stream)
{
	return heapam()->scan_analyze_next_block(heap_of(scan), stream);
}
#endif

#if PG_VERSION_NUM < 190000
static bool
scan_analyze_next_tuple(TableScanDesc scan, TransactionId oldest, double *live, double *dead,
						TupleTableSlot *slot)
{
	return heapam()->scan_analyze_next_tuple(heap_of(scan), oldest, live, dead, slot);
}
#else
static bool
scan_analyze_next_tuple(TableScanDesc scan, double *live, double *dead, TupleTableSlot *slot)
{
	return heapam()->scan_analyze_next_tuple(heap_of(scan), live, dead, slot);
}
#endif

/* heap begins a scan of its own, unless it is given one */
static double
index_build_range_scan(Relation table, Relation index, struct IndexInfo *info, bool allow_sync,
					   bool anyvisible, bool progress, BlockNumber start, BlockNumber nblocks,
					   IndexBuildCallback callback, void *state, TableScanDesc scan)
{
	const TableAmRoutine *own = table->rd_tableam;
	double		result;

	table->rd_tableam = heapam();
	result = heapam()->index_build_range_scan(table, index, info, allow_sync, anyvisible, progress,
											  start, nblocks, callback, state,
											  scan == NULL ? NULL : heap_of(scan));
	table->rd_tableam = own;
	return result;
}

static IndexFetchTableData *
fetch_of(IndexFetchTableData *heap)
{
	Fetch	   *fetch = palloc(sizeof(Fetch));

	memset(fetch, NONSENSE, sizeof(Fetch));
	fetch->heap = heap;
	fetch->base = *heap;
	return &fetch->base;
}

#if PG_VERSION_NUM < 190000
static IndexFetchTableData *
index_fetch_begin(Relation rel)
{
	return fetch_of(heapam()->index_fetch_begin(rel));
}
#else
static IndexFetchTableData *
index_fetch_begin(Relation rel, uint32 flags)
{
	return fetch_of(heapam()->index_fetch_begin(rel, flags));
}
#endif

static void
index_fetch_reset(IndexFetchTableData *fetch)
{
	heapam()->index_fetch_reset(((Fetch *) fetch)->heap);
}

static void
index_fetch_end(IndexFetchTableData *fetch)
{
	heapam()->index_fetch_end(((Fetch *) fetch)->heap);
	pfree(fetch);
}

static bool
index_fetch_tuple(IndexFetchTableData *fetch, ItemPointer tid, Snapshot snapshot,
				  TupleTableSlot *slot, bool *call_again, bool *all_dead)
{
	return heapam()->index_fetch_tuple(((Fetch *) fetch)->heap, tid, snapshot, slot, call_again,
									   all_dead);
}

Datum
la_test_table_handler(PG_FUNCTION_ARGS)
{
	static TableAmRoutine routine;

	routine = *heapam();
	routine.scan_begin = scan_begin;
	routine.scan_end = scan_end;
	routine.scan_rescan = scan_rescan;
	routine.scan_getnextslot = scan_getnextslot;
	routine.scan_set_tidrange = scan_set_tidrange;
	routine.scan_getnextslot_tidrange = scan_getnextslot_tidrange;
	routine.scan_sample_next_block = scan_sample_next_block;
	routine.scan_sample_next_tuple = scan_sample_next_tuple;
	routine.scan_analyze_next_block = scan_analyze_next_block;
	routine.scan_bitmap_next_tuple = NULL;
#if PG_VERSION_NUM < 180000
	routine.scan_bitmap_next_block = NULL;
#endif
	routine.scan_analyze_next_tuple = scan_analyze_next_tuple;
	routine.index_build_range_scan = index_build_range_scan;
	routine.index_fetch_begin = index_fetch_begin;
	routine.index_fetch_reset = index_fetch_reset;
	routine.index_fetch_end = index_fetch_end;
	routine.index_fetch_tuple = index_fetch_tuple;
	PG_RETURN_POINTER(&routine);
}
