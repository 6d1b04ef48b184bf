/*
 * sample.c
 *	  A sample of a table, before dictionaries are made for its index.
 *
 * A dictionary (dictionary.c) pays off when a column has few different values.  If it has too many,
 * that is found in the middle of the table, and the scan was for nothing.  So some ranges of
 * blocks, spread evenly over the table, are sampled before.  The values of the sample stay in the
 * dictionaries.  The planner's statistics are not used, since indexes are often built before the
 * first ANALYZE.  The rows of the sample are those that a snapshot sees, which need not be those
 * that the index gets: it is an estimate.
 *
 * Indexes with expressions or a predicate are not sampled: functions would be called for rows for
 * which the server does not call them.  Nor is anything sampled in a serializable transaction,
 * where reading rows by a snapshot can conflict with others, unlike the server's build.
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
#include "indexbuild/indexbuild_int.h"

#define RANGES			64
#define RANGE_BLOCKS	2

/* The scan of a smaller table is short. */
#define MIN_BLOCKS		512

/*
 * Encode the rows of a range of blocks, up to the first one without a key.  The context is
 * reset with each row.
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
		if (length == LA_NORMKEY_NONE)
			break;
	}
	table_endscan(scan);
}

/* Do the columns with a dictionary seem to have few enough values? */
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
