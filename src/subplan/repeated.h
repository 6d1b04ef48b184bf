/*
 * repeated.h
 *	  A plan that a node repeats for each of its rows, read ahead.
 *
 * src/subplan/repeated.h
 */
#ifndef LA_REPEATED_H
#define LA_REPEATED_H

#include "attach/interpose_node.h"
#include "attach/runahead.h"
#include "rows/ahead.h"
#include "rows/scankeys.h"
#include "subplan/lookups.h"
#include "subplan/rows_to_come.h"

typedef struct LaRepeated
{
	LaInterposer interposer;	/* of the plan's output */
	PlanState  *node;			/* that repeats it, for its rows */
	PlanState  *plan;
	LaKind		kind;
	bool		first_match_only;	/* one row of the plan is enough */

	/* Params of the plan that have values of the node's current row */
	int			nparams;
	int		   *params;
	AttrNumber *attributes;		/* ... of which attributes of the row */

	/* passive */
	bool		restarted;		/* a new execution begins */
	bool		refused;		/* nothing can be known ahead */
	bool		missed;			/* this execution has read a block */
	int64		nmissed;		/* executions that have */
	int64		executions;

	/* once blocks are read */
	LaDemandContext context;	/* of the node */
	LaRunAhead	hints;
	LaBudget	budget;			/* of keys; the rest is in ahead */
	LaKeyRows	rows;
	TupleTableSlot *slot;		/* a row of the values only */
	LaLookups  *lookups;
	LaRowsToCome *to_come;
	LaAhead    *ahead;			/* NULL: not yet */
} LaRepeated;

extern void la_repeated_execute(LaRepeated *r);
extern void la_repeated_end(LaRepeated *r);

#endif							/* LA_REPEATED_H */
