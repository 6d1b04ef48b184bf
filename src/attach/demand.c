/*
 * demand.c
 *	  How many of a node's rows the nodes above it will take.
 *
 * For each node that a room may ask about: the Limit that counts its rows, and whether all
 * of them will be taken.  A Sort, a Hash or a plain or hashed Agg reads its child to the end;
 * most other nodes do to their child what is done to them; semi, anti and merge joins leave
 * the inner side early, and so on (demand_on()).  The topmost node is read to its end if the
 * statement is: by an ExecutorRun() without a row count (FETCH passes one).
 *
 * A short statement is mostly a chain of nodes, which is walked down anew for each
 * question.  Otherwise the first question has all nodes walked once, and what is wanted of
 * them kept, sorted by address.
 *
 * src/attach/demand.c
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "attach/attach.h"
#include "attach/demand.h"
#include "attach/statement.h"

typedef struct NodeDemand
{
	PlanState  *node;
	LaDemandContext context;
} NodeDemand;

typedef struct LaNodeDemands
{
	NodeDemand *items;			/* sorted by address */
	int			n;
	int			room;
} LaNodeDemands;

typedef struct WalkState
{
	LaNodeDemands *demands;		/* to add to */
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

/*
 * Step down to this node: returns its context, and fills in the state for its children.
 */
static LaDemandContext
step_down(PlanState *ps, const WalkState *parent, WalkState *state)
{
	LaDemandContext context = {NULL, LA_DEMAND_RUN, false};

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
		.demands = parent->demands,.node = ps
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

static void
add(LaNodeDemands *d, PlanState *ps, const LaDemandContext *context)
{
	if (d->n == d->room)
	{
		d->room *= 2;
		d->items = repalloc_huge(d->items, d->room * sizeof(NodeDemand));
	}
	d->items[d->n++] = (NodeDemand)
	{
		ps, *context
	};
}

static bool
walk(PlanState *ps, void *arg)
{
	WalkState  *parent = (WalkState *) arg;
	WalkState	state;
	LaDemandContext context = step_down(ps, parent, &state);

	if (la_attach_is_registered(nodeTag(ps)))
		add(parent->demands, ps, &context);
	return planstate_tree_walker(ps, walk, &state);
}

static int
compare_nodes(const void *a, const void *b)
{
	uintptr_t	x = (uintptr_t) ((const NodeDemand *) a)->node;
	uintptr_t	y = (uintptr_t) ((const NodeDemand *) b)->node;

	return x < y ? -1 : x > y ? 1 : 0;
}

static LaNodeDemands *
make_demands(const LaStatement *s)
{
	MemoryContext context = s->estate->es_query_cxt;
	LaNodeDemands *d = MemoryContextAllocZero(context, sizeof(LaNodeDemands));
	WalkState	state = {.demands = d};

	d->room = 16;
	d->items = MemoryContextAlloc(context, d->room * sizeof(NodeDemand));
	(void) walk(s->top, &state);
	qsort(d->items, d->n, sizeof(NodeDemand), compare_nodes);
	return d;
}

/* Returns false if the statement is not a chain of nodes from its top to this one. */
static bool
find_on_chain(const LaStatement *s, PlanState *wanted, LaDemandContext *context)
{
	WalkState	states[2] = {0};
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

/*
 * What the nodes above this one will want of it; the most careful answer if that is not
 * known.
 */
void
la_demand_context(PlanState *ps, LaDemandContext *context)
{
	LaStatement *s = la_statement_of(ps->state);
	NodeDemand	key = {.node = ps};
	NodeDemand *found = NULL;

	if (s != NULL && s->demands == NULL && find_on_chain(s, ps, context))
		return;
	if (s != NULL)
	{
		if (s->demands == NULL)
			s->demands = make_demands(s);
		found = bsearch(&key, s->demands->items, s->demands->n, sizeof(NodeDemand),
						compare_nodes);
	}
	if (found != NULL)
		*context = found->context;
	else
		*context = (LaDemandContext)
	{
		NULL, LA_DEMAND_SOME, true
	};
}

bool
la_demand_is_all(LaDemand demand, const EState *estate)
{
	return demand == LA_DEMAND_ALL ||
		(demand == LA_DEMAND_RUN && la_statement_run(estate)->to_end);
}

/*
 * How many rows may the Limit still take after the current one?
 */
int64
la_demand_rows_wanted(const LimitState *limit)
{
	if (limit == NULL || limit->noCount ||
		limit->limitOption != LIMIT_OPTION_COUNT ||
		limit->count > PG_INT32_MAX || limit->offset > PG_INT32_MAX)
		return PG_INT64_MAX;
	return Max(limit->offset + limit->count - limit->position - 1, 0);
}
