/*
 * statement.c
 *	  What is known of a statement as a whole.
 *
 * There is a record for each statement of which a room has taken an interest in some node.
 * It lives as long as the statement's EState.  What costs more than finding the record is
 * made when it is first asked for:
 *
 *	- For each node a room may ask about, what the nodes above it will want of it: the
 *	  Limit that counts its rows, and its demand.
 *	- Whether the statement is calm: runahead.c tells, and keeps the answer here.
 *
 * The demand says whether all rows of a node will be taken.  A Sort, a Hash or a plain or
 * hashed Agg reads its child to the end; most other nodes do to their child what is done
 * to them; semi, anti and merge joins leave the inner side early, and so on (demand_on()).
 * The topmost node is read to its end if the statement is: by an ExecutorRun() without a
 * row count, which a cursor has.
 *
 * Invariant: current_run describes the innermost ExecutorRun() that is under way.  An error
 * leaves it describing a run that is over.  That is harmless: it is only ever compared with
 * the EState of a node that is being executed, and an EState that gets the same address is
 * seen by la_statement_begin() first.
 *
 * src/attach/statement.c
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "tcop/dest.h"
#include "utils/memutils.h"

#include "attach/effects.h"
#include "attach/statement.h"

typedef struct NodeContext
{
	PlanState  *node;
	LaAttachContext context;
} NodeContext;

struct LaStatement
{
	EState	   *estate;
	PlanState  *top;

	NodeContext *contexts;		/* sorted by address; NULL: not made yet */
	int			ncontexts;
	int			contexts_room;

	bool		calm;			/* see runahead.c */
	bool		calm_known;

	MemoryContextCallback callback;
	LaStatement *next;
};

/* Newest first. */
static LaStatement *statements = NULL;

static LaRun current_run = {0};

static void
forget(void *arg)
{
	LaStatement **p = &statements;

	while (*p != NULL && *p != (LaStatement *) arg)
		p = &(*p)->next;
	if (*p != NULL)
		*p = (*p)->next;
}

/*
 * The statement has been started, and a room is interested in it.
 */
void
la_statement_begin(QueryDesc *queryDesc)
{
	EState	   *estate = queryDesc->estate;
	LaStatement *s = MemoryContextAllocZero(estate->es_query_cxt, sizeof(LaStatement));

	if (current_run.estate == estate)
		current_run.estate = NULL;
	s->estate = estate;
	s->top = queryDesc->planstate;
	s->callback.func = forget;
	s->callback.arg = s;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, &s->callback);
	s->next = statements;
	statements = s;
}

static LaStatement *
find(const EState *estate)
{
	LaStatement *s = statements;

	while (s != NULL && s->estate != estate)
		s = s->next;
	return s;
}

/*
 * The topmost node, or NULL if the statement is not known.
 */
PlanState *
la_statement_top(const EState *estate)
{
	LaStatement *s = find(estate);

	return s == NULL ? NULL : s->top;
}

/*
 * Where runahead.c keeps whether the statement is calm; NULL as above.
 */
bool *
la_statement_calm(const EState *estate, bool **known)
{
	LaStatement *s = find(estate);

	if (s == NULL)
		return NULL;
	*known = &s->calm_known;
	return &s->calm;
}

/* ---- how it is run ---------------------------------------------------------- */

static bool
are_plain(const TupleDesc desc)
{
	for (int i = 0; desc != NULL && i < desc->natts; i++)
	{
		if (!la_effects_type_is_plain(TupleDescAttr(desc, i)->atttypid))
			return false;
	}
	return true;
}

/*
 * Where rows go decides whether somebody can see when they come, and whether functions
 * of their types are called meanwhile.
 */
static void
look_at_destination(LaRun *run, const QueryDesc *queryDesc)
{
	switch (queryDesc->dest->mydest)
	{
		case DestNone:
		case DestSPI:
		case DestTuplestore:
		case DestIntoRel:
		case DestTransientRel:
		case DestSQLFunction:
			run->rows_stay = true;
			run->no_code = true;
			break;
		case DestTupleQueue:
			run->no_code = true;
			break;
		default:
			run->no_code = are_plain(queryDesc->tupDesc);
			break;
	}
}

/*
 * ExecutorRun() begins.  Returns what was known of the one around it.
 */
LaRun
la_statement_enter_run(const QueryDesc *queryDesc, uint64 count)
{
	LaRun		outer = current_run;

	memset(&current_run, 0, sizeof(current_run));
	if (count == 0 && statements != NULL && find(queryDesc->estate) != NULL)
	{
		current_run.estate = queryDesc->estate;
		current_run.to_end = true;
		look_at_destination(&current_run, queryDesc);
	}
	return outer;
}

