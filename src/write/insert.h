/*
 * insert.h
 *	  Inserting in stock btree indexes: insert.c, and how it gets there: insert_hooks.c.
 *
 * src/write/insert.h
 */
#ifndef LA_INSERT_H
#define LA_INSERT_H

#include "access/genam.h"
#include "nodes/execnodes.h"

extern bool la_btinsert(Relation index, Datum *values, bool *isnull,
						ItemPointer tid, Relation heap,
						IndexUniqueCheck unique, bool unchanged,
						IndexInfo *info);
extern void la_insert_put_back(Relation index);
extern void la_insert_init(void);

#endif							/* LA_INSERT_H */
