/*
 * tidscan.h
 *	  Scans of rows by their addresses.
 *
 * src/toast/tidscan.h
 */
#ifndef LA_TOAST_TIDSCAN_H
#define LA_TOAST_TIDSCAN_H

#include "nodes/execnodes.h"

extern bool la_tidscan_attach(PlanState *ps, bool limited);

#endif							/* LA_TOAST_TIDSCAN_H */
