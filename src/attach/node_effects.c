/*
 * node_effects.c
 *	  What a plan node evaluates, and when.
 *
 * For each kind of node, its expressions and the functions by which it compares or hashes,
 * without those of its children, according to the calls of the node that evaluate them:
 *
 *		start	only the first call after the start or a rescan: keys of scans, LIMIT and
 *				OFFSET, functions in FROM, run-time pruning
 *		keys	any call, for each outer row before anything else: the key that a hash join
 *				looks up
 *		later	any call
 *
 * A kind of node that is not known here has effects, and so have writes, row locks, foreign
 * scans, custom scans, and scans of tables whose access method is not heap.
 *
 * src/attach/node_effects.c
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/transam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_type.h"
#include "executor/execPartition.h"

#include "attach/attach.h"
#include "attach/attach_int.h"
#include "base/compat.h"

static void
note(LaEffects *e, const void *expression)
{
	la_effects_of_expression(e, (Node *) expression);
}

/* A number of rows, or how far a window reaches: the node refuses a negative one. */
static void
note_count(LaEffects *e, const Node *count)
{
	const Const *value = (const Const *) count;

	note(e, count);
	if (count != NULL &&
		!(IsA(count, Const) && value->consttype == INT8OID &&
		  !value->constisnull && DatumGetInt64(value->constvalue) >= 0))
		la_effects_add(e, LA_MAY_FAIL, NULL);
}

static void
note_hashed(LaEffects *e, int n, const Oid *operators, const Oid *collations)
{
	la_effects_of_operators(e, n, operators, collations);
	for (int i = 0; i < n; i++)
		la_effects_of_hashing(e, operators[i]);
}

/*
 * The keys of a scan.  They are evaluated when it starts, and compared with the entries of each
 * page that it comes to.  Access methods other than btree may have the executor evaluate them for
 * rows.  (The index is open: only EXPLAIN leaves it closed, which executes nothing.)
 */
static void
note_index(LaEffects *start, LaEffects *later, Relation index, const List *quals,
		   const List *rechecks, const List *orderbys)
{
	LaEffects  *each = index->rd_rel->relam == BTREE_AM_OID ? start : later;
	ListCell   *lc;

	note(each, quals);
	foreach(lc, quals)
		la_effects_of_node(later, lfirst(lc));
	note(each, rechecks);
	note(later, orderbys);
	la_effects_of_index(later, index);
}

static void
note_pruning(LaEffects *start, const PartitionPruneState *pruning)
{
	if (pruning == NULL || !pruning->do_exec_prune)
		return;
	for (int i = 0; i < pruning->num_partprunedata; i++)
	{
		const PartitionPruningData *tree = pruning->partprunedata[i];

		for (int j = 0; j < tree->num_partrelprunedata; j++)
		{
			ListCell   *lc;

			foreach(lc, tree->partrelprunedata[j].exec_pruning_steps)
			{
				PartitionPruneStepOp *step = lfirst(lc);
				ListCell   *function;

				if (!IsA(step, PartitionPruneStepOp))
					continue;
				note(start, step->exprs);
				foreach(function, step->cmpfns)
					la_effects_of_function(start, lfirst_oid(function));
			}
		}
	}
}

static void
note_sample(LaEffects *later, const SampleScan *plan)
{
	const TableSampleClause *sample = plan->tablesample;

	if (sample->tsmhandler >= FirstNormalObjectId)
		la_effects_add(later, LA_HAS_EFFECTS, "a sampling method is not the server's");
	else if (sample->repeatable == NULL)
		la_effects_add(later, LA_HAS_EFFECTS, "a sample is not repeatable");
	la_effects_add(later, LA_MAY_FAIL, NULL);
	note(later, sample->args);
	note(later, sample->repeatable);
}

/*
 * Are rows of the table overwritten in place, where no snapshot protects them?  nextval() does so,
 * ANALYZE, CREATE INDEX, and whatever computes the oldest transaction of a database.
 */
static bool
is_overwritten(Relation table)
{
	return table->rd_rel->relkind == RELKIND_SEQUENCE ||
		RelationGetRelid(table) == RelationRelationId ||
		RelationGetRelid(table) == DatabaseRelationId;
}

