/*
 * parallel.h
 *	  Scanning the table for an index build with parallel workers.
 *
 * The room's own; see parallel.c.
 *
 * src/indexbuild/parallel.h
 */
#ifndef LA_PARALLEL_H
#define LA_PARALLEL_H

#include "access/tableam.h"
#include "nodes/execnodes.h"

#include "indexbuild/sort.h"

typedef struct LaParallel LaParallel;

/* What scanning the table, or a share of it, came to. */
typedef struct LaScanned
{
	double		heap_rows;
	double		index_rows;
	bool		broken_hot_chain;
	bool		given_up;		/* some rows had no key: the sort is of no use */
	bool		long_keys;		/* ... because they are long */
} LaScanned;

extern void la_build_scan(Relation heap, Relation index, IndexInfo *info,
						  LaSort *sort, TableScanDesc scan, bool progress,
						  LaScanned *scanned);

extern LaParallel *la_parallel_begin(Relation heap, Relation index,
									 const IndexInfo *info, LaNormalizedKey *key,
									 bool may_give_up);
extern int	la_parallel_workers(const LaParallel *parallel);
extern LaSort *la_parallel_scan(LaParallel *parallel, LaScanned *scanned);
extern void la_parallel_end(LaParallel *parallel);

#endif							/* LA_PARALLEL_H */
