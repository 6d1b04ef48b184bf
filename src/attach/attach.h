/*
 * attach.h
 *	  Finding the plan nodes that can look ahead.
 *
 * src/attach/attach.h
 */
#ifndef LA_ATTACH_H
#define LA_ATTACH_H

#include "nodes/execnodes.h"

/*
 * How much of a node's rows will be taken, if nothing fails.
 */
typedef enum LaDemand
{
	LA_DEMAND_SOME,				/* nobody knows */
	LA_DEMAND_RUN,				/* all, if the statement is run to its end */
	LA_DEMAND_ALL				/* all, as soon as one is asked for */
} LaDemand;

#define LA_NUM_DEMANDS 3

/*
 * What the walk knows about a node beyond its PlanState.
 */
typedef struct LaAttachContext
{
	/*
	 * The Limit node that takes at most one row of this node for each row it
	 * returns or skips, or NULL.
	 */
	LimitState *limit;

	/* With a limit: how much of what the Limit allows. */
	LaDemand	demand;

	/* A node above may find that it needs none, after it took one row. */
	bool		skippable;
} LaAttachContext;

/*
 * A scan's row addresses, from a room that has found them before the scan did.
 */
typedef struct LaFeed
{
	void	   *arg;

	/*
	 * The scan starts over: its row addresses, all of them, in the order of
	 * the index; they stay where they are until it starts over again.  False:
	 * not known this time, the scan must look for itself.
	 */
	bool		(*begin) (void *arg, ItemPointer *tids, int *ntids);
} LaFeed;

/* Takes a scan's rows from the feed where it can; false if this scan cannot. */
typedef bool (*la_feed_function) (PlanState *scan, const LaFeed *feed);

typedef void (*la_attach_function) (PlanState *planstate,
									const LaAttachContext *context);

extern void la_attach_init(void);
extern bool la_attach_is_all(LaDemand demand, const EState *estate);
extern void la_attach_register_feeder(la_feed_function function);
extern bool la_attach_feed(PlanState *scan, const LaFeed *feed);
extern int64 la_attach_rows_wanted(LimitState *limit);
extern void la_attach_register(NodeTag tag, la_attach_function function);

#endif							/* LA_ATTACH_H */
