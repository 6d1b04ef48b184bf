/*
 * route.h
 *	  The partition that a row is going to be inserted into.
 *
 * src/write/route.h
 */
#ifndef LA_ROUTE_H
#define LA_ROUTE_H

#include "nodes/execnodes.h"
#include "utils/relcache.h"

typedef struct LaRoute LaRoute;

extern LaRoute *la_route_create(Relation root, ModifyTableState *mt);
extern bool la_route_depends_on(const LaRoute *route, const Bitmapset *columns);
extern ResultRelInfo *la_route_find(LaRoute *route, TupleTableSlot *row);

#endif							/* LA_ROUTE_H */
