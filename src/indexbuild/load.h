/*
 * load.h
 *	  Loading a btree from index tuples in order.
 *
 * src/indexbuild/load.h
 */
#ifndef LA_LOAD_H
#define LA_LOAD_H

#include "access/nbtree.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "base/compat_btree.h"

typedef struct LaLoad LaLoad;

extern LaLoad *la_load_begin(Relation heap, Relation index, bool unique);
extern void la_load_add(LaLoad *load, IndexTuple tuple, bool equal);
extern void la_load_end(LaLoad *load);

/* False for a tuple that is too large for a page: la_load_add() raises the server's error. */
static inline bool
la_load_fits(const IndexTupleData *tuple)
{
	return MAXALIGN(IndexTupleSize(tuple)) <= la_bt_max_item_size();
}

#endif							/* LA_LOAD_H */
