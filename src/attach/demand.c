/*
 * demand.c
 *	  How many of a node's rows the nodes above it will take.
 *
 * That is, for each node that a room may ask about, the Limit that counts its rows, and
 * whether all of them will be taken.  A Sort, a Hash or a plain or hashed Agg reads its
 * child to the end.  Most other nodes read theirs as far as they are read themselves, but
 * semi, anti and merge joins leave the inner side early (demand_on()).  The topmost node is
 * read to its end by an ExecutorRun() without a row count; FETCH passes one.
 *
 * The plan of a short statement is mostly a chain of nodes, which is walked down anew for
 * each question.  Otherwise the first question walks the whole plan once and keeps the
 * answers, sorted by the address of the node: for nodes that a room has registered for, and
 * for those whose expressions have subplans.
 *
 * src/attach/demand.c
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"

#include "attach/attach.h"

typedef struct NodeDemand
{
	PlanState  *node;
	LaDemandContext context;
} NodeDemand;

typedef struct LaNodeDemands
{
	NodeDemand *items;			/* sorted by address */
	int			n;
	int			allocated;
} LaNodeDemands;

/* What a node passes on to its children; all zero above the topmost node. */
typedef struct WalkState
{
	LaNodeDemands *demands;		/* to add to */
	PlanState  *node;
	LaDemand	demand;			/* on the node */
	bool		skippable;		/* as in the node's LaDemandContext */
	LimitState *limit;			/* counts the rows of limit_child, or NULL */
	PlanState  *limit_child;
} WalkState;

/* The child of which this node takes one row for each row that it returns. */
static PlanState *
one_to_one_child(PlanState *ps)
{
	return ps->qual == NULL && la_node_is(ps, LA_NODE_ONE_TO_ONE) ? la_node_child(ps, 0) : NULL;
}

static bool
leaves_inner_side_early(const JoinState *join)
{
	return join->single_match || join->jointype == JOIN_SEMI ||
		join->jointype == JOIN_ANTI;
}

/* Does the node read all of its outer side, in the call that returns its first row? */
bool
la_demand_reads_all(PlanState *ps)
{
	if (IsA(ps, AggState))
		return ((AggState *) ps)->aggstrategy == AGG_PLAIN ||
			((AggState *) ps)->aggstrategy == AGG_HASHED;
	return IsA(ps, SortState) || IsA(ps, HashState);
}

/*
 * The demand on a child, given the demand on its parent.  Subplans, and children of nodes
 * that are not known here, may be left early.
 */
static LaDemand
demand_on(PlanState *child, PlanState *parent, LaDemand demand)
{
	bool		outer = child == outerPlanState(parent);
	bool		as_parent = outer;	/* read as far as the parent is */

	if (outer && la_demand_reads_all(parent))
		return LA_DEMAND_ALL;
	switch (nodeTag(parent))
	{
		case T_ModifyTableState:
			if (outer && ((ModifyTable *) parent->plan)->returningLists == NIL)
				return LA_DEMAND_ALL;
			break;
		case T_NestLoopState:
			as_parent |= child == innerPlanState(parent) &&
				!leaves_inner_side_early((JoinState *) parent);
			break;
		case T_WindowAggState:
			/* a run condition ends it early */
			as_parent &= ((WindowAggState *) parent)->runcondition == NULL;
			break;
		case T_SubqueryScanState:
			as_parent = child == ((SubqueryScanState *) parent)->subplan;
			break;
		case T_AppendState:
		case T_MergeAppendState:
			/* members cannot be distinguished from subplans */
			as_parent = parent->initPlan == NIL && parent->subPlan == NIL;
			break;
		default:
			break;
	}
	return as_parent && la_node_is(parent, LA_NODE_READS_ALIKE) ? demand : LA_DEMAND_SOME;
}

/*
 * May rows of the child remain, whatever the demand is?  A hash join may take one row of
 * its outer side, build its table, find it empty, and end.
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
 * Steps down to a node: returns its context, and sets the state for its children.
 */
static LaDemandContext
step_down(PlanState *ps, const WalkState *parent, WalkState *state)
{
	LaDemandContext context = {NULL, LA_DEMAND_RUN, false};

	if (parent->limit != NULL && parent->limit_child == ps)
		context.limit = parent->limit;
	if (parent->node != NULL)
	{
		/* a limit's effect on the demand is known for limit_child only */
		bool		known = parent->limit == NULL || context.limit != NULL;

		context.demand = demand_on(ps, parent->node,
								   known ? parent->demand : LA_DEMAND_SOME);
		context.skippable = is_skippable(ps, parent->node, parent->skippable);
	}

	state->demands = parent->demands;
	state->node = ps;
	state->demand = context.demand;
	state->skippable = context.skippable;
	if (IsA(ps, LimitState))
	{
		state->limit = (LimitState *) ps;
		state->limit_child = outerPlanState(ps);
	}
	else
	{
		state->limit = context.limit;
		state->limit_child = one_to_one_child(ps);
	}
	return context;
}

static bool
walk(PlanState *ps, void *arg)
{
	WalkState  *parent = arg;
	LaNodeDemands *d = parent->demands;
	WalkState	state;
	LaDemandContext context = step_down(ps, parent, &state);

	if (la_attach_is_registered(nodeTag(ps)) || ps->subPlan != NIL)
	{
		if (d->n == d->allocated)
		{
			d->allocated *= 2;
			d->items = repalloc_huge(d->items, d->allocated * sizeof(NodeDemand));
		}
		d->items[d->n].node = ps;
		d->items[d->n++].context = context;
	}
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

	d->allocated = 16;
	d->items = MemoryContextAlloc(context, d->allocated * sizeof(NodeDemand));
	(void) walk(s->top, &state);
	qsort(d->items, d->n, sizeof(NodeDemand), compare_nodes);
	return d;
}

/* Returns false if the plan is not a chain from its topmost node to this one. */
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
 * What the nodes above this one will want of it.  If that is not known, the answer is the
 * most careful one.
 */
void
la_demand_context(PlanState *ps, LaDemandContext *context)
{
	LaStatement *s = la_statement_of(ps->state);
	NodeDemand	key = {.node = ps};
	NodeDemand *found = NULL;

	if (s != NULL && s->demands == NULL)
	{
		if (find_on_chain(s, ps, context))
			return;
		s->demands = make_demands(s);
	}
	if (s != NULL)
		found = bsearch(&key, s->demands->items, s->demands->n, sizeof(NodeDemand),
						compare_nodes);
	if (found != NULL)
	{
		*context = found->context;
		return;
	}
	context->limit = NULL;
	context->demand = LA_DEMAND_SOME;
	context->skippable = true;
}

bool
la_demand_is_all(LaDemand demand, const EState *estate)
{
	return demand == LA_DEMAND_ALL ||
		(demand == LA_DEMAND_RUN && la_statements_run(estate)->to_end);
}

/* How many rows may the Limit still take after the current one? */
int64
la_demand_rows_wanted(const LimitState *limit)
{
	if (limit == NULL || limit->noCount ||
		limit->limitOption != LIMIT_OPTION_COUNT ||
		limit->count > PG_INT32_MAX || limit->offset > PG_INT32_MAX)
		return PG_INT64_MAX;
	return Max(limit->offset + limit->count - limit->position - 1, 0);
}
