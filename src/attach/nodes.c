/*
 * nodes.c
 *	  What is known of each kind of node: its children, and what it does with their rows.
 *
 * A node that is not in the table has none of the properties, so that nothing is concluded from
 * kinds that a later release adds.
 *
 * src/attach/nodes.c
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_am.h"

#include "attach/attach.h"

#define SIMPLE		LA_NODE_IS_SIMPLE
#define ONE_TO_ONE	LA_NODE_ONE_TO_ONE
#define ASKS		LA_NODE_ASKS_ALIKE
#define READS		LA_NODE_READS_ALIKE
#define REPEATS		LA_NODE_REPEATS
#define BOUNDS		LA_NODE_BOUNDS
#define CURSOR		LA_NODE_HAS_CURSOR
#define TABLE		LA_NODE_SCANS_TABLE

const uint8 la_node_properties[T_LimitState + 1] = {
	/* nodes that pass rows on */
	[T_ResultState] = SIMPLE | ONE_TO_ONE | ASKS | READS | REPEATS | BOUNDS | CURSOR,
	[T_SubqueryScanState] = ONE_TO_ONE | ASKS | READS | REPEATS | BOUNDS | CURSOR,
	[T_AppendState] = ASKS | READS | REPEATS | BOUNDS | CURSOR,
	[T_MergeAppendState] = ASKS | READS | REPEATS | BOUNDS,
	[T_LimitState] = SIMPLE | ASKS | READS | REPEATS | CURSOR,
	[T_MemoizeState] = SIMPLE | ASKS | READS | REPEATS,
	[T_MaterialState] = SIMPLE | READS | REPEATS,
	[T_ProjectSetState] = SIMPLE | READS | REPEATS,
	[T_UniqueState] = SIMPLE | READS | REPEATS,
	[T_LockRowsState] = SIMPLE | READS,
	[T_ModifyTableState] = SIMPLE | READS,
	[T_GatherState] = SIMPLE | READS | BOUNDS,
	[T_GatherMergeState] = SIMPLE | READS | BOUNDS,

	/* nodes that make others of them */
	[T_SortState] = SIMPLE | READS | REPEATS,
	[T_IncrementalSortState] = SIMPLE | READS | REPEATS,
	[T_HashState] = SIMPLE | READS | REPEATS,
	[T_AggState] = SIMPLE | READS | REPEATS,
	[T_GroupState] = SIMPLE | READS | REPEATS,
	[T_WindowAggState] = SIMPLE | READS | REPEATS,
	[T_NestLoopState] = SIMPLE | READS | REPEATS,
	[T_HashJoinState] = SIMPLE | READS | REPEATS,
	[T_MergeJoinState] = SIMPLE | REPEATS,
	[T_SetOpState] = SIMPLE | REPEATS,

	/* scans */
	[T_SeqScanState] = SIMPLE | TABLE,
	[T_SampleScanState] = SIMPLE | TABLE,
	[T_IndexScanState] = SIMPLE | ASKS | TABLE,
	[T_IndexOnlyScanState] = SIMPLE | ASKS | TABLE,
	[T_BitmapHeapScanState] = SIMPLE | TABLE,
	[T_TidScanState] = SIMPLE | TABLE,
	[T_TidRangeScanState] = SIMPLE | TABLE,
	[T_ForeignScanState] = SIMPLE | TABLE,
	[T_CustomScanState] = TABLE,
};

/* A child, by its number from 0 on; NULL: there are no more.  Subplans are none. */
PlanState *
la_node_child(const PlanState *ps, int n)
{
	PlanState **members;
	int			nmembers;

	switch (nodeTag(ps))
	{
		case T_AppendState:
			members = ((const AppendState *) ps)->appendplans;
			nmembers = ((const AppendState *) ps)->as_nplans;
			break;
		case T_MergeAppendState:
			members = ((const MergeAppendState *) ps)->mergeplans;
			nmembers = ((const MergeAppendState *) ps)->ms_nplans;
			break;
		case T_BitmapAndState:
			members = ((const BitmapAndState *) ps)->bitmapplans;
			nmembers = ((const BitmapAndState *) ps)->nplans;
			break;
		case T_BitmapOrState:
			members = ((const BitmapOrState *) ps)->bitmapplans;
			nmembers = ((const BitmapOrState *) ps)->nplans;
			break;
		case T_SubqueryScanState:
			return n == 0 ? ((const SubqueryScanState *) ps)->subplan : NULL;
		default:
			return n == 0 ? outerPlanState(ps) : n == 1 ? innerPlanState(ps) : NULL;
	}
	return n < nmembers ? members[n] : NULL;
}

/* Do the keys fix all columns of a unique btree index?  NULL: there is no index. */
static bool
is_look_up(Relation index, const ScanKeyData *keys, int nkeys)
{
	uint32		fixed = 0;

	if (index == NULL || !index->rd_index->indisunique || index->rd_rel->relam != BTREE_AM_OID)
		return false;
	for (int i = 0; i < nkeys; i++)
	{
		if (keys[i].sk_strategy == BTEqualStrategyNumber &&
			(keys[i].sk_flags & (SK_SEARCHARRAY | SK_SEARCHNULL |
								 SK_SEARCHNOTNULL | SK_ROW_HEADER)) == 0)
			fixed |= (uint32) 1 << (keys[i].sk_attno - 1);
	}
	return fixed == (uint32) (((uint64) 1 << IndexRelationGetNumberOfKeyAttributes(index)) - 1);
}

/* Does it return at most one row each time that it is executed? */
bool
la_node_has_one_row(const PlanState *ps)
{
	if (IsA(ps, IndexScanState))
	{
		const IndexScanState *scan = (const IndexScanState *) ps;

		return is_look_up(scan->iss_RelationDesc, scan->iss_ScanKeys, scan->iss_NumScanKeys);
	}
	if (IsA(ps, IndexOnlyScanState))
	{
		const IndexOnlyScanState *scan = (const IndexOnlyScanState *) ps;

		return is_look_up(scan->ioss_RelationDesc, scan->ioss_ScanKeys, scan->ioss_NumScanKeys);
	}
	return IsA(ps, ResultState) && outerPlanState(ps) == NULL;
}
