/*
 * newtuple.h
 *	  The tuple that a write will make of a row of its plan, and the table that it is for.
 *
 * src/write/newtuple.h
 */
#ifndef LA_NEWTUPLE_H
#define LA_NEWTUPLE_H

#include "nodes/execnodes.h"

#include "rows/target.h"

typedef struct LaNewTuples LaNewTuples;

/* What is kept with a row of the plan that something is known of. */
typedef struct LaNewTuple
{
	int			table;			/* its number */
	struct LaMergeAction *action;	/* MERGE; or NULL */
} LaNewTuple;

extern LaNewTuples *la_newtuples_create(ModifyTableState *mt, LaAhead *ahead);
extern bool la_newtuples_know(LaNewTuples *nt, TupleTableSlot *row, LaNewTuple *tuple);
extern LaTarget *la_newtuples_target(const LaNewTuples *nt, const LaNewTuple *tuple);
extern const Bitmapset *la_newtuples_unknown(const LaNewTuples *nt, const LaNewTuple *tuple);
extern TupleTableSlot *la_newtuples_form(LaNewTuples *nt, const LaNewTuple *tuple,
										 TupleTableSlot *row);
extern bool la_newtuples_is_known_heap_only(LaNewTuples *nt, const LaNewTuple *tuple,
											TupleTableSlot *row);
extern void la_newtuples_forget_row(LaNewTuples *nt);

#endif							/* LA_NEWTUPLE_H */
