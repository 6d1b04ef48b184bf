/*
 * range.c
 *	  Leaf pages of a btree index that a bitmap index scan is going to read.
 *
 * btgetbitmap() adds the entries of one leaf page after the other to the bitmap.  It calls nothing
 * between two pages, so its loop is made here, by the functions that it calls:
 *
 *		_bt_first -> all of the leaf page -> _bt_next -> all of the leaf page -> ...
 *										  ^ another page: step()
 *
 * nbtree descends, reads pages, checks keys, takes predicate locks and decides when the scan ends.
 * The leaf pages that follow are known from their parents (btree/downlinks.c):
 *
 *	STEP	Each step to another leaf page is timed, and is evidence (evidence.c) unless that page
 *		is the next block of the file: the kernel reads these ahead.
 *	AHEAD	When reads are found to be waits, up to max_distance leaf pages are kept advised.
 *		Pages that follow each other in the file are left to the kernel from the RUN-th on.
 *	LEAP	From 17 on, a scan with "= ANY" or skipped columns may descend again, to a page farther
 *		on, and what was foreseen is not read.  Such a scan begins with FIRST_DISTANCE pages; the
 *		number doubles with each page that was foreseen, and is FIRST_DISTANCE again after a leap.
 *		Before 17, each value of an array is a scan of its own: they are left to btgetbitmap().
 *	LAST	On the scan's last page, and on the last one before it descends again, nothing is
 *		foreseen: nbtree has found there that no page to the right is wanted.
 *
 * src/bitmap/range.c
 */
#include "postgres.h"

#include "access/nbtree.h"

#include "attach/descriptors.h"
#include "base/compat.h"
#include "base/compat_btree.h"
#include "bitmap/evidence.h"
#include "bitmap/memory.h"
#include "bitmap/range.h"
#include "btree/downlinks.h"
#include "window/issue.h"

#define RUN				3
#define FIRST_DISTANCE	2
#define NO_PAGE			(InvalidBlockNumber - 1)	/* nobody's neighbour */

typedef struct LaRange
{
	LaDownlinks *downlinks;
	int			distance;		/* pages ahead, at most */
	BlockNumber last;			/* page foreseen last */
	int			run;			/* pages that followed each other */
	uint64		head;			/* foreseen pages: a ring */
	uint64		tail;
	BlockNumber foreseen[FLEXIBLE_ARRAY_MEMBER];
} LaRange;

bool
la_range_is_stock(const IndexAmRoutine *am)
{
	return am->amgetbitmap == btgetbitmap;
}

static int
first_distance(LaBitmapScan *bs)
{
	BTScanOpaque so = la_btree_scan(bs->scan);

	return so->numArrayKeys != 0 ? Min(FIRST_DISTANCE, bs->config.max_distance) :
		bs->config.max_distance;
}

/* What looking ahead needs; NULL if there is no memory for it. */
static LaRange *
create(LaBitmapScan *bs)
{
	Size		size = offsetof(LaRange, foreseen) +
		bs->config.max_distance * sizeof(BlockNumber);
	LaRange    *r;

	if (!la_budget_has(&bs->budget, size + la_downlinks_size()))
		return NULL;
	la_budget_take(&bs->budget, la_downlinks_size());
	r = la_memory_alloc(bs, size);
	r->downlinks = la_downlinks_create(bs->real, bs->scan, la_memory_context(bs));
	return r;
}

/* Nothing is foreseen: a scan has come to its first page, or begins to look ahead. */
static void
forget(LaBitmapScan *bs)
{
	LaRange    *r = bs->range;

	if (r == NULL)
		return;
	la_downlinks_restart(r->downlinks);
	r->head = r->tail;
	r->run = 0;
	r->last = NO_PAGE;
	r->distance = first_distance(bs);
}

/* Has the page been foreseen?  Forget it and those before it, or all. */
static bool
consume(LaBitmapScan *bs, BlockNumber page)
{
	LaRange    *r = bs->range;

	for (uint64 i = r->head; i < r->tail; i++)
	{
		if (r->foreseen[i % bs->config.max_distance] != page)
			continue;
		r->head = i + 1;
		r->distance = Min(r->distance * 2, bs->config.max_distance);
		return true;
	}
	return false;
}

