/*
 * runahead.c
 *	  May the outer side of a join, or the plan of a write, be run ahead?
 *
 * Looking ahead takes outer rows before their predecessors have been joined, and evaluates
 * keys of the inner side for them.  Nothing but time may show it.  effects.c and
 * node_effects.c find what is evaluated, and what could be noticed of it; this file compares
 * the two orders of evaluation:
 *
 *		stock:	O1  I1 U1  O2  I2 U2  O3  I3 U3 ...
 *		ahead:	O1  O2 O3 O4 ...  I1 U1  I2 U2 ...
 *
 *		On	the call that returns the n-th row of the outer side
 *		In	the inner side for it, and the join's own expressions
 *		Un	the rest of the statement, and whatever receives its rows
 *
 * The sequence of calls of the outer side is the same.  Those from the second call on are
 * made earlier relative to I and U, and there may be more of them, if the join is left
 * before its end.  Hence these rules:
 *
 *	First calls
 *		What belongs to the first call is not early.  A Sort, a Hash and a plain or hashed
 *		Agg read all of their input in it, LIMIT is evaluated in it, and so on.  This holds
 *		for the first execution of a node only: a node that may be rescanned within the
 *		outer side, such as the inner side of a nested loop, is early, and so is one that
 *		may be started later, such as the second member of an Append.  The rules below are
 *		about what is early.
 *	Effects
 *		What has effects must not be early.
 *	State
 *		What reads state must find the same state.  So it may be early only in a
 *		statement in which nothing has effects, and only while no code from outside the
 *		statement runs between the join's rows.  (The owner of a cursor may call
 *		set_config() between two of them; and so may output functions of types, for rows
 *		that are sent to the client.)
 *	Failure
 *		What can fail must not be early, unless stock is certain to raise the same error
 *		with nothing else to be seen: all rows of the join are taken, none of them leaves
 *		the statement before that, and neither I nor U has effects or can fail.  What can
 *		fail in U: expressions and comparisons, nodes by themselves (a negative LIMIT), the
 *		use of a subplan's rows (more than one), variables of a procedural language that
 *		have no value yet, and whatever receives the rows (a row that is too big).
 *		A caller that keeps an error until its turn (keeps_errors) needs no such proof: what is
 *		raised, and after which row, is as in stock.  But it cannot keep errors of any class, and
 *		nodes that have failed must not be executed again.  So that is for an outer side that is
 *		executed once, whose rows will all be taken, that starts no parallel workers, and that
 *		executes no CTE and no InitPlan which the rest of the statement may execute, too
 *		(initplans.c).
 *	Notices
 *		What raises notices must not be early where other effects come between rows, nor be
 *		evaluated once more, as keys of the inner side are.  (Otherwise the rule for failures
 *		is enough, since it may fail, too.)
 *	Writes
 *		Un has effects.  What reads state may be early if nothing but the server's own writing, and
 *		what has no effects, comes between rows (writer_is_quiet), for no function that is
 *		trusted reads what that changes.  Under the same condition a function that draws values,
 *		such as nextval(), may be early: nobody else in the statement draws, all rows of the plan
 *		will be taken, and the order of calls is the same.  (If the statement fails, more values
 *		have been drawn.)
 *	Hints
 *		A key that is evaluated for a hint only (hints_only), for a row whose plan stock might
 *		never execute, may find another state.
 *	Attempts
 *		A key whose error is forgotten, since it is evaluated again in its turn, may fail
 *		(la_runahead_refuses_attempt()) if the error is of a class that base/attempt.c keeps, and
 *		leaves nothing held.  That is so of the server's functions that compute, or read settings.
 *	Row versions
 *		A row's xmin, xmax, cmin and cmax may be changed by the statement itself, so they
 *		must not be read early.
 *	InitPlans
 *		The Param of an InitPlan is computed by the first expression that needs its value,
 *		so the effects of the InitPlan count as those of that expression.
 *	Other extensions, subplans
 *		A node of the outer side that another extension executes, or wraps, must not be
 *		early; nor must a subplan.
 *
 * Everything else reads tables under the statement's snapshot, and finds the same rows a
 * moment earlier.  In SERIALIZABLE transactions reading takes predicate locks, so only rows
 * that will be taken may be read; and only where nothing has effects, since a row's lock is removed
 * when the transaction writes the row, and becomes one of the page when there are others by then
 * (la_runahead_refuses_reading()).
 *
 * src/attach/runahead.c
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

#include "attach/attach.h"
#include "attach/attach_int.h"

/* ---- the statement, without what is early ------------------------------------ */

