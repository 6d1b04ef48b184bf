/*
 * initplans.c
 *	  InitPlans and CTEs that a part of a statement executes, and what an error leaves of them.
 *
 * An error of rows that are taken early may be kept until its turn ("Failure" of runahead.c).
 * What was being executed then must not be executed again before: stock would have failed there.
 * The node that takes the rows sees to that for its child.  Others may execute an InitPlan or a CTE
 * that the child has begun:
 *
 *		who										found by
 *		a CTE scan								the plan that it reads
 *		an expression of a node that is known	la_node_effects()
 *		a node without children, a foreign or	the Params that its plan depends on, since its
 *		custom scan								expressions may be in places that only it knows
 *		Gather									the Params that it computes for its workers
 *		a recheck of a row that another			the Params that its plan depends on, all of which
 *		session has changed (LockRows,			it computes when it begins
 *		UPDATE, DELETE, MERGE)
 *		RETURNING, ON CONFLICT, checks			their expressions
 *
 * Parallel workers.  An error of a worker, or its notice, is raised by whatever the session does
 * when the message comes, and with the stack of error contexts that was there when the workers were
 * started.  So it has no turn, and workers must not be started while errors are kept: that stack
 * would have an entry of la_attempt_compute_kept(), which is gone by then.
 *
 * src/attach/initplans.c
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"

#include "attach/attach.h"
#include "attach/attach_int.h"

typedef struct ParamSearch
{
	int			param;
	PlanState  *found;			/* the InitPlan that computes it */
} ParamSearch;

typedef struct SharedPlans
{
	const LaStatement *s;
	PlanState  *outer;
	List	   *plans;			/* of CTEs and InitPlans that it executes */
	Bitmapset  *params;			/* of the InitPlans */
	bool		found;			/* the rest may execute one */
} SharedPlans;

static void collect(SharedPlans *shared, PlanState *plan);

static bool
search_param(PlanState *ps, void *arg)
{
	ParamSearch *search = arg;
	ListCell   *lc;

	foreach(lc, ps->initPlan)
	{
		SubPlanState *initplan = lfirst(lc);

		if (initplan->subplan->subLinkType != CTE_SUBLINK &&
			list_member_int(initplan->subplan->setParam, search->param))
		{
			search->found = initplan->planstate;
			return true;
		}
	}
	return planstate_tree_walker(ps, search_param, arg);
}

/* The plan of the InitPlan that computes this Param, or NULL. */
PlanState *
la_initplan_of(PlanState *top, int param)
{
	ParamSearch search = {.param = param};

	return search_param(top, &search) ? search.found : NULL;
}

static bool
collect_ctes(PlanState *ps, void *arg)
{
	SharedPlans *shared = arg;
	PlanState  *cte = IsA(ps, CteScanState) ? ((CteScanState *) ps)->cteplanstate : NULL;

	if (cte != NULL && !list_member_ptr(shared->plans, cte))
	{
		shared->plans = lappend(shared->plans, cte);
		collect(shared, cte);
	}
	return planstate_tree_walker(ps, collect_ctes, arg);
}

static void
collect(SharedPlans *shared, PlanState *plan)
{
	int			param = -1;

	while ((param = bms_next_member(plan->plan->allParam, param)) >= 0)
	{
		PlanState  *initplan = bms_is_member(param, shared->params) ? NULL :
			la_initplan_of(shared->s->top, param);

		if (initplan == NULL)
			continue;
		shared->params = bms_add_member(shared->params, param);
		shared->plans = list_append_unique_ptr(shared->plans, initplan);
		collect(shared, initplan);
	}
	(void) collect_ctes(plan, shared);
}

/* A tree walker: the Params that an expression uses. */
static bool
params_of(Node *node, void *arg)
{
	Bitmapset **used = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		*used = bms_add_member(*used, ((Param *) node)->paramid);
	return expression_tree_walker(node, params_of, arg);
}

static void
note_shared(LaEffects *effects, int param, void *arg)
{
	SharedPlans *shared = arg;

	shared->found |= bms_is_member(param, shared->params);
}

/* Does a write use one besides its plan? */
static bool
is_used_by_write(const ModifyTable *plan, const Bitmapset *params)
{
	List	   *expressions = list_make4(plan->returningLists, plan->onConflictSet,
										 plan->onConflictWhere, plan->withCheckOptionLists);
	Bitmapset  *used = NULL;

	if (plan->operation == CMD_MERGE)
		return true;
	(void) params_of((Node *) expressions, &used);
	return bms_overlap(used, params) ||
		(plan->operation != CMD_INSERT && bms_overlap(outerPlan(plan)->extParam, params));
}

/* Does the node use one in other places than those that la_node_effects() knows? */
static bool
is_used_elsewhere(PlanState *ps, const Bitmapset *params)
{
	switch (nodeTag(ps))
	{
		case T_ModifyTableState:
			return is_used_by_write((const ModifyTable *) ps->plan, params);
		case T_LockRowsState:
			return bms_overlap(outerPlan(ps->plan)->extParam, params);
		case T_GatherState:
			return bms_overlap(((const Gather *) ps->plan)->initParam, params);
		case T_GatherMergeState:
			return bms_overlap(((const GatherMerge *) ps->plan)->initParam, params);
		case T_ForeignScanState:
		case T_CustomScanState:
			return bms_overlap(ps->plan->allParam, params);
		default:
			return la_node_child(ps, 0) == NULL && bms_overlap(ps->plan->allParam, params);
	}
}

static bool
search_shared(PlanState *ps, void *arg)
{
	SharedPlans *shared = arg;
	LaEffects	effects = {.note_param = note_shared,.arg = shared};
	LaNodeEffects e = {effects, effects, effects};

	if (ps == shared->outer || list_member_ptr(shared->plans, ps))
		return false;
	if (shared->params != NULL && is_used_elsewhere(ps, shared->params))
		return true;
	la_node_effects(ps, false, &e);
	return shared->found ||
		(IsA(ps, CteScanState) &&
		 list_member_ptr(shared->plans, ((CteScanState *) ps)->cteplanstate)) ||
		planstate_tree_walker(ps, search_shared, arg);
}

static bool
has_workers(PlanState *ps, void *arg)
{
	return IsA(ps, GatherState) || IsA(ps, GatherMergeState) ||
		planstate_tree_walker(ps, has_workers, arg);
}

/*
 * May the rest of the statement execute what an error in the outer side has left, or the outer side
 * start parallel workers?
 */
bool
la_initplans_may_be_left(PlanState *outer)
{
	SharedPlans shared = {.s = la_statement_of(outer->state),.outer = outer};
	ListCell   *lc;

	if (shared.s == NULL || has_workers(outer, NULL))
		return true;
	collect(&shared, outer);
	foreach(lc, shared.plans)
	{
		if (has_workers(lfirst(lc), NULL))
			return true;
	}
	return shared.plans != NIL && search_shared(shared.s->top, &shared);
}
