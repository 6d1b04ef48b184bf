/*
 * modify.h
 *	  INSERT, UPDATE and MERGE that look ahead over the rows of their plan.
 *
 * src/write/modify.h
 */
#ifndef LA_MODIFY_H
#define LA_MODIFY_H

#include "nodes/execnodes.h"

#include "attach/interpose_node.h"
#include "base/stats.h"

typedef struct LaModify LaModify;

extern bool la_modify_is_possible(ModifyTableState *mt);
extern LaModify *la_modify_create(ModifyTableState *mt, const LaInterposer *interposer);
extern TupleTableSlot *la_modify_next(LaModify *m);
extern const LaCounters *la_modify_counters(LaModify *m);
extern void la_modify_end(LaModify *m);

#endif							/* LA_MODIFY_H */
