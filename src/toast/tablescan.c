/*
 * tablescan.c
 *	  Between a sequential, bitmap heap or TID range scan and heapam.
 *
 *		executor, COPY TO ...:	table_scan_getnextslot(scan), table_scan_bitmap_next_tuple(scan)
 *						| scan->rs_rd->rd_tableam->scan_getnextslot
 *						v
 *		shadow Relation (a copy, this scan's own) ---> our routine ---> heapam's
 *						|
 *						+--> the follower looks at the rows to come
 *
 * As an index scan's descriptor is pointed at a copy of the index (scan/shim.c), a table scan's is
 * pointed at a copy of the table's descriptor, whose routine is ours, and back at the table around
 * every call of heapam.  An error in heapam leaves the table there; no scan goes on after an error.
 * The copy is taken out for good when the scan ends, or when there is nothing to follow it for.
 * Until 17 the node of a bitmap heap scan uses the Relation in the descriptor for its prefetch, too
 * (base/compat_bitmap.h).
 *
 * The rows to come are those that heapam has found visible on the page that the scan is on, and
 * those of the next pages, up to MAX_PAGES; of these the visible ones are found here.  In a
 * parallel scan the next pages are not known; those of a TID range end with it.
 *
 * A scan that returns all versions of rows (VACUUM FULL: SnapshotAny) has no list of those on its
 * page, as it asks the page for the next one each time.  Here the list is made as that of any other
 * page is.  Of the versions, those that the statement's own snapshot sees have values that will be
 * fetched, and are sure to be there still (rewrite.c).
 *
 * Pages that are not cached are read for it, as the scan will in a moment: of a sequential scan in
 * the order in which the kernel reads ahead, and in a ring of buffers no more than RING_PAGES, so
 * that none leaves it before its turn (under direct I/O, where the kernel does not read ahead, only
 * the next one, and until 16); and until 17 the nearer half of the pages of which a bitmap
 * heap scan has advised the kernel.  The farther rows are known, the more of their blocks are
 * neighbours, and the fewer requests read them (window/lot.c).
 *
 * src/toast/tablescan.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "storage/buf_internals.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "attach/descriptors.h"
#include "base/compat.h"
#include "base/compat_bitmap.h"
#include "rows/rows.h"
#include "toast/toast_int.h"
#include "window/window.h"

#define MAX_PAGES	64
#define RING_PAGES	12			/* half of 256 kB, and some less */

/* The rows of a page that the scan will come to. */
typedef struct ComingPage
{
	BlockNumber block;
	int			n;
	OffsetNumber rows[MaxHeapTuplesPerPage];
} ComingPage;

typedef struct TableScan
{
	RelationData shadow;		/* must be first: scan->rs_rd points here */
	Relation	real;
	TableScanDesc scan;
	LaFollower *follower;
	MemoryContext context;
	MemoryContextCallback callback;
	LaBitmapPages *bitmap;		/* of a bitmap heap scan, or NULL */
	ComingPage *pages;			/* MAX_PAGES, as a ring, or NULL */
	int			first_page;
	int			npages;
	ComingPage *here;			/* the page that the scan is on, if it returns
								 * all versions; or NULL */
	int			place;			/* of the current row on it */
	bool		owns_context;
} TableScan;

/* Ours, for all scans. */
static TableAmRoutine routine;

#define heap_scan(s)	la_heap_scan((s)->scan, (s)->real)

/* ---- rows to come -------------------------------------------------------------- */

static inline bool
is_tid_range(const TableScan *s)
{
	return (s->scan->rs_flags & SO_TYPE_TIDRANGESCAN) != 0;
}

/* The block that the scan turns to after this one, or InvalidBlockNumber. */
static BlockNumber
block_after(const TableScan *s, BlockNumber block)
{
	const HeapScanDescData *scan = heap_scan(s);

	if (scan->rs_base.rs_parallel != NULL)
		return InvalidBlockNumber;
	if (is_tid_range(s))
		return block + 1 < scan->rs_nblocks &&
			block < ItemPointerGetBlockNumberNoCheck(la_tidrange_last(s->scan)) ?
			block + 1 : InvalidBlockNumber;
	if (scan->rs_numblocks != InvalidBlockNumber)
		return InvalidBlockNumber;
	return la_heappage_after(scan, block);
}

