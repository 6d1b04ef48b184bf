/*
 * nulls.c
 *	  Rows with null keys that a hash join has to return.
 *
 * Before 19, the hash value of a row of the outer side of an outer join may be computed
 * although a key is null, and the row runs through the join like others.  Since 19, it has
 * none: the node puts such rows of both sides into tuplestores, and returns them at its
 * end, each with nulls for the other side:
 *
 *		outer rows, matched or not -> inner rows without a match ->
 *			outer rows with null keys -> inner rows with null keys
 *
 * They are put there here as well, in the order in which they come; the last two steps are
 * the server's own.  The rest of their life (rescans, the end of the query) is, too.
 *
 * src/hashjoin/nulls.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/nodeHash.h"
#include "utils/tuplestore.h"

#include "hashjoin/hashjoin_int.h"

#ifdef LA_HASH_NULL_STORES

/* As nodeHashjoin.c defines them, for itself only. */
#define STATE_OUTER_NULLS	6
#define STATE_INNER_NULLS	7

static void
keep(LaHashJoin *join, Tuplestorestate **store, TupleTableSlot *slot)
{
	if (*store == NULL)
		*store = ExecHashBuildNullTupleStore(join->node->hj_HashTable);
	tuplestore_puttupleslot(*store, slot);
}

void
la_nulls_keep_outer(LaHashJoin *join, TupleTableSlot *slot)
{
	if (join->node->hj_KeepNullTuples)
		keep(join, &join->node->hj_NullOuterTupleStore, slot);
}

/* Returns whether the row is one that EXPLAIN counts. */
bool
la_nulls_keep_inner(LaHashJoin *join, TupleTableSlot *slot)
{
	if (!join->hash->keep_null_tuples)
		return false;
	keep(join, &join->hash->null_tuple_store, slot);
	return true;
}

/* Does the inner side have any? */
bool
la_nulls_are_inner(const LaHashJoin *join)
{
	return join->hash->null_tuple_store != NULL;
}

/* May any row of the outer side be kept? */
bool
la_nulls_may_be_outer(const HashJoinState *node)
{
	return node->hj_KeepNullTuples;
}

/*
 * All other rows of the join have been returned.
 */
TupleTableSlot *
la_nulls_next(LaHashJoin *join)
{
	HashJoinState *node = join->node;

	if (!join->nulls)
	{
		if (node->hj_NullOuterTupleStore != NULL)
			node->hj_JoinState = STATE_OUTER_NULLS;
		else if (join->hash->null_tuple_store != NULL)
			node->hj_JoinState = STATE_INNER_NULLS;
		else
			return NULL;
		join->nulls = true;
	}
	return join->interposer.below(&node->js.ps);
}

#else

void
la_nulls_keep_outer(LaHashJoin *join, TupleTableSlot *slot)
{
}

bool
la_nulls_keep_inner(LaHashJoin *join, TupleTableSlot *slot)
{
	return false;
}

bool
la_nulls_are_inner(const LaHashJoin *join)
{
	return false;
}

bool
la_nulls_may_be_outer(const HashJoinState *node)
{
	return false;
}

TupleTableSlot *
la_nulls_next(LaHashJoin *join)
{
	return NULL;
}

#endif
