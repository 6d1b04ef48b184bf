/*
 * leafahead.c
 *	  Reads of the leaf pages that a scan of a stock btree index will come to.
 *
 * nbtree reads a leaf page when the scan comes to it, and waits.  Where the heap blocks are cached,
 * or none is visited (index-only scans of all-visible tables, the index side of a bitmap scan),
 * these are the only waits of a scan.  So the room that calls nbtree reports each step from one
 * leaf page to another:
 *
 *		la_leafahead_begin_step()		the clock is read
 *		amgettuple, or _bt_next			nbtree reads the page
 *		la_leafahead_end_step()			evidence for window/leaf_policy.c; if that is armed,
 *										the reads of the pages to come are started
 *
 * Their block numbers are taken from the pages' parents (btree/downlinks.c):
 *
 *		head							 tail
 *		+--------+---------+--------+--------+
 *		| issued | control | issued | cached |		foreseen pages, as nbtree will read them
 *		+--------+---------+--------+--------+
 *		  ^ the next step							<- la_downlinks_next()
 *
 * The policy says when to begin, how far to look ahead, and when to stop.  nbtree does everything
 * else as in stock: no page is read before its turn, copied, or pinned between two calls.  So this
 * works whoever owns the scan's position, and under SERIALIZABLE as well.
 *
 * Behaviours:
 *	STEP	Only steps come here, so a row on the same page costs nothing.  nbtree may read several
 *			pages in one step, of which the last one has a row.  The time of each is their mean.
 *	FIRST	The first page of a scan is found by a descent.  Its reads are evidence, but the step
 *			does not count if the policy is armed already.  If they were waits, the reads of the
 *			pages to come are started as soon as the first row is known, unless the next one is
 *			the next block of the file: then the kernel may read larger pieces ahead than we do.
 *	LAST	Nothing is foreseen on the scan's last page, or on the last one before nbtree descends
 *			again.  nbtree has found there that no page beside it is wanted.
 *	LEAP	The scan has gone elsewhere, and what was foreseen is forgotten.
 *	RUN		A page that continues a run of RUN_ENOUGH blocks is left to the kernel's read-ahead.
 *			(As in window.c, the first ones are issued.)
 *	OTHERS	The room may start reads of pages itself, by la_leafahead_issue_page().  The next reads
 *			of pages that were not foreseen are taken for these.
 *	PARALLEL	The time of a step may be that of waiting for another worker, so it is no evidence,
 *			and a worker looks ahead only if it is forced to.
 *	SHARE	Leaf pages are so few that the session's share is asked for anew each time, and that
 *			they leave it to the heap blocks of the same scan.
 *	MEMORY	The first scan of a node gives the ring back when it ends.  Later ones keep it.
 *
 * src/btree/leafahead.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"

#include "attach/descriptors.h"
#include "base/compat.h"
#include "base/compat_btree.h"
#include "btree/btree.h"
#include "btree/btree_int.h"
#include "window/window.h"

#define RUN_ENOUGH			3
#define UNKNOWN_ENOUGH		4	/* pages in a row from which nothing was
								 * foreseen */
#define FIRST_PAGES			2	/* foreseen below a LIMIT while rows per page
								 * are not known */
#define ROWS_WEIGHT			8	/* pages over which rows are averaged */
#define SLOTS_FACTOR		4	/* pages foreseen per page in flight */

typedef enum PageState
{
	PAGE_UNKNOWN,				/* or cached, or left to the kernel */
	PAGE_ISSUED,
	PAGE_CONTROL				/* not cached, not issued, to be timed */
} PageState;

typedef struct ForeseenPage
{
	BlockNumber block;
	PageState	state;
} ForeseenPage;

typedef struct LaLeafRing
{
	LaDownlinks *downlinks;
	ScanDirection dir;
	BlockNumber last;			/* foreseen last */
	int			run;			/* of blocks next to each other, up to it */
	int			unknown;		/* pages in a row from which nothing was
								 * foreseen */
	int			rows_per_page;	/* a running average */
	int			in_flight;		/* issued, not visited */
	Size		bytes;			/* taken from the budget */
	uint32		head;
	uint32		tail;
	uint32		mask;
	ForeseenPage pages[FLEXIBLE_ARRAY_MEMBER];
} LaLeafRing;

/*
 * All of *la is zero before.  The room sets the policy of a scan that is to look ahead; without
 * one, reads are only started for OTHERS.
 */
