/*
 * window.c
 *	  The blocks that a scan is going to visit, and what was done about them.
 *
 *		consumer (the scan returns a row          producer (the room runs its
 *		of another block)                         access method ahead)
 *			 |                                          |
 *			 v  la_window_visit()                       v  next_visit()
 *		   head       touched tuple   touched page     tail
 *		   +------+------+------+------+------+------+
 *		   |  17  |   4  |  90  |  91  |  17' | 203  |  ...
 *		   | done |issued|cached|issued|recent|issued|
 *		   +------+------+------+------+------+------+
 *				  |<--------- foreseen visits ------>|
 *
 * A visit is made of five steps:
 *	CONSUME	The head of the ring is removed.  It must name the block.  If the ring is empty, the
 *		producer starts over behind this visit.
 *	SETTLE	Under direct I/O, reads that are done release their pins (aio.c).
 *	TOP UP	The ring is filled with as many visits as the policy wants, and at most max_distance
 *		blocks in flight, or less where sessions share a limit (share.c).  This precedes the scan's
 *		own read, so that others run meanwhile.  Where many blocks are neighbours, lots of visits
 *		are issued in the order of the table instead (lot.c).
 *	TOUCH	Cached pages a few visits ahead are prefetched into the CPU's caches, in two steps:
 *		the row is found by its line pointer.
 *	READ	The block is read into the scan's buffer.  The policy gets the result and the time.
 *
 * A foreseen block is not issued if it is
 *	recent	foreseen within the last RECENT_VISITS visits: in flight, or cached by now;
 *	sequential	not cached, and the next one after SEQUENTIAL_RUN visits from block to next block,
 *		or after NEAR_RUN visits to blocks near the previous one.  The kernel recognizes the
 *		former, and often the latter, and reads ahead with larger requests than ours.  NEAR in
 *		io_policy.c finds out whether it does;
 *	stream	one of many blocks whose predecessor is cached (STREAMS in io_policy.c).
 *
 * Behaviour RUN: a visit may have more blocks behind it, which the server reads right after it,
 * such as those of a long value.  They are issued with it by one request, and not visited: what the
 * policy learns is what the first one takes, and counters count it alone.  Not under direct I/O,
 * where each block is a read of its own.
 *
 * Partitions of a nested loop's inner side share a window, in which a block is identified by
 * relation and number.  Other windows have one relation.
 *
 * A relation need be open only while it is visited, or blocks of it are foreseen: an apply worker
 * closes its tables between two turns, and opens those that it needs.  So once a window has been
 * created, nothing but these relations is looked at.
 *
 * Invariant: the window is a hint.  Whatever it holds, la_window_visit() leaves the wanted
 * block in the scan's buffer, or raises the error that reading it raises.
 *
 * src/window/window.c
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"

#include "base/base.h"
#include "window/scan_policy.h"
#include "window/window.h"
#include "window/window_int.h"

#define RUN_BLOCKS		64		/* in a run of such blocks, where it reads
								 * farther ahead */
#define SEQUENTIAL_RUN	3
#define NEAR_RUN		8
#define MAX_UNDECIDED	4		/* a trial's result is known when its blocks
								 * are visited */
#define RING_FACTOR		4		/* ring slots per block of max_distance */

/* Results of visits in these states that had to read the block. */
static const LaVisitResult miss_results[] = {
	[VISIT_UNKNOWN] = LA_VISIT_MISS,
	[VISIT_CONTROL] = LA_VISIT_CONTROL,
	[VISIT_SEQUENTIAL] = LA_VISIT_NEXT_MISS,
	[VISIT_NEAR] = LA_VISIT_NEAR_MISS,
	[VISIT_STREAM] = LA_VISIT_STREAM_MISS
};

#define count(window, counter)	la_window_count(window, counter)

static bool
is_within(uint64 distance, uint64 a, uint64 b)
{
	return (a > b ? a - b : b - a) <= distance;
}

/* For all visits that the policies may want foreseen, and some more. */
static uint64
slots_of(const LaIoPolicy *policy)
{
	return pg_nextpower2_64(Max(RING_FACTOR * policy->config.max_distance,
								policy->config.touch_distance) + 16);
}

