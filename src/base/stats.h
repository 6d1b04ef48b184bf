/*
 * stats.h
 *	  What look-ahead did: counters per scan, per backend and for the server.
 *
 * A room counts into an LaCounters of its own and hands it over with
 * la_stats_publish() when its node ends.  Where look-ahead is not activated
 * because it would not be safe, the room says why with la_stats_refuse(), once per
 * node and execution.  See stats.c for what happens then.
 *
 * src/base/stats.h
 */
#ifndef LA_STATS_H
#define LA_STATS_H

#include "nodes/execnodes.h"

/* Kinds of plan nodes that look ahead: one row each of pg_stat_lookahead. */
typedef enum LaKind
{
	LA_KIND_INDEX_SCAN,
	LA_KIND_INDEX_ONLY_SCAN,
	LA_KIND_NESTED_LOOP,
	LA_KIND_HASH_JOIN
} LaKind;

#define LA_NUM_KINDS (LA_KIND_HASH_JOIN + 1)

/*
 * The counters, in the order of the view's columns.  The categories of blocks
 * are those of the statistics of "Extended Prefetching using Asynchronous IO"
 * (Lumby and Freire, 2014) where they apply to advice: cached is its noneed,
 * on time its ontime, late its waited, wasted its discrd.
 */
typedef enum LaCounter
{
	LA_SCANS_ATTACHED,			/* scans under observation */
	LA_SCANS_ACTIVATED,			/* times that a scan began to look ahead */
	LA_BLOCKS_FORESEEN,			/* heap block visits known before their time */
	LA_BLOCKS_ISSUED,			/* ... whose read was started early */
	LA_BLOCKS_CACHED,			/* ... found in shared buffers */
	LA_BLOCKS_SKIPPED_RECENT,	/* ... just foreseen, not looked at again */
	LA_BLOCKS_SKIPPED_SEQUENTIAL,	/* ... left to the kernel's read-ahead */
	LA_BLOCKS_ON_TIME,			/* issued, and read without a wait */
	LA_BLOCKS_LATE,				/* issued, and still waited for */
	LA_BLOCKS_WASTED,			/* issued, and never visited */
	LA_ENTRIES_KILLED,			/* dead index entries handed to the index */
	LA_LEAF_PAGES_ISSUED,		/* index leaf pages whose read was started */
	LA_NUM_SHARED_COUNTERS,

	/* figures of one scan only, for EXPLAIN and the last statement */
	LA_DISTANCE_SUM = LA_NUM_SHARED_COUNTERS,	/* over visits while armed */
	LA_DISTANCE_SAMPLES,
	LA_DISTANCE_MAX,
	LA_DISTANCE_CAPACITY,
	LA_NUM_COUNTERS
} LaCounter;

typedef struct LaCounters
{
	int64		c[LA_NUM_COUNTERS];
} LaCounters;

extern void la_stats_init(void);
extern void la_stats_start_backend(void);
extern void la_stats_publish(LaKind kind, Oid heaprelid, Oid indexrelid,
							 const LaCounters *counters);
extern void la_stats_refuse(EState *estate, LaKind kind, Oid heaprelid,
							Oid indexrelid, const char *reason);

#endif							/* LA_STATS_H */
