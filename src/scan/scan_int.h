/*
 * scan_int.h
 *	  An index scan, and the ways in which it looks ahead: shared by the files of this room.
 *
 * src/scan/scan_int.h
 */
#ifndef LA_SCAN_INT_H
#define LA_SCAN_INT_H

#include "access/amapi.h"
#include "access/genam.h"
#include "access/heapam.h"
#include "access/relscan.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "attach/demand.h"
#include "attach/descriptors.h"
#include "base/budget.h"
#include "base/shadow.h"
#include "attach/attach.h"
#include "base/stats.h"
#include "btree/leafahead.h"
#include "window/issue.h"
#include "window/scan_policy.h"

typedef struct LaScan LaScan;

/* A way of looking ahead.  Functions that its role in LaScan does not need are NULL. */
typedef struct LaScanOps
{
	/* can the position be taken over from the access method now? */
	bool		(*may_begin) (LaScan *ls, ScanDirection dir);
	/* take it over; false: the scan has no rows, and nothing was taken */
	bool		(*begin) (LaScan *ls, ScanDirection dir);
	/* the scan starts over; false: the access method has to make it */
	bool		(*rescan) (LaScan *ls, ScanKey keys, int nkeys);
	/* return the next row as amgettuple does */
	bool		(*gettuple) (LaScan *ls, ScanDirection dir);
	/* may the access method be asked for the next row before it is wanted? */
	bool		(*may_run_ahead) (LaScan *ls);
	/* mark and restore the position; NULL or false: the access method has to */
	void		(*mark) (LaScan *ls);
	bool		(*restore) (LaScan *ls);
	/* the rows behind the one returned last; NULL: not known */
	int			(*rows_to_come) (LaScan *ls, LaIndexRow *rows, int max);
	/* the scan starts over or ends: the position is not needed any more */
	void		(*drop) (LaScan *ls);
} LaScanOps;

typedef struct LaScanWay
{
	const LaScanOps *ops;		/* NULL: this way is not needed */
	void	   *state;			/* private to the file of ops; NULL: not yet */
} LaScanWay;

/* What is known beforehand of how far the scan will be read. */
typedef struct LaScanDemand
{
	LimitState *limit;			/* the one that counts its rows, or NULL */
	bool		read_to_end;
	double		rows;			/* that the planner expects, of one execution */
	uint32		identity;		/* see la_history_scan_of() */
} LaScanDemand;

/* What the gate has said of pages of the index before their turn: early.c */
typedef enum LaPages
{
	LA_PAGES_UNKNOWN,
	LA_PAGES_REFUSED,
	LA_PAGES_NOW,				/* until the next rescan, or run */
	LA_PAGES_ALWAYS
} LaPages;

struct LaScan
{
	RelationData shadow;		/* must be first: scan->indexRelation points
								 * here, see base/shadow.h */

	Relation	real;			/* the index */
	IndexScanDesc scan;
	PlanState  *node;
	MemoryContext context;		/* lives as long as the query */
	LaKind		kind;
	LaPages		pages;
	uint64		pages_run;		/* in which LA_PAGES_NOW was said */
	Oid			heaprelid;
	Oid			indexrelid;
	LaScanDemand demand;
	ScanDirection order;		/* of the index in which the plan returns them */
	int			max_leaf_pages;

	LaIoPolicy	policy;			/* see scan_policy.h */
	LaCachePolicy cache_policy;
	LaCounters	counters;
	LaBudget	budget;

	const LaScanOps *owner;		/* of the position; NULL: the access method */
	LaScanWay	ahead;			/* owner when armed: leaf.c, rowqueue.c */
	LaScanWay	source;			/* owner from a rescan on: tidsource.c */
	LaScanWay	watch;			/* called in place of amgettuple: graph.c */
	struct LaFollower *follower;	/* that is told of its rows, or NULL */

	LaLeafAhead leaf;			/* reads of index pages; enabled for nbtree */
	struct LaArrayKeys *arraykeys;	/* NULL: nothing to look ahead in, or not
									 * yet */
	bool		arraykeys_tried;

	/* while the access method owns the position */
	Buffer		seen_buffer;	/* heap buffer at the previous call */
	BlockNumber observed_block; /* heap block read last in state OBSERVE */
	int64		seen_reads;		/* blocks read when heap blocks were last
								 * compared */
	int64		nrows;			/* that the access method has returned */
	ScanDirection last_dir;		/* of the last call of the access method */
	BlockNumber moved_page;		/* leaf page that nbtree was put back on */
	bool		ended;			/* the last call has found no row */

	LaMapPage	map;			/* of index-only scans */
	BlockNumber index_size;		/* see la_issue_exists() */

	MemoryContextCallback callback;
};

#define la_scan_heap(ls)	la_heap_fetch((ls)->scan)

/* The heap block that the executor has pinned for the current row. */
static inline BlockNumber
la_scan_heap_block(LaScan *ls)
{
	Buffer		buffer = la_scan_heap(ls)->xs_cbuf;

	return BufferIsValid(buffer) ? BufferGetBlockNumber(buffer) : InvalidBlockNumber;
}

/* Have the scan never look ahead by itself. */
static inline void
la_scan_disable_lookahead(LaScan *ls)
{
	la_io_policy_disable(&ls->policy);
	la_cache_policy_disable(&ls->cache_policy);
	la_io_policy_disable(&ls->leaf.policy.io);
}

/* The next row of the access method. */
static inline bool
la_scan_am_gettuple(LaScan *ls, ScanDirection dir)
{
	bool		found;

	la_shadow_call(ls, found = ls->watch.ops ? ls->watch.ops->gettuple(ls, dir) :
				   ls->real->rd_indam->amgettuple(ls->scan, dir));
	ls->last_dir = dir;
	ls->nrows += found;
	return found;
}

/*
 * How many rows the Limit above may still take after the current one.  It does not count those that
 * a cursor takes backward.
 */
static inline int64
la_scan_rows_wanted(LaScan *ls, ScanDirection dir)
{
	return dir == ls->order ? la_demand_rows_wanted(ls->demand.limit) : PG_INT64_MAX;
}

#endif							/* LA_SCAN_INT_H */
