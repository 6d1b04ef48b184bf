/*
 * child_rows.c
 *	  The rows to come of a node that takes them from a child.
 *
 *		node --> exec_child --> [ row | row | row ] --> child
 *
 * The child is executed ahead of the node, where nobody can notice it (attach/runahead.c): a queue
 * (rows/childqueue.c) is put between the two when rows are first asked for.  Several subplans of a
 * node, or a subplan and what the node repeats, share the queue, and each has its own position.
 *
 * The plan of a CTE is the child of all scans of it, which store its rows (stored_rows.c).  It is
 * executed by the one that comes to the last of them, and never backward.
 *
 * WHERE CURRENT OF takes a row's address from a scan below a cursor's topmost nodes.  A child by
 * which the server may come to such a scan is not executed ahead of the cursor (attach/gate.c).
 *
 * The outer child of a nested loop has a queue already (nestloop.c).
 *
 * Left alone are children into whose output another room, or extension, has put a function; nodes
 * that may be executed backward, or return to a mark; and plans of CTEs that may be executed anew,
 * since no node tells of it in time.
 *
 * Behaviours
 *	BOUNDED	As in nestloop/nestloop.c.
 *	BOUNDED SORT	A Limit tells a Sort below it how many rows it will take, through nodes that
 *		pass rows on.  The Sort fails when it is asked for more.
 *	COPIED	The node works on its current row while rows to come are asked for.  So the child must
 *		not be executed unless the current row is a copy from the queue: while rows to come are
 *		wanted, all rows are taken from there, and the first ones are known a row later.  Scans of
 *		a CTE copy their rows.
 *
 * src/nestloop/child_rows.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

#include "attach/attach.h"
#include "base/base.h"
#include "rows/rows.h"
#include "nestloop/nestloop_int.h"

#define WANTED			64		/* see COPIED */

typedef struct Child
{
	LaInterposer interposer;
	LaRunAhead	ahead;
	LaBudget	budget;
	bool		bounded;		/* see BOUNDED SORT */
	bool		bound_known;	/* since the start or a rescan */
	int64		returned;		/* rows since the start or a rescan */
	bool		once;			/* never rescanned */
	bool		asked;			/* rows to come are being asked for */
	int			wanted;			/* rows for which they will be, perhaps */
	LaChildQueue queue;
} Child;

typedef struct ChildRows
{
	LaRowsToCome base;
	Child	   *child;
	LaInterposer *outer;		/* of a nested loop's outer child, instead */
	uint64		next;
} ChildRows;

/* Behaviour BOUNDED SORT: is there a Sort below that returns no more rows than a Limit takes? */
static bool
is_bounded(PlanState *ps)
{
	PlanState  *child;

	if (IsA(ps, SortState))
		return ((SortState *) ps)->bounded;
	if (IsA(ps, IncrementalSortState))
		return ((IncrementalSortState *) ps)->bounded;
	for (int i = 0; la_node_is(ps, LA_NODE_BOUNDS) && (child = la_node_child(ps, i)) != NULL; i++)
	{
		if (is_bounded(child))
			return true;
	}
	return false;
}

static bool
may_fetch(void *arg, int64 queued)
{
	Child	   *c = arg;
	const LaDemandContext *context = &c->ahead.context;

	if (!c->asked)
		return queued == 0;
	if (!c->bound_known)
	{
		c->bound_known = true;
		c->bounded = is_bounded(c->queue.child);
	}
	if (c->bounded && (context->limit == NULL || queued >= la_demand_rows_wanted(context->limit)))
		return false;
	return la_force ||
		la_runahead_may_fetch(context, c->ahead.join->state, queued, c->returned);
}

/* What the node calls instead of the child's function.  Behaviour COPIED. */
static TupleTableSlot *
exec_child(PlanState *ps)
{
	Child	   *c = la_interpose_container(Child, la_interpose_enter(ps, LA_LAYER_OUTPUT));
	TupleTableSlot *slot;

	if (c->wanted > 0 || la_childqueue_has_rows(&c->queue) || c->queue.at_end)
	{
		c->wanted--;
		slot = la_childqueue_head(&c->queue) == NULL ? NULL :
			la_childqueue_return_head(&c->queue);
	}
	else
	{
		la_childqueue_release(&c->queue);
		slot = c->interposer.below(ps);
		if (TupIsNull(slot))
			c->queue.at_end = true;
	}
	if (!TupIsNull(slot))
		c->returned++;
	return slot;
}

static void
on_rescan(LaInterposer *interposer)
{
	Child	   *c = la_interpose_container(Child, interposer);

	c->returned = 0;
	c->bound_known = false;
	la_childqueue_clear(&c->queue);
}

static void
on_end(LaInterposer *interposer)
{
	la_budget_end(&la_interpose_container(Child, interposer)->budget);
}

/* ---- LaRowsToCome ---------------------------------------------------------------------- */