/* AHEAD */
static void
look_ahead(LaBitmapScan *bs, BlockNumber page)
{
	LaRange    *r = bs->range;

	if (!consume(bs, page) && r->head < r->tail)
		forget(bs);				/* LEAP */
	if (!la_downlinks_seek(r->downlinks, page, ForwardScanDirection))
		return;
	while (r->tail - r->head < (uint64) r->distance)
	{
		BlockNumber next = la_downlinks_next(r->downlinks);

		if (next == InvalidBlockNumber)
			break;
		r->run = next == r->last + 1 ? r->run + 1 : 0;
		r->last = next;
		r->foreseen[r->tail++ % bs->config.max_distance] = next;
		if (r->run < RUN || bs->config.force)
			(void) la_evidence_advise(bs, next);
	}
	la_counters_note_distance(&bs->counters, r->tail - r->head);
}

/* STEP: the scan has come to a leaf page.  us: what that took, if a read was timed. */
static void
step(LaBitmapScan *bs, BlockNumber *page, bool timed, double us)
{
	BTScanOpaque so = la_btree_scan(bs->scan);
	BlockNumber previous = *page;

	*page = so->currPos.currPage;
	if (previous == NO_PAGE)
		forget(bs);
	if (timed && *page != previous + 1)
		la_evidence_note(bs, us);
	if (!so->currPos.moreRight || la_bt_descent_is_next(so))
		return;					/* LAST */
	if (!la_evidence_arms(bs) || !la_evidence_may_read())
		return;
	if (bs->range == NULL)
	{
		bs->range = create(bs);
		forget(bs);
	}
	if (bs->range != NULL)
		look_ahead(bs, *page);
}

/* Find the first entry, or those of the next leaf page.  Returns false at the end. */
static bool
next_page(LaBitmapScan *bs, bool first, BlockNumber *page)
{
	int64		reads = la_issue_blocks_read();
	bool		timed = la_evidence_is_observing(bs);
	double		start = timed ? la_issue_clock_us() : 0.0;
	bool		missed;

	if (!(first ? _bt_first(bs->scan, ForwardScanDirection) :
		  _bt_next(bs->scan, ForwardScanDirection)))
		return false;
	missed = timed && la_issue_blocks_read() != reads;
	step(bs, page, missed, missed ? la_issue_clock_us() - start : 0.0);
	return true;
}

/* Add all entries of the leaf page, from the current one on, to the bitmap. */
static int64
add_page(BTScanOpaque so, TIDBitmap *tbm)
{
	BTScanPosData *pos = &so->currPos;
	int64		n = pos->lastItem - pos->itemIndex + 1;

	for (int i = pos->itemIndex; i <= pos->lastItem; i++)
		tbm_add_tuples(tbm, &pos->items[i].heapTid, 1, false);
	pos->itemIndex = pos->lastItem;
	return n;
}

/* Do what btgetbitmap() does, with look-ahead where there is evidence. */
int64
la_range_getbitmap(LaBitmapScan *bs, TIDBitmap *tbm)
{
	BTScanOpaque so = la_btree_scan(bs->scan);
	BlockNumber page = NO_PAGE;
	int64		ntids = 0;

	/* before 19, another extension may have exchanged it in the index's entry */
	if (!la_range_is_stock(bs->real->rd_indam) || !bs->config.advice_works ||
		la_bt_arrays_are_scans(so))
		return bs->real->rd_indam->amgetbitmap(bs->scan, tbm);

	la_evidence_begin(bs);
	do
	{
		bool		found = next_page(bs, true, &page);

		while (found)
		{
			ntids += add_page(so, tbm);
			found = next_page(bs, false, &page);
		}
	} while (la_bt_begin_next_scan(bs->scan, so));
	la_evidence_end(bs);
	return ntids;
}
