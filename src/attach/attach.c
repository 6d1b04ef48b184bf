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
#include "base/stats.h"

#define MAX_REGISTERED 8

typedef struct WalkState
{
	PlanState  *node;			/* the parent, NULL above the topmost node */
	LimitState *limit;			/* applies to limit_child */
	PlanState  *limit_child;
	LaDemand	demand;			/* on the parent */
	bool		skippable;		/* the parent is */
} WalkState;

static struct
{
	NodeTag		tag;
	la_attach_function function;
}			registered[MAX_REGISTERED];
static int	nregistered = 0;
static la_feed_function feeder = NULL;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;

/*
 * The query of the innermost ExecutorRun if that is to return all rows, else NULL.
 * After an error in a nested run it is of that one, and no answer for the outer.
 */
static EState *run_to_end = NULL;

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
 * Rooms do not know each other: one that owns index scans offers to feed them, and
 * one that knows row addresses asks for it.
 */
void
la_attach_register_feeder(la_feed_function function)
{
	feeder = function;
}

bool
la_attach_feed(PlanState *scan, const LaFeed *feed)
{
	return feeder != NULL && feeder(scan, feed);
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
la_attach_is_all(LaDemand demand, const EState *estate)
{
	return demand == LA_DEMAND_ALL ||
		(demand == LA_DEMAND_RUN && run_to_end == estate);
}

/*
 * How many rows may the Limit still take after the current one?
 */
int64
la_attach_rows_wanted(LimitState *limit)
{
	if (limit == NULL || limit->noCount ||
		limit->limitOption != LIMIT_OPTION_COUNT ||
		limit->count > PG_INT32_MAX || limit->offset > PG_INT32_MAX)
		return PG_INT64_MAX;
	return Max(limit->offset + limit->count - limit->position - 1, 0);
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

/*
 * Could it be that rows of the child are not taken to the end, in spite of the demand?
 * A hash join may take one row of its outer side, build its table, find it
 * empty, and end.
 */
static bool
is_skippable(PlanState *child, PlanState *parent, bool parent_is)
{
	if (IsA(parent, HashJoinState) && child == outerPlanState(parent) &&
		((HashJoinState *) parent)->hj_NullInnerTupleSlot == NULL)
		return true;
	return parent_is && demand_on(child, parent, LA_DEMAND_SOME) != LA_DEMAND_ALL;
}

static bool
walk(PlanState *ps, void *arg)
{
	WalkState  *parent = (WalkState *) arg;
	LaAttachContext context = {NULL, LA_DEMAND_RUN, false};
	WalkState	state = {.node = ps};

	if (parent->limit != NULL && parent->limit_child == ps)
		context.limit = parent->limit;
	if (parent->node != NULL)
	{
		/* what a limit above makes of the demand is known to one child only */
		bool		known = parent->limit == NULL || context.limit != NULL;

		context.demand = demand_on(ps, parent->node,
								   known ? parent->demand : LA_DEMAND_SOME);
		context.skippable = is_skippable(ps, parent->node, parent->skippable);
	}

	for (int i = 0; i < nregistered; i++)
	{
		if (registered[i].tag == nodeTag(ps))
			registered[i].function(ps, &context);
	}

	state.demand = context.demand;
	state.skippable = context.skippable;
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
 * Tell nodes whether the statement is run to its end.  An error in a nested run leaves
 * the rest of the outer one without an answer, which is not worth a PG_TRY in
 * every statement.
 */
static void
attach_ExecutorRun(LA_EXECUTOR_RUN_ARGS)
{
	EState	   *outer = run_to_end;

	run_to_end = count == 0 ? queryDesc->estate : NULL;
	if (prev_ExecutorRun)
		prev_ExecutorRun(LA_EXECUTOR_RUN_PASS);
	else
		standard_ExecutorRun(LA_EXECUTOR_RUN_PASS);
	run_to_end = outer;
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

		la_stats_start_backend();
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