static void
restart(LaRowsToCome *rows)
{
	((ChildRows *) rows)->next = 0;
}

/* The next row of a nested loop's outer child. */
static TupleTableSlot *
next_outer(ChildRows *r)
{
	LaChildQueue *queue = la_nestloop_want(r->outer, WANTED);
	TupleTableSlot *slot;

	if (queue == NULL || queue->returned == NULL)
		return NULL;
	r->next = Max(r->next, queue->head);
	slot = la_childqueue_row(queue, r->next, true);
	if (slot != NULL)
		r->next++;
	return slot;
}

static TupleTableSlot *
next(LaRowsToCome *rows)
{
	ChildRows  *r = (ChildRows *) rows;
	Child	   *c = r->child;
	TupleTableSlot *slot;

	if (r->outer != NULL)
		return next_outer(r);
	c->wanted = WANTED;
	if (!c->once && (!c->interposer.listens || c->queue.returned == NULL))
		return NULL;
	r->next = Max(r->next, c->queue.head);
	c->asked = true;
	slot = la_childqueue_row(&c->queue, r->next, true);
	c->asked = false;
	if (slot != NULL)
		r->next++;
	return slot;
}

/* ---- creation ---------------------------------------------------------------------------- */

static bool
returns_to_mark(PlanState *ps, void *arg)
{
	if (IsA(ps, MergeJoinState) && innerPlanState(ps) == arg)
		return true;
	return planstate_tree_walker(ps, returns_to_mark, arg);
}

/* Are the node's rows taken in one direction only? */
static bool
goes_forward(PlanState *node)
{
	const LaStatement *s = la_statement_of(node->state);

	if (IsA(node, NestLoopState) || IsA(node, HashJoinState) || IsA(node, MergeJoinState) ||
		IsA(node, AggState) || IsA(node, WindowAggState) || IsA(node, GroupState) ||
		IsA(node, CteScanState))
		return true;
	return (node->state->es_top_eflags & EXEC_FLAG_BACKWARD) == 0 && s != NULL &&
		!returns_to_mark(s->top, node);
}

/* An ExprContext that is rescanned whenever the child is, and else never; or NULL. */
static ExprContext *
rescanned_with(PlanState *node, PlanState *child)
{
	/* Agg rescans its own for each group */
	if (IsA(node, AggState))
		return IsA(child, AggState) ? NULL : child->ps_ExprContext;
	return node->ps_ExprContext;
}

static Child *
create_child(PlanState *node, PlanState *child, const LaDemandContext *context,
			 const char **refused)
{
	LaRunAhead	ahead = {
		.join = node,.outer = child,.context = *context,.can_keep_errors = true
	};
	bool		is_cte = IsA(node, CteScanState);
	ExprContext *rescanned = is_cte ? NULL : rescanned_with(node, child);
	Child	   *c;

	if (!la_interpose_output_is_possible(child) || !goes_forward(node) ||
		(is_cte ? !bms_is_empty(child->plan->extParam) : rescanned == NULL))
		return NULL;
	*refused = la_gate_refuses_child(node, child);
	if (*refused == NULL)
		*refused = la_runahead_refuses_reading(la_runahead_takes_all(context, node->state),
											   node->state);
	if (*refused == NULL)
		*refused = la_runahead_refuses_outer(&ahead);
	if (*refused != NULL)
		return NULL;
	c = palloc0(sizeof(Child));
	c->ahead = ahead;
	c->once = is_cte;
	c->budget.limit = (Size) la_scan_memory * 1024;
	c->interposer.listens_to = rescanned;
	c->interposer.on_rescan = on_rescan;
	c->interposer.on_end = on_end;
	la_interpose_begin(&c->interposer, child, LA_LAYER_OUTPUT, exec_child);
	la_childqueue_init(&c->queue, &c->interposer, CurrentMemoryContext, &c->budget);
	c->queue.keeps_errors = ahead.keeps_errors;
	c->queue.may_fetch = may_fetch;
	c->queue.arg = c;
	return c;
}

/*
 * In the current memory context, which is the query's.  NULL if the child must not be executed
 * ahead; *refused is the reason that prohibits it, if any.
 */
LaRowsToCome *
la_childrows_create(PlanState *node, PlanState *child, const LaDemandContext *context,
					const char **refused)
{
	LaInterposer *interposer = la_interpose_find(child, LA_LAYER_OUTPUT);
	bool		is_queued = interposer != NULL && la_nestloop_has(interposer);
	ChildRows  *r;
	Child	   *c = NULL;

	if (interposer != NULL && interposer->function == exec_child)
		c = la_interpose_container(Child, interposer);
	else if (!is_queued)
		c = create_child(node, child, context, refused);
	if (c == NULL && !is_queued)
		return NULL;
	r = palloc0(sizeof(ChildRows));
	r->outer = is_queued ? interposer : NULL;
	r->base.restart = restart;
	r->base.next = next;
	r->child = c;
	return &r->base;
}
