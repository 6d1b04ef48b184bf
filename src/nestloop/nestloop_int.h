/*
 * nestloop_int.h
 *	  What the files of this room share.
 *
 * src/nestloop/nestloop_int.h
 */
#ifndef LA_NESTLOOP_INT_H
#define LA_NESTLOOP_INT_H

#include "nodes/execnodes.h"

#include "attach/attach.h"
#include "base/base.h"
#include "rows/rows.h"
#include "window/cache_policy.h"
#include "window/window.h"

/* ---- nestloop_int: the state of a nested loop, for all files of this room ---- */

/* defined in the files of these names */
typedef struct LaInnerPrefetch LaInnerPrefetch;

/* An inner scan: the inner side itself, or a member of the Append that is the inner side. */
typedef struct LaInner
{
	struct LaNestLoop *join;
	LaKeyedScan s;				/* s.scan == NULL: a member whose reads cannot
								 * be known */
	bool		first_match_only;	/* the join needs any one match */

	bool		takes_matches;	/* from inner_prefetch.c, instead of searching */
	int			offers;			/* how often it was asked to take them */
} LaInner;

/* May the join look ahead?  Checked when it first would. */
typedef enum LaEligibility
{
	LA_NOT_CHECKED,
	LA_ELIGIBLE,				/* keys and prefetch exist */
	LA_NOT_ELIGIBLE
} LaEligibility;

typedef struct LaNestLoop
{
	NestLoopState *node;
	PlanState  *outer;			/* the outer child */
	const LaInterposer *interposer; /* of the outer child's output */
	EState	   *estate;
	MemoryContext context;		/* lives as long as the query */
	LaRunAhead	ahead;
	AppendState *append;		/* NULL if there is one inner scan */
	LaPrune    *prune;			/* of an Append */
	LaInner    *inners;
	int			ninners;
	LaInner    *first;			/* the first one whose reads can be known */
	LaKeyRows	rows;			/* outer rows, for their keys */

	Oid			heaprelid;		/* InvalidOid: several, of no common parent */
	Oid			indexrelid;		/* InvalidOid: several */
	Oid			history_index;	/* whose history is used; see history.c */
	uint32		identity;		/* see la_history_scan_of() */
	bool		may_end_early;	/* not all rows will be taken for certain */

	LaEligibility eligibility;
	int64		returned;		/* outer rows since the start or a rescan */
	bool		at_end;			/* all of them were returned */
	int64		seen_reads;		/* blocks read when the last one was returned */

	LaReads		leaf;			/* reads of leaf pages, one relation for each
								 * LaInner */
	LaReads		heap;			/* likewise of heap blocks */
	LaCachePolicy cached_rows;	/* a visit is an outer row */
	LaInnerPrefetch *prefetch;	/* NULL until the join first looks ahead */
	LaBudget	budget;
} LaNestLoop;

/* Are reads to be started ahead? */
static inline bool
la_nestloop_reads_ahead(const LaNestLoop *join)
{
	return join->leaf.policy.state == LA_ARMED || join->heap.policy.state == LA_ARMED;
}

/* Will the join take all outer rows, if nothing fails? */
static inline bool
la_nestloop_takes_all(const LaNestLoop *join)
{
	return la_runahead_takes_all(&join->ahead.context, join->estate);
}

/* The outer child's next row. */
static inline TupleTableSlot *
la_nestloop_outer_row(const LaNestLoop *join)
{
	return join->interposer->below(join->outer);
}

/* ---- outerqueue ---- */

#define LA_NO_INNER		PG_UINT16_MAX

/* How far the search of a row's inner side has come; see innersearch.c. */
typedef enum LaRowState
{
	ROW_FRESH,
	ROW_DEFERRED,				/* an inner page of the index is being read */
	ROW_LEAF,					/* its leaf page is known */
	ROW_LOCATED					/* its heap blocks are known, if any */
} LaRowState;

/* An outer row and what its inner scan will need. */
typedef struct LaOuterRow
{
	TupleTableSlot *slot;
	uint16		inner;			/* which of the inner scans, or LA_NO_INNER */
	uint16		nvisits;		/* of the heap, beginning with first_visit */
	uint32		first_visit;
	uint32		first_match;
	uint16		nmatches;
	bool		matches_kept;	/* all of them are in LaInnerSearch.matches */
	uint8		state;			/* a LaRowState */
	bool		leaf_foreseen;	/* the leaf page is a visit of the leaf window */
	BlockNumber leaf;
	Buffer		leaf_recent;	/* the buffer that had the leaf page */
} LaOuterRow;

