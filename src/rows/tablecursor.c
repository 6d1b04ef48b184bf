/*
 * tablecursor.c
 *	  The rows that a sequential, bitmap heap or TID range scan will come to.
 *
 * The scan looks at a page as a whole before it returns its first row: rs_vistuples has the visible
 * rows.  The rows to come are those behind the current one, and those of the next pages, up to
 * MAX_PAGES, of which the visible ones are found here:
 *
 *		page of the current row       next pages, if they may be looked at
 *		[ done | row | row | row ]    [ row | row | row ]  [ row | ...
 *
 * Next pages
 *	Those of a TID range end with it.  Those of a bitmap heap scan are known where the cursor may
 *	have an iterator of its own over the bitmap: the scan has one, and the server two of them in
 *	earlier releases.  It begins when pages are first asked for, and has to end before the scan
 *	frees the bitmap, that is when the scan is rescanned or ends.  The bitmap of a parallel scan is
 *	in shared memory, and which of its pages a process will come to is not known.  Of a parallel
 *	sequential scan they are a guess, which is good for pages that are cached.
 *
 * All versions
 *	A scan that returns all versions of rows (VACUUM FULL: SnapshotAny) has no list of those on its
 *	page, as it asks the page for the next one each time.  Here the list is made as that of any
 *	other page is.
 *
 * Reads
 *	A page that is not cached is read if it is the next one, and the server does not itself read
 *	ahead of the scan (until 16).  A cursor that reads on reads others, as the scan will in a
 *	moment: of a sequential scan in the order in which the kernel reads ahead, and in a ring of
 *	buffers no more than RING_PAGES, so that none leaves it before its turn (under direct I/O the
 *	kernel does not read ahead); and until 17 the nearer half of the pages of which a bitmap heap
 *	scan has advised the kernel.  The farther rows are known, the more of their blocks are
 *	neighbours, and the fewer requests read them (window/lot.c).
 *
 * Invariants
 *	- These are hints.  Visibility is checked as the scan will, but nothing is kept of it.
 *	- No buffer is pinned or locked between calls.
 *
 * src/rows/tablecursor.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"

#include "attach/descriptors.h"
#include "base/compat.h"
#include "base/compat_bitmap.h"
#include "rows/rows.h"
#include "window/window.h"

#define MAX_PAGES	64
#define RING_PAGES	12			/* half of 256 kB, and some less */

/* The rows of a page that the scan will come to. */
struct LaTablePage
{
	BlockNumber block;
	int			n;				/* in a bitmap, -1: all rows may be meant */
	OffsetNumber rows[MaxHeapTuplesPerPage];
};

/* Where the cursor is in a bitmap. */
struct LaBitmapPlace
{
	LaTbmIterator *iterator;	/* or NULL */
	bool		at_end;
	LaTablePage page;
};

static inline HeapScanDesc
heap_scan(const LaTableCursor *c)
{
	return la_heap_scan(*c->scan, c->table);
}

static inline bool
is_tid_range(const LaTableCursor *c)
{
	return ((*c->scan)->rs_flags & SO_TYPE_TIDRANGESCAN) != 0;
}

/* ---- pages ------------------------------------------------------------------------- */

/* What the bitmap says of the first page behind this block, which never decreases; or NULL. */
static const LaTablePage *
bitmap_after(LaTableCursor *c, BlockNumber block)
{
	struct LaBitmapPlace *place = c->in_bitmap;
	LaTablePage *page;

	if (c->bitmap->pstate != NULL || c->bitmap->tbm == NULL)
		return NULL;
	if (place == NULL)
		place = c->in_bitmap = MemoryContextAllocZero(c->context, sizeof(*place));
	page = &place->page;
	if (place->iterator == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(c->context);

		place->iterator = la_tbm_begin(c->bitmap->tbm);
		MemoryContextSwitchTo(old);
		place->at_end = !la_tbm_next(place->iterator, &page->block, page->rows, &page->n);
	}
	while (!place->at_end && page->block <= block)
		place->at_end = !la_tbm_next(place->iterator, &page->block, page->rows, &page->n);
	return place->at_end || page->block >= heap_scan(c)->rs_nblocks ? NULL : page;
}

