/*
 * subplan.c
 *	  Plans that are repeated for rows of a node: which are eligible, and how it is seen that one is
 *	  executed.
 *
 *		node (stock): a row --> Params --> exec_plan --> the plan (stock)
 *
 * exec_plan() is put in front of the plan's topmost node after ExecutorStart, as its output layer
 * (attach/interpose_node.c).  When the plan is executed anew, repeated.c looks at the row, and at
 * those behind it.
 *
 * Eligible are
 *	- correlated subplans whose arguments are columns of the node's rows, unless they are hashed;
 *	- the inner side of a nested loop, if it is more than the one index scan that the room of nested
 *	  loops takes care of.
 * What else is required is checked when blocks are read (repeated.c).
 *
 * Behaviour NEW EXECUTION.  A rescan of the topmost node is seen by its ExprContext.  A node that
 * has none, and Agg, which rescans its own for each group, pass changed Params on to the child,
 * which is rescanned when it is executed next.
 *
 * src/nestloop/subplan.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "nestloop/nestloop.h"
#include "nestloop/nestloop_int.h"
#include "window/window.h"

/* ---- execution --------------------------------------------------------------------------- */

static void
on_rescan(LaInterposer *interposer)
{
	la_interpose_container(LaRepeated, interposer)->restarted = true;
}

static void
on_end(LaInterposer *interposer)
{
	la_repeated_end(la_interpose_container(LaRepeated, interposer));
}

/* The child that a node without an ExprContext passes changed Params on to. */
static PlanState *
first_child(PlanState *ps)
{
	if (IsA(ps, AppendState))
		return ((AppendState *) ps)->as_nplans > 0 ? ((AppendState *) ps)->appendplans[0] : NULL;
	if (IsA(ps, MergeAppendState))
		return ((MergeAppendState *) ps)->ms_nplans > 0 ?
			((MergeAppendState *) ps)->mergeplans[0] : NULL;
	return outerPlanState(ps);
}

/* Behaviour NEW EXECUTION. */
static bool
is_new_execution(LaRepeated *r)
{
	PlanState  *child;
	bool		result = r->restarted;

	r->restarted = false;
	if (result || r->interposer.listens_to != NULL)
		return result;
	child = first_child(r->plan);
	return child != NULL && child->chgParam != NULL;
}

/* What the node calls instead of the plan's function. */
static TupleTableSlot *
exec_plan(PlanState *plan)
{
	LaRepeated *r = la_interpose_container(LaRepeated,
										   la_interpose_enter(plan, LA_LAYER_OUTPUT));
	TupleTableSlot *slot;
	int64		before;

	if (r->interposer.ended)
		return r->interposer.below(plan);
	if (is_new_execution(r))
	{
		la_repeated_execute(r);
		if (r->refused)
			la_interpose_end(&r->interposer);
	}
	before = la_issue_blocks_read();
	slot = r->interposer.below(plan);
	r->missed |= la_issue_blocks_read() != before;
	return slot;
}

/* ---- eligibility ----------------------------------------------------------------------------- */

/* Is that a column of the node's rows to come?  Returns its number, or 0. */
static AttrNumber
column_of(const PlanState *node, Expr *arg)
{
	const Var  *var = (const Var *) arg;

	while (IsA(var, RelabelType))
		var = (const Var *) ((const RelabelType *) var)->arg;
	if (!IsA(var, Var) || var->varattno <= 0)
		return 0;
	switch (nodeTag(node))
	{
		case T_SeqScanState:
		case T_BitmapHeapScanState:
		case T_IndexScanState:
		case T_TidRangeScanState:
		case T_SubqueryScanState:
		case T_FunctionScanState:
		case T_TableFuncScanState:
		case T_CteScanState:
		case T_NamedTuplestoreScanState:
		case T_ValuesScanState:
			return var->varno == (int) ((Scan *) node->plan)->scanrelid ? var->varattno : 0;
		case T_IndexOnlyScanState:
			return var->varno == INDEX_VAR ? var->varattno : 0;
		case T_ResultState:
		case T_ProjectSetState:
		case T_AggState:
		case T_WindowAggState:
		case T_GroupState:
		case T_NestLoopState:
		case T_HashJoinState:
		case T_MergeJoinState:
			return outerPlanState(node) != NULL && var->varno == OUTER_VAR ? var->varattno : 0;
		default:
			return 0;
	}
}

static LaRepeated *
create(PlanState *node, PlanState *plan, int nparams)
{
	MemoryContext context = node->state->es_query_cxt;
	LaRepeated *r = MemoryContextAllocZero(context, sizeof(LaRepeated));

	r->node = node;
	r->plan = plan;
	r->params = MemoryContextAlloc(context, nparams * sizeof(int));
	r->attributes = MemoryContextAlloc(context, nparams * sizeof(AttrNumber));
	return r;
}

static void
add_param(LaRepeated *r, int param, AttrNumber attribute)
{
	r->params[r->nparams] = param;
	r->attributes[r->nparams] = attribute;
	r->nparams++;
}

static void
begin(LaRepeated *r)
{
	r->restarted = true;
	r->interposer.listens_to = IsA(r->plan, AggState) ? NULL : r->plan->ps_ExprContext;
	r->interposer.on_rescan = on_rescan;
	r->interposer.on_end = on_end;
	la_interpose_begin(&r->interposer, r->plan, LA_LAYER_OUTPUT, exec_plan);
}

static bool
attach_subplan(PlanState *node, SubPlanState *ss)
{
	const SubPlan *subplan = ss->subplan;
	int			nparams = list_length(subplan->parParam);
	LaRepeated *r;
	ListCell   *param;
	ListCell   *arg;

	if (subplan->useHashTable || nparams == 0 || nparams > FUNC_MAX_ARGS ||
		subplan->subLinkType == CTE_SUBLINK || subplan->subLinkType == MULTIEXPR_SUBLINK ||
		!la_interpose_output_is_possible(ss->planstate))
		return false;
	foreach(arg, subplan->args)
	{
		if (column_of(node, lfirst(arg)) == 0)
			return false;
	}
	r = create(node, ss->planstate, nparams);
	forboth(param, subplan->parParam, arg, subplan->args)
		add_param(r, lfirst_int(param), column_of(node, lfirst(arg)));
	r->first_match_only = subplan->subLinkType == EXISTS_SUBLINK;
	begin(r);
	return true;
}

static bool
may_attach(void)
{
	return la_gate_allows_searches();
}

static bool
attach_subplans(PlanState *node)
{
	bool		any = false;
	ListCell   *lc;

	if (!la_enable_subplan || !may_attach() || (!la_force && la_node_has_one_row(node)))
		return false;
	foreach(lc, node->subPlan)
		any |= attach_subplan(node, lfirst(lc));
	return any;
}

/* What looks ahead of this plan, or NULL. */
static LaRepeated *
repeated_of(PlanState *plan)
{
	LaInterposer *interposer = plan == NULL ? NULL : la_interpose_find(plan, LA_LAYER_OUTPUT);

	return interposer == NULL || interposer->function != exec_plan ? NULL :
		la_interpose_container(LaRepeated, interposer);
}

/* The figures of a subplan are shown at its topmost node. */
static const LaCounters *
explain_source(PlanState *ps)
{
	LaRepeated *r = repeated_of(ps);

	return r == NULL || r->ahead == NULL ? NULL : la_ahead_counters(r->ahead);
}

void
la_subplan_init(void)
{
	la_attach_register_subplans(attach_subplans);
	la_explain_register(explain_source);
}