typedef struct LaOuterQueue
{
	LaChildQueue rows;
	LaOuterRow	inner[LA_QUEUE_SIZE];
} LaOuterQueue;

/* A row that is in the queue. */
static inline LaOuterRow *
la_outerqueue_at(LaOuterQueue *queue, uint64 n)
{
	return &queue->inner[n & (LA_QUEUE_SIZE - 1)];
}

extern void la_outerqueue_init(LaOuterQueue *queue, LaNestLoop *join);
extern void la_outerqueue_reset_row(LaOuterRow *row);
extern LaOuterRow *la_outerqueue_row(LaOuterQueue *queue, uint64 n);
extern LaOuterRow *la_outerqueue_head(LaOuterQueue *queue);

/* ---- innersearch ---- */

#define LA_MAX_VISITS	2048	/* of all rows in the queue; a power of 2 */
#define LA_MAX_MATCHES	4096	/* the same */

/* What was found for the rows in the queue, in their order: [first, end) of two rings. */
typedef struct LaInnerSearch
{
	LaNestLoop *join;
	LaMapPage	map;
	int			vm_inner;
	uint32		first_visit;
	uint32		end_visit;
	uint32		first_match;	/* of the row returned last */
	uint32		end_match;
	LaForeseen	visits[LA_MAX_VISITS];
	ItemPointerData matches[LA_MAX_MATCHES];
} LaInnerSearch;

/* The inner scan of a row that has one. */
static inline LaInner *
la_innersearch_inner(const LaInnerSearch *search, const LaOuterRow *row)
{
	return &search->join->inners[row->inner];
}

/* A visit of this row. */
static inline LaForeseen *
la_innersearch_visit(LaInnerSearch *search, const LaOuterRow *row, int i)
{
	return &search->visits[(row->first_visit + i) & (LA_MAX_VISITS - 1)];
}

/* All matches of a row whose matches are kept. */
static inline ItemPointer
la_innersearch_matches(LaInnerSearch *search, const LaOuterRow *row)
{
	return &search->matches[row->first_match & (LA_MAX_MATCHES - 1)];
}

extern bool la_innersearch_has_room(const LaInnerSearch *search);
extern bool la_innersearch_find_leaf(LaInnerSearch *search, LaOuterRow *row, bool may_wait);
extern void la_innersearch_search_leaf(LaInnerSearch *search, LaOuterRow *row, Buffer *buffer);
extern void la_innersearch_release(LaInnerSearch *search, const LaOuterRow *row);
extern void la_innersearch_release_all(LaInnerSearch *search);

/* ---- cache_prefetch: cached pages, touched in stages for many outer rows ---- */

#define LA_CACHE_STAGES	4

typedef struct LaCachePrefetch
{
	LaOuterQueue *queue;
	LaInnerSearch *search;
	uint64		next[LA_CACHE_STAGES];	/* the row that each stage is due for */

	/*
	 * the buffers that had the blocks of visits; of a visit that no stage has
	 * found, zero or an older visit's, which costs a useless prefetch
	 */
	Buffer		recent[LA_MAX_VISITS];
} LaCachePrefetch;

extern void la_cacheprefetch_advance(LaCachePrefetch *cache);

/* ---- inner_prefetch ---- */

extern LaInnerPrefetch *la_innerprefetch_create(LaNestLoop *join);
extern bool la_innerprefetch_has_rows(const LaNestLoop *join);
extern bool la_innerprefetch_is_at_end(const LaNestLoop *join);
extern bool la_innerprefetch_may_reuse(LaInner *inner);
extern TupleTableSlot *la_innerprefetch_next(LaNestLoop *join);
extern void la_innerprefetch_observe(LaNestLoop *join, TupleTableSlot *outer);
extern void la_innerprefetch_pass(LaNestLoop *join);
extern void la_innerprefetch_clear(LaNestLoop *join);

#endif							/* LA_NESTLOOP_INT_H */