/* The block that the scan turns to after this one, or InvalidBlockNumber. */
static BlockNumber
block_after(const LaTableCursor *c, BlockNumber block)
{
	const HeapScanDescData *scan = heap_scan(c);
	BlockNumber next = block + 1 < scan->rs_nblocks ? block + 1 : 0;

	if ((scan->rs_base.rs_flags & SO_TYPE_BITMAPSCAN) != 0 ||
		(scan->rs_base.rs_parallel != NULL && c->reads_on))
		return InvalidBlockNumber;
	if (is_tid_range(c))
		return next > 0 && block < ItemPointerGetBlockNumberNoCheck(la_tidrange_last(*c->scan)) ?
			next : InvalidBlockNumber;
	return scan->rs_numblocks != InvalidBlockNumber || next == scan->rs_startblock ?
		InvalidBlockNumber : next;
}

/* May the page that would be the next one to be known be looked at now? */
static bool
may_look(const LaTableCursor *c, BlockNumber block)
{
	const HeapScanDescData *scan = heap_scan(c);
	Buffer		recent;

	if (RelationUsesLocalBuffers(c->table))
		return false;
	if (la_issue_is_cached(c->table, block, &recent))
		return (la_buffer_state(recent) & BM_VALID) != 0;
	if (c->bitmap != NULL)
		return c->npages < la_bitmap_pages_advised(c->bitmap) / 2;
	if (!c->reads_on || la_direct_io())
		return c->npages == 0 && !la_table_scans_read_ahead && scan->rs_base.rs_parallel == NULL;
	return scan->rs_strategy == NULL || c->npages < RING_PAGES;
}

