/*
 * lot.c
 *	  Foreseen visits whose blocks are issued in the order of the table.
 *
 *		ring	 head          first                 tail
 *		  ... | 17 | 4 | 90 |  | 203 | 7 | 8 | 203 | 9 |
 *			  being visited	   a lot, as collected
 *
 *		entries	 7 | 8 | 9 | 203 | 203			sorted; issued from left to right, by
 *				 ^ next								two requests: 7 to 9, and 203
 *
 * A lot is collected as soon as the visits of the previous one begin.  While these are made, its
 * blocks are issued, a few at each visit, so that all of them are when its first visit comes:
 * neither the storage nor the scan waits for the other.  When and how large is decided in
 * lot_policy.c.
 *
 * Where sessions share a limit of reads in flight (share.c), the next requests are made when
 * earlier ones are done.  Advice does not tell when that is, but a read of a block does: so now
 * and then one of a lot is read into memory of our own, and left there.  A lot of many requests
 * may then be in flight with few at a time, and with a share of 0 one after the other, like the
 * reads of the server: their number stays, and each has several blocks.
 *
 * Invariants:
 *	- There is at most one lot with entries that were not issued.  No visit of it is made, though
 *	  some may be skipped, and none is foreseen behind it.
 *	- All blocks of a request exist, since its first and its last one do.
 *
 * Not under direct I/O, whose reads hold a buffer each; not for temporary tables, whose blocks are
 * looked up by PrefetchBuffer only; and not in nested loops, whose outer rows are few.
 *
 * src/window/lot.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/smgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "base/base.h"
#include "base/compat.h"
#include "window/window.h"
#include "window/window_int.h"

#define MOST_VISITS_FACTOR 256	/* visits of a lot per block of max_distance */
#define MEMORY_SHARE	2		/* one of so many bytes that the scan may take */
#define VISITS_PER_BLOCK 64		/* more are not collected for each entry */
#define MOST_REQUESTS	1024	/* a larger share is no limit */
#define LONG_AGO_US		250000.0	/* more than a read takes in a long queue */
#define STEP			64		/* blocks; see note_turn() */
#define OUT_OF_ORDER	16		/* steps by which the storage may fall behind */

#define count(window, counter)	la_window_count(window, counter)

/* Of visits to the same block, the first one comes first. */
static inline int
compare_entries(const LotEntry *a, const LotEntry *b)
{
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->visit < b->visit ? -1 : a->visit > b->visit;
}

#define ST_SORT sort_entries
#define ST_ELEMENT_TYPE LotEntry
#define ST_COMPARE(a, b) compare_entries(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Memory is for two lots in the ring, and for the entries of one. */
void
la_lot_init(LaWindow *w)
{
	double		read_us = la_history_read_us(w->rels[0]->rd_rel->reltablespace);
	Size		bytes_per_visit = 2 * sizeof(Visit) + sizeof(LotEntry);
	int			most = (int) Min(w->budget->limit / MEMORY_SHARE / bytes_per_visit,
								 (Size) MOST_VISITS_FACTOR * w->policy->config.max_distance);

	la_lot_policy_init(&w->lot.policy, most, read_us);
	/* a shorter one may have been for a dirty buffer to be written */
	w->lot.wait_us = Max(w->policy->config.min_read_us, read_us / 2);
	w->lot.range_last = LA_NO_BLOCK;
}

/* The window is cleared.  What was foreseen and not issued must not count as recent. */
void
la_lot_clear(LaWindow *w)
{
	LaLot	   *lot = &w->lot;

	if (lot->next < lot->n)
	{
		for (int i = 0; i < RECENT_SLOTS; i++)
			w->recent[i].id = LA_NO_BLOCK;
	}
	la_lot_policy_restart(&lot->policy);
	lot->first = w->tail;
	lot->n = lot->next = 0;
	lot->range_last = LA_NO_BLOCK;
	lot->first_wait = lot->last_wait;
}

