/*
 * issue.c
 *	  Starts reads, touches cached pages, and makes blocks a scan's current ones.
 *
 * PrefetchBuffer starts reads: it looks the block up in shared buffers and, if it is not there,
 * advises the kernel (posix_fadvise), which reads it into its page cache.  The scan's own read
 * then copies only.  Measured on 18, this reaches what the disk can do; a read stream stopped at
 * about 60% of that.
 *
 * A block that is cached has a buffer, which is neither pinned nor locked here.  It serves as a
 * hint:
 *	- cache lines of its page are prefetched; wrong ones cost nothing but time;
 *	- when the block is visited, ReadRecentBuffer checks that the buffer still holds it, and
 *	  pins it without another look-up.
 *
 * Invariant of la_issue_read(): effects are those of heapam, a moment earlier.  heapam keeps
 * the current block of an index scan pinned in IndexFetchHeapData.xs_cbuf.  For a row of
 * another block it calls ReleaseAndReadBuffer, and heap_page_prune_opt if the buffer has
 * changed.  Both are done here, so that heapam finds the buffer in place and does neither.
 * ReadRecentBuffer does not raise all counters that ReadBuffer does, nor, before 19, the
 * buffer's usage count, without which the clock sweep would take used blocks for unused ones;
 * both are raised here.  Index pages are not pruned, and *current is then the caller's own.
 *
 * Errors.  If the kernel fails to read an advised block, ReadBuffer raises the error when the
 * block is read, as it would in stock.  Where it is not certain that the server will read it, or
 * it would add a context to the error, la_issue_read() without a buffer leaves it to the server
 * to read the block once more, and to raise the error, if it does.  Advice itself fails only for a
 * block in a segment file that does not exist: the table is damaged, or the index points beyond its
 * end.  So callers ask la_issue_exists() first, and leave such blocks to stock, which may never
 * read them.
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
#include "storage/smgr.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "window/window.h"
#include "window/window_int.h"

#define CACHE_LINE 64

/*
 * Is the block within the relation?  *known_size caches the relation's size, InvalidBlockNumber
 * at first.  A block beyond it has the size looked up again, as the relation may have grown.
 */
bool
la_issue_exists(Relation rel, BlockNumber block, BlockNumber *known_size)
{
	if (*known_size == InvalidBlockNumber || block >= *known_size)
		*known_size = RelationGetNumberOfBlocks(rel);
	return block < *known_size;
}

/* Look a block up without starting a read of it. */
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
	*recent = la_bufferhint_find(rel, block);
	if (BufferIsValid(*recent))
		return true;

	la_init_buffer_tag(tag, rel, block);
	hash = BufTableHashCode(&tag);
	lock = BufMappingPartitionLock(hash);
	LWLockAcquire(lock, LW_SHARED);
	id = BufTableLookup(&tag, hash);
	LWLockRelease(lock);
	if (id < 0)
		return false;
	*recent = id + 1;
	la_bufferhint_note(rel, block, *recent);
	return true;
}

LaIssueResult
la_issue_block(Relation rel, BlockNumber block, Buffer *recent)
{
	bool		local = RelationUsesLocalBuffers(rel);
	PrefetchBufferResult result;

	*recent = local ? InvalidBuffer : la_bufferhint_find(rel, block);
	if (BufferIsValid(*recent))
		return LA_ISSUE_CACHED;
	if (la_share_is_limited() && la_share_of_backend(rel->rd_rel->reltablespace) == 0)
	{
		if (!local && la_issue_is_cached(rel, block, recent))
			return LA_ISSUE_CACHED;
		la_share_note_read(rel->rd_rel->reltablespace);
		return LA_ISSUE_NOTHING;
	}
	result = PrefetchBuffer(rel, MAIN_FORKNUM, block);
	*recent = result.recent_buffer;
	if (BufferIsValid(*recent))
	{
		if (!local)
			la_bufferhint_note(rel, block, *recent);
		return LA_ISSUE_CACHED;
	}
	if (!result.initiated_io)
		return LA_ISSUE_NOTHING;
	la_share_note_read(rel->rd_rel->reltablespace);
	return LA_ISSUE_STARTED;
}

/* Start the reads of neighbouring blocks of a relation that is not temporary. */
void
la_issue_range(Relation rel, BlockNumber first, BlockNumber nblocks)
{
	la_share_note_read(rel->rd_rel->reltablespace);
	la_smgr_prefetch(RelationGetSmgr(rel), first, nblocks);
}

/*
 * First touch of a page that will be visited soon: its buffer's descriptor, its header, and the
 * line pointer of the row.
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
 * The line pointers that a binary search of a page looks at first, once the CPU has its header.
 * (See la_issue_touch_tuple() about the page.)
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
 * Second touch, once the CPU has the line pointer: the row itself.  The page is not pinned and
 * may be changing, so what is read from it is used for nothing but an address inside the page.
 */
