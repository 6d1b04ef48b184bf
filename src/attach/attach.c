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
	LimitState *limit;			/* applies to limit_child */
	PlanState  *limit_child;
} WalkState;

static struct
{
	NodeTag		tag;
	la_attach_function function;
}			registered[MAX_REGISTERED];
static int	nregistered = 0;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;

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

static bool
walk(PlanState *ps, void *arg)
{
	WalkState  *parent = (WalkState *) arg;
	WalkState	state = {NULL, NULL};
	LaAttachContext context = {NULL};

	if (parent->limit != NULL && parent->limit_child == ps)
		context.limit = parent->limit;

	for (int i = 0; i < nregistered; i++)
	{
		if (registered[i].tag == nodeTag(ps))
			registered[i].function(ps, &context);
	}

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
		WalkState	state = {NULL, NULL};

		walk(queryDesc->planstate, &state);
	}
}

void
la_attach_init(void)
{
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = attach_ExecutorStart;
}