/* Free what was allocated for lots. */
void
la_lot_free(LaWindow *w)
{
	if (w->lot.entries)
		pfree(w->lot.entries);
	la_budget_return(w->budget, w->bytes);
}

/* Replace the ring by a larger one. */
static void
grow_ring(LaWindow *w, uint64 nslots)
{
	Visit	   *ring = MemoryContextAlloc(GetMemoryChunkContext(w), nslots * sizeof(Visit));

	for (uint64 n = w->head; n < w->tail; n++)
		ring[n & (nslots - 1)] = w->ring[n & w->mask];
	pfree(w->ring);
	w->ring = ring;
	w->mask = nslots - 1;
}

/* Have room for so many visits in the ring, and for the entries of a lot. */
static bool
has_room(LaWindow *w, uint64 nvisits)
{
	uint64		nslots = Max(pg_nextpower2_64(nvisits), w->mask + 1);
	Size		entries = w->lot.policy.first_limit * sizeof(LotEntry);
	Size		bytes;
	bool		ring_grows;

	if (nslots == w->mask + 1 && w->lot.entries != NULL)
		return true;
	/* the first ring is in la_window_size() */
	ring_grows = nslots > w->mask + 1;
	bytes = entries + (ring_grows || w->bytes > entries ? nslots * sizeof(Visit) : 0);
	if (!la_budget_has_spare(w->budget, bytes - w->bytes))
		return false;
	la_budget_take(w->budget, bytes - w->bytes);
	w->bytes = bytes;
	if (w->lot.entries == NULL)
		w->lot.entries = MemoryContextAlloc(GetMemoryChunkContext(w), entries);
	if (ring_grows)
		grow_ring(w, nslots);
	return true;
}

/*
 * Collect a lot of so many blocks, as far as the producer has visits.  Blocks that are visited
 * again soon are not entered again.
 */
static void
collect(LaWindow *w, int nblocks)
{
	LaForeseen	f = {.block = InvalidBlockNumber};
	LaLotResult none = {0};
	LaLot	   *lot = &w->lot;
	int			most = Min(nblocks * VISITS_PER_BLOCK, lot->policy.first_limit);
	int			nvisits = 0;

	Assert(nblocks <= lot->policy.first_limit);
	if (!has_room(w, w->tail - w->head + most))
		return;
	lot->n = lot->next = 0;
	lot->first = w->tail;
	w->reach = w->tail - w->head + most;
	while (lot->n < nblocks && nvisits < most &&
		   w->producer.next_visit(w->producer.arg, &f))
	{
		uint64		id = la_block_id(f.rel, f.block);
		Visit	   *v = la_window_append(w, &f);

		nvisits++;
		if (la_window_note_block(w, id, Max(nvisits, RECENT_VISITS)) && f.more == 0)
		{
			v->state = VISIT_RECENT;
			count(w, LA_BLOCKS_SKIPPED_RECENT);
			continue;
		}
		v->served = la_readahead_serves(&w->readahead, id);
		lot->entries[lot->n].id = id;
		lot->entries[lot->n++].visit = w->tail - 1;
		w->last_foreseen = id + f.more;
	}
	sort_entries(lot->entries, lot->n);
	lot->result = none;
	lot->result.visits = nvisits;
	lot->result.blocks = lot->n;
	lot->result.limited = lot->n < nblocks && nvisits < most;
	lot->gap = lot->policy.gap;
	if (la_smgr_prefetches_ranges && lot->n > 0)
		lot->gap = la_lot_policy_gap(&lot->policy, lot->n,
									 lot->entries[lot->n - 1].id - lot->entries[0].id + 1);
	lot->last_uncached = LA_NO_BLOCK;
	lot->issued_end = 0;
}

typedef struct Wait
{
	Relation	rel;
	BlockNumber block;
} Wait;

static void
read_block(void *arg)
{
	static LaIOAlignedBlock unused;
	Wait	   *wait = arg;

	smgrread(RelationGetSmgr(wait->rel), MAIN_FORKNUM, wait->block, unused.data);
}

