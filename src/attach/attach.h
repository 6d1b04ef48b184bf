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
 * What the walk knows about a node beyond its PlanState.
 */
typedef struct LaAttachContext
{
	/*
	 * The Limit node that takes at most one row of this node for each row it
	 * returns or skips, or NULL.
	 */
	LimitState *limit;
} LaAttachContext;

typedef void (*la_attach_function) (PlanState *planstate,
									const LaAttachContext *context);

extern void la_attach_init(void);
extern void la_attach_register(NodeTag tag, la_attach_function function);

#endif							/* LA_ATTACH_H */
