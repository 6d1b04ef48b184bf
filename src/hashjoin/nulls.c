/*
 * nulls.c
 *	  Rows with null keys that a hash join has to return.
 *
 * Before 19, a hash join that returns outer rows without a match computes a hash value even if
 * a key is null, and joins these rows like all others.  Since 19 they have no hash value.
 * ExecHashJoin() puts those of each side into a tuplestore of the node, in the order in which
 * they come, and returns them last, each with nulls for the other side:
 *
 *		outer rows, matched or not -> inner rows without a match ->
 *			outer rows with null keys -> inner rows with null keys
 *
 * This file fills the same tuplestores.  ExecHashJoin() does the last two steps, and what the
 * tuplestores need in a rescan and at the end of the query.
 *
 * src/hashjoin/nulls.c
 */
#include "postgres.h"

#include "utils/tuplestore.h"

#include "hashjoin/hashjoin_int.h"

/* Keep a row in the node's tuplestore for its side. */
void
la_nulls_keep(HashJoinTable table, Tuplestorestate **store, TupleTableSlot *slot)
{
	if (*store == NULL)
		*store = la_hash_create_null_store(table);
	tuplestore_puttupleslot(*store, slot);
}

/* Has any row of the inner side been kept? */
bool
la_nulls_are_inner(const HashState *hash)
{
	return la_hash_keeps_inner_nulls(hash) && *la_hash_inner_nulls(hash) != NULL;
}

/*
 * All other rows have been returned.  If any row was kept, have the next call of ExecHashJoin()
 * return these rows; else return false.
 */
bool
la_nulls_begin(HashJoinState *node)
{
	if (la_hash_keeps_outer_nulls(node) && *la_hash_outer_nulls(node) != NULL)
		node->hj_JoinState = STATE_FILL_OUTER_NULLS;
	else if (la_nulls_are_inner(castNode(HashState, innerPlanState(node))))
		node->hj_JoinState = STATE_FILL_INNER_NULLS;
	else
		return false;
	return true;
}
