/*
 * insert.h
 *	  Inserting into stock btree indexes.
 *
 * src/write/insert.h
 */
#ifndef LA_INSERT_H
#define LA_INSERT_H

#include "access/genam.h"
#include "nodes/execnodes.h"

typedef struct LaInsertState LaInsertState;

extern LaInsertState *la_insert_state(Relation index, const IndexInfo *info);
extern void la_insert_expect(LaInsertState *state, BlockNumber leaf);
extern bool la_btinsert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
						Relation heap, IndexUniqueCheck unique, bool unchanged,
						IndexInfo *info);

#endif							/* LA_INSERT_H */
