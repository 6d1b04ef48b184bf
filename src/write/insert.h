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

extern void la_insert_expect(void **state, Relation index, const IndexInfo *info,
							 BlockNumber leaf);
extern bool la_btinsert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
						Relation heap, IndexUniqueCheck unique, bool unchanged,
						IndexInfo *info);

#endif							/* LA_INSERT_H */
