/*
 * newtuple.h
 *	  The tuple that a write will make of a row of its plan, and the table that it is for.
 *
 * src/write/newtuple.h
 */
#ifndef LA_NEWTUPLE_H
#define LA_NEWTUPLE_H

#include "nodes/execnodes.h"

#include "write/target.h"

typedef struct LaNewTuples LaNewTuples;

extern LaNewTuples *la_newtuples_create(ModifyTableState *mt, LaAhead *ahead);
extern int	la_newtuples_target_of(LaNewTuples *nt, TupleTableSlot *row);
extern LaTarget *la_newtuples_target(const LaNewTuples *nt, int target);
extern TupleTableSlot *la_newtuples_form(LaNewTuples *nt, int target, TupleTableSlot *row);
extern bool la_newtuples_is_known_heap_only(LaNewTuples *nt, int target, TupleTableSlot *row);
extern void la_newtuples_forget_row(LaNewTuples *nt);

#endif							/* LA_NEWTUPLE_H */
