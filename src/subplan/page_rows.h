/*
 * page_rows.h
 *	  The rows to come of a sequential or bitmap heap scan.
 *
 * src/subplan/page_rows.h
 */
#ifndef LA_PAGE_ROWS_H
#define LA_PAGE_ROWS_H

#include "nodes/execnodes.h"

#include "subplan/row_filter.h"
#include "subplan/rows_to_come.h"

extern LaRowsToCome *la_pagerows_create(ScanState *scan, const LaRunAhead *hints);

#endif							/* LA_PAGE_ROWS_H */
