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

/*
 * What the nodes above one will want of it.
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
typedef struct LaTidSource
{
	void	   *arg;

	/*
	 * The scan starts over: its row addresses, all of them, in the order of
	 * the index; they stay where they are until it starts over again.  False:
	 * not known this time, the scan must look for itself.
	 */
	bool		(*begin) (void *arg, ItemPointer *tids, int *ntids);
} LaTidSource;

/* Takes a scan's rows from the feed where it can; false if this scan cannot. */
typedef bool (*la_feed_function) (PlanState *scan, const LaTidSource *feed);

/*
 * Offers a node to its room; limited: its rows are those that a Limit above it counts.
 * Returns true if the room will ask for the node's context later.
 */
typedef bool (*la_attach_function) (PlanState *planstate, bool limited);

extern void la_attach_init(void);
extern void la_attach_register(NodeTag tag, la_attach_function function);
extern bool la_attach_is_registered(NodeTag tag);
extern void la_attach_register_feeder(la_feed_function function);
extern bool la_attach_feed(PlanState *scan, const LaTidSource *feed);
extern void la_attach_context(PlanState *planstate, LaAttachContext *context);
extern bool la_attach_is_all(LaDemand demand, const EState *estate);
extern int64 la_attach_rows_wanted(const LimitState *limit);

#endif							/* LA_ATTACH_H */