/* The members of type PlanState say what is not counted, and may be NULL. */
typedef struct RestWalk
{
	LaEffects  *effects;
	PlanState  *without;		/* this node and all below it */
	PlanState  *before;			/* likewise; it ends before the second call */
	PlanState  *without_keys;	/* keys of this join */
	PlanState  *without_pages;	/* what this index scan calls for its pages */
	List	   *computed;		/* InitPlans that a key computes */
	bool		with_ctes;		/* those that are read, too */
} RestWalk;

static LaNodeEffects
nothing_of_node(const LaEffects *like)
{
	LaEffects	nothing = *like;

	nothing.flags = 0;
	return (LaNodeEffects)
	{
		nothing, nothing, nothing
	};
}

/* Is it certain that a plan has at most one row? */
static bool
has_one_row(const Plan *plan)
{
	const Limit *limit = (const Limit *) plan;
	const Const *count;

	if (IsA(plan, Agg))
		return ((const Agg *) plan)->aggstrategy == AGG_PLAIN && ((const Agg *) plan)->chain == NIL;
	if (IsA(plan, Result))
		return outerPlan(plan) == NULL || has_one_row(outerPlan(plan));
	if (!IsA(plan, Limit) || limit->limitCount == NULL || !IsA(limit->limitCount, Const) ||
		limit->limitOption != LIMIT_OPTION_COUNT)
		return false;
	count = (const Const *) limit->limitCount;
	return !count->constisnull && DatumGetInt64(count->constvalue) <= 1;
}

/*
 * Errors of expressions about the rows of their subplans: more than one, or arrays of different
 * sizes that are to be one array.
 */
static void
note_sublinks(LaEffects *effects, const List *subplans, const List *computed)
{
	ListCell   *lc;

	foreach(lc, subplans)
	{
		const SubPlanState *sps = lfirst(lc);

		if (list_member_ptr(computed, sps->planstate))
			continue;
		switch (sps->subplan->subLinkType)
		{
			case EXISTS_SUBLINK:
			case ANY_SUBLINK:
			case ALL_SUBLINK:
			case CTE_SUBLINK:
				break;
			case ARRAY_SUBLINK:
				if (OidIsValid(get_element_type(sps->subplan->firstColType)))
					la_effects_add(effects, LA_MAY_FAIL, NULL);
				break;
			default:
				if (sps->planstate == NULL || !has_one_row(sps->planstate->plan))
					la_effects_add(effects, LA_MAY_FAIL, NULL);
				break;
		}
	}
}

static bool
walk_rest(PlanState *ps, void *arg)
{
	RestWalk	state = *(RestWalk *) arg;
	LaNodeEffects e = nothing_of_node(state.effects);

	if (ps == state.without || ps == state.before || list_member_ptr(state.computed, ps))
		return false;
	if (ps == state.without_pages)
	{
		la_effects_of_expression(&e.later, (Node *) ps->plan->qual);
		la_effects_of_expression(&e.later, (Node *) ps->plan->targetlist);
	}
	else
		la_node_effects(ps, false, &e);
	note_sublinks(state.effects, ps->initPlan, state.computed);
	note_sublinks(state.effects, ps->subPlan, NIL);
	la_effects_add(state.effects, e.later.flags, e.later.reason);
	la_effects_add(state.effects, e.start.flags, e.start.reason);
	if (ps != state.without_keys)
		la_effects_add(state.effects, e.keys.flags, e.keys.reason);
	if (state.with_ctes && IsA(ps, CteScanState))
		(void) walk_rest(((CteScanState *) ps)->cteplanstate, &state);
	return planstate_tree_walker(ps, walk_rest, &state);
}

/* Are external Params variables of a procedural language? */
static bool
fetches_params(const EState *estate)
{
	ParamListInfo params = estate->es_param_list_info;

	return params != NULL && params->paramFetch != NULL;
}

