/*
 * counters.h
 *	  What is counted of a node that looks ahead.
 *
 * src/base/counters.h
 */
#ifndef LA_COUNTERS_H
#define LA_COUNTERS_H

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
	LA_KIND_FOREIGN_KEY,
	LA_KIND_TOAST,
	LA_KIND_SUBPLAN,
	LA_KIND_TID_SCAN
} LaKind;

#define LA_NUM_KINDS (LA_KIND_TID_SCAN + 1)

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
	LA_NUM_VIEW_COUNTERS,

	/* not in the views of the first versions */
	LA_BLOCKS_EVICTED = LA_NUM_VIEW_COUNTERS,	/* late, long after they were
												 * issued */
	LA_BLOCKS_NOT_STARTED,		/* foreseen, not cached, and no read could be
								 * started */
	LA_WAIT_NS,					/* nanoseconds that timed reads have taken */
	LA_SAVED_NS,				/* ... that they would have taken longer */
	LA_SAVED_ERROR_NS,			/* how uncertain that is */
	LA_NUM_SHARED_COUNTERS,

	/* of single nodes only, for EXPLAIN and the last statement */
	LA_DISTANCE_SUM = LA_NUM_SHARED_COUNTERS,	/* over visits while armed */
	LA_DISTANCE_SAMPLES,
	LA_DISTANCE_MAX,
	LA_DISTANCE_CAPACITY,
	LA_NUM_COUNTERS
} LaCounter;

#define LA_NS_IN_MS 1000000.0

struct LaStatementStats;

typedef struct LaCounters
{
	int64		c[LA_NUM_COUNTERS];
	struct LaStatementStats *statement; /* that the node belongs to, or NULL;
										 * see statements.c */
} LaCounters;

/* The times of other reads of the same node. */
static inline void
la_counters_add_times(LaCounters *counters, const LaCounters *other)
{
	for (int i = LA_WAIT_NS; i <= LA_SAVED_ERROR_NS; i++)
		counters->c[i] += other->c[i];
}

/* Look-ahead is so many blocks ahead at a visit. */
static inline void
la_counters_note_distance(LaCounters *counters, int64 distance)
{
	int64	   *c = counters->c;

	c[LA_DISTANCE_SUM] += distance;
	c[LA_DISTANCE_SAMPLES]++;
	if (distance > c[LA_DISTANCE_MAX])
		c[LA_DISTANCE_MAX] = distance;
}

#endif							/* LA_COUNTERS_H */
