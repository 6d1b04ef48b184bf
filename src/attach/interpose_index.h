/*
 * interpose_index.h
 *	  Functions of ours in the access method routine of one btree index.
 *
 * src/attach/interpose_index.h
 */
#ifndef LA_INTERPOSE_INDEX_H
#define LA_INTERPOSE_INDEX_H

#include "access/amapi.h"
#include "utils/rel.h"

extern void la_interpose_ambuild(Relation index, ambuild_function function);
extern void la_interpose_aminsert(Relation index, aminsert_function function);
extern bool la_interpose_has_aminsert(Relation index);
extern void la_interpose_restore(Relation index);
extern void la_interpose_each_index(Relation table, void (*exchange) (Relation index));

#endif							/* LA_INTERPOSE_INDEX_H */