/* "State": is the statement one in which nothing has effects? */
bool
la_runahead_is_without_effects(const EState *estate)
{
	LaStatement *s = la_statement_of(estate);

	if (s == NULL)
		return false;
	if (!s->without_effects_known)
	{
		LaEffects	effects = {0};
		RestWalk	state = {.effects = &effects};

		(void) walk_rest(s->top, &state);
		s->without_effects = (effects.flags & LA_ANY_EFFECTS) == 0;
		s->without_effects_known = true;
	}
	return s->without_effects;
}

/* "State": does no code from outside the statement run between the join's rows? */
static bool
is_uninterrupted(const LaRunAhead *ahead)
{
	const LaRun *run = la_statements_run(ahead->outer->state);

	return ahead->context.demand == LA_DEMAND_ALL ||
		(run->to_end && la_statement_runs_no_code(run));
}

/*
 * A write in a CTE: does nothing else that comes between its rows have effects, or read state, as
 * of a sequence that the plan draws from?
 */
bool
la_runahead_rest_is_quiet(const LaRunAhead *ahead)
{
	const LaStatement *s = la_statement_of(ahead->outer->state);
	LaEffects	effects = {0};
	RestWalk	state = {.effects = &effects,.without = ahead->join};

	if (s == NULL || !is_uninterrupted(ahead))
		return false;
	(void) walk_rest(s->top, &state);
	return (effects.flags & (LA_ANY_EFFECTS | LA_READS_STATE)) == 0;
}

typedef struct ComputedSearch
{
	PlanState  *top;			/* of the statement */
	List	   *found;
} ComputedSearch;

static bool
search_computed(Node *node, void *arg)
{
	ComputedSearch *search = arg;
	PlanState  *plan;

	if (node == NULL)
		return false;
	if (!IsA(node, Param) || ((Param *) node)->paramkind != PARAM_EXEC)
		return expression_tree_walker(node, search_computed, arg);
	plan = la_initplan_of(search->top, ((Param *) node)->paramid);
	if (plan != NULL)
		search->found = list_append_unique_ptr(search->found, plan);
	return false;
}

/*
 * The InitPlans that a key needs.  They are computed for the first row, also in stock: what
 * fails in them is a failure of the key.
 */
static List *
computed_by(PlanState *top, Node *key)
{
	ComputedSearch search = {top, NIL};

	(void) search_computed(key, &search);
	return search.found;
}

/*
 * "Failure": is stock certain to raise the same error?  What is early is a key of the inner
 * side if is_key is true, the outer side otherwise.  The inner side may evaluate the key once
 * more, which cannot fail if it has not failed before.
 */
static bool
fails_alone(const LaRunAhead *ahead, bool is_key, Node *key)
{
	const EState *estate = ahead->outer->state;
	const LaRun *run = la_statements_run(estate);
	const LaStatement *s = la_statement_of(estate);
	LaEffects	rest = {.fetches_params = fetches_params(estate)};
	RestWalk	state = {.effects = &rest};

	if (IsParallelWorker() || !la_runahead_takes_all(&ahead->context, estate) ||
		(ahead->context.demand != LA_DEMAND_ALL && (!run->rows_stay || run->may_fail)) || s == NULL)
		return false;
	if (is_key)
	{
		state.without_keys = ahead->join;
		state.computed = computed_by(s->top, key);
		/* a Param means the same in the whole plan, a Var does not */
		if (ahead->inner != NULL)
			rest.evaluated = key == NULL || IsA(key, List) ? (List *) key : list_make1(key);
	}
	else if (ahead->pages_only)
		state.without_pages = ahead->outer;
	else
		state.without = ahead->outer;
	if (IsA(ahead->join, HashJoinState))
		state.before = innerPlanState(ahead->join);
	(void) walk_rest(s->top, &state);
	return (rest.flags & (LA_ANY_EFFECTS | LA_MAY_FAIL)) == 0;
}

/* ---- "InitPlans" --------------------------------------------------------------- */

