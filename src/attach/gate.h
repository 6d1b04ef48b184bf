/*
 * gate.h
 *	  May this be done early?  The one place where rooms ask.
 *
 * The functions la_gate_refuses_...() return NULL if what they are asked about may be early, or
 * else a constant that says why not.
 *
 * src/attach/gate.h
 */
#ifndef LA_GATE_H
#define LA_GATE_H

#include "access/genam.h"
#include "nodes/execnodes.h"

#include "attach/knowntable.h"

extern bool la_gate_allows_searches(void);
extern const char *la_gate_refuses_rows(const PlanState *scan);
extern const char *la_gate_refuses_index_pages(PlanState *ps, IndexScanDesc scan, bool *always);
extern bool la_gate_allows_pin(bool local);
extern const char *la_gate_refuses_comparison(Oid function, Oid type);
extern const char *la_gate_refuses_child(PlanState *node, PlanState *child);

#endif							/* LA_GATE_H */