void
la_leafahead_init(LaLeafAhead *la, Relation index, IndexScanDesc scan, MemoryContext context,
				  LaBudget *budget, LaCounters *counters)
{
	la->index = index;
	la->scan = scan;
	la->context = context;
	la->budget = budget;
	la->counters = counters;
	la->is_counted = true;
	la->index_size = InvalidBlockNumber;
	la_share_begin(&la->share, false, context);
}

/* ---- the pages foreseen ---------------------------------------------------- */

static LaLeafRing *
create(LaLeafAhead *la)
{
	uint32		slots = pg_nextpower2_32(SLOTS_FACTOR * la->policy.io.config.max_distance);
	Size		own = offsetof(LaLeafRing, pages) + slots * sizeof(ForeseenPage);
	LaLeafRing *r;

	if (!la_budget_has(la->budget, own + la_downlinks_size()))
		return NULL;
	r = MemoryContextAllocZero(la->context, own);
	r->downlinks = la_downlinks_create(la->index, la->scan, la->context);
	r->bytes = own + la_downlinks_size();
	la_budget_take(la->budget, r->bytes);
	r->mask = slots - 1;
	r->last = InvalidBlockNumber;
	la_saving_init(&la->saving, la->index->rd_rel->reltablespace);
	if (la_btree_scan(la->scan)->numArrayKeys > 0)
		la_leaf_policy_be_careful(&la->policy);
	return r;
}

/* Returns false, with a hold-off, if there is no memory. */
static bool
exists_or_create(LaLeafAhead *la)
{
	if (la->ring == NULL)
		la->ring = create(la);
	if (la->ring == NULL)
		la_io_policy_hold_off(&la->policy.io);
	return la->ring != NULL;
}

void
la_leafahead_free(LaLeafAhead *la)
{
	if (la->ring == NULL)
		return;
	la_downlinks_free(la->ring->downlinks);
	la_budget_return(la->budget, la->ring->bytes);
	la_share_end(&la->share);
	pfree(la->ring);
	la->ring = NULL;
}

/* Remove those before place n of the ring. */
static void
remove_until(LaLeafAhead *la, uint32 n)
{
	LaLeafRing *r = la->ring;

	for (; r->head != n; r->head++)
	{
		PageState	state = r->pages[r->head & r->mask].state;

		if (state == PAGE_ISSUED)
			r->in_flight--;
		else if (state == PAGE_CONTROL)
			la_io_policy_on_lost_control(&la->policy.io);
	}
}

/* Forget all of them, and where the scan is. */
static void
forget(LaLeafAhead *la)
{
	if (la->ring == NULL)
		return;
	remove_until(la, la->ring->tail);
	la->ring->last = InvalidBlockNumber;
	la->ring->run = 0;
	la_downlinks_restart(la->ring->downlinks);
}

/* The scan has come to a page: what was known of it?  Pages that it has passed are removed. */
static PageState
find_foreseen(LaLeafAhead *la, BlockNumber page)
{
	LaLeafRing *r = la->ring;
	PageState	state;
	uint32		n;

	if (r == NULL || r->head == r->tail)
		return PAGE_UNKNOWN;
	for (n = r->head; n != r->tail && r->pages[n & r->mask].block != page;)
		n++;
	if (n == r->tail)
	{
		/* LEAP */
		la_leaf_policy_on_leap(&la->policy, r->in_flight);
		forget(la);
		return PAGE_UNKNOWN;
	}
	state = r->pages[n & r->mask].state;
	remove_until(la, n + 1);
	return state;
}

/* Start the read of a page of the index.  Returns false if it is cached, or cannot be read. */
static bool
issue(LaLeafAhead *la, BlockNumber page)
{
	double		before = la_saving_before_issue(&la->saving);
	Buffer		recent;
	bool		started = la_issue_block(la->index, page, &recent) == LA_ISSUE_STARTED;

	la_saving_after_issue(la->counters, before);
	if (started)
		la->counters->c[LA_LEAF_PAGES_ISSUED]++;
	return started;
}

/* OTHERS: the same, for the room. */
bool
la_leafahead_issue_page(LaLeafAhead *la, BlockNumber page)
{
	if (!la_issue_exists(la->index, page, &la->index_size) || !issue(la, page))
		return false;
	la->nstarted++;
	return true;
}

