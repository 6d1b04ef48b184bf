/*
 * explain.h
 *	  Look-ahead in EXPLAIN (ANALYZE).
 *
 * src/base/explain.h
 */
#ifndef LA_EXPLAIN_H
#define LA_EXPLAIN_H

#include "nodes/execnodes.h"

#include "base/stats.h"

/*
 * Returns the counters of a node, or NULL if the node is not one of the room that
 * registered the function, or has never looked ahead.
 */
typedef const LaCounters *(*la_explain_source) (PlanState *planstate);

extern void la_explain_init(void);
extern void la_explain_register(la_explain_source source);

#endif							/* LA_EXPLAIN_H */
