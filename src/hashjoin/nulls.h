/*
 * nulls.h
 *	  Rows with null keys that a hash join has to return.
 *
 * src/hashjoin/nulls.h
 */
#ifndef LA_HASHJOIN_NULLS_H
#define LA_HASHJOIN_NULLS_H

#include "nodes/execnodes.h"

extern void la_nulls_keep(HashJoinTable table, Tuplestorestate **store,
						  TupleTableSlot *slot);
extern bool la_nulls_are_inner(const HashState *hash);
extern bool la_nulls_begin(HashJoinState *node);

#endif							/* LA_HASHJOIN_NULLS_H */
