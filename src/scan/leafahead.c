/*
 * leafahead.c
 *	  Reads of the leaf pages to come, started ahead of nbtree.
 *
 * nbtree reads a leaf page when the scan comes to it, and waits.  Where the heap blocks are cached,
 * or where no heap block is visited (index-only scans of all-visible tables), these are the only
 * waits of a scan.  So each step of nbtree from one leaf page to another is timed here.  When the
 * policy (window/leaf_policy.c) arms, the block numbers of the pages to come are taken from the
 * pages' parents (btree/downlinks.c), and their reads are started:
 *
 *		head							 tail
 *		+--------+---------+--------+--------+
 *		| issued | control | issued | cached |		foreseen pages, as nbtree will read them
 *		+--------+---------+--------+--------+
 *		  ^ the next step							<- la_downlinks_next()
 *
 * nbtree itself runs no further ahead for it, and no page is pinned or copied.  So this is done
 * whether the position is nbtree's (AM_OWNS in shim.c) or the access method is run ahead (leaf.c),
 * and under SERIALIZABLE as well.
 *
 * Behaviours:
 *	STEP	A call of amgettuple that may leave the current page.  Only these come here, so that
 *			a row on the same page costs nothing.  Several pages may be read in one step, of which
 *			the last one has a row; the time of one is then the mean of those that were read.
 *	FIRST	The page that a scan begins on is found by a descent, which is no step.  A scan that is
 *			armed already looks ahead from there.
 *	LEAP	The scan has gone elsewhere, and what was foreseen is forgotten.
 *	ARRAYS	The values of an IN list may lie on pages far from each other, to which nbtree descends
 *			one after the other.  arraykeys.c finds those of the next values.
 *	RUN		A page that continues a run of RUN_ENOUGH blocks is left to the kernel's read-ahead.
 *			(As in window.c, the first ones are issued.)
 *	PARALLEL	The pages foreseen are read by all workers.  Each issues its own few, and those
 *			that another one has issued or read are found cached.
 *
 * src/scan/leafahead.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/fd.h"

#include "base/compat.h"
#include "base/compat_btree.h"
#include "btree/downlinks.h"
#include "scan/leafahead.h"
#include "scan/leafbatch.h"
#include "window/config.h"
#include "window/history.h"

#define RUN_ENOUGH			3
#define PARALLEL_PAGES		16
#define UNKNOWN_ENOUGH		4	/* pages in a row from which nothing was
								 * foreseen */
#define FIRST_PAGES			2	/* foreseen below a LIMIT while rows per page
								 * are not known */
#define ROWS_WEIGHT			8	/* pages over which rows are averaged */
#define SLOTS_FACTOR		4	/* pages foreseen per page in flight */

typedef enum PageState
{
	PAGE_CACHED,				/* or nothing is known of it */
	PAGE_ISSUED,
	PAGE_CONTROL,				/* not cached, not issued, to be timed */
	PAGE_LEFT					/* to the kernel's read-ahead */
} PageState;

typedef struct ForeseenPage
{
	BlockNumber block;
	PageState	state;
} ForeseenPage;

struct LaLeafAhead
{
	LaDownlinks *downlinks;
	LaArrayKeys *arraykeys;		/* NULL: nothing to look ahead in, or not yet */
	bool		arraykeys_tried;
	ScanDirection dir;
	BlockNumber last;			/* foreseen last */
	int			run;			/* of blocks next to each other, up to it */
	int			unknown;		/* pages in a row from which nothing was
								 * foreseen */
	int			rows_per_page;	/* a running average */
	int			in_flight;		/* issued, not visited */
	Size		bytes;			/* taken from the scan's budget */
	uint32		head;
	uint32		tail;
	uint32		mask;
	ForeseenPage pages[FLEXIBLE_ARRAY_MEMBER];
};

/* of_heap: the configuration for reads of heap blocks, in this tablespace or in another one. */
void
la_leafahead_init(LaScan *ls, const LaIoPolicyConfig *of_heap)
{
	Relation	heap = ls->scan->heapRelation;
	LaIoPolicyConfig config = ls->real->rd_rel->reltablespace == heap->rd_rel->reltablespace ?
		*of_heap : la_config_reads(ls->real, of_heap->read_to_end, ls->indexrelid);

	/* asynchronous reads would pin pages */
	if (la_direct_io())
		config.advice_works = false;
	la_leaf_policy_init(&ls->leaf_policy, &config);
	la_share_begin(&ls->leaf_share, false, ls->context);
}