/* Wait until a block has been read, for which a request was made.  Its errors are for its visit. */
static void
wait_for(LaWindow *w, uint64 id)
{
	Wait		wait = {w->rels[id >> 32], (BlockNumber) id};

	(void) la_attempt_read(read_block, &wait);
	la_share_on_wait(&w->share);
}

/*
 * A request was made for blocks from this one on.  Have no more in flight than the share, and the
 * one that the scan might wait for: one of so many is waited for before as many others are made.
 */
static void
pace(LaWindow *w, uint64 id)
{
	LaLot	   *lot = &w->lot;
	int			most;
	int			step;

	if (!la_share_is_limited())
		return;
	most = la_share_limit(&w->share, w->rels[id >> 32]->rd_rel->reltablespace,
						  MOST_REQUESTS) + 1;
	if (most > MOST_REQUESTS)
		return;
	step = Max(most / (LA_LOT_WAITS / 2), 1);
	if (++lot->nrequests < step)
		return;
	lot->nrequests = 0;
	lot->waits[lot->last_wait++ % LA_LOT_WAITS] = id;
	while (lot->last_wait - lot->first_wait >= (uint32) (most / step))
		wait_for(w, lot->waits[lot->first_wait++ % LA_LOT_WAITS]);
}

/* Start the reads of the blocks from range_first to range_last. */
static void
issue_range(LaWindow *w)
{
	LaLot	   *lot = &w->lot;
	double		before;

	if (lot->range_last == LA_NO_BLOCK)
		return;
	before = la_issue_clock_us();
	la_issue_range(w->rels[lot->range_first >> 32], (BlockNumber) lot->range_first,
				   (BlockNumber) (lot->range_last - lot->range_first + 1));
	la_counters_note_request(w->counters, lot->range_last - lot->range_first + 1, -1);
	pace(w, lot->range_first);
	la_saving_on_range(&w->saving, w->counters, before);
	lot->range_last = LA_NO_BLOCK;
}

/* Add a block to the range, or begin another one. */
static void
issue_as_range(LaWindow *w, uint64 id)
{
	LaLot	   *lot = &w->lot;

	if (lot->range_last == LA_NO_BLOCK || id > lot->range_last + 1 + lot->gap ||
		id - lot->range_first >= LA_RUN_BLOCKS)
	{
		issue_range(w);
		lot->range_first = id;
	}
	lot->range_last = lot->range_last == LA_NO_BLOCK ? id : Max(lot->range_last, id);
	lot->issued_end = Max(lot->issued_end, id + 1);
}

/* Behaviour RUN in window.c: the blocks behind a visit's, which is cached, or has been issued. */
static void
issue_rest_of_run(LaWindow *w, const Visit *v, uint64 id)
{
	for (int i = 1; i <= v->more; i++)
	{
		Buffer		recent;

		if (!la_issue_exists(w->rels[v->rel], v->block + i, &w->sizes[v->rel]))
			return;
		if (!la_issue_is_cached(w->rels[v->rel], v->block + i, &recent))
			issue_as_range(w, id + i);
	}
}

/*
 * Keep with a visit when its block was issued, in steps of so many blocks.  (Rows on blocks that
 * are not cached are not touched, so their offsets are not needed.)
 */
static void
note_turn(LaLot *lot, Visit *v)
{
	v->turn = (uint16) (++lot->nissued / STEP);
}

/* Was the first of two turns so much later that its read ends later, too? */
static bool
is_later(uint16 a, uint16 b, int steps)
{
	return (int16) (a - b) > steps;
}

/* A block of the lot that is not cached: issue it, unless it is to be a control. */
static void
issue_of_lot(LaWindow *w, Visit *v, uint64 id)
{
	LaLot	   *lot = &w->lot;

	lot->result.uncached++;
	if (lot->last_uncached != LA_NO_BLOCK &&
		id - lot->last_uncached <= (uint64) lot->policy.near_gap)
		lot->result.close++;
	lot->last_uncached = id;
	if (id >= lot->issued_end && la_io_policy_control_due(w->policy))
	{
		/* no request may read it */
		issue_range(w);
		la_io_policy_on_control(w->policy);
		v->state = VISIT_CONTROL;
		return;
	}
	issue_as_range(w, id);
	note_turn(lot, v);
	v->state = VISIT_LOT;
	w->in_flight++;
	la_share_on_use(&w->share);
	la_io_policy_on_issue(w->policy);
	count(w, LA_BLOCKS_ISSUED);
}

