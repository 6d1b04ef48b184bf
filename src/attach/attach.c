/*
 * attach.c
 *	  After ExecutorStart, offer every node of the plan to the room for it.
 *
 * A room registers a function for a node tag; the function is called once for
 * each such node of each query, before the first row is asked for.  The walk
 * reaches InitPlans, SubPlans, members of Append, and, since a parallel worker
 * starts its own executor, the worker's copy of the plan.
 *
 * Not reached, on purpose:
 *	- EXPLAIN without ANALYZE, which never runs the nodes;
 *	- EvalPlanQual, whose private PlanState tree does not pass through
 *	  ExecutorStart;
 *	- nodes of a snapshot that is not an MVCC snapshot: rooms rely on rows that
 *	  were removed from an index being invisible to the query.
 *
 * Invariant: the hook only hands out pointers.  With pg_lookahead.enable off it
 * does not even walk.
 *
 * The walk also carries the Limit node above: where each row of Limit takes one
 * row of a node below (Result and SubqueryScan without a filter in between),
 * the node can know how many rows will still be wanted of it.
 *
 * And it carries the demand: will all rows of a node be taken?  A Sort, a Hash
 * or a plain or hashed Agg reads its child to the end; most other nodes do to
 * their child what is done to them; semi, anti and merge joins leave the inner
 * side early, and so on (demand_on()).  The topmost node is read to its end if the
 * statement is: ExecutorRun without a row count, which a cursor has.
 *
 * src/attach/attach.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/snapmgr.h"

#include "attach/attach.h"
#include "base/compat.h"
#include "base/guc.h"

#define MAX_REGISTERED 8

typedef struct WalkState
{
	PlanState  *node;			/* the parent, NULL above the topmost node */
	LimitState *limit;			/* applies to limit_child */
	PlanState  *limit_child;
	LaDemand	demand;			/* on the parent */
} WalkState;

static struct
{
	NodeTag		tag;
	la_attach_function function;
}			registered[MAX_REGISTERED];
static int	nregistered = 0;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;

/* Is the innermost ExecutorRun to return all rows? */
static bool runs_to_end = false;

void
la_attach_register(NodeTag tag, la_attach_function function)
{
	if (nregistered >= MAX_REGISTERED)
		elog(ERROR, "too many kinds of nodes registered for look-ahead");
	registered[nregistered].tag = tag;
	registered[nregistered].function = function;
	nregistered++;
}

/*
 * The child of which this node takes one row for each row that it returns.
 */
static PlanState *
one_to_one_child(PlanState *ps)
{
	if (ps->qual != NULL)
		return NULL;
	if (IsA(ps, ResultState))
		return outerPlanState(ps);
	if (IsA(ps, SubqueryScanState))
		return ((SubqueryScanState *) ps)->subplan;
	return NULL;
}

bool
la_attach_is_all(LaDemand demand)
{
	return demand == LA_DEMAND_ALL ||
		(demand == LA_DEMAND_RUN && runs_to_end);
}

/*
 * The demand on a child, given the demand on its parent.  Subplans and whatever is
 * not known here may be left early.
 */
static LaDemand
demand_on(PlanState *child, PlanState *parent, LaDemand demand)
{
	bool		outer = child == outerPlanState(parent);

	switch (nodeTag(parent))
	{
		case T_SortState:
		case T_HashState:
			return outer ? LA_DEMAND_ALL : LA_DEMAND_SOME;

		case T_AggState:
			if (!outer)
				return LA_DEMAND_SOME;
			return ((AggState *) parent)->aggstrategy == AGG_PLAIN ||
				((AggState *) parent)->aggstrategy == AGG_HASHED ?
				LA_DEMAND_ALL : demand;

		case T_ModifyTableState:
			if (!outer)
				return LA_DEMAND_SOME;
			return ((ModifyTable *) parent->plan)->returningLists == NIL ?
				LA_DEMAND_ALL : demand;

		case T_NestLoopState:
			{
				JoinState  *join = &((NestLoopState *) parent)->js;

				if (outer)
					return demand;
				return child == innerPlanState(parent) &&
					!join->single_match && join->jointype != JOIN_SEMI &&
					join->jointype != JOIN_ANTI ? demand : LA_DEMAND_SOME;
			}

		case T_WindowAggState:
			/* a run condition ends it early */
			return outer &&
				((WindowAggState *) parent)->runcondition == NULL ?
				demand : LA_DEMAND_SOME;

		case T_SubqueryScanState:
			return child == ((SubqueryScanState *) parent)->subplan ?
				demand : LA_DEMAND_SOME;

		case T_AppendState:
		case T_MergeAppendState:
			/* members and subplans look the same from here */
			return parent->initPlan == NIL && parent->subPlan == NIL ?
				demand : LA_DEMAND_SOME;

		case T_HashJoinState:
		case T_GatherState:
		case T_GatherMergeState:
		case T_GroupState:
		case T_IncrementalSortState:
		case T_LimitState:
		case T_LockRowsState:
		case T_MaterialState:
		case T_MemoizeState:
		case T_ProjectSetState:
		case T_ResultState:
		case T_UniqueState:
			return outer ? demand : LA_DEMAND_SOME;

		default:
			return LA_DEMAND_SOME;
	}
}

static bool
walk(PlanState *ps, void *arg)
{
	WalkState  *parent = (WalkState *) arg;
	LaAttachContext context = {NULL, LA_DEMAND_RUN};
	WalkState	state = {.node = ps};

	if (parent->limit != NULL && parent->limit_child == ps)
		context.limit = parent->limit;
	if (parent->node != NULL)
	{
		/* what a limit above makes of the demand is known to one child only */
		bool		known = parent->limit == NULL || context.limit != NULL;

		context.demand = demand_on(ps, parent->node,
								   known ? parent->demand : LA_DEMAND_SOME);
	}

	for (int i = 0; i < nregistered; i++)
	{
		if (registered[i].tag == nodeTag(ps))
			registered[i].function(ps, &context);
	}

	state.demand = context.demand;
	if (IsA(ps, LimitState))
	{
		state.limit = (LimitState *) ps;
		state.limit_child = outerPlanState(ps);
	}
	else if (context.limit != NULL)
	{
		state.limit = context.limit;
		state.limit_child = one_to_one_child(ps);
	}
	return planstate_tree_walker(ps, walk, &state);
}

/*
 * Tell nodes whether the statement is run to its end.  An error in a nested run
 * leaves its answer to the rest of the outer one: it is a hint, and not worth
 * a PG_TRY in every statement.
 */
static void
attach_ExecutorRun(LA_EXECUTOR_RUN_ARGS)
{
	bool		outer = runs_to_end;

	runs_to_end = count == 0;
	if (prev_ExecutorRun)
		prev_ExecutorRun(LA_EXECUTOR_RUN_PASS);
	else
		standard_ExecutorRun(LA_EXECUTOR_RUN_PASS);
	runs_to_end = outer;
}

static void
attach_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	if (prev_ExecutorStart)
		prev_ExecutorStart(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);

	if (la_enable &&
		(eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 &&
		queryDesc->planstate != NULL &&
		queryDesc->snapshot != NULL &&
		IsMVCCSnapshot(queryDesc->snapshot))
	{
		WalkState	state = {0};

		walk(queryDesc->planstate, &state);
	}
}

void
la_attach_init(void)
{
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = attach_ExecutorStart;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = attach_ExecutorRun;
}