/* The Param of no InitPlan is a value of a row of this join, or of a join above it. */
static void
note_param(LaEffects *effects, int param, void *arg)
{
	const LaStatement *s = la_statement_of(arg);
	PlanState  *plan = s == NULL ? NULL : la_initplan_of(s->top, param);
	RestWalk	state = {.effects = effects,.with_ctes = true};

	if (s == NULL)
		la_effects_add(effects, LA_HAS_EFFECTS, "the statement is not known");
	else if (plan != NULL)
	{
		(void) walk_rest(plan, &state);
		la_effects_add(effects, LA_MAY_FAIL, NULL);
	}
}

static LaEffects
no_effects(const LaRunAhead *ahead)
{
	return (LaEffects)
	{
		.note_param = note_param,.arg = ahead->outer->state,
			.fetches_params = fetches_params(ahead->outer->state)
	};
}

/* ---- the outer side, "first calls" ------------------------------------------- */

typedef struct OuterWalk
{
	LaEffects  *early;
	bool		first;			/* the first call of the node is within that
								 * of the outer side, and not repeated */
	bool		has_row;		/* ... and has returned a row */
} OuterWalk;

static void walk_outer(PlanState *ps, OuterWalk walk);

static void
walk_join(PlanState *ps, OuterWalk outer)
{
	JoinType	type = ((JoinState *) ps)->jointype;
	OuterWalk	inner = {outer.early, outer.first, false};

	/* joins of other types may return a row that has none of the outer side */
	outer.has_row &= type == JOIN_INNER || type == JOIN_LEFT || type == JOIN_SEMI ||
		type == JOIN_ANTI;
	/* a merge join may return outer rows before it reads the inner side */
	if (IsA(ps, NestLoopState) || (IsA(ps, MergeJoinState) && type != JOIN_INNER))
		inner.first = false;
	walk_outer(outerPlanState(ps), outer);
	walk_outer(innerPlanState(ps), inner);
}

/* The first nfirst members are started by the first call of the parent. */
static void
walk_members(PlanState *ps, int nfirst, OuterWalk walk)
{
	bool		first = walk.first;
	PlanState  *member;

	walk.has_row = false;
	for (int i = 0; (member = la_node_child(ps, i)) != NULL; i++)
	{
		walk.first = first && i < nfirst;
		walk_outer(member, walk);
	}
}

static void
walk_children(PlanState *ps, OuterWalk walk)
{
	OuterWalk	inner = walk;

	switch (nodeTag(ps))
	{
		case T_NestLoopState:
		case T_MergeJoinState:
		case T_HashJoinState:
			walk_join(ps, walk);
			return;
		case T_AppendState:
			walk_members(ps, ps->plan->parallel_aware ? 0 : 1, walk);
			return;
		case T_MergeAppendState:
		case T_BitmapAndState:
		case T_BitmapOrState:
			walk_members(ps, INT_MAX, walk);
			return;
		case T_SubqueryScanState:
			walk_outer(((SubqueryScanState *) ps)->subplan, walk);
			return;
		case T_CteScanState:
			walk.has_row = false;
			walk_outer(((CteScanState *) ps)->cteplanstate, walk);
			return;
		case T_LimitState:
		case T_MaterialState:
		case T_ResultState:
		case T_UniqueState:
		case T_IncrementalSortState:
			break;
		case T_RecursiveUnionState:
			walk.has_row = inner.has_row = inner.first = false;
			break;
		case T_GroupState:
		case T_WindowAggState:
		case T_ProjectSetState:
		case T_SetOpState:
		case T_AggState:
		case T_BitmapHeapScanState:
			walk.has_row = inner.has_row = false;
			break;
		default:
			walk.first = walk.has_row = false;
			inner = walk;
			break;
	}
	walk_outer(outerPlanState(ps), walk);
	walk_outer(innerPlanState(ps), inner);
}

static void
walk_outer(PlanState *ps, OuterWalk walk)
{
	LaNodeEffects e;

	if (ps == NULL)
		return;
	if (!la_interpose_is_unwrapped(ps))
		la_effects_add(walk.early, LA_HAS_EFFECTS, "another extension executes a node");
	e = nothing_of_node(walk.early);
	la_node_effects(ps, walk.first && walk.has_row, &e);
	la_effects_add(walk.early, e.later.flags, e.later.reason);
	la_effects_add(walk.early, e.keys.flags, e.keys.reason);
	if (!walk.first)
		la_effects_add(walk.early, e.start.flags, e.start.reason);
	else if (la_demand_reads_all(ps))
		return;
	walk_children(ps, walk);
}

