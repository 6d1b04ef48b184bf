/*
 * nestloop_int.h
 *	  One nested loop under observation: shared by the files of this room only.
 *
 * src/nestloop/nestloop_int.h
 */
#ifndef LA_NESTLOOP_INT_H
#define LA_NESTLOOP_INT_H

#include "access/skey.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "attach/runahead.h"
#include "attach/takeover.h"
#include "base/budget.h"
#include "base/stats.h"
#include "btree/descent.h"
#include "window/cache_policy.h"
#include "window/io_policy.h"
#include "window/window.h"

typedef struct LaInnerKeys LaInnerKeys;
typedef struct LaParams LaParams;
typedef struct LaPrune LaPrune;
typedef struct LaInnerPrefetch LaInnerPrefetch;

/*
 * The inner side is an index scan of a table; or an Append, of which each outer row
 * needs one member, an index scan of a partition.
 */
typedef struct LaInner
{
	struct LaNestLoop *join;
	PlanState  *scan;			/* NULL: a member whose reads cannot be known */
	Relation	heap;
	Relation	index;
	bool		index_only;
	bool		first_match_only;	/* the join looks for one match, any */
	ScanKey		scankeys;
	int			nkeys;
	IndexRuntimeKeyInfo *runtime;
	int			nruntime;

	LaInnerKeys *keys;			/* see la_innerkeys_of() */
	bool		keys_tried;
	const char *keys_refused;	/* why they must not be known ahead, or NULL */
	bool		feeds;			/* the scan asks us for row addresses */
	int			offers;			/* of these that it refused */
} LaInner;

/*
 * The reads of heaps, or of indexes, in the order in which the join will need
 * them.
 */
typedef struct LaLane
{
	Relation   *rels;			/* one for each LaInner */
	LaIoPolicy	policy;
	LaCounters	counters;
	LaWindow   *window;			/* NULL until the join first looks ahead */
	BlockNumber last_block;		/* visited last, and of which relation */
	int			last_rel;
} LaLane;

typedef struct LaNestLoop
{
	NestLoopState *node;
	PlanState  *outer;			/* the outer child */
	const LaTakeover *takeover; /* of the outer child's output */
	EState	   *estate;
	MemoryContext context;		/* lives as long as the query */
	LaRunAhead	ahead;
	AppendState *append;		/* NULL: there is one inner scan */
	LaPrune    *route;			/* of an Append */
	LaInner    *inners;
	int			ninners;
	ExprContext *econtext;		/* of their keys */

	Oid			heaprelid;		/* the table, perhaps a partitioned one;
								 * InvalidOid: several */
	Oid			indexrelid;		/* InvalidOid: several */
	Oid			known_by;		/* an index; see history.c */

	bool		prepared;		/* keys and prefetch are there */
	bool		given_up;		/* it is not eligible after all */
	bool		looking;		/* ahead, for reads */
	bool		touching;		/* ahead, in memory */
	int64		handed;			/* outer rows since the start or a rescan */
	bool		at_end;			/* there were no more of them */
	int64		seen_reads;		/* blocks read when we last returned */

	LaLane		leaf;
	LaLane		heap;
	LaCachePolicy rows;			/* a visit is an outer row */
	LaInnerPrefetch *prefetch;
	LaBudget	budget;
} LaNestLoop;

/* Is one of the lanes in this state? */
static inline bool
la_nestloop_is(const LaNestLoop *join, LaIoState state)
{
	return join->leaf.policy.state == state || join->heap.policy.state == state;
}

/* Ahead of the next row, for whatever reason. */
static inline bool
la_nestloop_looks_ahead(const LaNestLoop *join)
{
	return la_nestloop_is(join, LA_ARMED) || la_cache_policy_is_armed(&join->rows);
}

/*
 * Will the join take all outer rows, if nothing fails?
 */
static inline bool
la_nestloop_takes_all(const LaNestLoop *join)
{
	return la_runahead_takes_all(&join->ahead.context, join->estate);
}

/* The outer child's next row. */
static inline TupleTableSlot *
la_nestloop_outer_row(const LaNestLoop *join)
{
	return join->takeover->below(join->outer);
}

/* params.c */
extern LaParams *la_params_create(LaNestLoop *join, Bitmapset *used, bool *outer);
extern bool la_params_set(LaParams *params, TupleTableSlot *outer);
extern ParamExecData *la_params_values(LaParams *params);
extern bool la_params_collect(Node *node, Bitmapset **used);

/* prune.c */
extern LaPrune *la_prune_create(LaNestLoop *join, const char **refused);
extern int	la_prune_find(LaPrune *route, TupleTableSlot *outer);

/* innerkeys.c */
typedef enum LaKeyResult
{
	LA_KEY_SET,
	LA_KEY_NULL,				/* no entry can match */
	LA_KEY_UNKNOWN				/* not to be known ahead of its time */
} LaKeyResult;

extern LaInnerKeys *la_innerkeys_of(LaInner *inner);
extern LaKeyResult la_innerkeys_set(LaInnerKeys *keys, TupleTableSlot *outer);
extern LaDescent *la_innerkeys_descent(LaInnerKeys *keys);
extern bool la_innerkeys_are_all(const LaInnerKeys *keys);

/* inner_prefetch.c and outerqueue.c */
extern LaInnerPrefetch *la_innerprefetch_create(LaNestLoop *join);
extern void la_innerprefetch_observe(LaNestLoop *join, TupleTableSlot *outer);
extern bool la_innerprefetch_has_rows(LaNestLoop *join);
extern bool la_innerprefetch_is_at_end(LaNestLoop *join);
extern bool la_innerprefetch_may_reuse(LaInner *inner);
extern TupleTableSlot *la_innerprefetch_next(LaNestLoop *join);
extern void la_innerprefetch_pass(LaNestLoop *join);
extern void la_innerprefetch_clear(LaNestLoop *join);

#endif							/* LA_NESTLOOP_INT_H */
