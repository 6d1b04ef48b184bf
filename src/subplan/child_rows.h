/*
 * child_rows.h
 *	  The rows to come of a node that takes them from a child.
 *
 * src/subplan/child_rows.h
 */
#ifndef LA_CHILD_ROWS_H
#define LA_CHILD_ROWS_H

#include "attach/runahead.h"
#include "subplan/rows_to_come.h"

extern LaRowsToCome *la_childrows_create(PlanState *node, PlanState *child,
										 const LaDemandContext *context,
										 const char **refused);

#endif							/* LA_CHILD_ROWS_H */