/* Look up a page that was delivered, and start its read if it is not cached. */
static PageState
foresee(LaLeafAhead *la, BlockNumber page)
{
	LaLeafRing *r = la->ring;
	LaIoPolicy *policy = &la->policy.io;
	Buffer		recent;

	r->run = page == r->last + 1 && r->last != InvalidBlockNumber ? r->run + 1 : 0;
	r->last = page;
	if ((r->run >= RUN_ENOUGH && !policy->config.force) ||
		!la_issue_exists(la->index, page, &la->index_size))
		return PAGE_UNKNOWN;
	if (la_io_policy_control_due(policy))
	{
		if (la_issue_is_cached(la->index, page, &recent))
			return PAGE_UNKNOWN;
		la_io_policy_on_control(policy);
		return PAGE_CONTROL;
	}
	if (!issue(la, page))
		return PAGE_UNKNOWN;
	la_io_policy_on_issue(policy);
	r->in_flight++;
	la_counters_note_request(la->counters, 1, r->in_flight);
	return PAGE_ISSUED;
}

/*
 * SHARE: how many may be in flight now?  None, if there is no buffer that the scan can do without:
 * inner pages are pinned for a moment.
 */
int
la_leafahead_limit(LaLeafAhead *la)
{
	Oid			tablespace = la->index->rd_rel->reltablespace;
	const LaIoPolicy *heap = la->of_heap;
	int			limit;

	if (!la_budget_has_pin(RelationUsesLocalBuffers(la->index)))
		return 0;
	if (la->ring != NULL && la->ring->in_flight > 0 &&
		(heap == NULL || heap->state != LA_ARMED || !heap->for_reads))
		la_share_on_use(&la->share);
	la_share_on_wait(&la->share);
	limit = la_share_limit(&la->share, tablespace, la->policy.io.config.max_distance);
	if (limit == 0)
		la_share_note_read(tablespace);
	return limit;
}

/* Foresee as many pages as the policy wants for so many rows, with up to so many in flight. */
static void
top_up(LaLeafAhead *la, int64 rows, int limit)
{
	LaLeafRing *r = la->ring;
	BTScanPos	pos = &la_btree_scan(la->scan)->currPos;
	int			on_page = pos->lastItem - pos->firstItem + 1;
	uint32		most;

	/* the scan may have begun in the middle of its first page */
	if (la_scan_length_visits(&la->policy.io.length) > 0)
		r->rows_per_page = r->rows_per_page == 0 ? on_page :
			r->rows_per_page + (on_page - r->rows_per_page) / ROWS_WEIGHT;
	most = la_leaf_policy_pages_ahead(&la->policy, rows, Max(r->rows_per_page, 1));
	if (r->rows_per_page == 0 && rows < PG_INT64_MAX / 2)
		most = Min(most, FIRST_PAGES);
	most = Min(most, r->mask + 1);
	while (r->tail - r->head < most && r->in_flight < limit)
	{
		ForeseenPage *page = &r->pages[r->tail & r->mask];

		CHECK_FOR_INTERRUPTS();
		page->block = la_downlinks_next(r->downlinks);
		if (page->block == InvalidBlockNumber)
			return;
		page->state = foresee(la, page->block);
		r->tail++;
	}
}

/*
 * The policy is armed, and nbtree has just read a page: start the reads of those to come.
 * rows_wanted: rows that can still be wanted behind the one that nbtree is at.
 */
void
la_leafahead_issue(LaLeafAhead *la, ScanDirection dir, int64 rows_wanted)
{
	BTScanOpaque so = la_btree_scan(la->scan);
	int			rest = ScanDirectionIsForward(dir) ?
		so->currPos.lastItem - so->currPos.itemIndex :
		so->currPos.itemIndex - so->currPos.firstItem;
	LaLeafRing *r;
	int			limit;

	if (!la_leafahead_has_more(so, dir) || la_bt_descent_is_next(so) || rows_wanted <= rest)
		return;
	limit = la_leafahead_limit(la);
	if (limit == 0 || !exists_or_create(la))
		return;
	r = la->ring;
	if (r->dir != dir)
		forget(la);
	r->dir = dir;
	if (la_downlinks_seek(r->downlinks, so->currPos.currPage, dir))
	{
		r->unknown = 0;
		top_up(la, rows_wanted - rest, limit);
	}
	else if (++r->unknown >= UNKNOWN_ENOUGH)
	{
		r->unknown = 0;
		forget(la);
		la_io_policy_hold_off(&la->policy.io);
	}
}

