/*
 * load.h
 *	  Writing a btree from tuples that come in order.
 *
 * See load.c.
 *
 * src/btree/load.h
 */
#ifndef LA_LOAD_H
#define LA_LOAD_H

#include "access/itup.h"
#include "utils/rel.h"

typedef struct LaLoad LaLoad;

extern LaLoad *la_load_begin(Relation heap, Relation index, bool unique);
extern void la_load_add(LaLoad *load, IndexTuple tuple, bool equal);
extern void la_load_end(LaLoad *load);

#endif							/* LA_LOAD_H */
