/*
 * hashjoin.c
 *	  Hash joins that do not wait for memory: who is eligible, and when.
 *
 * The node is executed by a function of ours, which builds the table (hashtable.c) and looks
 * rows up (probe.c), over hash join's own state and structures:
 *
 *		parent --> exec_join --> hashtable.c, once --> inner child
 *						|
 *						+------> probe.c ---------> outer child
 *						|
 *						+------> ExecHashJoin (stock), from the row on at which the
 *								 table does not fit into memory any more
 *
 * Everything that decides about rows is the node's: hash values, hash clauses, join
 * clauses, filters, projection.
 *
 * Eligible is a hash join that the planner expects to fit into memory (hashtable.c leaves
 * others at once), and not one of so few rows that nothing can be won.  A Parallel Hash, whose table several processes share, remains stock's,
 * but look-ups are fetched ahead for it (shared.c).
 * Outer rows are taken ahead of the join only where nobody can tell (attach/runahead.c); in
 * a SERIALIZABLE transaction only if all of them will be read.
 *
 * Rescans: ExecReScanHashJoin destroys the table or leaves it for reuse, which
 * hj_JoinState tells; what we have of outer rows is forgotten in both cases.
 *
 * src/hashjoin/hashjoin.c
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "attach/attach.h"
#include "base/explain.h"
#include "base/guc.h"
#include "hashjoin/hashjoin.h"
#include "hashjoin/hashjoin_int.h"

/* Rows that the planner expects; a join of fewer on both sides is left alone. */
#define TINY_INNER_ROWS	1000
#define TINY_OUTER_ROWS	10000

static LaNodeKind hashjoins;

/* The join is rescanned, or the query ends. */
static void
on_rescan(LaInterposer *interposer)
{
	LaHashJoin *join = la_interpose_container(LaHashJoin, interposer);

	la_probe_clear(join);
	join->prepared = false;
}

/* The join's memory goes. */
static void
on_end(LaInterposer *interposer)
{
	LaHashJoin *join = la_interpose_container(LaHashJoin, interposer);

	la_budget_end(&join->budget);
	if (join->counters.c[LA_SCANS_ATTACHED] > 0)
		la_stats_publish(LA_KIND_HASH_JOIN, InvalidOid, InvalidOid,
						 &join->counters);
}

/* Will the join take all outer rows, if nothing fails? */
bool
la_hash_takes_all(const LaHashJoin *join)
{
	return join->building ||
		la_runahead_takes_all(&join->ahead.context, join->node->js.ps.state);
}

/*
 * Why must the hash values of outer rows not be computed before their turn?  NULL if they
 * may.  In front of a shared table they are computed twice.
 */
static const char *
refuses_keys(const LaHashJoin *join)
{
	HashJoin   *plan = (HashJoin *) join->node->js.ps.plan;
	List	   *keys = join->building ? ((Hash *) join->hash->ps.plan)->hashkeys :
		plan->hashkeys;
	const char *refused = la_runahead_refuses_expression(&join->ahead, (Node *) keys);

	if (refused == NULL)
		refused = la_runahead_refuses_hashing(&join->ahead, plan->hashoperators);
	return refused;
}

static const char *
refuses_early(const LaHashJoin *join)
{
	const char *refused = NULL;

	if (!la_hash_takes_all(join))
	{
		if (IsolationIsSerializable())
			return "not all rows may be read, and reading takes predicate locks";
		if (la_early_reads_may_fail())
			return "not all rows may be read, and old snapshots expire";
	}
	refused = refuses_keys(join);
	return refused != NULL ? refused : la_runahead_refuses_outer(&join->ahead);
}

/* May outer rows be taken, and their hash values computed, before their turn? */
bool
la_hash_may_be_early(LaHashJoin *join)
{
	bool		takes_all = la_hash_takes_all(join);
	const char *refused;

	/* not anew with each rescan, unless it may be answered otherwise */
	if (join->early_known && join->early_takes_all == takes_all)
		return join->early;
	refused = refuses_early(join);
	if (refused != NULL && !join->early_known)
		la_stats_refuse(join->node->js.ps.state, LA_KIND_HASH_JOIN, InvalidOid,
						InvalidOid, refused);
	join->early_known = true;
	join->early_takes_all = takes_all;
	join->early = refused == NULL;
	return join->early;
}

/* Only now it is known how many rows are wanted. */
static void
prepare(LaHashJoin *join)
{
	join->early = (!join->small || la_force) && la_hash_may_be_early(join);
	la_probebatch_prepare(join);
	join->prepared = true;
}

static TupleTableSlot *
exec_join(PlanState *ps)
{
	LaInterposer *interposer = la_interpose_of(ps, LA_LAYER_NODE);
	LaHashJoin *join = la_interpose_container(LaHashJoin, interposer);

	if (interposer->ended)
		return interposer->below(ps);
	if (join->node->hj_JoinState == STATE_BUILD)
	{
		join->counters.c[LA_SCANS_ATTACHED]++;
		la_demand_context(ps, &join->ahead.context);
		switch (la_hash_build(join))
		{
			case LA_HASH_BUILT:
				break;
			case LA_HASH_EMPTY:
				return NULL;
			case LA_HASH_LEFT_TO_STOCK:
				la_interpose_end(interposer);
				return interposer->below(ps);
		}
		join->prepared = false;
		join->table = join->node->hj_HashTable;
	}
	if (join->table == NULL || join->table != join->node->hj_HashTable)
	{
		/* another extension had the server begin this execution */
		la_interpose_end(interposer);
		return interposer->below(ps);
	}
	if (!join->prepared)
		prepare(join);
	return la_probe_next(join);
}