/* For max_distance blocks in flight, and the one that is being consumed. */
static int
aio_slots(const LaIoPolicy *policy)
{
	return policy->config.max_distance + 1;
}

/*
 * A block was read alone: neither issued before, nor close to one that was read.  single: nothing
 * else was in flight.
 */
static void
note_read(Relation rel, double us, bool single)
{
	if (RelationUsesLocalBuffers(rel))
		return;
	la_history_note_read(rel->rd_rel->reltablespace, us);
	if (single && us >= la_min_read_time * 1000.0)
		la_history_note_single_read(rel->rd_rel->reltablespace, us);
}

/*
 * State OBSERVE: read a block into *current, and return the result and the time for the policy.
 * last: the block observed before, if any.
 */
LaVisitResult
la_window_read_observed(Relation rel, BlockNumber block, BlockNumber last,
						Buffer *current, LaCounters *counters, double *us)
{
	LaReadResult r = la_issue_read(rel, block, InvalidBuffer, true, false,
								   current);

	*us = r.us;
	if (!r.missed)
		return LA_VISIT_HIT;
	la_saving_on_read(counters, r.us);
	if (last != InvalidBlockNumber && is_within(LA_NEAR_BLOCKS, block, last))
		return block == last + 1 ? LA_VISIT_NEXT_MISS : LA_VISIT_NEAR_MISS;
	note_read(rel, r.us, true);
	return LA_VISIT_MISS;
}

/* Bytes without asynchronous reads. */
static Size
own_size(int nrels, const LaIoPolicy *policy)
{
	return sizeof(LaWindow) + slots_of(policy) * sizeof(Visit) +
		nrels * (sizeof(Relation) + sizeof(BlockNumber));
}

/* Bytes that a window takes at first. */
Size
la_window_size(Relation *rels, int nrels, const LaIoPolicy *policy)
{
	return own_size(nrels, policy) +
		(la_aio_is_needed(rels[0]) ? la_aio_size(aio_slots(policy)) : 0);
}

/* How many blocks may be in flight now, as this relation's tablespace has it? */
static void
set_limit(LaWindow *w, Relation rel)
{
	int64	   *capacity = &w->counters->c[LA_DISTANCE_CAPACITY];

	if (w->in_flight > 0)
		la_share_on_use(&w->share);
	w->limit = la_share_limit(&w->share, rel->rd_rel->reltablespace,
							  w->policy->config.max_distance);
	*capacity = Max(*capacity, w->limit);
}

/*
 * Either all relations are temporary, or none is.  cache_policy is NULL if the window is for
 * reads only.
 */
LaWindow *
la_window_create(Relation *rels, int nrels, LaProducer producer,
				 LaIoPolicy *policy, LaCachePolicy *cache_policy,
				 LaCounters *counters, LaBudget *budget)
{
	LaWindow   *w;

	w = palloc(sizeof(LaWindow) + nrels * (sizeof(Relation) + sizeof(BlockNumber)));
	memset(w, 0, offsetof(LaWindow, recent));
	w->rels = (Relation *) (w + 1);
	w->sizes = (BlockNumber *) &w->rels[nrels];
	for (int i = 0; i < nrels; i++)
	{
		w->rels[i] = rels[i];
		w->sizes[i] = InvalidBlockNumber;
	}
	w->local = RelationUsesLocalBuffers(rels[0]);
	w->producer = producer;
	w->policy = policy;
	w->cache_policy = cache_policy;
	w->counters = counters;
	w->budget = budget;
	/* visits are written before they are read */
	w->ring = palloc(slots_of(policy) * sizeof(Visit));
	w->mask = slots_of(policy) - 1;
	la_saving_init(&w->saving, rels[0]->rd_rel->reltablespace);
	la_lot_init(w);
	w->last_foreseen = LA_NO_BLOCK;
	for (int i = 0; i < RECENT_SLOTS; i++)
		w->recent[i].id = LA_NO_BLOCK;
	if (la_aio_is_needed(rels[0]))
		w->aio = la_aio_create(aio_slots(policy), budget);
	la_share_begin(&w->share, policy->for_reads, CurrentMemoryContext);
	set_limit(w, rels[0]);
	return w;
}

