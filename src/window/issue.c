/*
 * issue.c
 *	  Starting a read, touching a cached page, and taking over a block.
 *
 * Reads are started by PrefetchBuffer, which looks the block up in shared
 * buffers and, where it is not there, advises the kernel (posix_fadvise).  The
 * kernel then reads into its page cache, and the later pread only copies.  It
 * was measured against read_stream on 18 and reached the disk's ceiling where
 * the stream stopped at about 60% of it (see src/README.md).
 *
 * For a block that is cached, PrefetchBuffer tells the buffer where it was.
 * That buffer is neither pinned nor locked: what we do with it is
 *	- tell the CPU to load some of its cache lines (wrong lines cost nothing
 *	  but time), and, when the block's turn comes,
 *	- try ReadRecentBuffer, which checks under the buffer header's lock that it
 *	  still holds the block, and pins it without a look-up.
 *
 * Exactness of the take-over (la_issue_read).  heapam keeps the current block
 * of an index scan pinned in IndexFetchHeapData.xs_cbuf.  When it is asked for a
 * row of another block, it calls ReleaseAndReadBuffer and then, the buffer
 * having changed, heap_page_prune_opt.  We do the same two things a moment
 * earlier, so that heapam finds the buffer in place and does neither.  The
 * counters that ReadBuffer would have raised are raised here as well, and the
 * buffer's usage count, which ReadRecentBuffer leaves alone: blocks that are
 * used must not look unused to the clock sweep.  (For a room that reads index
 * pages ahead there is no pruning, and *current is its own.)
 *
 * An I/O error of an advised block is the kernel's secret until the block is
 * read: then stock's ReadBuffer raises it, at the time when it would have.
 * Advice itself can fail in one case only: for a block in a segment file that
 * does not exist (a damaged table, or an index that points beyond its end).
 * So callers ask la_issue_exists() first; blocks that are not there are left to
 * stock, which may never come to them.
 *
 * src/window/issue.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/visibilitymap.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/buf_internals.h"
#include "storage/bufpage.h"

#include "base/compat.h"
#include "window/aio.h"
#include "window/issue.h"

#define CACHE_LINE 64

/*
 * Is the block within the relation?  *known_size remembers the relation's size,
 * InvalidBlockNumber at first; it is asked for again where it may have grown.
 */
bool
la_issue_exists(Relation rel, BlockNumber block, BlockNumber *known_size)
{
	if (*known_size == InvalidBlockNumber || block >= *known_size)
		*known_size = RelationGetNumberOfBlocks(rel);
	return block < *known_size;
}

/*
 * Look a block up without starting a read of it.
 */
bool
la_issue_is_cached(Relation rel, BlockNumber block, Buffer *recent)
{
	BufferTag	tag;
	uint32		hash;
	LWLock	   *lock;
	int			id;

	*recent = InvalidBuffer;
	if (RelationUsesLocalBuffers(rel))
		return false;

	la_init_buffer_tag(tag, rel, block);
	hash = BufTableHashCode(&tag);
	lock = BufMappingPartitionLock(hash);
	LWLockAcquire(lock, LW_SHARED);
	id = BufTableLookup(&tag, hash);
	LWLockRelease(lock);
	if (id < 0)
		return false;
	*recent = id + 1;
	return true;
}

LaIssueResult
la_issue_block(Relation rel, BlockNumber block, Buffer *recent)
{
	PrefetchBufferResult result = PrefetchBuffer(rel, MAIN_FORKNUM, block);

	*recent = result.recent_buffer;
	if (BufferIsValid(result.recent_buffer))
		return LA_ISSUE_CACHED;
	return result.initiated_io ? LA_ISSUE_STARTED : LA_ISSUE_NOTHING;
}

/*
 * First touch of a page that will be visited soon: its buffer's descriptor, its
 * header, and the line pointer of the row.
 */
void
la_issue_touch_page(Buffer recent, OffsetNumber offset)
{
	char	   *page;

	if (BufferIsLocal(recent))
		return;
	page = (char *) BufferGetBlock(recent);
	la_prefetch(GetBufferDescriptor(recent - 1));
	la_prefetch(page);
	la_prefetch(page + SizeOfPageHeaderData +
				(offset - FirstOffsetNumber) * sizeof(ItemIdData));
}

/*
 * The line pointers that a binary search of a page looks at first, once its header has
 * come.  (See la_issue_touch_tuple() about the page.)
 */
void
la_issue_touch_items(Buffer recent)
{
#ifndef USE_VALGRIND
	char	   *page;
	unsigned	end;

	if (BufferIsLocal(recent))
		return;
	page = (char *) BufferGetBlock(recent);
	end = ((volatile PageHeaderData *) page)->pd_lower;
	if (end > SizeOfPageHeaderData && end < BLCKSZ)
	{
		unsigned	quarter = (end - SizeOfPageHeaderData) / 4;

		la_prefetch(page + end - 3 * quarter);
		la_prefetch(page + end - 2 * quarter);
		la_prefetch(page + end - quarter);
	}
#endif
}

/*
 * Second touch, once the line pointer has come: the row itself.  The page is
 * not pinned and may be changing under us, so nothing read from it is trusted
 * further than to name an address inside the page.
 */