/* ---- which columns --------------------------------------------------- */

typedef struct NeededColumns
{
	TupleDesc	desc;
	int			last;			/* of those needed */
	bool		by_value;		/* all of them */
	bool		row;			/* is needed itself */
} NeededColumns;

static bool
note_columns(Node *node, void *context)
{
	NeededColumns *needed = context;

	if (node == NULL)
		return false;
	if (IsA(node, Var) && ((Var *) node)->varno == OUTER_VAR)
	{
		int			n = ((Var *) node)->varattno;

		if (n <= 0)
			needed->row = true;
		else if (!TupleDescAttr(needed->desc, n - 1)->attbyval)
			needed->by_value = false;
		needed->last = Max(needed->last, n);
		return false;
	}
	return expression_tree_walker(node, note_columns, context);
}

/*
 * How many columns of an outer row are needed once its hash value is known, and are these
 * by value?  (A column before the last needed one that is not is copied, too, and never
 * looked at.)
 */
static void
find_needed_columns(LaHashJoin *join)
{
	HashJoin   *plan = (HashJoin *) join->node->js.ps.plan;
	NeededColumns needed = {ExecGetResultType(join->outer), 0, true, false};

	note_columns((Node *) plan->join.plan.targetlist, &needed);
	note_columns((Node *) plan->join.plan.qual, &needed);
	note_columns((Node *) plan->join.joinqual, &needed);
	note_columns((Node *) plan->hashclauses, &needed);
	if (join->node->js.ps.plan->parallel_aware)
	{
		note_columns((Node *) plan->hashkeys, &needed); /* once more */
		/* the server puts the row as it is into a tuplestore */
		needed.row |= la_nulls_may_be_outer(join->node);
	}
	if (needed.row)
		return;
	join->attributes = needed.last;
	join->by_value = needed.by_value;
}

/* Is the only hash clause a comparison of two int4 columns? */
static void
find_keys(LaHashJoin *join)
{
	HashJoin   *plan = (HashJoin *) join->node->js.ps.plan;
	OpExpr	   *clause = linitial(plan->hashclauses);
	Var		   *outer,
			   *inner;

	if (list_length(plan->hashclauses) != 1 || !IsA(clause, OpExpr) ||
		get_opcode(clause->opno) != F_INT4EQ || fill_inner(join->node))
		return;
	outer = linitial(clause->args);
	inner = lsecond(clause->args);
	if (!IsA(outer, Var) || outer->varno != OUTER_VAR || outer->varattno <= 0 ||
		!IsA(inner, Var) || inner->varno != INNER_VAR || inner->varattno <= 0)
		return;
	join->outer_key = outer->varattno;
	join->inner_key = inner->varattno;
}

static LaHashJoin *
create_join(HashJoinState *node, PlanState *outer)
{
	EState	   *estate = node->js.ps.state;
	LaHashJoin *join = MemoryContextAllocZero(estate->es_query_cxt, sizeof(LaHashJoin));

	join->node = node;
	join->hash = castNode(HashState, innerPlanState(node));
	join->outer = outer;
	join->ahead.join = &node->js.ps;
	join->ahead.outer = outer;
	join->attributes = -1;
	join->interposer.on_rescan = on_rescan;
	join->interposer.on_end = on_end;
	return join;
}

static void
attach_shared(HashJoinState *node)
{
	LaHashJoin *join = create_join(node, outerPlanState(node));

	find_needed_columns(join);
	la_hash_attach_shared(join);
	join = create_join(node, outerPlanState(innerPlanState(node)));
	join->building = true;
	la_hash_attach_shared(join);
}

/* Does the planner expect so few rows that nothing can be won? */
static bool
is_tiny(const Plan *plan)
{
	return outerPlan(innerPlan(plan))->plan_rows < TINY_INNER_ROWS &&
		outerPlan(plan)->plan_rows < TINY_OUTER_ROWS;
}

static bool
attach_hashjoin(PlanState *ps, bool limited)
{
	HashJoinState *node = castNode(HashJoinState, ps);
	LaHashJoin *join;

	if (!la_enable_hash_join || SIZEOF_VOID_P != 8 ||
		ps->state->es_epq_active != NULL || (is_tiny(ps->plan) && !la_force))
		return false;
	if (ps->plan->parallel_aware)
	{
		attach_shared(node);
		return true;
	}
	if (!la_interpose_is_possible(ps, &hashjoins))
		return false;
	join = create_join(node, outerPlanState(ps));
	find_needed_columns(join);
	find_keys(join);
	join->interposer.listens_to = ps->ps_ExprContext;
	la_interpose_begin(&join->interposer, ps, LA_LAYER_NODE, exec_join);
	return true;
}

void
la_hashjoin_init(void)
{
	la_attach_register(T_HashJoinState, attach_hashjoin);
}