/* A relation that was not known when the window was created; it has not been visited yet. */
void
la_window_set_relation(LaWindow *w, int i, Relation rel)
{
	w->rels[i] = rel;
	w->sizes[i] = InvalidBlockNumber;
}

/* Some of the relations are closed, and may not be read until they are visited again. */
void
la_window_forget_waits(LaWindow *w)
{
	w->lot.first_wait = w->lot.last_wait;
}

/* Forget the foreseen visits: the scan moves elsewhere, or ends. */
void
la_window_clear(LaWindow *w)
{
	if (w->settled < w->head)
		w->settled = w->head;
	for (; w->settled < w->tail; w->settled++)
	{
		Visit	   *v = &w->ring[w->settled & w->mask];

		if (v->slot >= 0)
			la_aio_cancel(w->aio, v->slot);
		if (v->state == VISIT_CONTROL)
			la_io_policy_on_lost_control(w->policy);
	}
	w->counters->c[LA_BLOCKS_WASTED] += w->in_flight + w->nsettled;
	w->in_flight = w->nsettled = 0;
	w->head = w->page_touched = w->tail;
	w->last_foreseen = LA_NO_BLOCK;
	w->run = w->near_run = w->undecided = 0;
	la_share_end(&w->share);
	la_lot_clear(w);
}

void
la_window_free(LaWindow *w)
{
	Assert(w->head == w->tail);
	la_share_end(&w->share);
	if (w->aio)
		pfree(w->aio);
	la_lot_free(w);
	pfree(w->ring);
	pfree(w);
}

/*
 * SETTLE.  Reads are checked in order up to the first that is not done, or all of them if there
 * is no room for another one.
 */
static void
settle(LaWindow *w)
{
	bool		in_order = true;

	if (w->settled < w->head)
		w->settled = w->head;
	for (uint64 n = w->settled; n < w->tail; n++)
	{
		Visit	   *v = &w->ring[n & w->mask];

		if (v->slot >= 0)
		{
			if (la_aio_settle(w->aio, v->slot, &v->recent))
			{
				v->slot = -1;
				w->in_flight--;
				w->nsettled++;
			}
			else if (w->in_flight < w->limit &&
					 la_aio_has_room(w->aio))
				return;
			else
				in_order = false;
		}
		if (in_order)
			w->settled = n + 1;
	}
}

/*
 * Is the next visit in order part of a run that is left to the kernel?  Returns the kind of
 * run, or VISIT_UNKNOWN.
 */
static VisitState
extend_run(LaWindow *w, uint64 id, int more)
{
	uint64		last = w->last_foreseen;

	w->last_foreseen = id + more;
	w->run = id == last + 1 ? w->run + 1 : 0;
	w->near_run = is_within(RUN_BLOCKS, id, last) ? w->near_run + 1 : 0;
	if (w->policy->config.kernel_reads_near)
		la_io_policy_on_foreseen(w->policy, is_within(LA_NEAR_BLOCKS, id, last));
	if (w->run >= SEQUENTIAL_RUN)
		return VISIT_SEQUENTIAL;
	if (w->near_run >= NEAR_RUN && la_io_policy_leave_near(w->policy))
		return VISIT_NEAR;
	return VISIT_UNKNOWN;
}

/* Is the block's predecessor cached?  Then the kernel may take the read for part of a stream. */
static bool
follows_cached(LaWindow *w, const Visit *v)
{
	Buffer		before;

	return w->policy->for_reads && !w->policy->config.force && w->aio == NULL &&
		v->block > 0 &&
		la_issue_is_cached(w->rels[v->rel], v->block - 1, &before);
}