/* May the page that would be the next one to be known be looked at now? */
static bool
may_look(const TableScan *s, BlockNumber block)
{
	Buffer		recent;

	if (la_issue_is_cached(s->real, block, &recent))
		return (la_buffer_state(recent) & BM_VALID) != 0;
	if (s->bitmap != NULL)
		return la_bitmappages_is_advised(s->bitmap, s->npages);
	if (la_direct_io())
		return s->npages == 0 && !la_table_scans_read_ahead;
	return heap_scan(s)->rs_strategy == NULL || s->npages < RING_PAGES;
}

/* The rows of a page that is pinned and locked. */
static void
find_rows(TableScan *s, ComingPage *p, const LaBitmapPage *in_bitmap, Buffer buffer)
{
	if (in_bitmap == NULL || in_bitmap->n < 0)
		p->n = la_heappage_visible(s->real, s->scan->rs_snapshot, buffer, p->rows);
	else
	{
		memcpy(p->rows, in_bitmap->offsets, in_bitmap->n * sizeof(OffsetNumber));
		p->n = la_heappage_versions(s->real, s->scan->rs_snapshot, buffer, p->rows, in_bitmap->n);
	}
}

/*
 * The block that the scan turns to after this one, or InvalidBlockNumber; of a bitmap heap scan,
 * with what the bitmap says of it.
 */
static BlockNumber
page_after(TableScan *s, BlockNumber block, const LaBitmapPage **in_bitmap)
{
	*in_bitmap = NULL;
	if (s->bitmap == NULL)
		return block_after(s, block);
	*in_bitmap = la_bitmappages_after(s->bitmap, block);
	if (*in_bitmap == NULL || (*in_bitmap)->block >= heap_scan(s)->rs_nblocks)
		return InvalidBlockNumber;
	return (*in_bitmap)->block;
}

