/*
 * evidence.c
 *	  Are the reads of a GIN scan waits?  Pages read, and advised.
 *
 * What happens within a call of amgetbitmap cannot be timed from outside, unlike the steps of a
 * btree scan (btree/leafahead.c).  So pages that the access method is about to read are read here
 * first, and timed.  That costs nothing, as it finds them in shared buffers.  What they say is
 * judged by window/io_policy.c, which each call begins anew: most pages are never seen here, so
 * that there are no controls, and nothing ends ARMED before the call does.
 *
 *		begin --> OBSERVE -- miss_threshold waits --> ARMED
 *					^ |
 *					| +------ fast reads --------> PASS
 *					+----- HOLDOFF more reads -------+
 *
 *	NEEDED	If earlier scans have found the reads of this index's pages to be waits
 *		(window/history.c), one wait is needed in the first call of a scan and in every
 *		VERIFY_CALLS-th, and none in the others.
 *	VERDICT	What a call has found is kept for later bitmap scans of the index.  It says nothing
 *		of reads of the table.
 *	PINS	A page that is read here is pinned for a moment, beside those of the scan, so
 *		la_evidence_may_read() is asked before.  A page that is advised is not pinned.
 *	ERRORS	See window/issue.c about advice.  la_evidence_read() is called for pages that the
 *		access method reads in any case.
 *
 * src/bitmap/evidence.c
 */
#include "postgres.h"

#include "bitmap/bitmap_int.h"
#include "window/window.h"

#define VERIFY_CALLS	16
#define HOLDOFF			256

#define policy_of(bs)	(&(bs)->leaf.policy.io)

static void
count_activated(LaBitmapScan *bs)
{
	if (!bs->counted)
		bs->counters.c[LA_SCANS_ACTIVATED]++;
	bs->counted = true;
}

/* A call of amgetbitmap begins. */
void
la_evidence_begin(LaBitmapScan *bs)
{
	LaIoPolicyConfig config = bs->config;

	if (la_history_pages_known_slow(bs->indexrelid, bs->real->rd_rel->reltablespace))
		config.miss_threshold = bs->calls % VERIFY_CALLS == 0 ? Min(config.miss_threshold, 1) : 0;
	bs->calls++;
	bs->counted = false;
	bs->try_again = 0;
	la_io_policy_init(policy_of(bs), &config);
	if (config.force)
		count_activated(bs);
}

/* It ends. */
void
la_evidence_end(LaBitmapScan *bs)
{
	la_history_note_pages(bs->indexrelid, la_io_policy_verdict(policy_of(bs)));
}

/* Is it to be found out whether reads are waits? */
bool
la_evidence_is_observing(LaBitmapScan *bs)
{
	if (policy_of(bs)->state == LA_PASS && la_issue_blocks_read() >= bs->try_again)
		la_io_policy_doubt(policy_of(bs));
	return policy_of(bs)->state == LA_OBSERVE;
}

/* Are reads to be started ahead?  NEEDED: where no wait is, they are from the first one on. */
bool
la_evidence_arms(LaBitmapScan *bs)
{
	if (policy_of(bs)->config.miss_threshold == 0 && la_evidence_is_observing(bs))
		la_io_policy_on_miss(policy_of(bs));
	return policy_of(bs)->state == LA_ARMED;
}

/* Is there a buffer to be pinned that the scan itself can do without? */
bool
la_evidence_may_read(void)
{
	return la_budget_has_pin(false);
}

/* Read and pin a page of the index.  If it is not known whether reads are waits, time it. */
Buffer
la_evidence_read(LaBitmapScan *bs, BlockNumber block)
{
	Buffer		buffer = InvalidBuffer;
	bool		observing = la_evidence_is_observing(bs);
	LaReadResult r = la_issue_read(bs->real, block, InvalidBuffer, observing, false, &buffer);

	if (observing && r.missed)
		la_io_policy_on_visit(policy_of(bs), LA_VISIT_MISS, r.us);
	if (observing && policy_of(bs)->state == LA_PASS)
		bs->try_again = la_issue_blocks_read() + HOLDOFF;
	return buffer;
}

/* Start the read of a page of the index, if it is not cached. */
void
la_evidence_advise(LaBitmapScan *bs, BlockNumber block)
{
	if (la_leafahead_issue_page(&bs->leaf, block))
		count_activated(bs);
}
