/*
 * hashjoin.c
 *	  Hash joins that do not wait for memory: who is eligible, and when.
 *
 * The node is executed by a function of ours, which builds the table (build.c) and looks
 * rows up (probe.c), over hash join's own state and structures:
 *
 *		parent --> exec_join --> build.c, once --> inner child
 *						|
 *						+------> probe.c ---------> outer child
 *						|
 *						+------> ExecHashJoin (stock), from the row on at which the
 *								 table does not fit into memory any more
 *
 * Everything that decides about rows is the node's: hash values, hash clauses, join
 * clauses, filters, projection.
 *
 * Eligible is a hash join that the planner expects to fit into memory (build.c leaves
 * others at once).  A Parallel Hash, whose table several processes share, remains stock's,
 * but look-ups are fetched ahead for it (shared.c).
 * Outer rows are taken ahead of the join only where nobody can tell (attach/early.c); in
 * a SERIALIZABLE transaction only if all of them will be read.
 *
 * Rescans: ExecReScanHashJoin destroys the table or leaves it for reuse, which
 * hj_JoinState tells; what we have of outer rows is forgotten in both cases.
 *
 * src/hashjoin/hashjoin.c
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "attach/early.h"
#include "base/explain.h"
#include "base/guc.h"
#include "hashjoin/hashjoin.h"
#include "hashjoin/join.h"

static LaNodeKind hashjoins;

/* The join is rescanned, or the query ends. */
static void
on_rescan(LaTakeover *takeover)
{
	LaHashJoin *join = la_takeover_container(LaHashJoin, takeover);

	la_probe_clear(join);
	join->prepared = false;
}

/* The join's memory goes. */
static void
on_end(LaTakeover *takeover)
{
	LaHashJoin *join = la_takeover_container(LaHashJoin, takeover);

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
		(join->limit == NULL && !join->skippable &&
		 la_attach_is_all(join->demand, join->node->js.ps.state));
}

/* Could this hash function raise an error?  Those of core's simple types do not. */
static bool
hash_function_may_fail(Oid function)
{
	switch (function)
	{
			/* these call functions of other types */
		case F_HASH_ARRAY:
		case F_HASH_RECORD:
		case F_HASH_RANGE:
		case F_HASH_MULTIRANGE:
			return true;
		default:
			return function >= FirstGenbkiObjectId &&
				!get_func_leakproof(function);
	}
}

static bool
hashing_may_fail(List *hashclauses)
{
	ListCell   *lc;

	foreach(lc, hashclauses)
	{
		RegProcedure left;
		RegProcedure right;

		if (!IsA(lfirst(lc), OpExpr) ||
			!get_op_hash_functions(((OpExpr *) lfirst(lc))->opno, &left, &right) ||
			hash_function_may_fail(left) || hash_function_may_fail(right))
			return true;
	}
	return false;
}

/*
 * May the hash values of outer rows be computed before their turn?  In front of a shared
 * table they are computed twice, which nobody may notice, either.
 */
static bool
keys_are_fit(const LaHashJoin *join, const LaEarly *early)
{
	HashJoin   *plan = (HashJoin *) join->node->js.ps.plan;
	Node	   *keys = (Node *) (join->building ?
								 ((Hash *) join->hash->ps.plan)->hashkeys :
								 plan->hashkeys);

	if (contain_volatile_functions(keys) || contain_subplans(keys))
		return false;
	return (early->takes_all && !join->shared) ||
		(la_early_is_errorfree(early, keys) && !hashing_may_fail(plan->hashclauses));
}

/* May outer rows be taken, and their hash values computed, before their turn? */
bool
la_hash_may_be_early(LaHashJoin *join)
{
	LaEarly		early = {la_hash_takes_all(join), join->initplan_params};

	/* not anew with each rescan, unless it may be answered otherwise */
	if (join->early_known && join->early_takes_all == early.takes_all)
		return join->early;
	join->early_known = true;
	join->early_takes_all = early.takes_all;
	return (early.takes_all ||
			(!IsolationIsSerializable() && !la_early_reads_may_fail())) &&
		keys_are_fit(join, &early) &&
		la_early_is_safe(&early, join->outer);
}

static TupleTableSlot *
exec_join(PlanState *ps)
{
	LaTakeover *takeover = la_takeover_of(ps);
	LaHashJoin *join = takeover == NULL ? NULL :
		la_takeover_container(LaHashJoin, takeover);

	if (join == NULL || join->given_up)
	{
		la_takeover_give_back(ps, &hashjoins);
		return hashjoins.stock(ps);
	}
	if (join->node->hj_JoinState == STATE_BUILD)
	{
		join->counters.c[LA_SCANS_ATTACHED]++;
		switch (la_hash_build(join))
		{
			case LA_BUILT:
				break;
			case LA_BUILT_NOTHING:
				return NULL;
			case LA_BUILD_LEFT:
				join->given_up = true;
				return hashjoins.stock(ps);
		}
		join->prepared = false;
	}
	if (!join->prepared)
	{
		/* only now it is known how many rows are wanted */
		join->early = la_hash_may_be_early(join);
		la_batch_prepare(join);
		join->prepared = true;
	}
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
		note_columns((Node *) plan->hashkeys, &needed); /* once more */
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
create_join(HashJoinState *node, PlanState *outer, const LaAttachContext *context)
{
	EState	   *estate = node->js.ps.state;
	LaHashJoin *join = MemoryContextAllocZero(estate->es_query_cxt, sizeof(LaHashJoin));

	join->node = node;
	join->hash = castNode(HashState, innerPlanState(node));
	join->outer = outer;
	join->limit = context->limit;
	join->demand = context->demand;
	join->skippable = context->skippable;
	join->initplan_params = la_early_initplan_params(estate);
	join->attributes = -1;
	join->takeover.on_rescan = on_rescan;
	join->takeover.on_end = on_end;
	return join;
}

static void
attach_hashjoin(PlanState *ps, const LaAttachContext *context)
{
	HashJoinState *node = castNode(HashJoinState, ps);
	LaHashJoin *join;

	if (!la_enable_hash_join || SIZEOF_VOID_P != 8 || ps->state->es_epq_active != NULL)
		return;
	if (!ps->plan->parallel_aware)
	{
		if (!la_takeover_is_possible(ps, &hashjoins))
			return;
		join = create_join(node, outerPlanState(ps), context);
		find_needed_columns(join);
		find_keys(join);
		la_takeover_begin(&join->takeover, ps, &hashjoins, exec_join);
		return;
	}

	join = create_join(node, outerPlanState(ps), context);
	find_needed_columns(join);
	la_hash_attach_shared(join);
	join = create_join(node, outerPlanState(innerPlanState(ps)), context);
	join->building = true;
	la_hash_attach_shared(join);
}

void
la_hashjoin_init(void)
{
	la_attach_register(T_HashJoinState, attach_hashjoin);
}
