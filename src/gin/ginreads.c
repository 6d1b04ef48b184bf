/*
 * ginreads.c
 *	  Are the reads of a GIN index's pages waits?  Pages read, and advised.
 *
 * What happens within a call of the access method cannot be timed from outside, unlike the steps of
 * a btree scan (btree/leafahead.c).  So pages that it is about to read are read here first, and
 * timed.  That costs nothing, as it finds them in shared buffers.  What they say is judged by
 * window/io_policy.c, which each call begins anew: most pages are never seen here, so that there
 * are no controls, and nothing ends ARMED before the call does.
 *
 *		begin --> OBSERVE -- miss_threshold waits --> ARMED
 *					^ |
 *					| +------ fast reads --------> PASS
 *					+----- HOLDOFF more reads -------+
 *
 *	NEEDED	If earlier calls have found the reads of this index's pages to be waits
 *		(window/history.c), one wait is needed in the first call and in every
 *		VERIFY_CALLS-th, and none in the others.
 *	VERDICT	What a call has found is kept for later ones, of other scans and writes, too.  It says
 *		nothing of reads of the table.
 *	PINS	A page that is read here is pinned for a moment, beside those of the caller, so
 *		la_ginreads_may_read() is asked before.  A page that is advised is not pinned.
 *	ERRORS	See window/issue.c about advice.  la_ginreads_read() is called for pages that the
 *		access method reads in any case.
 *
 * src/gin/ginreads.c
 */
#include "postgres.h"

#include "gin/gin.h"

#define VERIFY_CALLS	16
#define HOLDOFF			256

bool
la_ginreads_is_stock(const IndexAmRoutine *am)
{
	return am->amgetbitmap == gingetbitmap;
}

/* All of *r is zero before. */
void
la_ginreads_init(LaGinReads *r, Relation index, LaCounters *counters)
{
	r->index = index;
	r->counters = counters;
	r->index_size = InvalidBlockNumber;
	r->config = la_config_reads_now(index, true, RelationGetRelid(index));
	counters->c[LA_DISTANCE_CAPACITY] = r->config.max_distance;
}

static void
count_activated(LaGinReads *r)
{
	if (!r->counted)
		r->counters->c[LA_SCANS_ACTIVATED]++;
	r->counted = true;
}

/* A call of the access method begins. */
void
la_ginreads_begin(LaGinReads *r)
{
	LaIoPolicyConfig config = r->config;

	if (la_history_pages_known_slow(RelationGetRelid(r->index), r->index->rd_rel->reltablespace))
		config.miss_threshold = r->calls % VERIFY_CALLS == 0 ? Min(config.miss_threshold, 1) : 0;
	r->calls++;
	r->try_again = 0;
	la_io_policy_init(&r->policy, &config);
	if (config.force)
		count_activated(r);
}

/* It ends. */
void
la_ginreads_end(LaGinReads *r)
{
	la_history_note_pages(RelationGetRelid(r->index), la_io_policy_verdict(&r->policy));
}

/* Is it to be found out whether reads are waits? */
bool
la_ginreads_is_observing(LaGinReads *r)
{
	if (r->policy.state == LA_PASS && la_issue_blocks_read() >= r->try_again)
		la_io_policy_doubt(&r->policy);
	return r->policy.state == LA_OBSERVE;
}

/* Are reads to be started ahead?  NEEDED: where no wait is, they are from the first one on. */
bool
la_ginreads_arms(LaGinReads *r)
{
	if (r->policy.config.miss_threshold == 0 && la_ginreads_is_observing(r))
		la_io_policy_on_miss(&r->policy);
	return r->policy.state == LA_ARMED;
}

/* Is there a buffer to be pinned that the caller itself can do without? */
bool
la_ginreads_may_read(void)
{
	return la_budget_has_pin(false);
}

/* Read and pin a page of the index.  If it is not known whether reads are waits, time it. */
Buffer
la_ginreads_read(LaGinReads *r, BlockNumber block)
{
	Buffer		buffer = InvalidBuffer;
	bool		observing = la_ginreads_is_observing(r);
	LaReadResult result = la_issue_read(r->index, block, InvalidBuffer, observing, false, &buffer);

	if (observing && result.missed)
		la_io_policy_on_visit(&r->policy, LA_VISIT_MISS, result.us);
	if (observing && r->policy.state == LA_PASS)
		r->try_again = la_issue_blocks_read() + HOLDOFF;
	return buffer;
}

/* Start the read of a page of the index, if it is not cached. */
void
la_ginreads_advise(LaGinReads *r, BlockNumber block)
{
	Buffer		recent;

	if (!la_issue_exists(r->index, block, &r->index_size) ||
		la_issue_block(r->index, block, &recent) != LA_ISSUE_STARTED)
		return;
	r->counters->c[LA_LEAF_PAGES_ISSUED]++;
	count_activated(r);
}
