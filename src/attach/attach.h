/*
 * attach.h
 *	  Finding the plan nodes that can look ahead.
 *
 * src/attach/attach.h
 */
#ifndef LA_ATTACH_H
#define LA_ATTACH_H

#include "nodes/execnodes.h"

/*
 * How much of a node's rows will be taken, if nothing fails.
 */
typedef enum LaDemand
{
	LA_DEMAND_SOME,				/* nobody knows */
	LA_DEMAND_RUN,				/* all, if the statement is run to its end */
	LA_DEMAND_ALL				/* all, as soon as one is asked for */
} LaDemand;

#define LA_NUM_DEMANDS 3

/*
 * What the walk knows about a node beyond its PlanState.
 */
typedef struct LaAttachContext
{
	/*
	 * The Limit node that takes at most one row of this node for each row it
	 * returns or skips, or NULL.
	 */
	LimitState *limit;

	/* With a limit: how much of what the Limit allows. */
	LaDemand	demand;
} LaAttachContext;

typedef void (*la_attach_function) (PlanState *planstate,
									const LaAttachContext *context);

extern void la_attach_init(void);
extern bool la_attach_is_all(LaDemand demand);
extern void la_attach_register(NodeTag tag, la_attach_function function);

#endif							/* LA_ATTACH_H */
