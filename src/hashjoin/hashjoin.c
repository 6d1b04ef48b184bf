/*
 * hashjoin.c
 *	  Hash joins that do not wait for memory: which are eligible, and their execution.
 *
 * exec_join() executes a HashJoinState in place of ExecHashJoin(), with the node's own state and
 * structures:
 *
 *		parent --> exec_join --> hashtable.c, once ----------> inner child
 *						|
 *						+------> probe.c --> probebatch.c ---> outer child
 *						|			|
 *						|			+------> innervalues.c --> reads of values out of line
 *						|
 *						+------> ExecHashJoin (stock), from the row on at which the table no
 *								 longer fits into memory, and for rows with null keys (nulls.c)
 *
 * Hash values, hash clauses, join clauses, filters and projection are the node's expressions.
 *
 * The state of each step is embedded in that of the next, so that a look-up follows no
 * pointers between them: LaHashTable in LaProbeBatches, in LaProbe, in LaHashJoin.
 *
 * A hash join is eligible if it is not tiny by the planner's estimates.  One that is expected
 * to need several batches is left to stock when it is first executed (hashtable.c).  A Parallel
 * Hash Join runs stock, and what look-ups in its shared table read is fetched ahead (shared.c).
 *
 * Rescans: ExecReScanHashJoin() destroys the table and sets hj_JoinState to build another, or
 * keeps the table and sets it to fetch the next outer row.  Outer rows that were taken are
 * forgotten in both cases.
 *
 * src/hashjoin/hashjoin.c
 */
#include "postgres.h"

#include "attach/attach.h"
#include "base/base.h"
#include "hashjoin/hashjoin.h"
#include "hashjoin/hashjoin_int.h"

/* A join is tiny, and not worth it, if the planner expects fewer rows on both sides. */
#define TINY_INNER_ROWS	1000
#define TINY_OUTER_ROWS	10000
#define TINY_VALUES		128		/* inner rows, if they may have long values */

/* A hash join that is executed by us. */
typedef struct LaHashJoin
{
	LaInterposer interposer;
	HashJoinTable built;		/* the table that hashtable.c has built */
	bool		nulls;			/* ExecHashJoin() returns rows with null keys */
	LaProbe		probe;
	LaInnerValues inner_values;
} LaHashJoin;

static LaNodeKind hashjoins;

/* The join is rescanned, or the query ends. */
static void
on_rescan(LaInterposer *interposer)
{
	LaHashJoin *join = la_interpose_container(LaHashJoin, interposer);

	la_probe_clear(&join->probe);
	la_innervalues_clear(&join->inner_values);
	join->nulls = false;
}

/* The join's memory is freed. */
static void
on_end(LaInterposer *interposer)
{
	la_probebatch_end(&la_interpose_container(LaHashJoin, interposer)->probe.batches);
}

static TupleTableSlot *
exec_join(PlanState *ps)
{
	LaInterposer *interposer = la_interpose_enter(ps, LA_LAYER_NODE);
	LaHashJoin *join = la_interpose_container(LaHashJoin, interposer);
	LaProbeBatches *batches = &join->probe.batches;
	HashJoinState *node = castNode(HashJoinState, ps);
	TupleTableSlot *slot;

	if (interposer->ended || join->nulls)
		return interposer->below(ps);
	if (node->hj_JoinState == STATE_BUILD_HASHTABLE)
	{
		LaHashBuildResult result;

		la_probebatch_begin(batches);
		result = la_hashtable_build(&batches->table);
		if (result == LA_HASH_EMPTY)
			return NULL;
		join->built = result == LA_HASH_BUILT ? node->hj_HashTable : NULL;
	}
	if (join->built == NULL || join->built != node->hj_HashTable)
	{
		/* left to stock, or begun by the server for another extension */
		la_interpose_end(interposer);
		return interposer->below(ps);
	}
	if (!batches->prepared)
	{
		la_probebatch_prepare(batches, true);
		la_innervalues_begin(&join->inner_values, &join->probe);
	}
	slot = la_probe_next(&join->probe);
	if (slot != NULL || !la_nulls_begin(node))
		return slot;
	join->nulls = true;
	return interposer->below(ps);
}

static bool
is_tiny(const HashJoinState *node)
{
	const Plan *plan = node->js.ps.plan;
	double		inner_rows = outerPlan(innerPlan(plan))->plan_rows;
	TupleDesc	inner = ExecGetResultType(innerPlanState(node));

	if (inner_rows >= TINY_INNER_ROWS || outerPlan(plan)->plan_rows >= TINY_OUTER_ROWS)
		return false;
	if (inner_rows < TINY_VALUES || !la_enable_toast)
		return true;
	for (int i = 0; i < inner->natts; i++)
	{
		if (TupleDescAttr(inner, i)->attlen == -1)
			return false;
	}
	return true;
}

static bool
attach_hashjoin(PlanState *ps)
{
	HashJoinState *node = castNode(HashJoinState, ps);
	LaHashJoin *join;

	if (!la_enable_hash_join || SIZEOF_VOID_P != 8)
		return false;
	if (is_tiny(node) && !la_force)
		return false;
	if (ps->plan->parallel_aware)
	{
		la_shared_attach(node);
		return true;
	}
	if (!la_interpose_is_possible(ps, &hashjoins))
		return false;
	join = MemoryContextAllocZero(ps->state->es_query_cxt, sizeof(LaHashJoin));
	la_probebatch_init(&join->probe.batches, node, false, false);
	join->interposer.on_rescan = on_rescan;
	join->interposer.on_end = on_end;
	join->interposer.listens_to = ps->ps_ExprContext;
	la_interpose_begin(&join->interposer, ps, LA_LAYER_NODE, exec_join);
	return true;
}

void
la_hashjoin_init(void)
{
	la_attach_register(T_HashJoinState, attach_hashjoin);
}
