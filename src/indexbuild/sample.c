/*
 * sample.c
 *	  A look at some rows of a table before its index is built.
 *
 * Ranks (rank.c) pay when a column has few different values.  That there are too
 * many would come out in the middle of the table, and the rest of the scan would be
 * for nothing, so a few ranges of blocks, spread over the table, are looked at
 * before.  What the sample has found stays in the ranks.
 *
 * Rows of the sample are those that a snapshot sees, which need not be those that
 * the index gets: it is an estimate.  Without statistics, since an index is often
 * built before the first ANALYZE.
 *
 * Indexes with expressions or a predicate are not sampled, since that would call
 * functions for rows that stock would not call them for.  Nor is anything sampled
 * in a serializable transaction: reading rows by a snapshot may be found to conflict
 * with others, which stock's build cannot.
 *
 * src/indexbuild/sample.c
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "indexbuild/sample.h"

#define RANGES			64
#define RANGE_BLOCKS	2

/* of smaller tables, the scan itself is short */
#define MIN_BLOCKS		512

double
la_estimate_rows(Relation heap)
{
	BlockNumber pages;
	double		rows;
	double		visible;

	table_relation_estimate_size(heap, NULL, &pages, &rows, &visible);
	return rows;
}

/*
 * Encode the rows of some blocks.  It stops where the key is given up.  The context is
 * for what one row needs.
 */
static void
sample_range(Relation heap, IndexInfo *info, LaNormalizedKey *key, Snapshot snapshot,
			 BlockNumber start, TupleTableSlot *slot, MemoryContext context)
{
	MemoryContext old;
	ItemPointerData first;
	ItemPointerData last;
	TableScanDesc scan;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint8		buffer[256];
	bool		has_null;

	ItemPointerSet(&first, start, FirstOffsetNumber);
	ItemPointerSet(&last, start + RANGE_BLOCKS - 1, MaxOffsetNumber);
	scan = la_table_beginscan_tidrange(heap, snapshot, &first, &last);
	while (table_scan_getnextslot_tidrange(scan, ForwardScanDirection, slot))
	{
		int			length;

		old = MemoryContextSwitchTo(context);
		FormIndexDatum(info, slot, NULL, values, isnull);
		length = la_normkey_encode(key, values, isnull, buffer, sizeof(buffer),
								   &has_null);
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
		if (length == LA_SORTKEY_GIVEN_UP)
			break;
	}
	table_endscan(scan);
}

/*
 * Are ranks worth trying for this table?
 */
bool
la_sample_is_worthwhile(Relation heap, IndexInfo *info, LaNormalizedKey *key)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	MemoryContext context;
	MemoryContext row;
	MemoryContext old;
	TupleTableSlot *slot;
	Snapshot	snapshot;

	if (nblocks < MIN_BLOCKS || info->ii_Expressions != NIL ||
		info->ii_Predicate != NIL || heap->rd_tableam->scan_set_tidrange == NULL ||
		IsolationIsSerializable())
		return true;

	context = AllocSetContextCreate(CurrentMemoryContext, "pg_lookahead sample",
									ALLOCSET_DEFAULT_SIZES);
	row = AllocSetContextCreate(context, "pg_lookahead sampled row",
								ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	slot = table_slot_create(heap, NULL);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	for (int i = 0; i < RANGES; i++)
	{
		CHECK_FOR_INTERRUPTS();
		sample_range(heap, info, key, snapshot,
					 (BlockNumber) ((double) (nblocks - RANGE_BLOCKS) * i / RANGES),
					 slot, row);
	}
	UnregisterSnapshot(snapshot);
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return la_normkey_is_worthwhile(key);
}
