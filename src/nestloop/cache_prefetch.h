/*
 * cache_prefetch.h
 *	  Cached pages, touched in stages for many outer rows.
 *
 * src/nestloop/cache_prefetch.h
 */
#ifndef LA_CACHE_PREFETCH_H
#define LA_CACHE_PREFETCH_H

#include "nestloop/innersearch.h"

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

#endif							/* LA_CACHE_PREFETCH_H */
