/*
 * join.h
 *	  One nested loop under observation: shared by the files of this room only.
 *
 * src/nestloop/join.h
 */
#ifndef LA_JOIN_H
#define LA_JOIN_H

#include "access/skey.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "attach/runahead.h"
#include "attach/takeover.h"
#include "base/budget.h"
#include "base/stats.h"
#include "btree/descent.h"
#include "window/policy.h"
#include "window/window.h"

typedef struct LaKeys LaKeys;
typedef struct LaParams LaParams;
typedef struct LaRoute LaRoute;
typedef struct LaScout LaScout;

/*
 * The inner side is an index scan of a table; or an Append, of which each outer row
 * needs one member, an index scan of a partition.
 */
typedef struct LaInner
{
	struct LaJoin *join;
	PlanState  *scan;			/* NULL: a member whose reads cannot be known */
	Relation	heap;
	Relation	index;
	bool		index_only;
	bool		first_match_only;	/* the join looks for one match, any */
	ScanKey		scankeys;
	int			nkeys;
	IndexRuntimeKeyInfo *runtime;
	int			nruntime;

	LaKeys	   *keys;			/* see la_keys_of() */
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
	LaPolicy	policy;
	LaCounters	counters;
	LaWindow   *window;			/* NULL until the join first looks ahead */
	BlockNumber last_block;		/* visited last, and of which relation */
	int			last_rel;
} LaLane;

typedef struct LaJoin
{
	NestLoopState *node;
	PlanState  *outer;			/* the outer child */
	const LaTakeover *takeover; /* of the outer child's output */
	EState	   *estate;
	MemoryContext context;		/* lives as long as the query */
	LaRunAhead	ahead;
	AppendState *append;		/* NULL: there is one inner scan */
	LaRoute    *route;			/* of an Append */
	LaInner    *inners;
	int			ninners;
	ExprContext *econtext;		/* of their keys */

	Oid			heaprelid;		/* the table, perhaps a partitioned one;
								 * InvalidOid: several */
	Oid			indexrelid;		/* InvalidOid: several */
	Oid			known_by;		/* an index; see history.c */

	bool		prepared;		/* keys and scout are there */
	bool		given_up;		/* it is not eligible after all */
	bool		looking;		/* ahead, for reads */
	bool		touching;		/* ahead, in memory */
	int64		handed;			/* outer rows since the start or a rescan */
	bool		at_end;			/* there were no more of them */
	int64		seen_reads;		/* blocks read when we last returned */

	LaLane		leaf;
	LaLane		heap;
	LaPolicy	rows;			/* of memory look-ahead; a visit is a row */
	LaScout    *scout;
	LaBudget	budget;
} LaJoin;

/* Is one of the lanes in this state? */
static inline bool
la_join_is(const LaJoin *join, LaPolicyState state)
{
	return join->leaf.policy.state == state || join->heap.policy.state == state;
}

/* Ahead of the next row, for whatever reason. */
static inline bool
la_join_looks_ahead(const LaJoin *join)
{
	return la_join_is(join, LA_ARMED) || join->rows.state == LA_ARMED;
}

/*
 * Will the join take all outer rows, if nothing fails?
 */
static inline bool
la_join_takes_all(const LaJoin *join)
{
	return la_runahead_takes_all(&join->ahead.context, join->estate);
}

/* The outer child's next row. */
static inline TupleTableSlot *
la_join_outer_row(const LaJoin *join)
{
	return join->takeover->below(join->outer);
}

/* params.c */
extern LaParams *la_params_create(LaJoin *join, Bitmapset *used, bool *outer);
extern bool la_params_set(LaParams *params, TupleTableSlot *outer);
extern ParamExecData *la_params_values(LaParams *params);
extern bool la_params_collect(Node *node, Bitmapset **used);

/* route.c */
extern LaRoute *la_route_create(LaJoin *join, const char **refused);
extern int	la_route_find(LaRoute *route, TupleTableSlot *outer);

/* keys.c */
typedef enum LaKeyResult
{
	LA_KEY_SET,
	LA_KEY_NULL,				/* no entry can match */
	LA_KEY_UNKNOWN				/* not to be known ahead of its time */
} LaKeyResult;

extern LaKeys *la_keys_of(LaInner *inner);
extern LaKeyResult la_keys_set(LaKeys *keys, TupleTableSlot *outer);
extern LaDescent *la_keys_descent(LaKeys *keys);
extern bool la_keys_are_all(const LaKeys *keys);

/* scout.c and queue.c */
extern LaScout *la_scout_create(LaJoin *join);
extern void la_scout_observe(LaJoin *join, TupleTableSlot *outer);
extern bool la_scout_has_rows(LaJoin *join);
extern bool la_scout_is_at_end(LaJoin *join);
extern bool la_scout_may_reuse(LaInner *inner);
extern TupleTableSlot *la_scout_next(LaJoin *join);
extern void la_scout_pass(LaJoin *join);
extern void la_scout_clear(LaJoin *join);

#endif							/* LA_JOIN_H */
