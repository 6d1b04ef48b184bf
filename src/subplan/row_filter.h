/*
 * row_filter.h
 *	  Will a row pass the filter of its scan?
 *
 * src/subplan/row_filter.h
 */
#ifndef LA_ROW_FILTER_H
#define LA_ROW_FILTER_H

#include "nodes/execnodes.h"

#include "attach/runahead.h"

typedef struct LaRowFilter LaRowFilter;

extern LaRowFilter *la_rowfilter_create(ScanState *scan, const LaRunAhead *hints);
extern bool la_rowfilter_passes(LaRowFilter *filter, TupleTableSlot *row);

#endif							/* LA_ROW_FILTER_H */
