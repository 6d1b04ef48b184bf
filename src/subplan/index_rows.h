/*
 * index_rows.h
 *	  The rows to come of an index scan.
 *
 * src/subplan/index_rows.h
 */
#ifndef LA_INDEX_ROWS_H
#define LA_INDEX_ROWS_H

#include "nodes/execnodes.h"

#include "subplan/row_filter.h"
#include "subplan/rows_to_come.h"

extern LaRowsToCome *la_indexrows_create(ScanState *scan, const LaRunAhead *hints);

#endif							/* LA_INDEX_ROWS_H */
