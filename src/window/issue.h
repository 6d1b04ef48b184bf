/*
 * issue.h
 *	  Starts reads, touches cached pages, and makes blocks a scan's current ones.
 *
 * src/window/issue.h
 */
#ifndef LA_ISSUE_H
#define LA_ISSUE_H

#include "executor/instrument.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "base/budget.h"

/* Ask the CPU to load the cache line of this address. */
#if defined(__GNUC__) || defined(__clang__)
#define la_prefetch(address)	__builtin_prefetch(address)
#else
#define la_prefetch(address)	((void) (address))
#endif

/* Where a foreseen block was found. */
typedef enum LaIssueResult
{
	LA_ISSUE_CACHED,			/* in shared buffers: in *recent */
	LA_ISSUE_STARTED,			/* its read was started */
	LA_ISSUE_NOTHING			/* neither: no read can be started here */
} LaIssueResult;

/* How a visited block came into the scan's buffer. */
typedef struct LaReadResult
{
	bool		missed;			/* it had to be read */
	double		us;				/* microseconds that took, if timed */
} LaReadResult;

/* A page of a table's visibility map, which may stay pinned for the next question. */
typedef struct LaMapPage
{
	Buffer		buffer;
	Relation	heap;
} LaMapPage;

extern bool la_issue_exists(Relation rel, BlockNumber block,
							BlockNumber *known_size);
extern bool la_issue_is_cached(Relation rel, BlockNumber block, Buffer *recent);
extern LaIssueResult la_issue_block(Relation rel, BlockNumber block,
									Buffer *recent);
extern void la_issue_range(Relation rel, BlockNumber first, BlockNumber nblocks);
extern void la_issue_touch_page(Buffer recent, OffsetNumber offset);
extern void la_issue_touch_items(Buffer recent);
extern void la_issue_touch_tuple(Buffer recent, OffsetNumber offset);
extern LaReadResult la_issue_read(Relation rel, BlockNumber block,
								  Buffer recent, bool timed, bool counted,
								  Buffer *current);
extern void la_issue_replace_current(Relation rel, Buffer buffer, Buffer *current);
extern bool la_issue_all_visible(Relation heap, BlockNumber block, LaMapPage *map,
								 LaBudget *budget);
extern void la_issue_release_map(LaMapPage *map, LaBudget *budget);
extern double la_issue_clock_us(void);

/* Blocks that this backend has read into buffers so far, shared and local. */
static inline int64
la_issue_blocks_read(void)
{
	return pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read;
}

/* Uses of buffers by this backend so far: blocks that it has read, and that it has found. */
static inline int64
la_issue_buffers_used(void)
{
	return la_issue_blocks_read() + pgBufferUsage.shared_blks_hit +
		pgBufferUsage.local_blks_hit;
}

#endif							/* LA_ISSUE_H */
