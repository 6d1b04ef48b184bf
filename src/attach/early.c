/*
 * early.c
 *	  May the outer side of a join be run ahead of the join?
 *
 * Looking ahead takes outer rows before the join has been made for their
 * predecessors.  Nobody must be able to tell:
 *
 *	- Volatile functions in the outer side could: their calls would come in another
 *	  order relative to those of the join and of its inner side, and there might be
 *	  more of them.  So the outer side must be free of them.
 *	- An error could, if stock would not have come to the row that raises it: below
 *	  a LIMIT, in a semi join, from a cursor.  So unless all rows will be taken, what
 *	  the outer side evaluates must not be able to fail.  Leakproof functions
 *	  are taken not to: "leakproof" promises that errors do not depend on
 *	  arguments.  A Param whose InitPlan has yet to be run counts as an expression
 *	  that fails.  What a Sort, a Hash, a hashed or plain Agg or a FunctionScan reads
 *	  is read to its end before the first row, in stock as well, so nothing below
 *	  matters.  (If all rows are taken, and both sides fail, the statement may
 *	  fail with the outer side's error where stock has the inner side's.)
 *	- A row's xmin, xmax, cmin and cmax could, which the statement itself may change
 *	  between its rows.
 *	- Row locks, writes, foreign servers and other extensions' nodes could, and any
 *	  node that is not known here; subplans, too, whatever they do.
 *
 * Everything else reads under the query's snapshot, and finds the same rows a
 * moment earlier.
 *
 * src/attach/early.c
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "attach/early.h"

typedef struct EarlyContext
{
	const LaEarly *early;
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
							  ((const LaEarly *) context)->initplan_params))
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
la_early_is_errorfree(const LaEarly *early, Node *expression)
{
	return !can_fail(expression, (void *) early);
}

/*
 * A row's xmin, xmax, cmin and cmax are what they are when the row is read, and the
 * statement itself may change them.
 */
static bool
reads_changing_column(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		int			n = ((Var *) node)->varattno;

		return n < 0 && n != SelfItemPointerAttributeNumber &&
			n != TableOidAttributeNumber;
	}
	return expression_tree_walker(node, reads_changing_column, context);
}

static bool
fit(const EarlyContext *context, const void *expressions)
{
	return !contain_volatile_functions((Node *) expressions) &&
		!reads_changing_column((Node *) expressions, NULL) &&
		(context->may_fail ||
		 la_early_is_errorfree(context->early, (Node *) expressions));
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
 * May rows be taken from this node early?
 */
bool
la_early_is_safe(const LaEarly *early, PlanState *outer)
{
	EarlyContext context = {early, early->takes_all};

	return !is_unsafe(outer, &context);
}

/*
 * InitPlans are evaluated when somebody first wants their value, and after
 * ExecutorStart none has been: this is to be called then.
 */
Bitmapset *
la_early_initplan_params(const EState *estate)
{
	Bitmapset  *params = NULL;
	int			n = list_length(estate->es_plannedstmt->paramExecTypes);

	for (int i = 0; i < n; i++)
	{
		if (estate->es_param_exec_vals[i].execPlan != NULL)
			params = bms_add_member(params, i);
	}
	return params;
}
