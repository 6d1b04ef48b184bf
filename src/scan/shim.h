/*
 * shim.h
 *	  Between an index scan and its access method.
 *
 * src/scan/shim.h
 */
#ifndef LA_SHIM_H
#define LA_SHIM_H

#include "scan/scan_int.h"

#include "attach/attach.h"
#include "base/budget.h"
#include "base/stats.h"
#include "window/scan_policy.h"
#include "window/window.h"

/* What is known of an entry: will the executor fetch its heap row? */
#define HEAP_UNKNOWN	0
#define HEAP_NEEDED		1
#define HEAP_NOT_NEEDED 2

typedef struct LaLeaves LaLeaves;
typedef struct LaRowQueue LaRowQueue;

typedef struct LaScan
{
	/*
	 * Copy of the index's relation descriptor, whose access method is the
	 * shim.  Must be first: scan->indexRelation points here.
	 */
	RelationData shadow;

	Relation	real;			/* the index */
	IndexScanDesc scan;
	MemoryContext context;		/* lives as long as the query */
	LaKind		kind;
	Oid			heaprelid;
	Oid			indexrelid;
	LimitState *limit;			/* see attach.h */
	bool		read_to_end;	/* see attach.h */
	int			max_leaf_batches;

	LaIoPolicy	policy;			/* see scan_policy.h */
	LaCachePolicy cache_policy;
	LaCounters	counters;
	LaBudget	budget;

	/* while the real access method owns the position */
	Buffer		seen_buffer;	/* heap buffer at the previous call */
	BlockNumber observed_block; /* heap block read last in state OBSERVE */
	int64		seen_reads;		/* blocks read when we last returned */
	ScanDirection last_dir;		/* of the last call of the access method */
	BlockNumber moved_page;		/* leaf that we moved the scan back to */
	bool		ended;			/* answered that there are no more rows */

	Buffer		vmbuf;			/* index-only scans: our own look at the map */

	/* look-ahead: one of the two, NULL until first armed */
	LaLeaves   *leaves;			/* btree */
	LaRowQueue *queue;			/* other access methods */
	const struct LaMethod *method;	/* NULL: btree */
	struct LaGraph *graph;		/* HNSW, or NULL */
	bool		active;			/* it owns the position */
	BlockNumber index_size;		/* see la_issue_exists() */

	/* rows found by another room, tidsource.c */
	LaTidSource feed;			/* begin is NULL: none */
	bool		fed;			/* this scan's rows are */
	ItemPointer fed_tids;
	int			nfed;
	int			next_fed;
	bool		fed_ended;
	bool		fed_tried_to_end;	/* before its end */
	bool		fed_uncounted;

	MemoryContextCallback callback;
} LaScan;

#define la_heap_fetch(ls)	((IndexFetchHeapData *) (ls)->scan->xs_heapfetch)

/* shim.c */
extern LaScan *la_shim_install(IndexScanDesc scan, LaKind kind,
							   LimitState *limit, bool read_to_end,
							   MemoryContext context);
extern LaScan *la_shim_of(IndexScanDesc scan);
extern void la_shim_disable_lookahead(LaScan *ls);

#endif							/* LA_SHIM_H */
