/*
 * attach.c
 *	  After ExecutorStart, offer every node of the plan to the room for it.
 *
 * A room registers a function for a node tag, which is called once for each such node of each
 * query, before the first row is asked for.  The walk reaches InitPlans, SubPlans, members
 * of Append, and, since a parallel worker starts its own executor, the worker's copy of the
 * plan.  It does not reach, on purpose:
 *	- EXPLAIN without ANALYZE, which never runs the nodes;
 *	- EvalPlanQual, whose private PlanState tree does not pass through ExecutorStart;
 *	- queries whose snapshot is not an MVCC snapshot, because rooms rely on rows that were
 *	  removed from an index being invisible to the query.
 *
 * The walk's cost must not be measurable in a statement of one row, so rooms do little when
 * they are offered a node.  What the nodes above want of it they ask when the node is
 * executed (demand.c).
 *
 * Invariant: the walk changes nothing itself; only the rooms' functions do.  With
 * pg_lookahead.enable off, no node is visited.
 *
 * src/attach/attach.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "utils/snapmgr.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"

#define TAGS 1024				/* more than any server has */

static la_attach_function functions[TAGS];	/* by a node's tag */
static la_attach_function subplans_function = NULL;
static const LaIndexScans *index_scans = NULL;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static planner_hook_type prev_planner = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ExecutorFinish_hook_type prev_ExecutorFinish = NULL;
static ExecutorEnd_hook_type prev_ExecutorEnd = NULL;

void
la_attach_register(NodeTag tag, la_attach_function function)
{
	if (tag >= TAGS || functions[tag] != NULL)
		elog(ERROR, "look-ahead cannot register node tag %d", (int) tag);
	functions[tag] = function;
}

/* The function is called for each node whose expressions have subplans. */
void
la_attach_register_subplans(la_attach_function function)
{
	subplans_function = function;
}

bool
la_attach_is_registered(NodeTag tag)
{
	return tag < TAGS && functions[tag] != NULL;
}

/*
 * Rooms do not include each other.  So the room of index scans registers here what others want of
 * its scans.
 */
void
la_attach_register_index_scans(const LaIndexScans *scans)
{
	index_scans = scans;
}

/* Offer the row addresses of a scan that are known in advance. */
bool
la_attach_tidsource(PlanState *scan, const LaTidSource *source)
{
	return index_scans != NULL && index_scans->take_tids(scan, source);
}

/* LaComing.peek of an index scan. */
bool
la_attach_peek(void *scan, int n, LaComingRow *row)
{
	return index_scans != NULL && index_scans->peek(scan, n, row);
}

/* arg: set, if a room will ask about a node later */
static bool
walk(PlanState *ps, void *arg)
{
	bool	   *interested = arg;
	NodeTag		tag = nodeTag(ps);

	if (la_attach_is_registered(tag))
		*interested |= functions[tag] (ps);
	if (ps->subPlan != NIL && subplans_function != NULL)
		*interested |= subplans_function(ps);

	/*
	 * planstate_tree_walker() would be most of the walk's cost in a statement
	 * of one row.  (The server has checked the depth of the stack when it
	 * started these nodes.)
	 */
	if (!la_node_is(ps, LA_NODE_IS_SIMPLE) || ps->initPlan != NIL || ps->subPlan != NIL)
		(void) planstate_tree_walker(ps, walk, interested);
	else
	{
		if (outerPlanState(ps) != NULL)
			(void) walk(outerPlanState(ps), interested);
		if (innerPlanState(ps) != NULL)
			(void) walk(innerPlanState(ps), interested);
	}
	return false;
}

static void
run(LA_EXECUTOR_RUN_ARGS)
{
	if (prev_ExecutorRun)
		prev_ExecutorRun(LA_EXECUTOR_RUN_PASS);
	else
		standard_ExecutorRun(LA_EXECUTOR_RUN_PASS);
}

static void
attach_ExecutorRun(LA_EXECUTOR_RUN_ARGS)
{
	LaStatementRun this;

	la_statement_enter_run(&this, queryDesc, count);
	PG_TRY();
	{
		run(LA_EXECUTOR_RUN_PASS);
	}
	PG_FINALLY();
	{
		la_statements_leave_run(&this);
	}
	PG_END_TRY();
}

/* Functions that are evaluated now have queries that are not sent by a client. */
static PlannedStmt *
attach_planner(LA_PLANNER_ARGS)
{
	PlannedStmt *result;

	la_statement_depth++;
	PG_TRY();
	{
		result = prev_planner ? prev_planner(LA_PLANNER_PASS) :
			standard_planner(LA_PLANNER_PASS);
	}
	PG_FINALLY();
	{
		la_statement_depth--;
	}
	PG_END_TRY();
	return result;
}

/* Triggers are fired here, and their queries are not sent by a client. */
static void
attach_ExecutorFinish(QueryDesc *queryDesc)
{
	LaStatementRun this;

	la_statements_enter_run(&this, queryDesc);
	PG_TRY();
	{
		if (prev_ExecutorFinish)
			prev_ExecutorFinish(queryDesc);
		else
			standard_ExecutorFinish(queryDesc);
	}
	PG_FINALLY();
	{
		la_statements_leave_run(&this);
	}
	PG_END_TRY();
}

static void
attach_ExecutorEnd(QueryDesc *queryDesc)
{
	la_statements_before_end();
	if (prev_ExecutorEnd)
		prev_ExecutorEnd(queryDesc);
	else
		standard_ExecutorEnd(queryDesc);
	la_statements_log(queryDesc->sourceText);
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
		bool		interested = false;

		la_stats_flush_at_exit();
		la_statements_begin(queryDesc);
		(void) walk(queryDesc->planstate, &interested);
		if (interested)
			la_statements_set_top(queryDesc);
	}
}

void
la_attach_init(void)
{
	la_interpose_init();
	prev_planner = planner_hook;
	planner_hook = attach_planner;
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = attach_ExecutorStart;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = attach_ExecutorRun;
	prev_ExecutorFinish = ExecutorFinish_hook;
	ExecutorFinish_hook = attach_ExecutorFinish;
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = attach_ExecutorEnd;
}
