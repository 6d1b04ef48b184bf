/*
 * explain.h
 *	  The one printer of look-ahead figures under a plan node.
 *
 * src/base/explain.h
 */
#ifndef LA_EXPLAIN_H
#define LA_EXPLAIN_H

#include "nodes/execnodes.h"

#include "base/stats.h"

/*
 * A room answers with the counters of its node, or NULL when the node is not
 * its own or never looked ahead.
 */
typedef const LaCounters *(*la_explain_source) (PlanState *planstate);

extern void la_explain_init(void);
extern void la_explain_register(la_explain_source source);

#endif							/* LA_EXPLAIN_H */