/* ---- the pages foreseen ---------------------------------------------------- */

static LaLeafAhead *
create(LaScan *ls)
{
	const LaIoPolicyConfig *config = &ls->leaf_policy.io.config;
	uint32		slots = pg_nextpower2_32(SLOTS_FACTOR * config->max_distance);
	Size		own = offsetof(LaLeafAhead, pages) + slots * sizeof(ForeseenPage);
	LaLeafAhead *la;

	if (!la_budget_has(&ls->budget, own + la_downlinks_size()))
		return NULL;
	la = MemoryContextAllocZero(ls->context, own);
	la->downlinks = la_downlinks_create(ls->real, ls->scan, ls->context);
	la->bytes = own + la_downlinks_size();
	la_budget_take(&ls->budget, la->bytes);
	la->mask = slots - 1;
	la->last = InvalidBlockNumber;
	if (la_bt_opaque(ls)->numArrayKeys > 0)
		la_leaf_policy_be_careful(&ls->leaf_policy);
	return la;
}

/* Returns false, with a hold-off, if there is no memory. */
static bool
exists_or_create(LaScan *ls)
{
	if (ls->leaf_ahead == NULL)
		ls->leaf_ahead = create(ls);
	if (ls->leaf_ahead == NULL)
		la_io_policy_hold_off(&ls->leaf_policy.io);
	return ls->leaf_ahead != NULL;
}

/* ARRAYS: the next scan may have other ones. */
static void
forget_arrays(LaScan *ls)
{
	LaLeafAhead *la = ls->leaf_ahead;

	ls->issued_for_arrays = 0;
	if (la == NULL)
		return;
	if (la->arraykeys)
		la_arraykeys_free(ls, la->arraykeys);
	la->arraykeys = NULL;
	la->arraykeys_tried = false;
}

void
la_leafahead_free(LaScan *ls)
{
	LaLeafAhead *la = ls->leaf_ahead;

	if (la == NULL)
		return;
	forget_arrays(ls);
	la_downlinks_free(la->downlinks);
	la_budget_return(&ls->budget, la->bytes);
	la_share_end(&ls->leaf_share);
	pfree(la);
	ls->leaf_ahead = NULL;
}

/* Remove the page that was foreseen first. */
static PageState
pop(LaScan *ls)
{
	LaLeafAhead *la = ls->leaf_ahead;
	PageState	state = la->pages[la->head++ & la->mask].state;

	if (state == PAGE_ISSUED)
		la->in_flight--;
	return state;
}

/* Remove those before place n of the ring. */
static void
pop_until(LaScan *ls, uint32 n)
{
	while (ls->leaf_ahead->head != n)
	{
		if (pop(ls) == PAGE_CONTROL)
			la_io_policy_on_lost_control(&ls->leaf_policy.io);
	}
}

/* Forget all of them, and where the scan is. */
static void
forget(LaScan *ls)
{
	LaLeafAhead *la = ls->leaf_ahead;

	if (la == NULL)
		return;
	pop_until(ls, la->tail);
	la->last = InvalidBlockNumber;
	la->run = 0;
	la_downlinks_restart(la->downlinks);
}

/* The scan has come to a page: what was known of it?  Pages that it has passed are removed. */
static PageState
find_foreseen(LaScan *ls, BlockNumber page)
{
	LaLeafAhead *la = ls->leaf_ahead;
	uint32		n = la->head;

	while (n != la->tail && la->pages[n & la->mask].block != page)
		n++;
	if (n == la->tail)
	{
		/* LEAP */
		la_leaf_policy_on_leap(&ls->leaf_policy, la->in_flight);
		forget(ls);
		return PAGE_CACHED;
	}
	pop_until(ls, n);
	return pop(ls);
}