/* Scans.  Returns false for other nodes, as do the functions for other groups. */
static bool
note_scan(PlanState *ps, LaEffects *start, LaEffects *later)
{
	Plan	   *plan = ps->plan;
	Relation	table;

	switch (nodeTag(ps))
	{
		case T_SeqScanState:
			break;
		case T_SampleScanState:
			note_sample(later, (SampleScan *) plan);
			break;
		case T_IndexScanState:
			note_index(start, later, ((IndexScanState *) ps)->iss_RelationDesc,
					   ((IndexScan *) plan)->indexqualorig, NIL,
					   ((IndexScan *) plan)->indexorderbyorig);
			break;
		case T_IndexOnlyScanState:
			note_index(start, later, ((IndexOnlyScanState *) ps)->ioss_RelationDesc,
					   ((IndexOnlyScan *) plan)->indexqual,
					   ((IndexOnlyScan *) plan)->recheckqual,
					   ((IndexOnlyScan *) plan)->indexorderby);
			break;
		case T_BitmapIndexScanState:
			/* all of it is one call */
			note_index(start, start, ((BitmapIndexScanState *) ps)->biss_RelationDesc,
					   NIL, NIL, NIL);
			note(start, ((BitmapIndexScan *) plan)->indexqualorig);
			return true;
		case T_BitmapHeapScanState:
			note(later, ((BitmapHeapScan *) plan)->bitmapqualorig);
			break;
		case T_TidScanState:
			note(start, ((TidScan *) plan)->tidquals);
			break;
		case T_TidRangeScanState:
			note(start, ((TidRangeScan *) plan)->tidrangequals);
			break;
		default:
			return false;
	}
	table = ((ScanState *) ps)->ss_currentRelation;
	if (table != NULL && !la_gate_is_heap(table))
		la_effects_add(later, LA_HAS_EFFECTS, "a table access method is not heap");
	if (table != NULL && is_overwritten(table))
		la_effects_add(later, LA_READS_STATE, NULL);
	return true;
}

/* Sources of rows that are not tables. */
static bool
note_source(PlanState *ps, LaEffects *start, LaEffects *later)
{
	switch (nodeTag(ps))
	{
		case T_FunctionScanState:
			note(start, ((FunctionScan *) ps->plan)->functions);
			return true;
		case T_TableFuncScanState:
			/* JSON_TABLE or XMLTABLE: all rows are made by the first call */
			la_effects_add(start, LA_HAS_EFFECTS, "a node is of a kind that is not known");
			return true;
		case T_ValuesScanState:
			note(later, ((ValuesScan *) ps->plan)->values_lists);
			return true;
		case T_ResultState:
			note(start, ((Result *) ps->plan)->resconstantqual);
			return true;
		case T_SubqueryScanState:
		case T_CteScanState:
		case T_WorkTableScanState:
		case T_NamedTuplestoreScanState:
		case T_ProjectSetState:
		case T_MaterialState:
		case T_GatherState:
		case T_BitmapAndState:
		case T_BitmapOrState:
			return true;
		case T_AppendState:
			note_pruning(start, ((AppendState *) ps)->as_prune_state);
			if (((AppendState *) ps)->as_nasyncplans > 0)
				la_effects_add(later, LA_HAS_EFFECTS, "an Append is asynchronous");
			return true;
		default:
			return false;
	}
}

static void
note_clause_operators(LaEffects *later, const List *clauses)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		if (IsA(lfirst(lc), OpExpr))
			la_effects_of_operator(later, ((OpExpr *) lfirst(lc))->opno,
								   ((OpExpr *) lfirst(lc))->inputcollid);
	}
}

/* The inner sides of hash clauses have been evaluated when the table was built. */
static void
note_hash_join(LaNodeEffects *e, const HashJoin *plan)
{
	ListCell   *lc;

	note(&e->keys, plan->hashkeys);
	note(&e->keys, plan->hashclauses);
	foreach(lc, plan->hashoperators)
		la_effects_of_hashing(&e->keys, lfirst_oid(lc));
	note(&e->later, plan->join.joinqual);
	note_clause_operators(&e->later, plan->hashclauses);
}

static bool
note_join(PlanState *ps, LaNodeEffects *e)
{
	LaEffects  *later = &e->later;
	MergeJoin  *merge;
	Memoize    *memoize;

	switch (nodeTag(ps))
	{
		case T_NestLoopState:
			note(later, ((NestLoop *) ps->plan)->join.joinqual);
			return true;
		case T_MergeJoinState:
			merge = (MergeJoin *) ps->plan;
			note(later, merge->join.joinqual);
			note(later, merge->mergeclauses);
			note_clause_operators(later, merge->mergeclauses);
			return true;
		case T_HashJoinState:
			note_hash_join(e, (HashJoin *) ps->plan);
			return true;
		case T_HashState:
			note(&e->start, ((Hash *) ps->plan)->hashkeys);
			return true;
		case T_MemoizeState:
			memoize = (Memoize *) ps->plan;
			note(later, memoize->param_exprs);
			note_hashed(later, memoize->numKeys, memoize->hashOperators, memoize->collations);
			return true;
		default:
			return false;
	}
}

