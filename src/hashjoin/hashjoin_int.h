/*
 * hashjoin_int.h
 *	  States of a HashJoinState, and the hash values of its rows.
 *
 * src/hashjoin/hashjoin_int.h
 */
#ifndef LA_HASHJOIN_INT_H
#define LA_HASHJOIN_INT_H

#include "executor/executor.h"
#include "executor/hashjoin.h"
#include "executor/nodeHash.h"
#include "nodes/execnodes.h"

#include "base/compat.h"

/* Values of hj_JoinState, which nodeHashjoin.c defines for itself only. */
#define STATE_BUILD_HASHTABLE	1
#define STATE_NEED_NEW_OUTER	2
#define STATE_FILL_OUTER_NULLS	6	/* since 19 */
#define STATE_FILL_INNER_NULLS	7

/* Does the join return outer rows without a match? */
static inline bool
la_hash_fills_outer(const HashJoinState *node)
{
	return node->hj_NullInnerTupleSlot != NULL;
}

/* Does it return inner rows without a match? */
static inline bool
la_hash_fills_inner(const HashJoinState *node)
{
	return node->hj_NullOuterTupleSlot != NULL;
}

/*
 * Compute the hash value of econtext's outer tuple.  Returns false if it has none because of a
 * null key, so that the row cannot match.
 */
#ifdef LA_HASH_EXPRESSIONS
static inline bool
la_hash_by_expression(ExprState *expression, ExprContext *econtext, uint32 *value)
{
	bool		isnull;

	ResetExprContext(econtext);
	*value = DatumGetUInt32(ExecEvalExprSwitchContext(expression, econtext,
													  &isnull));
	return !isnull;
}

static inline bool
la_hash_inner_row(HashState *hash, ExprContext *econtext, uint32 *value)
{
	return la_hash_by_expression(hash->hash_expr, econtext, value);
}

static inline bool
la_hash_outer_row(HashJoinState *node, ExprContext *econtext, uint32 *value)
{
	return la_hash_by_expression(node->hj_OuterHash, econtext, value);
}
#else
static inline bool
la_hash_inner_row(HashState *hash, ExprContext *econtext, uint32 *value)
{
	return ExecHashGetHashValue(hash->hashtable, econtext, hash->hashkeys, false,
								hash->hashtable->keepNulls, value);
}

static inline bool
la_hash_outer_row(HashJoinState *node, ExprContext *econtext, uint32 *value)
{
	return ExecHashGetHashValue(node->hj_HashTable, econtext, node->hj_OuterHashKeys,
								true, la_hash_fills_outer(node), value);
}
#endif

#endif							/* LA_HASHJOIN_INT_H */