/* Look up the block of the lot's next entry, and issue it if it is not cached. */
static void
issue_entry(LaWindow *w)
{
	LaLot	   *lot = &w->lot;
	LotEntry   *entry = &lot->entries[lot->next++];
	Visit	   *v = &w->ring[entry->visit & w->mask];

	if (entry->visit < w->head)
		return;					/* it was skipped, see la_window_skip() */
	if (entry > lot->entries && entry[-1].id == entry->id && v->more == 0)
	{
		v->state = VISIT_RECENT;
		count(w, LA_BLOCKS_SKIPPED_RECENT);
	}
	else if (!la_issue_exists(w->rels[v->rel], v->block, &w->sizes[v->rel]))
	{
		/* to read it is an error, which stock raises */
	}
	else if (la_window_is_cached(w, v))
	{
		v->state = VISIT_CACHED;
		count(w, LA_BLOCKS_CACHED);
		issue_rest_of_run(w, v, entry->id);
	}
	else
	{
		issue_of_lot(w, v, entry->id);
		if (v->state == VISIT_LOT)
			issue_rest_of_run(w, v, entry->id);
	}
}

/*
 * How many entries to issue at this visit: as many as are left, divided by the visits that are left
 * until the lot's first one.
 */
static int
share(const LaWindow *w)
{
	int			left = w->lot.n - w->lot.next;
	int64		visits = (int64) (w->lot.first - w->head);

	return visits <= 1 ? left : (int) ((left + visits - 1) / visits);
}

/* Collect another lot, if it is time to.  Returns false if there is none. */
static bool
begin(LaWindow *w)
{
	int			size;

	if (w->aio != NULL || !w->policy->config.advice_works || w->local)
		return false;
	size = la_lot_policy_size(&w->lot.policy, w->policy);
	if (size == 0)
		return false;
	collect(w, size);
	return w->lot.next < w->lot.n;
}

/*
 * Issue a share of the lot, or begin another one.  Returns false if blocks are to be issued in the
 * order of need.
 */
bool
la_lot_top_up(LaWindow *w)
{
	LaLot	   *lot = &w->lot;

	if (lot->next == lot->n)
	{
		if (w->head < lot->first)
			return true;
		lot->previous_issued_us = lot->issued_us;
		if (!begin(w))
			return false;
	}
	for (int n = share(w); n > 0; n--)
	{
		CHECK_FOR_INTERRUPTS();
		issue_entry(w);
	}
	if (lot->next == lot->n)
	{
		issue_range(w);
		lot->issued_us = la_issue_clock_us();
		la_lot_policy_on_lot(&lot->policy, w->policy, &lot->result);
	}
	return true;
}

/*
 * A block that was issued as part of the previous lot is read.  EVICTED in lot_policy.c: if it was
 * issued long ago, if blocks that were issued later have come on time, and it is waited for all the
 * same, then it has been read in vain.
 */
void
la_lot_on_read(LaWindow *w, const Visit *v, const LaReadResult *r)
{
	LaLot	   *lot = &w->lot;
	bool		wait = r->us >= lot->wait_us;
	bool		evicted = wait && is_later(lot->done, v->turn, OUT_OF_ORDER) &&
		la_issue_clock_us() - lot->previous_issued_us > LONG_AGO_US;

	if (r->missed && !wait && is_later(v->turn, lot->done, 0))
		lot->done = v->turn;
	la_lot_policy_on_visit(&lot->policy, evicted);
	if (evicted)
		count(w, LA_BLOCKS_EVICTED);
}