/* Behaviour RUN: start the reads of those blocks that are not cached. */
static LaIssueResult
issue_run(LaWindow *w, Visit *v)
{
	Relation	rel = w->rels[v->rel];
	Oid			tablespace = rel->rd_rel->reltablespace;
	BlockNumber first = InvalidBlockNumber;
	BlockNumber last = InvalidBlockNumber;

	for (BlockNumber block = v->block; block <= v->block + v->more; block++)
	{
		Buffer		recent;

		if (!la_issue_exists(rel, block, &w->sizes[v->rel]))
			break;
		if (block != v->block)
			(void) la_readahead_serves(&w->readahead, la_block_id(v->rel, block));
		if (la_issue_is_cached(rel, block, &recent))
		{
			if (block == v->block)
				v->recent = recent;
			continue;
		}
		if (first == InvalidBlockNumber)
			first = block;
		last = block;
	}
	if (first == InvalidBlockNumber)
		return LA_ISSUE_CACHED;
	if (la_share_is_limited() && la_share_of_backend(tablespace) == 0)
	{
		la_share_note_read(tablespace);
		return LA_ISSUE_NOTHING;
	}
	la_issue_range(rel, first, last - first + 1);
	la_counters_note_request(w->counters, last - first + 1, -1);
	return BufferIsValid(v->recent) ? LA_ISSUE_CACHED : LA_ISSUE_STARTED;
}

static LaIssueResult
issue(LaWindow *w, Visit *v)
{
	Relation	rel = w->rels[v->rel];
	double		before;
	int			slot;
	LaIssueResult result;

	/* no read is to be started, and PrefetchBuffer would start one */
	if ((!w->policy->config.advice_works || w->limit == 0) && !RelationUsesLocalBuffers(rel))
		return la_issue_is_cached(rel, v->block, &v->recent) ?
			LA_ISSUE_CACHED : LA_ISSUE_NOTHING;
	v->served = la_readahead_serves(&w->readahead, la_block_id(v->rel, v->block));
	if (w->aio == NULL)
	{
		before = la_saving_before_issue(&w->saving);
		result = v->more > 0 ? issue_run(w, v) : la_issue_block(rel, v->block, &v->recent);
		la_saving_after_issue(w->counters, before);
		return result;
	}
	result = la_aio_start(w->aio, rel, v->block, &slot, &v->recent);
	if (result == LA_ISSUE_STARTED)
		v->slot = slot;
	return result;
}

/*
 * Leave a block that is not cached to the kernel, as part of a stream, or make it a control.
 * Returns false if it is to be issued.
 */
static bool
withhold(LaWindow *w, Visit *v, bool *follows)
{
	LaIoPolicy *p = w->policy;
	bool		stream;

	*follows = follows_cached(w, v);
	stream = *follows && la_io_policy_leave_stream(p);
	if ((!stream && !la_io_policy_control_due(p)) ||
		la_issue_is_cached(w->rels[v->rel], v->block, &v->recent))
		return false;
	if (stream)
	{
		la_io_policy_on_uncached(p, true);
		v->state = VISIT_STREAM;
	}
	else
	{
		la_io_policy_on_control(p);
		v->state = VISIT_CONTROL;
	}
	return true;
}

