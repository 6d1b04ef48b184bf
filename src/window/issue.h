/*
 * issue.h
 *	  Starting a read, touching a cached page, and taking over a block.
 *
 * src/window/issue.h
 */
#ifndef LA_ISSUE_H
#define LA_ISSUE_H

#include "executor/instrument.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "base/budget.h"

typedef struct LaAio LaAio;		/* see aio.h */

/* Tell the CPU that this address will be read. */
#if defined(__GNUC__) || defined(__clang__)
#define la_prefetch(address)	__builtin_prefetch(address)
#else
#define la_prefetch(address)	((void) (address))
#endif

/* Where a foreseen block was found. */
typedef enum LaIssueResult
{
	LA_ISSUE_CACHED,			/* in shared buffers: *recent tells where */
	LA_ISSUE_STARTED,			/* its read was started */
	LA_ISSUE_NOTHING			/* neither: advice does not work here */
} LaIssueResult;

/* How a block came when its turn was there. */
typedef struct LaReadResult
{
	bool		missed;			/* it had to be read */
	double		us;				/* ... in so many microseconds */
} LaReadResult;

extern bool la_issue_exists(Relation rel, BlockNumber block,
							BlockNumber *known_size);
extern bool la_issue_is_cached(Relation rel, BlockNumber block, Buffer *recent);
extern LaIssueResult la_issue_block(Relation rel, BlockNumber block,
									Buffer *recent);
extern void la_issue_touch_page(Buffer recent, OffsetNumber offset);
extern void la_issue_touch_items(Buffer recent);
extern void la_issue_touch_tuple(Buffer recent, OffsetNumber offset);
extern LaReadResult la_issue_read(Relation rel, BlockNumber block,
								  Buffer recent, bool timed, bool counted,
								  Buffer *current);
extern LaReadResult la_issue_finish(Relation rel, LaAio *aio, int slot,
									Buffer *current);
extern bool la_issue_all_visible(Relation heap, BlockNumber block, Buffer *map,
								 LaBudget *budget);
extern void la_issue_release_map(Buffer *map, LaBudget *budget);
extern double la_issue_clock_us(void);

/*
 * Blocks that this backend has read into buffers so far, shared and local.
 */
static inline int64
la_issue_blocks_read(void)
{
	return pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read;
}

/* ... and those that it found or read. */
static inline int64
la_issue_buffers_used(void)
{
	return la_issue_blocks_read() + pgBufferUsage.shared_blks_hit +
		pgBufferUsage.local_blks_hit;
}

#endif							/* LA_ISSUE_H */
