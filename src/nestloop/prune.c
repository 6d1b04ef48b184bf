/*
 * prune.c
 *	  Which partition will the inner side turn to, for an outer row in the queue?
 *
 * An inner side of partitions is an Append that chooses among its members anew for each
 * outer row: run-time pruning, by Params.  The executor's own pruning is asked the
 * same question early, with the Params that the row will have (params.c):
 *
 *		row --> params --> ExecFindMatchingSubPlans --> exactly one member: it
 *													--> none, or several: unknown
 *
 * The Append's own choice is made anew when it is the row's turn, and nothing of this
 * one is left behind in it.
 *
 * Stands down, for the join
 *	- without pruning by values of the outer row: each row would read several members,
 *	  or, chosen by a Param from above, always the same few;
 *	- where an expression of the pruning must not be evaluated early (attach/runahead.c).
 *
 * src/nestloop/prune.c
 */
#include "postgres.h"

#include "executor/execPartition.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "nestloop/nestloop_int.h"

struct LaPrune
{
	PartitionPruneState *pruning;
	ExprContext *econtext;		/* of the pruning's expressions */
	LaParams   *params;
	MemoryContext scratch;
};

/* Why must these steps not be taken early?  NULL if they may. */
static const char *
refuses_steps(const LaNestLoop *join, List *steps)
{
	ListCell   *lc;

	foreach(lc, steps)
	{
		PartitionPruneStepOp *step = lfirst(lc);
		const char *refused;
		ListCell   *function;
		ListCell   *expression;

		if (!IsA(step, PartitionPruneStepOp))
			continue;
		refused = la_runahead_refuses_expression(&join->ahead, (Node *) step->exprs);
		if (refused != NULL)
			return refused;
		forboth(function, step->cmpfns, expression, step->exprs)
		{
			refused = la_runahead_refuses_support(&join->ahead, lfirst_oid(function),
												  exprType(lfirst(expression)));
			if (refused != NULL)
				return refused;
		}
	}
	return NULL;
}

/* Fill in the context; false if the pruning must not be done early. */
static bool
look_at_pruning(LaPrune *route, const LaNestLoop *join, const char **refused)
{
	PartitionPruneState *pruning = route->pruning;

	for (int i = 0; i < pruning->num_partprunedata; i++)
	{
		PartitionPruningData *tree = pruning->partprunedata[i];

		for (int j = 0; j < tree->num_partrelprunedata; j++)
		{
			PartitionedRelPruningData *table = &tree->partrelprunedata[j];

			if (table->exec_pruning_steps == NIL)
				continue;
			*refused = refuses_steps(join, table->exec_pruning_steps);
			if (*refused != NULL)
				return false;
			Assert(route->econtext == NULL ||
				   route->econtext == table->exec_context.exprcontext);
			route->econtext = table->exec_context.exprcontext;
		}
	}
	return route->econtext != NULL;
}

/*
 * Returns NULL if it cannot be known ahead, or *refused says why it must not be.
 */
LaPrune *
la_prune_create(LaNestLoop *join, const char **refused)
{
	PartitionPruneState *pruning = join->append->as_prune_state;
	LaPrune    *route;
	bool		outer = false;

	if (pruning == NULL || !pruning->do_exec_prune)
		return NULL;
	route = palloc0(sizeof(LaPrune));
	route->pruning = pruning;
	if (!look_at_pruning(route, join, refused))
		return NULL;
	route->params = la_params_create(join, pruning->execparamids, &outer);
	if (!outer)
		return NULL;
	route->scratch = AllocSetContextCreate(join->context,
										   "pg_lookahead partitions",
										   ALLOCSET_SMALL_SIZES);
	return route;
}

/*
 * The member of the Append that this row will need; -1 if that is not one, or not
 * known.
 */
int
la_prune_find(LaPrune *route, TupleTableSlot *outer)
{
	ParamExecData *now = route->econtext->ecxt_param_exec_vals;
	MemoryContext old;
	Bitmapset  *members;
	int			member = -1;

	if (!la_params_set(route->params, outer))
		return -1;

	/* an error leaves nothing behind that is used again: the query is over */
	old = MemoryContextSwitchTo(route->scratch);
	route->econtext->ecxt_param_exec_vals = la_params_values(route->params);
	members = la_find_matching_subplans(route->pruning);
	route->econtext->ecxt_param_exec_vals = now;

	/* the pruning does so only where the root table is pruned by Params */
	ResetExprContext(route->econtext);
	if (!bms_get_singleton_member(members, &member))
		member = -1;
	MemoryContextSwitchTo(old);
	MemoryContextReset(route->scratch);
	return member;
}
