/*
 * prune.c
 *	  Which partition will a plan scan for a row that is known ahead?
 *
 * If the inner side of a nested loop, or what a subplan scans, is a partitioned table, it is an
 * Append that chooses among its members for each row: run-time pruning, by Params.
 * The executor's own pruning is done early, with the Params that the row will have (params.c):
 *
 *		row --> params --> ExecFindMatchingSubPlans --> exactly one member: returned
 *													--> none, or several: unknown
 *
 * Invariant: the Append prunes again when it is the row's turn, and its state is as if this
 * file had not done it before.
 *
 * The member cannot be known
 *	- without pruning by values of the row: all rows would read the same members, either all of
 *	  them or those chosen by a Param from above;
 *	- where an expression of the pruning must not be evaluated early (attach/runahead.c).
 *
 * src/rows/prune.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "attach/collations.h"
#include "base/compat.h"
#include "rows/prune.h"

struct LaPrune
{
	PartitionPruneState *pruning;
	ExprContext *econtext;		/* of the pruning's expressions */
	LaParams   *params;
	MemoryContext scratch;
};

/* Why must these steps not be executed early?  NULL if they may. */
static const char *
refuses_steps(const LaKeyRows *rows, List *steps, const PartitionPruneContext *context)
{
	Oid			collation = InvalidOid;
	ListCell   *lc;

	/* one that is not silent, if any is */
	for (int i = 0; i < context->partnatts; i++)
	{
		if (!la_collation_is_silent(context->partcollation[i]))
			collation = context->partcollation[i];
	}
	foreach(lc, steps)
	{
		PartitionPruneStepOp *step = lfirst(lc);
		const char *refused;
		ListCell   *function;
		ListCell   *expression;

		if (!IsA(step, PartitionPruneStepOp))
			continue;
		refused = la_runahead_refuses_expression(rows->ahead, (Node *) step->exprs);
		forboth(function, step->cmpfns, expression, step->exprs)
		{
			if (refused == NULL)
				refused = la_runahead_refuses_support(rows->ahead, lfirst_oid(function),
													  exprType(lfirst(expression)), collation);
		}
		if (refused != NULL)
			return refused;
	}
	return NULL;
}

/* Fill in the pruning's ExprContext; false if it must not, or need not, be done early. */
static bool
find_econtext(LaPrune *prune, const LaKeyRows *rows, const char **refused)
{
	PartitionPruneState *pruning = prune->pruning;

	for (int i = 0; i < pruning->num_partprunedata; i++)
	{
		PartitionPruningData *tree = pruning->partprunedata[i];

		for (int j = 0; j < tree->num_partrelprunedata; j++)
		{
			PartitionedRelPruningData *table = &tree->partrelprunedata[j];

			if (table->exec_pruning_steps == NIL)
				continue;
			*refused = refuses_steps(rows, table->exec_pruning_steps, &table->exec_context);
			if (*refused != NULL)
				return false;
			Assert(prune->econtext == NULL || prune->econtext == table->exec_context.exprcontext);
			prune->econtext = table->exec_context.exprcontext;
		}
	}
	return prune->econtext != NULL;
}

/* NULL if partitions cannot be known ahead; *refused is the reason that prohibits it, if any. */
LaPrune *
la_prune_create(PartitionPruneState *pruning, LaKeyRows *rows, const char **refused)
{
	LaPrune    *prune;
	bool		has_values = false;

	if (!pruning->do_exec_prune)
		return NULL;
	prune = palloc0(sizeof(LaPrune));
	prune->pruning = pruning;
	if (!find_econtext(prune, rows, refused))
		return NULL;
	prune->params = la_params_create(&rows->params, pruning->execparamids, &has_values);
	if (!has_values)
		return NULL;
	prune->scratch = AllocSetContextCreate(rows->context, "pg_lookahead partitions",
										   ALLOCSET_SMALL_SIZES);
	return prune;
}

/* The member of the Append that this row will need; -1 if none, several, or not known. */
int
la_prune_find(LaPrune *prune, TupleTableSlot *row)
{
	ParamExecData *params = la_params_get(prune->params, row);
	ParamExecData *now = prune->econtext->ecxt_param_exec_vals;
	MemoryContext old;
	Bitmapset  *members;
	int			member = -1;

	if (params == NULL)
		return -1;

	/* no need to restore the context after an error, which ends the query */
	old = MemoryContextSwitchTo(prune->scratch);
	prune->econtext->ecxt_param_exec_vals = params;
	members = la_find_matching_subplans(prune->pruning);
	prune->econtext->ecxt_param_exec_vals = now;

	/*
	 * ExecFindMatchingSubPlans() resets the context only where Params prune
	 * the root table; expressions of other levels may have used it, too
	 */
	ResetExprContext(prune->econtext);
	if (!bms_get_singleton_member(members, &member))
		member = -1;
	MemoryContextSwitchTo(old);
	MemoryContextReset(prune->scratch);
	return member;
}