static void
note_agg(LaEffects *later, const Agg *agg)
{
	ListCell   *lc;

	if (agg->aggstrategy == AGG_HASHED || agg->aggstrategy == AGG_MIXED)
		note_hashed(later, agg->numCols, agg->grpOperators, agg->grpCollations);
	else
		la_effects_of_operators(later, agg->numCols, agg->grpOperators, agg->grpCollations);
	foreach(lc, agg->chain)
		note_agg(later, lfirst(lc));
}

static void
note_window(LaEffects *later, const WindowAgg *window)
{
	la_effects_of_operators(later, window->partNumCols, window->partOperators,
							window->partCollations);
	la_effects_of_operators(later, window->ordNumCols, window->ordOperators,
							window->ordCollations);
	la_effects_of_function(later, window->startInRangeFunc);
	la_effects_of_function(later, window->endInRangeFunc);
	note_count(later, window->startOffset);
	note_count(later, window->endOffset);
	note(later, window->runCondition);
}

static void
note_setop(LaEffects *later, const SetOp *setop)
{
	if (setop->strategy == SETOP_HASHED)
		note_hashed(later, setop->numCols, la_setop_operators(setop),
					la_setop_collations(setop));
	else
		la_effects_of_operators(later, setop->numCols, la_setop_operators(setop),
								la_setop_collations(setop));
}

/* Nodes that compare rows of one child, or of similar children. */
static bool
note_comparing(PlanState *ps, LaEffects *start, LaEffects *later)
{
	Plan	   *plan = ps->plan;
	Limit	   *limit;

	switch (nodeTag(ps))
	{
		case T_SortState:
		case T_IncrementalSortState:
			la_effects_of_operators(later, ((Sort *) plan)->numCols,
									((Sort *) plan)->sortOperators,
									((Sort *) plan)->collations);
			return true;
		case T_MergeAppendState:
			la_effects_of_operators(later, ((MergeAppend *) plan)->numCols,
									((MergeAppend *) plan)->sortOperators,
									((MergeAppend *) plan)->collations);
			note_pruning(start, ((MergeAppendState *) ps)->ms_prune_state);
			return true;
		case T_GatherMergeState:
			la_effects_of_operators(later, ((GatherMerge *) plan)->numCols,
									((GatherMerge *) plan)->sortOperators,
									((GatherMerge *) plan)->collations);
			return true;
		case T_GroupState:
			la_effects_of_operators(later, ((Group *) plan)->numCols,
									((Group *) plan)->grpOperators,
									((Group *) plan)->grpCollations);
			return true;
		case T_UniqueState:
			la_effects_of_operators(later, ((Unique *) plan)->numCols,
									((Unique *) plan)->uniqOperators,
									((Unique *) plan)->uniqCollations);
			return true;
		case T_SetOpState:
			note_setop(later, (SetOp *) plan);
			return true;
		case T_RecursiveUnionState:
			note_hashed(later, ((RecursiveUnion *) plan)->numCols,
						((RecursiveUnion *) plan)->dupOperators,
						((RecursiveUnion *) plan)->dupCollations);
			return true;
		case T_AggState:
			note_agg(later, (Agg *) plan);
			return true;
		case T_WindowAggState:
			note_window(later, (WindowAgg *) plan);
			return true;
		case T_LimitState:
			limit = (Limit *) plan;
			note_count(start, limit->limitOffset);
			note_count(start, limit->limitCount);
			la_effects_of_operators(later, limit->uniqNumCols, limit->uniqOperators,
									limit->uniqCollations);
			return true;
		default:
			return false;
	}
}

/*
 * Adds what the node itself evaluates.  "filter_passed" is true if it has returned a row and
 * is not rescanned.
 */
void
la_node_effects(PlanState *ps, bool filter_passed, LaNodeEffects *e)
{
	LaEffects  *start = &e->start;
	LaEffects  *later = &e->later;

	e->start.plan = e->keys.plan = e->later.plan = ps->plan;
	if (!note_scan(ps, start, later) && !note_source(ps, start, later) &&
		!note_join(ps, e) && !note_comparing(ps, start, later))
		la_effects_add(later, LA_HAS_EFFECTS,
					   IsA(ps, ModifyTableState) || IsA(ps, LockRowsState) ?
					   "rows are written or locked" :
					   "a node is of a kind that is not known");
	if (filter_passed)
		la_effects_of_filter(later, ps->plan->qual);
	else
		note(later, ps->plan->qual);
	note(later, ps->plan->targetlist);
	if (ps->subPlan != NIL)
		la_effects_add(later, LA_HAS_SUBPLAN, NULL);
}
