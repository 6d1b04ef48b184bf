/*
 * stats.h
 *	  Counters of look-ahead: per node, per session and for the server.
 *
 * A room counts into an LaCounters of its own and passes it to la_stats_publish() when
 * its node ends.  Where look-ahead would not be safe, the room says why by
 * la_stats_refuse(), once per node and execution.  See stats.c.
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
	LA_KIND_HASH_JOIN,
	LA_KIND_BITMAP_HEAP_SCAN,
	LA_KIND_BITMAP_INDEX_SCAN,
	LA_KIND_INDEX_INSERT,
	LA_KIND_FOREIGN_KEY
} LaKind;

#define LA_NUM_KINDS (LA_KIND_FOREIGN_KEY + 1)

/*
 * The counters, in the order of the view's columns.  Blocks are classified as in "Extended
 * Prefetching using Asynchronous IO" (Lumby and Freire, 2014), as far as that applies to
 * advice: its terms are noneed (cached), ontime (on time), waited (late), discrd (wasted).
 */
typedef enum LaCounter
{
	LA_SCANS_ATTACHED,			/* scans and joins that were attached */
	LA_SCANS_ACTIVATED,			/* times that one began to look ahead */
	LA_BLOCKS_FORESEEN,			/* visits of heap blocks known in advance */
	LA_BLOCKS_ISSUED,			/* ... whose read was started early */
	LA_BLOCKS_CACHED,			/* ... found in shared buffers */
	LA_BLOCKS_SKIPPED_RECENT,	/* ... foreseen a moment before, too */
	LA_BLOCKS_SKIPPED_SEQUENTIAL,	/* ... left to the kernel's read-ahead */
	LA_BLOCKS_ON_TIME,			/* issued, and read without a wait */
	LA_BLOCKS_LATE,				/* issued, but still waited for */
	LA_BLOCKS_WASTED,			/* issued, but never visited */
	LA_ENTRIES_KILLED,			/* index entries marked as dead */
	LA_LEAF_PAGES_ISSUED,		/* index leaf pages whose read was started */
	LA_NUM_SHARED_COUNTERS,

	/* of single nodes only, for EXPLAIN and the last statement */
	LA_BLOCKS_EVICTED = LA_NUM_SHARED_COUNTERS, /* late, long after they were
												 * issued */
	LA_DISTANCE_SUM,			/* over visits while armed */
	LA_DISTANCE_SAMPLES,
	LA_DISTANCE_MAX,
	LA_DISTANCE_CAPACITY,
	LA_NUM_COUNTERS
} LaCounter;

typedef struct LaCounters
{
	int64		c[LA_NUM_COUNTERS];
} LaCounters;

/* Look-ahead is so many blocks ahead at a visit. */
static inline void
la_stats_note_distance(LaCounters *counters, int64 distance)
{
	int64	   *c = counters->c;

	c[LA_DISTANCE_SUM] += distance;
	c[LA_DISTANCE_SAMPLES]++;
	if (distance > c[LA_DISTANCE_MAX])
		c[LA_DISTANCE_MAX] = distance;
}

extern void la_stats_init(void);
extern void la_stats_flush_at_exit(void);
extern void la_stats_publish(LaKind kind, Oid heaprelid, Oid indexrelid,
							 const LaCounters *counters);
extern void la_stats_refuse(EState *estate, LaKind kind, Oid heaprelid,
							Oid indexrelid, const char *reason);

#endif							/* LA_STATS_H */