void
la_issue_touch_tuple(Buffer recent, OffsetNumber offset)
{
#ifndef USE_VALGRIND
	char	   *page;
	volatile ItemIdData *lp;
	unsigned	where;

	/* a TID of a damaged index entry may have any offset */
	if (BufferIsLocal(recent) || offset < FirstOffsetNumber || offset > MaxHeapTuplesPerPage)
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
 * Pin a buffer that has held the block, if it still does, as ReadBuffer would.  counted: this
 * use of the block is in pgBufferUsage already.
 */
static bool
pin_recent(Relation rel, BlockNumber block, Buffer recent, bool counted)
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
	la_count_recent_use(recent);
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

/* heapam prunes a page when a scan turns to it. */
static void
prune(Relation rel, Buffer buffer)
{
	if (rel->rd_indam == NULL)
		la_prune(rel, buffer);
}

/* The scan turns to a pinned buffer: release the previous one, and prune. */
void
la_issue_replace_current(Relation rel, Buffer buffer, Buffer *current)
{
	Buffer		previous = *current;

	if (BufferIsValid(previous))
		ReleaseBuffer(previous);
	*current = buffer;
	if (buffer != previous)
		prune(rel, buffer);
}

/*
 * Is the heap page all-visible?  *map keeps the page of the visibility map pinned for the next
 * one, if the budget has room for a pin.
 */
bool
la_issue_all_visible(Relation heap, BlockNumber block, LaMapPage *map, LaBudget *budget)
{
	bool		local = RelationUsesLocalBuffers(heap);
	bool		was_pinned;
	bool		visible;

	/* the server would take it for a page of this heap's map */
	if (map->heap != heap)
		la_issue_release_map(map, budget);
	map->heap = heap;
	was_pinned = BufferIsValid(map->buffer);
	visible = VM_ALL_VISIBLE(heap, block, &map->buffer);
	if (!was_pinned && BufferIsValid(map->buffer))
	{
		if (la_gate_allows_pin(local))
			la_budget_take_pin(budget, local);
		else
		{
			ReleaseBuffer(map->buffer);
			map->buffer = InvalidBuffer;
		}
	}
	else if (was_pinned && !BufferIsValid(map->buffer))
		la_budget_return_pin(budget, local);
	return visible;
}

void
la_issue_release_map(LaMapPage *map, LaBudget *budget)
{
	if (!BufferIsValid(map->buffer))
		return;
	la_budget_return_pin(budget, BufferIsLocal(map->buffer));
	ReleaseBuffer(map->buffer);
	map->buffer = InvalidBuffer;
}

/*
 * If the block is in shared buffers at a place that is known, or has been found, pin it there as
 * *current.
 */
static bool
turn_to_recent(Relation rel, BlockNumber block, Buffer recent, bool counted, Buffer *current)
{
	if (!BufferIsValid(recent) && !RelationUsesLocalBuffers(rel))
		recent = la_bufferhint_find(rel, block);
	if (!pin_recent(rel, block, recent, counted))
		return false;
	la_issue_replace_current(rel, recent, current);
	return true;
}

static LaReadResult
turn_to_read(Relation rel, BlockNumber block, bool timed, Buffer *current)
{
	Buffer		previous = *current;
	LaReadResult result = {false, 0.0};
	int64		before = la_issue_blocks_read();
	double		start = timed ? la_issue_clock_us() : 0.0;

	*current = ReleaseAndReadBuffer(previous, rel, block);
	result.missed = la_issue_blocks_read() != before;
	if (timed && result.missed)
		result.us = la_issue_clock_us() - start;
	if (!RelationUsesLocalBuffers(rel))
		la_bufferhint_note(rel, block, *current);
	if (*current != previous)
		prune(rel, *current);
	return result;
}

/* What read_in_guard() is to do. */
typedef struct GuardedRead
{
	Relation	rel;
	BlockNumber block;
	bool		timed;
	LaReadResult result;
} GuardedRead;

static void
read_in_guard(void *arg)
{
	GuardedRead *read = arg;
	Buffer		buffer = InvalidBuffer;

	read->result = turn_to_read(read->rel, read->block, read->timed, &buffer);
	ReleaseBuffer(buffer);
}

static LaReadResult
read_for_server(Relation rel, BlockNumber block, Buffer recent, bool timed, bool counted)
{
	GuardedRead read = {rel, block, timed, {false, 0.0}};
	Buffer		buffer = InvalidBuffer;

	if (turn_to_recent(rel, block, recent, counted, &buffer))
		ReleaseBuffer(buffer);
	else
		(void) la_attempt_read(read_in_guard, &read);
	return read.result;
}

/*
 * Read the block into *current, the scan's pinned buffer; current: NULL if it is read for the
 * server only, which raises the error if that fails.  recent: where it was found, or
 * InvalidBuffer.  timed: the time is wanted, as reading the clock is not free.  counted: the
 * server has counted this use of the block already.
 */
LaReadResult
la_issue_read(Relation rel, BlockNumber block, Buffer recent, bool timed,
			  bool counted, Buffer *current)
{
	LaReadResult result = {false, 0.0};

	if (current == NULL)
		return read_for_server(rel, block, recent, timed, counted);
	if (BufferIsValid(*current) && BufferGetBlockNumber(*current) == block)
		return result;
	if (turn_to_recent(rel, block, recent, counted, current))
		return result;
	return turn_to_read(rel, block, timed, current);
}