static void
foresee(LaWindow *w, const LaForeseen *f)
{
	uint64		id = la_block_id(f->rel, f->block);
	bool		follows = false;
	Visit	   *v = la_window_append(w, f);
	bool		recent = la_window_note_block(w, id, RECENT_VISITS);

	if (f->more > 0)
		(void) la_window_note_block(w, id + f->more, RECENT_VISITS);
	v->state = extend_run(w, id, f->more);

	if (recent && f->more == 0)
	{
		v->state = VISIT_RECENT;
		count(w, LA_BLOCKS_SKIPPED_RECENT);
	}
	else if (v->state != VISIT_UNKNOWN && la_window_is_cached(w, v))
	{
		v->state = VISIT_CACHED;
		count(w, LA_BLOCKS_CACHED);
	}
	else if (v->state != VISIT_UNKNOWN)
		count(w, LA_BLOCKS_SKIPPED_SEQUENTIAL);
	else if (!la_issue_exists(w->rels[f->rel], f->block, &w->sizes[f->rel]))
	{
		/* to read it is an error, which stock raises */
	}
	else if (!recent && withhold(w, v, &follows))
	{
		if (v->state == VISIT_STREAM)
			count(w, LA_BLOCKS_SKIPPED_SEQUENTIAL);
	}
	else
	{
		switch (issue(w, v))
		{
			case LA_ISSUE_CACHED:
				v->state = VISIT_CACHED;
				count(w, LA_BLOCKS_CACHED);
				break;
			case LA_ISSUE_STARTED:
				v->state = VISIT_ISSUED;
				w->in_flight++;
				la_share_on_use(&w->share);
				la_io_policy_on_issue(w->policy);
				la_lot_policy_on_issue(&w->lot.policy);
				la_io_policy_on_uncached(w->policy, follows);
				count(w, LA_BLOCKS_ISSUED);
				if (f->more == 0)
					la_counters_note_request(w->counters, 1, w->in_flight);
				break;
			case LA_ISSUE_NOTHING:
				la_share_on_use(&w->share);
				la_share_note_read(w->rels[f->rel]->rd_rel->reltablespace);
				la_lot_policy_on_issue(&w->lot.policy);
				count(w, LA_BLOCKS_NOT_STARTED);
				break;
		}
	}
	v->on_trial = (v->state == VISIT_NEAR && !w->policy->near.proven) ||
		(v->state == VISIT_STREAM && !w->policy->stream.proven);
	if (v->on_trial)
		w->undecided++;
}

/*
 * How many visits to foresee in the order of need.  With a limit of 0 no read is started.  Then one
 * is foreseen, which shows that others would be; all of them are if their pages are to be touched.
 */
static uint64
wanted_visits(const LaWindow *w)
{
	uint64		wanted = la_io_policy_visits_ahead(w->policy);

	if (w->limit > 0)
		return wanted;
	if (w->local)
		return 0;
	return w->policy->for_reads ? Min(wanted, 1) : wanted;
}

static void
top_up(LaWindow *w)
{
	LaForeseen	f = {.block = InvalidBlockNumber};
	uint64		wanted = wanted_visits(w);

	if (la_lot_top_up(w))
		return;
	Assert(wanted <= w->mask);
	w->reach = wanted;
	while (w->tail - w->head < wanted && (w->in_flight < w->limit || w->limit == 0) &&
		   w->undecided < MAX_UNDECIDED &&
		   (w->aio == NULL || la_aio_has_room(w->aio)) &&
		   w->producer.next_visit(w->producer.arg, &f))
		foresee(w, &f);
}

/* TOUCH: a page at touch_distance, its row at half of that. */
static void
touch_ahead(LaWindow *w)
{
	uint64		distance = w->policy->config.touch_distance;
	uint64		limit = Min(w->tail, w->head + distance);
	uint64		second = w->head + distance / 2;

	if (w->page_touched < w->head)
		w->page_touched = w->head;
	for (; w->page_touched < limit; w->page_touched++)
	{
		Visit	   *v = &w->ring[w->page_touched & w->mask];

		if (v->state == VISIT_CACHED)
			la_issue_touch_page(v->recent, v->offset);
	}
	if (second < w->page_touched)
	{
		Visit	   *v = &w->ring[second & w->mask];

		if (v->state == VISIT_CACHED)
			la_issue_touch_tuple(v->recent, v->offset);
	}
}