/*
 * FIRST: the scan's first row has taken so many reads, which were waits.  rows_wanted: as above.
 */
void
la_leafahead_begin(LaLeafAhead *la, ScanDirection dir, int64 rows_wanted, int64 reads)
{
	BTScanOpaque so = la_btree_scan(la->scan);

	if (la->scan->parallel_scan != NULL || !BTScanPosIsValid(so->currPos) ||
		!la_leafahead_has_more(so, dir) ||
		(ScanDirectionIsForward(dir) && so->currPos.nextPage == so->currPos.currPage + 1) ||
		!la_leaf_policy_on_first_row(&la->policy, reads))
		return;
	la->counters->c[LA_SCANS_ACTIVATED]++;
	la_leafahead_issue(la, dir, rows_wanted);
	la_counters_note_distance(la->counters, la->ring ? la->ring->in_flight : 0);
}

/* ---- steps ----------------------------------------------------------------- */

/* nbtree is about to be asked for another page. */
void
la_leafahead_begin_step(LaLeafAhead *la)
{
	BTScanOpaque so = la_btree_scan(la->scan);

	la->previous = BTScanPosIsValid(so->currPos) ? so->currPos.currPage : InvalidBlockNumber;
	la->reads = la_issue_blocks_read();
	la->start = la_issue_clock_us();
}

/* nbtree has come to a page, and has read so many blocks for that. */
static void
report_step(LaLeafAhead *la, BlockNumber page, int64 reads)
{
	LaLeafPolicy *policy = &la->policy;
	bool		parallel = la->scan->parallel_scan != NULL;
	double		us = reads > 0 ? (la_issue_clock_us() - la->start) / reads : 0.0;
	PageState	state = find_foreseen(la, page);
	bool		by_others = state == PAGE_UNKNOWN && reads > 0 && la->nstarted > 0;
	LaVisitResult result = LA_VISIT_HIT;

	if (by_others)
		la->nstarted -= Min(la->nstarted, reads);
	la->counters->c[LA_IO_WAITS] += state == PAGE_ISSUED && reads > 0 &&
		us >= policy->io.config.min_read_us;
	if (state == PAGE_ISSUED || (by_others && la_leaf_policy_is_armed(policy)))
		result = LA_VISIT_ISSUED;
	else if (reads == 0 || (by_others && us < policy->io.config.min_read_us))
		;
	else if (state == PAGE_CONTROL)
		result = LA_VISIT_CONTROL;
	else
		result = page == la->previous + 1 || parallel ? LA_VISIT_NEXT_MISS : LA_VISIT_MISS;

	if (reads > 0 && !parallel && (state == PAGE_ISSUED || by_others))
		la_saving_on_issued_read(&la->saving, la->counters, us, false);
	else if (reads > 0 && !parallel)
		la_saving_on_read(la->counters, us);
	la_leaf_policy_on_step(policy, result, us);
}

/* It has found a row, or not.  rows_wanted: rows that can be wanted behind it. */
void
la_leafahead_end_step(LaLeafAhead *la, bool found, ScanDirection dir, int64 rows_wanted)
{
	BlockNumber page = found ? la_btree_scan(la->scan)->currPos.currPage : InvalidBlockNumber;
	bool		was_armed = la_leaf_policy_is_armed(&la->policy);
	int64	   *c;

	if (found && page == la->previous)
		return;
	if (found && (la->previous != InvalidBlockNumber || !was_armed))
		report_step(la, page, la_issue_blocks_read() - la->reads);
	if (!found || !la_leaf_policy_is_armed(&la->policy))
	{
		forget(la);
		if (!found && la->policy.io.length.scans == 0)
			la_leafahead_free(la);
		return;
	}
	la_leafahead_issue(la, dir, rows_wanted);
	if (!la->is_counted)
		return;
	c = la->counters->c;
	c[LA_SCANS_ACTIVATED] += !was_armed;
	la_counters_note_distance(la->counters, la->ring ? la->ring->in_flight : 0);
	c[LA_DISTANCE_CAPACITY] = Max(c[LA_DISTANCE_CAPACITY],
								  Min(la->share.limit, la->policy.io.config.max_distance));
}

/* The scan starts over, or ends. */
void
la_leafahead_rescan(LaLeafAhead *la, bool ended_early)
{
	forget(la);
	la->nstarted = 0;
	la_io_policy_rescan(&la->policy.io, ended_early);
}
