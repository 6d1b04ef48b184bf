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
 * Behaviour ATTEMPT: expressions that may fail are compiled once more for this file, and attempted,
 * as the keys of scans are (scankeys.c).  A row for which they fail has no member.
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

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "rows/rows_int.h"

/* The expressions of a partitioned table, compiled for this file; see ATTEMPT. */
typedef struct OwnStates
{
	PartitionPruneContext *context;
	int			n;
	ExprState **states;
} OwnStates;

struct LaPrune
{
	PartitionPruneState *pruning;
	ExprContext *econtext;		/* of the pruning's expressions */
	LaParams   *params;
	MemoryContext scratch;
	MemoryContext context;		/* of the rows */
	ParamListInfo external;		/* Params */
	bool		may_fail;
	List	   *own;			/* of OwnStates *, if so */
	int			nfailures;
	Bitmapset  *members;		/* found last, in the scratch memory */
};

/* Why must these steps not be executed early?  NULL if they may.  Sets may_fail, if so. */
static const char *
refuses_steps(LaPrune *prune, const LaKeyRows *rows, List *steps,
			  const PartitionPruneContext *context)
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
		bool		may_fail;
		ListCell   *function;
		ListCell   *expression;

		if (!IsA(step, PartitionPruneStepOp))
			continue;
		refused = la_runahead_refuses_attempt(rows->ahead, (Node *) step->exprs, &may_fail);
		prune->may_fail |= may_fail;
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

/* Compile the expressions of a table for this file. */
static bool
compile_own(LaPrune *prune, OwnStates *own)
{
	for (int i = 0; i < own->n; i++)
	{
		const ExprState *state = own->context->exprstates[i];

		own->states[i] = NULL;
		if (state == NULL)
			continue;
		own->states[i] = la_compile_expression(state->expr, prune->external);
		if (own->states[i] == NULL)
			return false;
	}
	return true;
}

/* Behaviour ATTEMPT: at first, and after an error.  Returns false if that fails. */
static bool
compile_all(LaPrune *prune)
{
	MemoryContext old = MemoryContextSwitchTo(prune->context);
	bool		result = true;
	ListCell   *lc;

	foreach(lc, prune->own)
		result = result && compile_own(prune, lfirst(lc));
	MemoryContextSwitchTo(old);
	return result;
}

static void
add_own(LaPrune *prune, PartitionedRelPruningData *table)
{
	OwnStates  *own = palloc(sizeof(OwnStates));

	own->context = &table->exec_context;
	own->n = table->exec_context.partnatts * list_length(table->exec_pruning_steps);
	own->states = palloc0(own->n * sizeof(ExprState *));
	prune->own = lappend(prune->own, own);
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
			*refused = refuses_steps(prune, rows, table->exec_pruning_steps, &table->exec_context);
			if (*refused != NULL)
				return false;
			add_own(prune, table);
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
	prune->context = rows->context;
	prune->external = rows->params.estate->es_param_list_info;
	if (!find_econtext(prune, rows, refused) || (prune->may_fail && !compile_all(prune)))
		return NULL;
	prune->params = la_params_create(&rows->params, pruning->execparamids, &has_values);
	if (!has_values)
		return NULL;
	prune->scratch = AllocSetContextCreate(rows->context, "pg_lookahead partitions",
										   ALLOCSET_SMALL_SIZES);
	return prune;
}

static void
find_members(void *arg)
{
	LaPrune    *prune = arg;

	prune->members = la_find_matching_subplans(prune->pruning);
}

/* Exchange the executor's compiled expressions and those of this file. */
static void
exchange_states(const LaPrune *prune)
{
	ListCell   *lc;

	foreach(lc, prune->own)
	{
		OwnStates  *own = lfirst(lc);
		ExprState **states = own->context->exprstates;

		own->context->exprstates = own->states;
		own->states = states;
	}
}

/* Behaviour ATTEMPT: find_members(), if it does not fail. */
static void
attempt_members(LaPrune *prune)
{
	bool		done;

	if (prune->nfailures >= LA_MAX_FAILURES)
		return;
	/* what is not caught ends the query, and the executor's state with it */
	exchange_states(prune);
	done = la_attempt_compute(find_members, prune);
	exchange_states(prune);
	if (!done)
		prune->nfailures = compile_all(prune) ? prune->nfailures + 1 : LA_MAX_FAILURES;
}

/* The member of the Append that this row will need; -1 if none, several, or not known. */
int
la_prune_find(LaPrune *prune, TupleTableSlot *row)
{
	ParamExecData *params = la_params_get(prune->params, row);
	ParamExecData *now = prune->econtext->ecxt_param_exec_vals;
	MemoryContext old;
	int			member = -1;

	if (params == NULL)
		return -1;

	/* no need to restore the context after an error, which ends the query */
	old = MemoryContextSwitchTo(prune->scratch);
	prune->econtext->ecxt_param_exec_vals = params;
	prune->members = NULL;
	if (prune->may_fail)
		attempt_members(prune);
	else
		find_members(prune);
	prune->econtext->ecxt_param_exec_vals = now;

	/*
	 * ExecFindMatchingSubPlans() resets the context only where Params prune
	 * the root table; expressions of other levels may have used it, too
	 */
	ResetExprContext(prune->econtext);
	if (!bms_get_singleton_member(prune->members, &member))
		member = -1;
	MemoryContextSwitchTo(old);
	MemoryContextReset(prune->scratch);
	return member;
}
