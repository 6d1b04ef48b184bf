/*
 * nestloop_int.h
 *	  The state of a nested loop, for all files of this room.
 *
 * src/nestloop/nestloop_int.h
 */
#ifndef LA_NESTLOOP_INT_H
#define LA_NESTLOOP_INT_H

#include "nodes/execnodes.h"

#include "attach/interpose_node.h"
#include "attach/runahead.h"
#include "base/budget.h"
#include "rows/prune.h"
#include "rows/scankeys.h"
#include "window/cache_policy.h"
#include "window/reads.h"

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

#endif							/* LA_NESTLOOP_INT_H */