void
la_statement_leave_run(LaRun outer)
{
	current_run = outer;
}

/*
 * The run of this statement, if it is the innermost one and known to go to the end.
 */
const LaRun *
la_statement_run(const EState *estate)
{
	static const LaRun nothing = {0};

	return current_run.estate == estate ? &current_run : &nothing;
}

/* ---- demand ----------------------------------------------------------------- */

typedef struct WalkState
{
	LaStatement *statement;
	PlanState  *node;			/* the parent, NULL above the topmost node */
	LimitState *limit;			/* applies to limit_child */
	PlanState  *limit_child;
	LaDemand	demand;			/* on the parent */
	bool		skippable;		/* the parent is */
} WalkState;

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

static void
add_context(LaStatement *s, PlanState *ps, const LaAttachContext *context)
{
	if (s->ncontexts == s->contexts_room)
	{
		s->contexts_room *= 2;
		s->contexts = repalloc_huge(s->contexts,
									s->contexts_room * sizeof(NodeContext));
	}
	s->contexts[s->ncontexts].node = ps;
	s->contexts[s->ncontexts].context = *context;
	s->ncontexts++;
}

/*
 * Step down to this node: returns its context, and fills in the state for its children.
 */
static LaAttachContext
step_down(PlanState *ps, const WalkState *parent, WalkState *state)
{
	LaAttachContext context = {NULL, LA_DEMAND_RUN, false};

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

	*state = (WalkState)
	{
		.statement = parent->statement,.node = ps
	};
	state->demand = context.demand;
	state->skippable = context.skippable;
	if (IsA(ps, LimitState))
	{
		state->limit = (LimitState *) ps;
		state->limit_child = outerPlanState(ps);
	}
	else if (context.limit != NULL)
	{
		state->limit = context.limit;
		state->limit_child = one_to_one_child(ps);
	}
	return context;
}

static bool
walk(PlanState *ps, void *arg)
{
	WalkState  *parent = (WalkState *) arg;
	WalkState	state;
	LaAttachContext context = step_down(ps, parent, &state);

	if (la_attach_is_registered(nodeTag(ps)))
		add_context(parent->statement, ps, &context);
	return planstate_tree_walker(ps, walk, &state);
}

/*
 * Most short statements are a chain of nodes, for which nothing needs to be kept.
 * Returns false if the node is not found on it.
 */
static bool
find_on_chain(LaStatement *s, PlanState *wanted, LaAttachContext *context)
{
	WalkState	states[2] = {{.statement = s}};
	int			parent = 0;

	for (PlanState *ps = s->top; ps != NULL; parent = !parent)
	{
		*context = step_down(ps, &states[parent], &states[!parent]);
		if (ps == wanted)
			return true;
		ps = innerPlanState(ps) != NULL ? NULL : outerPlanState(ps);
	}
	return false;
}

static int
compare_contexts(const void *a, const void *b)
{
	uintptr_t	x = (uintptr_t) ((const NodeContext *) a)->node;
	uintptr_t	y = (uintptr_t) ((const NodeContext *) b)->node;

	return x < y ? -1 : x > y ? 1 : 0;
}

static void
make_contexts(LaStatement *s)
{
	WalkState	state = {.statement = s};

	s->contexts_room = 16;
	s->contexts = MemoryContextAlloc(s->estate->es_query_cxt,
									 s->contexts_room * sizeof(NodeContext));
	walk(s->top, &state);
	qsort(s->contexts, s->ncontexts, sizeof(NodeContext), compare_contexts);
}

/*
 * What the nodes above this one will want of it.  Returns false, and the most careful
 * answer, if it is not known.
 */
bool
la_statement_context(PlanState *ps, LaAttachContext *context)
{
	LaStatement *s = find(ps->state);
	NodeContext key = {.node = ps};
	NodeContext *found = NULL;

	if (s != NULL && s->contexts == NULL && find_on_chain(s, ps, context))
		return true;
	if (s != NULL)
	{
		if (s->contexts == NULL)
			make_contexts(s);
		found = bsearch(&key, s->contexts, s->ncontexts, sizeof(NodeContext),
						compare_contexts);
	}
	if (found != NULL)
		*context = found->context;
	else
		*context = (LaAttachContext)
	{
		NULL, LA_DEMAND_SOME, true
	};
	return found != NULL;
}