/* The rows of a page that is pinned. */
static void
find_rows(const LaTableCursor *c, LaTablePage *p, const LaTablePage *in_bitmap, Buffer buffer)
{
	Snapshot	snapshot = (*c->scan)->rs_snapshot;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (in_bitmap == NULL || in_bitmap->n < 0)
		p->n = la_heappage_visible(c->table, snapshot, buffer, p->rows);
	else
	{
		memcpy(p->rows, in_bitmap->rows, in_bitmap->n * sizeof(OffsetNumber));
		p->n = la_heappage_versions(c->table, snapshot, buffer, p->rows, in_bitmap->n);
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
}

/* One more page becomes known, behind the last one.  Returns false if it is not. */
static bool
add_page(LaTableCursor *c)
{
	HeapScanDesc scan = heap_scan(c);
	BlockNumber last = c->npages == 0 ? scan->rs_cblock :
		c->pages[(c->first_page + c->npages - 1) % MAX_PAGES].block;
	const LaTablePage *in_bitmap = NULL;
	BlockNumber block;
	LaTablePage *p;
	Buffer		buffer;

	if (c->npages == MAX_PAGES)
		return false;
	if (c->bitmap == NULL)
		block = block_after(c, last);
	else
	{
		in_bitmap = bitmap_after(c, last);
		block = in_bitmap == NULL ? InvalidBlockNumber : in_bitmap->block;
	}
	if (block == InvalidBlockNumber || !may_look(c, block))
		return false;
	if (c->pages == NULL)
		c->pages = MemoryContextAlloc(c->context, MAX_PAGES * sizeof(LaTablePage));
	p = &c->pages[(c->first_page + c->npages) % MAX_PAGES];
	p->block = block;
	buffer = ReadBufferExtended(c->table, MAIN_FORKNUM, block, RBM_NORMAL, scan->rs_strategy);
	find_rows(c, p, in_bitmap, buffer);
	ReleaseBuffer(buffer);
	c->npages++;
	return true;
}

/* Forget pages that the scan has come to. */
static void
drop_pages(LaTableCursor *c)
{
	BlockNumber here = heap_scan(c)->rs_cblock;
	BlockNumber next = block_after(c, here);

	while (c->npages > 0 && (c->bitmap != NULL ? c->pages[c->first_page].block <= here :
							 c->pages[c->first_page].block != next))
	{
		c->first_page = (c->first_page + 1) % MAX_PAGES;
		c->npages--;
	}
}

/* ---- rows -------------------------------------------------------------------------- */

/* All versions: those on the page that the scan is on, and the place of the current one. */
static int
find_place(LaTableCursor *c)
{
	HeapScanDesc scan = heap_scan(c);
	OffsetNumber current = ItemPointerGetOffsetNumberNoCheck(&scan->rs_ctup.t_self);

	if (c->here == NULL || c->here->block != scan->rs_cblock)
	{
		if (c->here == NULL)
			c->here = MemoryContextAlloc(c->context, sizeof(LaTablePage));
		find_rows(c, c->here, NULL, scan->rs_cbuf);
		c->here->block = scan->rs_cblock;
		c->place = 0;
	}
	while (c->place < c->here->n && c->here->rows[c->place] < current)
		c->place++;
	return c->place;
}

/* The rows on the page that the scan is on.  Sets the place of the current one. */
static const OffsetNumber *
rows_here(LaTableCursor *c, int *place, int *n)
{
	HeapScanDesc scan = heap_scan(c);
	uint32		flags = scan->rs_base.rs_flags;

	if ((flags & SO_ALLOW_PAGEMODE) == 0)
	{
		*place = find_place(c);
		*n = c->here->n;
		return c->here->rows;
	}
	/* the index is behind the row that a bitmap heap scan has returned */
	*place = (int) scan->rs_cindex - ((flags & SO_TYPE_BITMAPSCAN) == 0 ? 0 : 1);
	*n = (int) scan->rs_ntuples;
	return scan->rs_vistuples;
}

static bool
set_row(LaComingRow *row, BlockNumber block, OffsetNumber offset, Buffer buffer)
{
	ItemPointerSet(&row->tid, block, offset);
	row->id = (uint64) block << 16 | offset;
	row->buffer = buffer;
	row->may_read = true;
	return true;
}

/* The n-th row behind the current one, as far as the table's pages go. */
static bool
find_coming(LaTableCursor *c, int n, LaComingRow *row)
{
	HeapScanDesc scan = heap_scan(c);
	int			place;
	int			nrows;
	const OffsetNumber *rows = rows_here(c, &place, &nrows);

	place += n;
	if (place < nrows)
		return place >= 0 && set_row(row, scan->rs_cblock, rows[place], scan->rs_cbuf);
	place -= nrows;
	drop_pages(c);
	for (int i = 0; i < c->npages || add_page(c); i++)
	{
		const LaTablePage *p = &c->pages[(c->first_page + i) % MAX_PAGES];

		if (place < p->n)
			return set_row(row, p->block, p->rows[place], InvalidBuffer);
		place -= p->n;
	}
	return false;
}

/* LaComing.peek */
bool
la_tablecursor_peek(void *cursor, int n, LaComingRow *row)
{
	LaTableCursor *c = cursor;

	return *c->scan != NULL && BufferIsValid(heap_scan(c)->rs_cbuf) && find_coming(c, n, row) &&
		(!is_tid_range(c) || ItemPointerCompare(&row->tid, la_tidrange_last(*c->scan)) <= 0);
}

/* The scan begins anew, or ends. */
void
la_tablecursor_restart(LaTableCursor *c)
{
	c->npages = 0;
	if (c->in_bitmap == NULL)
		return;
	if (c->in_bitmap->iterator != NULL)
		la_tbm_end(c->in_bitmap->iterator);
	c->in_bitmap->iterator = NULL;
}