/* Look up a page that was delivered, and start its read if it is not cached. */
static PageState
foresee(LaScan *ls, BlockNumber block)
{
	LaLeafAhead *la = ls->leaf_ahead;
	LaIoPolicy *policy = &ls->leaf_policy.io;
	Buffer		recent;
	double		before;
	LaIssueResult result;

	la->run = block == la->last + 1 && la->last != InvalidBlockNumber ? la->run + 1 : 0;
	la->last = block;
	if (la->run >= RUN_ENOUGH && !policy->config.force)
		return PAGE_LEFT;
	if (!la_issue_exists(ls->real, block, &ls->index_size))
		return PAGE_CACHED;
	if (la_io_policy_control_due(policy))
	{
		if (la_issue_is_cached(ls->real, block, &recent))
			return PAGE_CACHED;
		la_io_policy_on_control(policy);
		return PAGE_CONTROL;
	}
	before = la_saving_before_issue(&ls->saving);
	result = la_issue_block(ls->real, block, &recent);
	la_saving_after_issue(&ls->counters, before);
	if (result != LA_ISSUE_STARTED)
		return PAGE_CACHED;
	la_io_policy_on_issue(policy);
	ls->counters.c[LA_LEAF_PAGES_ISSUED]++;
	la->in_flight++;
	return PAGE_ISSUED;
}

/*
 * How many may be in flight now?  Leaf pages are so few that the session's share is asked for anew
 * each time, and that they leave it to heap blocks if there are any.
 */
static int
limit_of(LaScan *ls)
{
	if (ls->leaf_ahead != NULL && ls->leaf_ahead->in_flight > 0 &&
		(ls->policy.state != LA_ARMED || !ls->policy.for_reads))
		la_share_on_use(&ls->leaf_share);
	la_share_on_wait(&ls->leaf_share);
	return la_share_limit(&ls->leaf_share, ls->real->rd_rel->reltablespace,
						  ls->leaf_policy.io.config.max_distance);
}

/* Foresee as many pages as the policy wants, up to so many in flight. */
static void
top_up(LaScan *ls, int64 rows_wanted, int limit)
{
	LaLeafAhead *la = ls->leaf_ahead;
	BTScanPos	pos = &la_bt_opaque(ls)->currPos;
	int			rows = pos->lastItem - pos->firstItem + 1;
	uint32		most;

	/* the scan may have begun in the middle of its first page */
	if (la_scan_length_visits(&ls->leaf_policy.io.length) > 0)
		la->rows_per_page = la->rows_per_page == 0 ? rows :
			la->rows_per_page + (rows - la->rows_per_page) / ROWS_WEIGHT;
	most = la_leaf_policy_pages_ahead(&ls->leaf_policy, rows_wanted,
									  Max(la->rows_per_page, 1));
	if (la->rows_per_page == 0 && ls->demand.limit != NULL)
		most = Min(most, FIRST_PAGES);

	if (ls->scan->parallel_scan != NULL)
		most = Min(most, PARALLEL_PAGES);
	most = Min(most, la->mask + 1);
	while (la->tail - la->head < most && la->in_flight < limit)
	{
		ForeseenPage *page = &la->pages[la->tail & la->mask];

		CHECK_FOR_INTERRUPTS();
		page->block = la_downlinks_next(la->downlinks);
		if (page->block == InvalidBlockNumber)
			return;
		page->state = foresee(ls, page->block);
		la->tail++;
	}
}

/* Parent pages are pinned for a moment: is there a buffer that the scan can do without? */
static bool
has_pins(LaScan *ls)
{
	return la_budget_has_pin(RelationUsesLocalBuffers(ls->real));
}

static bool
more_pages(BTScanOpaque so, ScanDirection dir)
{
	return ScanDirectionIsForward(dir) ? so->currPos.moreRight : so->currPos.moreLeft;
}

/*
 * The policy is armed, and nbtree has just read a page: start the reads of those to come.
 * rows_wanted: rows that can still be wanted behind the one that nbtree is at.
 */