/* ---- verdicts ---------------------------------------------------------------- */

static const char *
judge(const LaRunAhead *ahead, const LaEffects *early, bool is_key, Node *key)
{
	bool		keeps_errors = ahead->keeps_errors && !is_key;

	if ((early->flags & LA_HAS_EFFECTS) != 0)
		return early->reason;
	if ((early->flags & LA_DRAWS) != 0 && !ahead->writer_is_quiet)
		return "a function is volatile";
	if ((early->flags & LA_HAS_SUBPLAN) != 0)
		return "an expression has a subplan";
	if ((early->flags & LA_READS_VERSION) != 0)
		return "system columns are read that the statement may change";
	if (ahead->hints_only)
	{
		/* a wrong value is a wrong hint */
		if ((early->flags & LA_HAS_NOTICES) != 0)
			return "a function may raise a notice";
		return (early->flags & LA_MAY_FAIL) == 0 ? NULL :
			"an expression may fail that the server might not evaluate";
	}
	if ((early->flags & LA_READS_STATE) != 0)
	{
		if (!is_uninterrupted(ahead))
			return "a stable function is called, and rows leave the statement between its calls";
		if (!ahead->writer_is_quiet && !la_runahead_is_without_effects(ahead->outer->state))
			return "a stable function is called in a statement that has effects";
	}
	if ((early->flags & LA_HAS_NOTICES) != 0 && (keeps_errors || is_key))
		return "a function may raise a notice";
	if ((early->flags & LA_FAILS_FREELY) != 0 && keeps_errors)
		return "a function of rows may fail";
	if ((early->flags & LA_MAY_FAIL) != 0 && !keeps_errors &&
		!fails_alone(ahead, is_key, key))
		return "an expression may fail that the server might not evaluate";
	return NULL;
}

/* Will all outer rows of the join be taken, if nothing fails? */
bool
la_runahead_takes_all(const LaDemandContext *context, const EState *estate)
{
	return context->limit == NULL && !context->skippable &&
		la_demand_is_all(context->demand, estate);
}

/*
 * May one more row be fetched, while so many are known ahead, and so many have been taken?  Where
 * rows may not be taken, not more than have been, and below a Limit not more than will be at the
 * rate so far.
 */
bool
la_runahead_may_fetch(const LaDemandContext *context, const EState *estate, int64 known,
					  int64 taken)
{
	const LimitState *limit = context->limit;
	int64		wanted;

	if (la_runahead_takes_all(context, estate))
		return true;
	if (known > taken)
		return false;
	wanted = la_demand_rows_wanted(limit);
	return wanted == PG_INT64_MAX || limit->position <= 0 ||
		known <= 1 + (double) wanted * taken / limit->position;
}

/* May rows be read early, of which perhaps not all will be taken? */
const char *
la_runahead_refuses_reading(bool takes_all, const EState *estate)
{
	if (!IsolationIsSerializable())
		return NULL;
	if (!takes_all)
		return "not all rows may be read, and reading takes predicate locks";
	if (!la_runahead_is_without_effects(estate))
		return "reading takes predicate locks, which a write may remove";
	return NULL;
}

/* Is a node below this one, or itself, one that is executed once if this one is? */
static bool
is_executed_once(PlanState *ps, const PlanState *node)
{
	int			nchildren = IsA(ps, RecursiveUnionState) ? 0 :
		IsA(ps, NestLoopState) ? 1 : PG_INT32_MAX;
	PlanState  *child;

	if (ps == node)
		return true;
	for (int i = 0; i < nchildren && (child = la_node_child(ps, i)) != NULL; i++)
	{
		if (is_executed_once(child, node))
			return true;
	}
	return false;
}

/* "Failure": may an error of the outer side be kept until its turn? */
static bool
may_keep_errors(const LaRunAhead *ahead)
{
	const EState *estate = ahead->outer->state;
	const LaStatement *s = la_statement_of(estate);

	return ahead->can_keep_errors && s != NULL && !la_initplans_may_be_left(ahead->outer) &&
		(estate->es_top_eflags & (EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD)) == 0 &&
		la_runahead_takes_all(&ahead->context, estate) && is_executed_once(s->top, ahead->outer);
}

