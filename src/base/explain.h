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

/* A node's counters, or NULL if it is another room's, or has never looked ahead. */
typedef const LaCounters *(*la_explain_source) (PlanState *planstate);

extern void la_explain_init(void);
extern void la_explain_register(la_explain_source source);
extern void la_explain_register_part(la_explain_source source, const char *part);

#endif							/* LA_EXPLAIN_H */