void
la_leafahead_issue(LaScan *ls, ScanDirection dir, int64 rows_wanted)
{
	BTScanOpaque so = la_bt_opaque(ls);
	int			rest = ScanDirectionIsForward(dir) ?
		so->currPos.lastItem - so->currPos.itemIndex :
		so->currPos.itemIndex - so->currPos.firstItem;
	int			limit;
	LaLeafAhead *la;

	if (!more_pages(so, dir) || la_bt_descent_is_next(so) || rows_wanted <= rest)
		return;
	limit = limit_of(ls);
	if (limit == 0)
	{
		/* others share the tablespace; what was foreseen may still be visited */
		la_share_note_read(ls->real->rd_rel->reltablespace);
		return;
	}
	if (!has_pins(ls) || !exists_or_create(ls))
		return;
	la = ls->leaf_ahead;
	if (la->dir != dir)
		forget(ls);
	la->dir = dir;
	if (la_downlinks_seek(la->downlinks, so->currPos.currPage, dir))
	{
		la->unknown = 0;
		top_up(ls, rows_wanted - rest, limit);
	}
	else if (++la->unknown >= UNKNOWN_ENOUGH)
	{
		la->unknown = 0;
		forget(ls);
		la_io_policy_hold_off(&ls->leaf_policy.io);
	}
}

/*
 * ARRAYS: nbtree is about to be asked for another page.  Start the reads of the pages that the next
 * elements will need.
 */
void
la_leafahead_advance_arrays(LaScan *ls, LaArrayKeys *arraykeys, ScanDirection dir,
							int64 rows_wanted)
{
	int64	   *issued = &ls->counters.c[LA_LEAF_PAGES_ISSUED];
	int64		before = *issued;
	int			distance = 0;

	if (ls->policy.state == LA_ARMED && ls->policy.for_reads)
		distance = Min(ls->policy.ahead, ls->policy.config.max_distance);
	if (la_leaf_policy_is_armed(&ls->leaf_policy))
		distance = Max(distance, Min(la_leaf_policy_pages_ahead(&ls->leaf_policy, rows_wanted, 1),
									 ls->leaf_policy.io.config.max_distance));
	distance = Min(distance, limit_of(ls));
	if (distance == 0 || !has_pins(ls))
		return;
	la_arraykeys_advance(arraykeys, dir, Min(distance, rows_wanted));
	ls->issued_for_arrays += *issued - before;
}

/* ARRAYS: the same where no ring of batches does it. */
static void
advance_own_arrays(LaScan *ls, ScanDirection dir, int64 rows_wanted)
{
	LaLeafAhead *la;

	if (ls->owner != NULL || !la_leaf_policy_is_armed(&ls->leaf_policy) ||
		la_bt_opaque(ls)->numArrayKeys <= 0 || !exists_or_create(ls))
		return;
	la = ls->leaf_ahead;
	if (!la->arraykeys_tried)
		la->arraykeys = la_arraykeys_create(ls);
	la->arraykeys_tried = true;
	if (la->arraykeys)
		la_leafahead_advance_arrays(ls, la->arraykeys, dir, rows_wanted);
}

/* Count how far it looks ahead, where the window of heap blocks does not. */
static void
count_distance(LaScan *ls)
{
	int64	   *capacity = &ls->counters.c[LA_DISTANCE_CAPACITY];

	if (ls->owner != NULL)
		return;
	la_counters_note_distance(&ls->counters, ls->leaf_ahead ? ls->leaf_ahead->in_flight : 0);
	*capacity = Max(*capacity,
					Min(ls->leaf_share.limit, ls->leaf_policy.io.config.max_distance));
}

/* ---- steps ----------------------------------------------------------------- */

/* Is the next call of amgettuple one that belongs here (STEP, FIRST)? */
bool
la_leafahead_may_step(LaScan *ls, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(ls);
	BTScanPos	pos = &so->currPos;

	if (!la_leaf_policy_is_enabled(&ls->leaf_policy))
		return false;
	if (!BTScanPosIsValid(*pos))
		return la_leaf_policy_is_armed(&ls->leaf_policy);
	if (ScanDirectionIsForward(dir) ? pos->itemIndex < pos->lastItem :
		pos->itemIndex > pos->firstItem)
		return false;
	return more_pages(so, dir) || la_bt_descent_is_next(so) || so->numArrayKeys > 0;
}

/*
 * What a read that was not issued says.  In a parallel scan the time may be that of waiting for
 * another worker, so it is no evidence.
 */
static LaVisitResult
result_of_miss(const LaScan *ls, BlockNumber page, BlockNumber previous)
{
	return page == previous + 1 || ls->scan->parallel_scan != NULL ?
		LA_VISIT_NEXT_MISS : LA_VISIT_MISS;
}

