/*
 * probe.c
 *	  Outer rows joined with the rows of a table that hashtable.c has built.
 *
 * After a look-up (probebatch.c), a row is joined as in ExecHashJoinImpl() with a table of one
 * batch, by the node's own compiled hash clauses, join clauses, filter and projection:
 *
 *		next outer row --> next match in its chain --> join clauses --> filter, projection
 *			 ^					  |		  ^								  |
 *			 |					  v none  +-------------------------------+
 *			 +--- with nulls, if it had no match and such rows are returned
 *			 |
 *			 v none
 *		inner rows without a match, if they are returned
 *
 * Keys that are int4 columns on both sides are compared here instead of by the hash clause.
 *
 * src/hashjoin/probe.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/instrument.h"
#include "miscadmin.h"

#include "hashjoin/hashjoin_int.h"

/* The next row of the chain that satisfies the hash clauses, as in ExecScanHashBucket(). */
static bool
next_match(LaProbe *probe)
{
	const LaHashTable *table = &probe->batches.table;
	HashJoinState *node = table->node;
	ExprContext *econtext = node->js.ps.ps_ExprContext;
	const LaProbeRow *row = probe->row;
	HashJoinTuple tuple = probe->match == NULL ? row->candidate :
		probe->match->next.unshared;

	for (; tuple != NULL; tuple = tuple->next.unshared)
	{
		if (tuple->hashvalue != row->hash ||
			(table->outer_key != 0 && *la_hashtable_key(tuple) != row->key))
			continue;
		econtext->ecxt_innertuple =
			ExecStoreMinimalTuple(HJTUPLE_MINTUPLE(tuple),
								  node->hj_HashTupleSlot, false);
		if (table->outer_key != 0)
			ResetExprContext(econtext);
		else if (!ExecQualAndReset(node->hashclauses, econtext))
			continue;
		probe->match = tuple;
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
 * One more match of the row that is being joined.  Returns a row of the result, if the
 * match makes one.
 */
static TupleTableSlot *
join_match(LaProbe *probe)
{
	HashJoinState *node = probe->batches.table.node;
	MinimalTuple inner = HJTUPLE_MINTUPLE(probe->match);
	JoinType	type = node->js.jointype;

	if (type == LA_JOIN_RIGHT_SEMI && HeapTupleHeaderHasMatch(inner))
		return NULL;
	if (node->js.joinqual != NULL &&
		!ExecQual(node->js.joinqual, node->js.ps.ps_ExprContext))
	{
		InstrCountFiltered1(node, 1);
		return NULL;
	}
	probe->matched = true;

	/* nobody reads the flag in a table with filter bits: save a write */
	if (!probe->batches.table.filtered && !HeapTupleHeaderHasMatch(inner))
		HeapTupleHeaderSetMatch(inner);
	if (type == JOIN_ANTI || node->js.single_match)
		probe->row = NULL;
	if (type == JOIN_ANTI || type == LA_JOIN_RIGHT_ANTI)
		return NULL;
	return result_of(node);
}

/* No outer row is left: inner rows without a match, in the order of the buckets. */
static TupleTableSlot *
next_unmatched(LaProbe *probe)
{
	HashJoinState *node = probe->batches.table.node;
	ExprContext *econtext = node->js.ps.ps_ExprContext;

	if (!probe->unmatched)
		ExecPrepHashTableForUnmatched(node);
	probe->unmatched = true;
	while (ExecScanHashTableForUnmatched(node, econtext))
	{
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		econtext->ecxt_outertuple = node->hj_NullOuterTupleSlot;
		slot = result_of(node);
		if (slot != NULL)
			return slot;
	}
	return NULL;
}

/* The join's next row; NULL if there is none, except for rows with null keys (nulls.c). */
TupleTableSlot *
la_probe_next(LaProbe *probe)
{
	HashJoinState *node = probe->batches.table.node;
	ExprContext *econtext = node->js.ps.ps_ExprContext;
	TupleTableSlot *slot;

	ResetExprContext(econtext);
	if (probe->unmatched)
		return next_unmatched(probe);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (probe->row == NULL)
		{
			probe->row = la_probebatch_next(&probe->batches);
			if (probe->row == NULL)
				return la_hash_fills_inner(node) ? next_unmatched(probe) : NULL;
			econtext->ecxt_outertuple = probe->row->slot;
			probe->match = NULL;
			probe->matched = false;
			if (probe->inner_values != NULL)
				la_innervalues_turn(probe->inner_values);
		}
		if (next_match(probe))
			slot = join_match(probe);
		else
		{
			probe->row = NULL;
			if (probe->matched || !la_hash_fills_outer(node))
				continue;
			econtext->ecxt_innertuple = node->hj_NullInnerTupleSlot;
			slot = result_of(node);
		}
		if (slot != NULL)
			return slot;
	}
}

/* Forget the rows: the join is rescanned, or ends. */
void
la_probe_clear(LaProbe *probe)
{
	la_probebatch_clear(&probe->batches);
	probe->unmatched = false;
	probe->row = NULL;
	probe->match = NULL;
}
