/*
 * demand.h
 *	  How many of a node's rows the nodes above it will take.
 *
 * src/attach/demand.h
 */
#ifndef LA_DEMAND_H
#define LA_DEMAND_H

#include "nodes/execnodes.h"

/* Which rows of a node will be taken, if nothing fails. */
typedef enum LaDemand
{
	LA_DEMAND_SOME,				/* not known */
	LA_DEMAND_RUN,				/* all, if the statement is run to its end */
	LA_DEMAND_ALL				/* all, as soon as one is asked for */
} LaDemand;

/* What the nodes above a node will want of it. */
typedef struct LaDemandContext
{
	/*
	 * The Limit node that takes at most one row of this node for each row it
	 * returns or skips, or NULL.
	 */
	LimitState *limit;

	/*
	 * Which of the node's rows will be taken; with a limit, of those that the
	 * Limit lets through.
	 */
	LaDemand	demand;

	/* A node above may take one row, and then find that it needs no more. */
	bool		skippable;
} LaDemandContext;

extern void la_demand_context(PlanState *ps, LaDemandContext *context);
extern bool la_demand_reads_all(PlanState *ps);
extern bool la_demand_is_all(LaDemand demand, const EState *estate);
extern int64 la_demand_rows_wanted(const LimitState *limit);

#endif							/* LA_DEMAND_H */