/* READ */
static void
read_and_report(LaWindow *w, const Visit *v, Buffer *current)
{
	bool		timed = v->state != VISIT_RECENT && v->state != VISIT_CACHED;
	bool		settled = v->state == VISIT_ISSUED && w->aio != NULL;
	bool		waited;
	LaReadResult r = v->slot >= 0 ?
		la_aio_finish(w->aio, v->slot, w->rels[v->rel], current) :
		la_issue_read(w->rels[v->rel], v->block, v->recent, timed, settled,
					  current);
	LaVisitResult result = LA_VISIT_HIT;

	if (r.us >= w->policy->config.min_read_us)
		la_share_on_wait(&w->share);
	if (v->state == VISIT_LOT)
		la_lot_on_read(w, v, &r);
	if (v->state == VISIT_ISSUED || v->state == VISIT_LOT)
	{
		result = LA_VISIT_ISSUED;
		if (r.missed)
			la_saving_on_issued_read(&w->saving, w->counters, r.us, v->served && w->aio == NULL);
		waited = r.us >= w->policy->config.min_read_us;
		count(w, waited ? LA_BLOCKS_LATE : LA_BLOCKS_ON_TIME);
		w->counters->c[LA_IO_WAITS] += waited;
	}
	else if (r.missed && timed)
	{
		result = miss_results[v->state];
		la_saving_on_read(w->counters, r.us);
		if (v->state == VISIT_UNKNOWN || v->state == VISIT_CONTROL)
			note_read(w->rels[v->rel], r.us, w->in_flight == 0 && w->aio == NULL);
	}
	else if (v->state == VISIT_CONTROL)
		la_io_policy_on_lost_control(w->policy);

	if (w->cache_policy == NULL)
	{
		la_io_policy_on_visit(w->policy, result, r.us);
		return;
	}
	la_scan_policy_on_visit(w->policy, w->cache_policy, result, r.us);
	if (la_cache_policy_clock_due(w->cache_policy))
		la_scan_policy_on_clock(w->policy, w->cache_policy, la_issue_clock_us());
}

/*
 * For a producer that is asked for a visit: how many visits behind the one being made the window
 * may want foreseen now.
 */
uint64
la_window_reach(const LaWindow *w)
{
	return w->reach;
}

/* Have reads of foreseen blocks been started, or are they about to be, that are not yet visited? */
bool
la_window_has_reads(const LaWindow *w)
{
	return w->in_flight > 0 || w->lot.next < w->lot.n;
}

/*
 * The scan is about to return a row of another block than the previous one.  current: the scan's
 * buffer; NULL: it is the server that will need the block, see la_issue_read().
 */
void
la_window_visit(LaWindow *w, int rel, BlockNumber block, Buffer *current)
{
	Visit		v = {.block = block,.rel = rel,.state = VISIT_UNKNOWN,.slot = -1};

	if (w->head < w->tail && (w->ring[w->head & w->mask].block != block ||
							  w->ring[w->head & w->mask].rel != rel))
	{
		Assert(false);			/* producer and consumer disagree */
		la_window_clear(w);
	}
	if (w->head < w->tail)
	{
		v = w->ring[w->head & w->mask];
		w->head++;
		if (v.state == VISIT_ISSUED && w->aio != NULL && v.slot < 0)
			w->nsettled--;
		else if (v.state == VISIT_ISSUED || v.state == VISIT_LOT)
			w->in_flight--;
		else if (v.on_trial)
			w->undecided--;
	}
	else
	{
		w->producer.restart(w->producer.arg);
		w->last_foreseen = la_block_id(rel, block);
		(void) la_window_note_block(w, w->last_foreseen, RECENT_VISITS);
	}

	set_limit(w, w->rels[rel]);
	if (w->aio)
		settle(w);
	top_up(w);
	la_counters_note_distance(w->counters, w->in_flight);
	touch_ahead(w);
	read_and_report(w, &v, current);
}

/* The visit that is next, if it is of this block, will not be made. */
void
la_window_skip(LaWindow *w, int rel, BlockNumber block)
{
	Visit	   *v = &w->ring[w->head & w->mask];

	if (w->head == w->tail || v->block != block || v->rel != rel)
		return;
	w->head++;
	if (v->slot >= 0)
		la_aio_cancel(w->aio, v->slot);
	if (v->state == VISIT_ISSUED || v->state == VISIT_LOT)
	{
		count(w, LA_BLOCKS_WASTED);
		if (v->state == VISIT_ISSUED && w->aio != NULL && v->slot < 0)
			w->nsettled--;
		else
			w->in_flight--;
	}
	else if (v->on_trial)
		w->undecided--;
	if (v->state == VISIT_CONTROL)
		la_io_policy_on_lost_control(w->policy);
}
