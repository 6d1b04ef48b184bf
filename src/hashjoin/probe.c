/*
 * probe.c
 *	  Outer rows joined with the rows of our table.
 *
 * Behaviours
 *	A. What follows the look-up (probebatch.c) is ExecHashJoinImpl() for one batch, state by
 *	   state, with the node's own compiled hash clauses, join clauses, filter and
 *	   projection.
 *	B. Keys that are both int4 columns are compared here.
 *
 * src/hashjoin/probe.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"

#include "hashjoin/hashjoin_int.h"

/*
 * The next row of the chain that satisfies the hash clauses, as in
 * ExecScanHashBucket().
 */
static bool
next_match(LaHashJoin *join)
{
	HashJoinState *node = join->node;
	ExprContext *econtext = node->js.ps.ps_ExprContext;
	const Probe *p = join->probe;
	HashJoinTuple tuple = join->match == NULL ? p->candidate :
		join->match->next.unshared;

	for (; tuple != NULL; tuple = tuple->next.unshared)
	{
		if (tuple->hashvalue != p->hash ||
			(join->outer_key != 0 && key_of(tuple) != p->key))
			continue;
		econtext->ecxt_innertuple =
			ExecStoreMinimalTuple(HJTUPLE_MINTUPLE(tuple),
								  node->hj_HashTupleSlot, false);
		if (join->outer_key != 0)
			ResetExprContext(econtext);
		else if (!ExecQualAndReset(node->hashclauses, econtext))
			continue;
		join->match = tuple;
		return true;
	}
	return false;
}

/* The row, if it passes the filter of the join's result. */
static TupleTableSlot *
result_of(HashJoinState *node)
{
	ExprContext *econtext = node->js.ps.ps_ExprContext;

	if (node->js.ps.qual == NULL || ExecQual(node->js.ps.qual, econtext))
		return ExecProject(node->js.ps.ps_ProjInfo);
	InstrCountFiltered2(node, 1);
	return NULL;
}

/*
 * One more match of the row that is being joined.  Returns the result's row, if that
 * makes one.
 */
static TupleTableSlot *
join_match(LaHashJoin *join)
{
	HashJoinState *node = join->node;
	MinimalTuple inner = HJTUPLE_MINTUPLE(join->match);
	JoinType	type = node->js.jointype;

	if (type == LA_JOIN_RIGHT_SEMI && HeapTupleHeaderHasMatch(inner))
		return NULL;
	if (node->js.joinqual != NULL &&
		!ExecQual(node->js.joinqual, node->js.ps.ps_ExprContext))
	{
		InstrCountFiltered1(node, 1);
		return NULL;
	}
	join->matched = true;
	/* where nobody asks, it would be a write to memory for nothing */
	if (!join->filtered && !HeapTupleHeaderHasMatch(inner))
		HeapTupleHeaderSetMatch(inner);
	if (type == JOIN_ANTI || node->js.single_match)
		join->probe = NULL;
	if (type == JOIN_ANTI || type == LA_JOIN_RIGHT_ANTI)
		return NULL;
	return result_of(node);
}

/* Inner rows without a match, in the order of the buckets. */
static TupleTableSlot *
next_unmatched(LaHashJoin *join)
{
	HashJoinState *node = join->node;
	ExprContext *econtext = node->js.ps.ps_ExprContext;

	while (ExecScanHashTableForUnmatched(node, econtext))
	{
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		econtext->ecxt_outertuple = node->hj_NullOuterTupleSlot;
		slot = result_of(node);
		if (slot != NULL)
			return slot;
	}
	return la_nulls_next(join);
}

/* No outer row is left. */
static TupleTableSlot *
end_of_outer(LaHashJoin *join)
{
	if (!fill_inner(join->node))
		return la_nulls_next(join);
	ExecPrepHashTableForUnmatched(join->node);
	join->unmatched = true;
	return next_unmatched(join);
}

/*
 * The join's next row.
 */
TupleTableSlot *
la_probe_next(LaHashJoin *join)
{
	HashJoinState *node = join->node;
	ExprContext *econtext = node->js.ps.ps_ExprContext;
	TupleTableSlot *slot;

	ResetExprContext(econtext);
	if (join->nulls)
		return la_nulls_next(join);
	if (join->unmatched)
		return next_unmatched(join);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (join->probe == NULL)
		{
			join->probe = la_probebatch_next(join);
			if (join->probe == NULL)
				return end_of_outer(join);
			econtext->ecxt_outertuple = join->probe->slot;
			join->match = NULL;
			join->matched = false;
		}
		if (next_match(join))
			slot = join_match(join);
		else
		{
			join->probe = NULL;
			if (join->matched || !fill_outer(node))
				continue;
			econtext->ecxt_innertuple = node->hj_NullInnerTupleSlot;
			slot = result_of(node);
		}
		if (slot != NULL)
			return slot;
	}
}

/*
 * Forget where the join has come: it is rescanned, or ends.
 */
void
la_probe_clear(LaHashJoin *join)
{
	la_probebatch_clear(join);
	join->unmatched = join->nulls = false;
	join->probe = NULL;
	join->match = NULL;
}
