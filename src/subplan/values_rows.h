/*
 * values_rows.h
 *	  The rows to come of VALUES.
 *
 * src/subplan/values_rows.h
 */
#ifndef LA_VALUES_ROWS_H
#define LA_VALUES_ROWS_H

#include "nodes/execnodes.h"

#include "subplan/row_filter.h"
#include "subplan/rows_to_come.h"

extern LaRowsToCome *la_valuesrows_create(ValuesScanState *scan, const LaRunAhead *hints);

#endif							/* LA_VALUES_ROWS_H */
