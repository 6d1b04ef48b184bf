/*
 * tablescan.h
 *	  Between a scan of a table and heapam.
 *
 * src/toast/tablescan.h
 */
#ifndef LA_TOAST_TABLESCAN_H
#define LA_TOAST_TABLESCAN_H

#include "access/relscan.h"

#include "toast/valueahead.h"

extern void la_tablescan_follow(TableScanDesc scan, PlanState *node,
								const LaToastColumns *columns, TupleDesc desc,
								MemoryContext context);

#endif							/* LA_TOAST_TABLESCAN_H */