/* May rows be taken early from the outer side?  Sets keeps_errors if they then may fail. */
const char *
la_runahead_refuses_outer(LaRunAhead *ahead)
{
	LaEffects	early = no_effects(ahead);
	OuterWalk	walk = {&early, true, true};

	walk_outer(ahead->outer, walk);

	/*
	 * (where it cannot, nothing is left; the plan of a write starts no
	 * parallel workers)
	 */
	if (ahead->keeps_errors && (early.flags & LA_MAY_FAIL) != 0 &&
		la_initplans_may_be_left(ahead->outer))
		return "the plan reads a CTE, and so may the rest of the statement";
	if (!ahead->keeps_errors && (early.flags & LA_MAY_FAIL) != 0 && may_keep_errors(ahead))
	{
		ahead->keeps_errors = true;
		if (judge(ahead, &early, false, NULL) == NULL)
			return NULL;
		ahead->keeps_errors = false;
	}
	return judge(ahead, &early, false, NULL);
}

/* May an index scan call what does this before its turn?  See gate.c. */
const char *
la_runahead_refuses_pages(PlanState *scan, const LaEffects *early)
{
	LaRunAhead	ahead = {.join = scan,.outer = scan,.pages_only = true};

	la_demand_context(scan, &ahead.context);
	return judge(&ahead, early, false, NULL);
}

static bool
walk_repeated(PlanState *ps, void *arg)
{
	LaEffects  *effects = arg;
	LaNodeEffects e = nothing_of_node(effects);

	la_node_effects(ps, false, &e);
	la_effects_add(effects, e.later.flags, e.later.reason);
	la_effects_add(effects, e.start.flags, e.start.reason);
	la_effects_add(effects, e.keys.flags, e.keys.reason);
	return planstate_tree_walker(ps, walk_repeated, arg);
}

/* May what a plan will read be read early?  NULL if nothing in it has effects. */
const char *
la_runahead_refuses_plan(PlanState *plan)
{
	LaEffects	effects = {0};

	(void) walk_repeated(plan, &effects);
	if ((effects.flags & LA_HAS_EFFECTS) != 0)
		return effects.reason;
	return (effects.flags & LA_DRAWS) != 0 ? "a function is volatile" : NULL;
}

/* May this expression, or list of expressions, be evaluated early for outer rows? */
const char *
la_runahead_refuses_expression(const LaRunAhead *ahead, Node *expression)
{
	LaEffects	early = no_effects(ahead);

	la_effects_of_expression(&early, expression);
	return judge(ahead, &early, true, expression);
}

/*
 * May this expression be evaluated early for outer rows by la_attempt_compute(), which is needed
 * if it may fail?
 */
const char *
la_runahead_refuses_attempt(const LaRunAhead *ahead, Node *expression, bool *may_fail)
{
	LaEffects	early = no_effects(ahead);

	la_effects_of_expression(&early, expression);
	*may_fail = (early.flags & LA_MAY_FAIL) != 0;
	if ((early.flags & (LA_FAILS_FREELY | LA_MAY_HOLD)) == 0)
		early.flags &= ~LA_MAY_FAIL;
	return judge(ahead, &early, true, expression);
}

/* May this comparison function be called early with outer rows' values, and this collation? */
const char *
la_runahead_refuses_support(const LaRunAhead *ahead, Oid function, Oid type, Oid collation)
{
	LaEffects	early = no_effects(ahead);

	la_effects_of_support(&early, function, 1, &type);
	la_effects_of_collation(&early, collation);
	return judge(ahead, &early, true, NULL);
}

/* May the hash functions of these operators be called early for outer rows? */
const char *
la_runahead_refuses_hashing(const LaRunAhead *ahead, List *operators)
{
	LaEffects	early = no_effects(ahead);
	ListCell   *lc;

	foreach(lc, operators)
		la_effects_of_hashing(&early, lfirst_oid(lc));
	return judge(ahead, &early, true, NULL);
}