void
la_issue_touch_tuple(Buffer recent, OffsetNumber offset)
{
#ifndef USE_VALGRIND
	char	   *page;
	volatile ItemIdData *lp;
	unsigned	where;

	if (BufferIsLocal(recent))
		return;
	page = (char *) BufferGetBlock(recent);
	lp = (volatile ItemIdData *) (page + SizeOfPageHeaderData) +
		(offset - FirstOffsetNumber);
	where = lp->lp_off;
	if (where < BLCKSZ - 2 * CACHE_LINE)
	{
		la_prefetch(page + where);
		la_prefetch(page + where + CACHE_LINE);
	}
#endif
}

/*
 * ReadRecentBuffer does not count as a use of the buffer in all versions; ReadBuffer
 * does.  One try is enough: whoever got in between has just used it.
 */
static void
count_use(Buffer buffer)
{
#ifdef LA_RECENT_IS_UNCOUNTED
	BufferDesc *desc = GetBufferDescriptor(buffer - 1);
	uint32		state = pg_atomic_read_u32(&desc->state);

	if (BUF_STATE_GET_USAGECOUNT(state) < BM_MAX_USAGE_COUNT &&
		(state & BM_LOCKED) == 0)
		(void) pg_atomic_compare_exchange_u32(&desc->state, &state,
											  state + BUF_USAGECOUNT_ONE);
#endif
}

static bool
take_recent(Relation rel, BlockNumber block, Buffer recent, bool counted)
{
	if (!BufferIsValid(recent) || BufferIsLocal(recent))
		return false;
	if (!la_recent_is_valid(recent) ||
		!ReadRecentBuffer(la_rel_locator(rel), MAIN_FORKNUM, block, recent))
		return false;
	if (counted)
	{
		pgBufferUsage.shared_blks_hit--;
		return true;
	}
	count_use(recent);
	pgstat_count_buffer_read(rel);
	pgstat_count_buffer_hit(rel);
	la_count_io_hit();
	return true;
}

double
la_issue_clock_us(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return INSTR_TIME_GET_DOUBLE(now) * 1e6;
}

/* Heap pages are pruned when a scan turns to them. */
static void
prune(Relation rel, Buffer buffer)
{
	if (rel->rd_indam == NULL)
		la_prune(rel, buffer);
}

/* What heapam does when the scan turns to another buffer. */
static void
replace_current(Relation rel, Buffer buffer, Buffer *current)
{
	Buffer		previous = *current;

	if (BufferIsValid(previous))
		ReleaseBuffer(previous);
	*current = buffer;
	if (buffer != previous)
		prune(rel, buffer);
}

/*
 * Is the heap page all-visible?  *map keeps the page of the visibility map pinned for
 * the next one, if the budget has room for a pin.
 */
bool
la_issue_all_visible(Relation heap, BlockNumber block, Buffer *map,
					 LaBudget *budget)
{
	bool		local = RelationUsesLocalBuffers(heap);
	bool		counted = BufferIsValid(*map);
	bool		visible = VM_ALL_VISIBLE(heap, block, map);

	if (!counted && BufferIsValid(*map))
	{
		if (la_budget_has_pin(local))
			la_budget_take_pin(budget, local);
		else
		{
			ReleaseBuffer(*map);
			*map = InvalidBuffer;
		}
	}
	else if (counted && !BufferIsValid(*map))
		la_budget_return_pin(budget, local);
	return visible;
}

void
la_issue_release_map(Buffer *map, LaBudget *budget)
{
	if (!BufferIsValid(*map))
		return;
	la_budget_return_pin(budget, BufferIsLocal(*map));
	ReleaseBuffer(*map);
	*map = InvalidBuffer;
}

/*
 * Make *current, the pinned heap buffer of the scan, the given block's.  How long
 * that took is told only if timed: looking at the clock is not free.  counted
 * tells that the server has counted this use of the block already.
 */
LaReadResult
la_issue_read(Relation rel, BlockNumber block, Buffer recent, bool timed,
			  bool counted, Buffer *current)
{
	Buffer		previous = *current;
	LaReadResult result = {false, 0.0};

	if (BufferIsValid(previous) && BufferGetBlockNumber(previous) == block)
		return result;

	if (take_recent(rel, block, recent, counted))
		replace_current(rel, recent, current);
	else
	{
		int64		before = la_issue_blocks_read();
		double		start = timed ? la_issue_clock_us() : 0.0;

		*current = ReleaseAndReadBuffer(previous, rel, block);
		result.missed = la_issue_blocks_read() != before;
		if (timed && result.missed)
			result.us = la_issue_clock_us() - start;
		if (*current != previous)
			prune(rel, *current);
	}
	return result;
}

/*
 * The same for a block whose asynchronous read is in flight.
 */
LaReadResult
la_issue_finish(Relation rel, LaAio *aio, int slot, Buffer *current)
{
	LaReadResult result = {true, 0.0};
	double		start = la_issue_clock_us();
	Buffer		buffer = la_aio_finish(aio, slot);

	result.us = la_issue_clock_us() - start;
	replace_current(rel, buffer, current);
	return result;
}
