/*
 * tablescan.h
 *	  The table's scan of an index build, with parallel workers or without.
 *
 * src/indexbuild/tablescan.h
 */
#ifndef LA_TABLESCAN_H
#define LA_TABLESCAN_H

#include "nodes/execnodes.h"

#include "indexbuild/sort.h"

typedef struct LaTableScan LaTableScan;

/* What came of the scan, or of one process's share of it. */
typedef struct LaTableScanResult
{
	double		heap_tuples;
	double		index_tuples;
	bool		broken_hot_chain;
	LaSortOutcome outcome;
} LaTableScanResult;

extern LaTableScan *la_tablescan_begin(Relation heap, Relation index,
									   IndexInfo *info, LaNormalizedKey *key,
									   bool may_restart);
extern bool la_tablescan_has_workers(const LaTableScan *scan);
extern LaSort *la_tablescan_sort(LaTableScan *scan, LaTableScanResult *result);
extern void la_tablescan_end(LaTableScan *scan);

#endif							/* LA_TABLESCAN_H */
