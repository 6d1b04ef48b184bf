/*
 * stored_rows.h
 *	  The rows to come of a scan whose rows lie in a tuplestore.
 *
 * src/subplan/stored_rows.h
 */
#ifndef LA_STORED_ROWS_H
#define LA_STORED_ROWS_H

#include "nodes/execnodes.h"

#include "subplan/row_filter.h"
#include "subplan/rows_to_come.h"

extern LaRowsToCome *la_storedrows_create(ScanState *scan, const LaRunAhead *hints,
										  const LaDemandContext *context,
										  const char **refused);

#endif							/* LA_STORED_ROWS_H */