/* One more page becomes known, behind the last one.  Returns false if it is not. */
static bool
add_page(TableScan *s)
{
	BlockNumber here = heap_scan(s)->rs_cblock;
	BlockNumber last = s->npages == 0 ? here :
		s->pages[(s->first_page + s->npages - 1) % MAX_PAGES].block;
	const LaBitmapPage *in_bitmap;
	BlockNumber block;
	ComingPage *p;
	Buffer		buffer;

	if (s->npages == MAX_PAGES)
		return false;
	block = page_after(s, last, &in_bitmap);
	if (block == InvalidBlockNumber || !may_look(s, block))
		return false;
	if (s->pages == NULL)
		s->pages = MemoryContextAlloc(s->context, MAX_PAGES * sizeof(ComingPage));
	p = &s->pages[(s->first_page + s->npages) % MAX_PAGES];
	p->block = block;
	buffer = ReadBufferExtended(s->real, MAIN_FORKNUM, block, RBM_NORMAL,
								heap_scan(s)->rs_strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	find_rows(s, p, in_bitmap, buffer);
	UnlockReleaseBuffer(buffer);
	s->npages++;
	return true;
}

/* Forget pages that the scan has come to. */
static void
drop_pages(TableScan *s)
{
	BlockNumber here = heap_scan(s)->rs_cblock;
	BlockNumber next = s->bitmap == NULL ? block_after(s, here) : InvalidBlockNumber;

	while (s->npages > 0 && (s->bitmap != NULL ? s->pages[s->first_page].block <= here :
							 s->pages[s->first_page].block != next))
	{
		s->first_page = (s->first_page + 1) % MAX_PAGES;
		s->npages--;
	}
}

static void
set_row(LaComingRow *row, BlockNumber block, OffsetNumber offset, Buffer buffer)
{
	ItemPointerSet(&row->tid, block, offset);
	row->id = (uint64) block << 16 | offset;
	row->buffer = buffer;
	row->may_read = true;
}

/* All versions of rows on the page that the scan is on, and the place of the current one. */
static int
find_place(TableScan *s)
{
	HeapScanDesc scan = heap_scan(s);
	OffsetNumber current = ItemPointerGetOffsetNumberNoCheck(&scan->rs_ctup.t_self);

	if (s->here->block != scan->rs_cblock)
	{
		LockBuffer(scan->rs_cbuf, BUFFER_LOCK_SHARE);
		find_rows(s, s->here, NULL, scan->rs_cbuf);
		LockBuffer(scan->rs_cbuf, BUFFER_LOCK_UNLOCK);
		s->here->block = scan->rs_cblock;
		s->place = 0;
	}
	while (s->place < s->here->n && s->here->rows[s->place] < current)
		s->place++;
	return s->place;
}

/* The rows on the page that the scan is on.  Sets the place of the current one. */
static const OffsetNumber *
rows_here(TableScan *s, int *place, int *n)
{
	HeapScanDesc scan = heap_scan(s);

	if (s->here != NULL)
	{
		*place = find_place(s);
		*n = s->here->n;
		return s->here->rows;
	}
	/* the index is behind the row that a bitmap heap scan has returned */
	*place = (int) scan->rs_cindex - (s->bitmap == NULL ? 0 : 1);
	*n = (int) scan->rs_ntuples;
	return scan->rs_vistuples;
}

/* The n-th row behind the current one, as far as the table's pages go. */
static bool
find_coming(TableScan *s, int n, LaComingRow *row)
{
	HeapScanDesc scan = heap_scan(s);
	int			place;
	int			nrows;
	const OffsetNumber *rows;

	if (!BufferIsValid(scan->rs_cbuf))
		return false;
	rows = rows_here(s, &place, &nrows);
	place += n;
	if (place < nrows)
	{
		set_row(row, scan->rs_cblock, rows[place], scan->rs_cbuf);
		return true;
	}
	place -= nrows;
	drop_pages(s);
	for (int i = 0; i < s->npages || add_page(s); i++)
	{
		const ComingPage *p = &s->pages[(s->first_page + i) % MAX_PAGES];

		if (place < p->n)
		{
			set_row(row, p->block, p->rows[place], InvalidBuffer);
			return true;
		}
		place -= p->n;
	}
	return false;
}

/* LaComing.peek */
static bool
peek(void *arg, int n, LaComingRow *row)
{
	TableScan  *s = arg;

	return find_coming(s, n, row) &&
		(!is_tid_range(s) || ItemPointerCompare(&row->tid, la_tidrange_last(s->scan)) <= 0);
}

/* ---- our routine ------------------------------------------------------------------ */

/* Take the copy out. */
static void
leave(TableScan *s)
{
	s->scan->rs_rd = s->real;
	s->follower = NULL;
	la_shadow_leave(&s->shadow);
	if (s->bitmap != NULL)
		la_bitmappages_restart(s->bitmap);
}

/* ... and put in again, after a call of heapam. */
static void
enter(TableScan *s)
{
	la_shadow_enter(&s->shadow, s->real);
	s->scan->rs_rd = &s->shadow;
}

static void
on_context_reset(void *arg)
{
	la_shadow_leave(&((TableScan *) arg)->shadow);
}

/* The scan ends, or is followed no more. */
static void
forget(TableScan *s)
{
	leave(s);
	if (s->owns_context)
		MemoryContextDelete(s->context);
}

/* heapam has looked for the next row. */
static void
follow_row(TableScan *s, ScanDirection direction, bool found)
{
	enter(s);
	if (!ScanDirectionIsForward(direction))
		s->follower->clear(s->follower);
	else if (found && !la_follow(s->follower))
		forget(s);
}

static bool
shim_getnextslot(TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot)
{
	TableScan  *s = (TableScan *) scan->rs_rd;
	bool		found;

	scan->rs_rd = s->real;
	found = s->real->rd_tableam->scan_getnextslot(scan, direction, slot);
	follow_row(s, direction, found);
	return found;
}

static bool
shim_getnextslot_tidrange(TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot)
{
	TableScan  *s = (TableScan *) scan->rs_rd;
	bool		found;

	scan->rs_rd = s->real;
	found = s->real->rd_tableam->scan_getnextslot_tidrange(scan, direction, slot);
	follow_row(s, direction, found);
	return found;
}

static void
shim_set_tidrange(TableScanDesc scan, ItemPointer first, ItemPointer last)
{
	TableScan  *s = (TableScan *) scan->rs_rd;

	scan->rs_rd = s->real;
	s->real->rd_tableam->scan_set_tidrange(scan, first, last);
	enter(s);
}

/* Until 17: the scan turns to a page. */
static bool
shim_bitmap_next_block(TableScanDesc scan, struct TBMIterateResult *page)
{
	TableScan  *s = (TableScan *) scan->rs_rd;
	bool		found;

	scan->rs_rd = s->real;
	found = la_bitmap_next_block(s->real, scan, page);
	enter(s);
	return found;
}

static bool
shim_bitmap_next_tuple(LA_BITMAP_NEXT_ARGS)
{
	TableScan  *s = (TableScan *) scan->rs_rd;
	bool		found;

	scan->rs_rd = s->real;
	found = s->real->rd_tableam->scan_bitmap_next_tuple(LA_BITMAP_NEXT_PASS);
	follow_row(s, ForwardScanDirection, found);
	return found;
}

static void
shim_rescan(TableScanDesc scan, struct ScanKeyData *key, bool set_params, bool allow_strat,
			bool allow_sync, bool allow_pagemode)
{
	TableScan  *s = (TableScan *) scan->rs_rd;

	s->follower->clear(s->follower);
	s->npages = 0;
	if (s->bitmap != NULL)
		la_bitmappages_restart(s->bitmap);
	scan->rs_rd = s->real;
	s->real->rd_tableam->scan_rescan(scan, key, set_params, allow_strat, allow_sync,
									 allow_pagemode);
	enter(s);
}

static void
shim_end(TableScanDesc scan)
{
	TableScan  *s = (TableScan *) scan->rs_rd;
	Relation	real = s->real;

	s->follower->end(s->follower);
	forget(s);
	real->rd_tableam->scan_end(scan);
}

static void
init_routine(const TableAmRoutine *heapam)
{
	if (routine.type == T_TableAmRoutine)
		return;
	routine = *heapam;
	routine.scan_getnextslot = shim_getnextslot;
	routine.scan_getnextslot_tidrange = shim_getnextslot_tidrange;
	routine.scan_set_tidrange = shim_set_tidrange;
	la_bitmap_set_block_function(&routine, shim_bitmap_next_block);
	routine.scan_bitmap_next_tuple = shim_bitmap_next_tuple;
	routine.scan_rescan = shim_rescan;
	routine.scan_end = shim_end;
}

/*
 * Have the rows of a scan of a heap table followed, whose values may be read ahead.  The context
 * lives as long as the scan.  node is NULL where there is no plan; desc, where it is the table's.
 */
void
la_tablescan_follow(TableScanDesc scan, PlanState *node, const LaToastColumns *columns,
					TupleDesc desc, MemoryContext context)
{
	TableScan  *s;
	bool		all_versions = scan->rs_snapshot == SnapshotAny && ActiveSnapshotSet();
	LaValueScan values = {
		.node = node,
		.table = scan->rs_rd,
		.desc = desc,
		.snapshot = all_versions ? GetActiveSnapshot() : scan->rs_snapshot,
		.versions = true,
		.strategy = &la_heap_scan(scan, scan->rs_rd)->rs_strategy,
		.columns = *columns,
		.context = context
	};

	if ((scan->rs_flags & SO_ALLOW_PAGEMODE) == 0 && !all_versions)
		return;
	init_routine(scan->rs_rd->rd_tableam);

	/*
	 * a statement without a plan may scan many tables, and EXPLAIN does not
	 * ask
	 */
	if (node == NULL)
		values.context = context = AllocSetContextCreate(context, "pg_lookahead table scan",
														 ALLOCSET_SMALL_SIZES);
	s = MemoryContextAllocZero(context, sizeof(TableScan));
	s->owns_context = node == NULL;
	memcpy(&s->shadow, scan->rs_rd, sizeof(RelationData));
	s->shadow.rd_tableam = &routine;
	s->shadow.rd_smgr = NULL;
	s->real = scan->rs_rd;
	s->scan = scan;
	s->context = context;
	if (node != NULL && IsA(node, BitmapHeapScanState))
		s->bitmap = la_bitmappages_create((BitmapHeapScanState *) node, context);
	if (all_versions)
	{
		s->here = MemoryContextAlloc(context, sizeof(ComingPage));
		s->here->block = InvalidBlockNumber;
	}
	s->callback.func = on_context_reset;
	s->callback.arg = s;
	MemoryContextRegisterResetCallback(context, &s->callback);
	values.coming.arg = s;
	values.coming.peek = peek;
	s->follower = la_valueahead_create(&values);
	enter(s);
}
