/*
 * sortedrows.h
 *	  The rows that a sort passes on.
 *
 * src/toast/sortedrows.h
 */
#ifndef LA_TOAST_SORTEDROWS_H
#define LA_TOAST_SORTEDROWS_H

#include "nodes/execnodes.h"

extern bool la_sortedrows_attach(PlanState *ps, bool limited);

#endif							/* LA_TOAST_SORTEDROWS_H */
