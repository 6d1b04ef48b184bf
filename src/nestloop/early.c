/*
 * early.c
 *	  May the outer side of a nested loop be run ahead of the inner side?
 *
 * Looking ahead takes outer rows before the inner side has been scanned for their
 * predecessors.  Nobody must be able to tell:
 *
 *	- Volatile functions in the outer side could: their calls would come in another
 *	  order relative to those of the inner side, and there might be more of them.
 *	  So the outer side must be free of them.
 *	- An error could, if stock would not have come to the row that raises it: below
 *	  a LIMIT, in a semi join, from a cursor.  So unless all rows will be taken, what
 *	  the outer side evaluates must not be able to fail.  Leakproof functions
 *	  are taken not to: "leakproof" promises that errors do not depend on
 *	  arguments.  A Param whose InitPlan has yet to be run counts as an expression
 *	  that fails.  What a Sort, a Hash, a hashed or plain Agg or a FunctionScan reads
 *	  is read to its end before the first row, in stock as well, so nothing below
 *	  matters.  (If all rows are taken, and both sides fail, the statement may
 *	  fail with the outer side's error where stock has the inner side's.)
 *	- Row locks, writes, foreign servers and other extensions' nodes could, and any
 *	  node that is not known here; subplans, too, whatever they do.
 *
 * Everything else reads under the query's snapshot, and finds the same rows a
 * moment earlier.
 *
 * src/nestloop/early.c
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "nestloop/join.h"

typedef struct EarlyContext
{
	const LaJoin *join;
	bool		may_fail;		/* errors do not matter here */
} EarlyContext;

static bool
leaky_function(Oid function, void *context)
{
	return !get_func_leakproof(function);
}

static bool
can_fail(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Param:
			/* an InitPlan is run by the first row that wants its value */
			if (((Param *) node)->paramkind == PARAM_EXEC &&
				bms_is_member(((Param *) node)->paramid,
							  ((const LaJoin *) context)->initplan_params))
				return true;
			break;
		case T_Var:
		case T_Const:
		case T_TargetEntry:
		case T_List:
		case T_RelabelType:
		case T_BoolExpr:
		case T_BooleanTest:
		case T_NullTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
			break;
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
			if (check_functions_in_node(node, leaky_function, context))
				return true;
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, can_fail, context);
}

/*
 * Can this expression, or list of them, be evaluated without any error?
 */
bool
la_early_is_errorfree(const LaJoin *join, Node *expression)
{
	return !can_fail(expression, (void *) join);
}

static bool
fit(const EarlyContext *context, const void *expressions)
{
	return !contain_volatile_functions((Node *) expressions) &&
		(context->may_fail ||
		 la_early_is_errorfree(context->join, (Node *) expressions));
}

static bool
reads_all_first(PlanState *ps)
{
	if (IsA(ps, AggState))
		return ((AggState *) ps)->aggstrategy == AGG_PLAIN ||
			((AggState *) ps)->aggstrategy == AGG_HASHED;
	return IsA(ps, SortState) || IsA(ps, HashState);
}

/* What a node of this kind evaluates besides its target list and its filter. */
static bool
rest_is_fit(PlanState *ps, const EarlyContext *context)
{
	Plan	   *plan = ps->plan;

	switch (nodeTag(plan))
	{
		case T_Append:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_Hash:
		case T_Limit:
		case T_Material:
		case T_ProjectSet:
		case T_SeqScan:
		case T_Sort:
		case T_SubqueryScan:
		case T_WorkTableScan:
		case T_NamedTuplestoreScan:
		case T_Gather:
		case T_CteScan:
			return true;
		case T_Group:
		case T_MergeAppend:
		case T_RecursiveUnion:
		case T_SetOp:
		case T_IncrementalSort:
		case T_Unique:
		case T_GatherMerge:
			/* they compare by functions that are not looked at here */
			return context->may_fail;
		case T_Agg:
			return context->may_fail || reads_all_first(ps);
		case T_Result:
			return fit(context, ((Result *) plan)->resconstantqual);
		case T_IndexScan:
			return fit(context, ((IndexScan *) plan)->indexqualorig) &&
				fit(context, ((IndexScan *) plan)->indexorderbyorig);
		case T_IndexOnlyScan:
			return fit(context, ((IndexOnlyScan *) plan)->indexqual) &&
				fit(context, ((IndexOnlyScan *) plan)->indexorderby);
		case T_BitmapIndexScan:
			return fit(context, ((BitmapIndexScan *) plan)->indexqualorig);
		case T_BitmapHeapScan:
			return fit(context, ((BitmapHeapScan *) plan)->bitmapqualorig);
		case T_TidScan:
			return fit(context, ((TidScan *) plan)->tidquals);
		case T_TidRangeScan:
			return fit(context, ((TidRangeScan *) plan)->tidrangequals);
		case T_ValuesScan:
			return fit(context, ((ValuesScan *) plan)->values_lists);
		case T_FunctionScan:
			/* run to its end before the first row */
			return !contain_volatile_functions((Node *)
											   ((FunctionScan *) plan)->functions);
		case T_NestLoop:
			return fit(context, ((NestLoop *) plan)->join.joinqual);
		case T_MergeJoin:
			return fit(context, ((MergeJoin *) plan)->join.joinqual) &&
				fit(context, ((MergeJoin *) plan)->mergeclauses);
		case T_HashJoin:
			return fit(context, ((HashJoin *) plan)->join.joinqual) &&
				fit(context, ((HashJoin *) plan)->hashclauses);
		case T_Memoize:
			return context->may_fail &&
				fit(context, ((Memoize *) plan)->param_exprs);
		default:
			return false;
	}
}

static bool
is_unsafe(PlanState *ps, void *arg)
{
	EarlyContext context = *(EarlyContext *) arg;

	if (ps == NULL)
		return false;
	if (ps->subPlan != NIL || ps->initPlan != NIL ||
		!fit(&context, ps->plan->qual) ||
		!fit(&context, ps->plan->targetlist) ||
		!rest_is_fit(ps, &context))
		return true;
	if (IsA(ps, CteScanState) &&
		is_unsafe(((CteScanState *) ps)->cteplanstate, &context))
		return true;
	if (reads_all_first(ps))
		context.may_fail = true;
	return planstate_tree_walker(ps, is_unsafe, &context);
}

/*
 * May rows be taken from the join's outer child early?
 */
bool
la_early_is_safe(const LaJoin *join)
{
	EarlyContext context = {join, la_join_takes_all(join)};

	return !is_unsafe(join->outer, &context);
}
