/*
 * tablescan.h
 *	  Between a sequential scan and heapam.
 *
 * src/toast/tablescan.h
 */
#ifndef LA_TOAST_TABLESCAN_H
#define LA_TOAST_TABLESCAN_H

#include "access/relscan.h"

#include "toast/valueahead.h"

extern void la_tablescan_follow(TableScanDesc scan, PlanState *node,
								const LaToastColumns *columns, MemoryContext context);

#endif							/* LA_TOAST_TABLESCAN_H */