/* The read of a page has taken so long, apart from little else that was done meanwhile. */
static void
count_time(LaScan *ls, bool issued, double us)
{
	if (ls->scan->parallel_scan != NULL)
		return;
	if (issued)
		la_saving_on_issued_read(&ls->saving, &ls->counters, us, false);
	else
		la_saving_on_read(&ls->counters, us);
}

/*
 * nbtree has made a step to its current page, for which it has read so many blocks.  us: the time,
 * for each page that it has looked at.
 */
static void
report_step(LaScan *ls, BlockNumber previous, int64 reads, double us)
{
	BlockNumber page = la_bt_opaque(ls)->currPos.currPage;
	LaLeafPolicy *policy = &ls->leaf_policy;
	PageState	state = PAGE_CACHED;
	LaVisitResult result = reads == 0 ? LA_VISIT_HIT : result_of_miss(ls, page, previous);

	if (reads == 0)
		us = 0.0;
	if (ls->leaf_ahead != NULL && ls->leaf_ahead->head != ls->leaf_ahead->tail)
		state = find_foreseen(ls, page);
	if (state == PAGE_ISSUED)
		result = LA_VISIT_ISSUED;
	else if (state == PAGE_CACHED && reads > 0 && ls->issued_for_arrays > 0)
	{
		ls->issued_for_arrays--;
		result = LA_VISIT_ISSUED;
	}
	else if (state == PAGE_CONTROL && (reads == 0 || ls->scan->parallel_scan != NULL))
		la_io_policy_on_lost_control(&policy->io);
	else if (state == PAGE_CONTROL)
		result = LA_VISIT_CONTROL;
	else if (state == PAGE_LEFT && reads > 0)
		result = LA_VISIT_NEXT_MISS;
	else if (page == ls->issued_leaf && us < policy->io.config.min_read_us)
		result = LA_VISIT_HIT;
	if (reads > 0)
		count_time(ls, result == LA_VISIT_ISSUED || page == ls->issued_leaf, us);
	la_leaf_policy_on_step(policy, result, us);
}

/*
 * STEP, FIRST: the next row of nbtree.  rows_wanted: rows that can be wanted behind this one.
 */
bool
la_leafahead_gettuple(LaScan *ls, ScanDirection dir, int64 rows_wanted)
{
	BTScanOpaque so = la_bt_opaque(ls);
	LaLeafPolicy *policy = &ls->leaf_policy;
	BlockNumber previous = BTScanPosIsValid(so->currPos) ? so->currPos.currPage :
		InvalidBlockNumber;
	bool		was_armed = la_leaf_policy_is_armed(policy);
	int64		reads_before = la_issue_blocks_read();
	int64		before,
				used;
	double		start;
	bool		found;

	if (previous != InvalidBlockNumber)
		advance_own_arrays(ls, dir, rows_wanted);
	before = la_issue_blocks_read();
	used = la_issue_buffers_used();
	start = la_issue_clock_us();
	found = la_scan_am_gettuple(ls, dir);
	if (!found)
	{
		forget(ls);
		if (policy->io.length.scans == 0)
			la_leafahead_free(ls);
	}
	else if (so->currPos.currPage != previous)
	{
		if (previous != InvalidBlockNumber)
			report_step(ls, previous, la_issue_blocks_read() - before,
						(la_issue_clock_us() - start) / Max(la_issue_buffers_used() - used, 1));
		if (la_leaf_policy_is_armed(policy))
		{
			if (!was_armed && ls->owner == NULL)
				ls->counters.c[LA_SCANS_ACTIVATED]++;
			la_leafahead_issue(ls, dir, rows_wanted);
			count_distance(ls);
		}
		else
			forget(ls);
	}
	/* these reads are none of heap blocks */
	ls->seen_reads += la_issue_blocks_read() - reads_before;
	return found;
}

/* The scan starts over, or ends. */
void
la_leafahead_rescan(LaScan *ls, bool ended_early)
{
	forget(ls);
	forget_arrays(ls);
	ls->issued_leaf = InvalidBlockNumber;
	la_io_policy_rescan(&ls->leaf_policy.io, ended_early);
}
