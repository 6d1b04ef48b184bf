/*
 * evidence.c
 *	  Are the reads of a GIN scan waits?  Pages read, and advised.
 *
 * What happens within a call of amgetbitmap cannot be timed from outside, unlike the steps of a
 * btree scan (btree/leafahead.c).  So pages that the access method is about to read are read here
 * first, and timed.  That costs nothing, as it finds them in shared buffers.
 *
 *		begin --> observing -- so many waits as are needed --> armed
 *					^ |
 *					| +------ FAST_ENOUGH fast reads --------> given up
 *					+----------- HOLDOFF more reads ------------+
 *
 *	NEEDED	miss_threshold waits, of which two are 400 us on a disk.  If earlier scans have
 *		found the reads of this index's pages to be waits (window/history.c), one is needed in
 *		the first call of a scan and in every VERIFY_CALLS-th, and none in the others.
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

#include "storage/bufmgr.h"

#include "bitmap/evidence.h"
#include "window/history.h"
#include "window/issue.h"

#define FAST_ENOUGH		8
#define VERIFY_CALLS	16
#define HOLDOFF			256

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
	const LaIoPolicyConfig *config = &bs->config;

	bs->needed = config->miss_threshold;
	if (la_history_pages_known_slow(bs->indexrelid, bs->real->rd_rel->reltablespace))
		bs->needed = bs->calls % VERIFY_CALLS == 0 ? Min(bs->needed, 1) : 0;
	bs->calls++;
	bs->waits = bs->fast = 0;
	bs->given_up = bs->counted = false;
	bs->armed = config->force;
	if (bs->armed)
		count_activated(bs);
}

/* It ends. */
void
la_evidence_end(LaBitmapScan *bs)
{
	LaIoVerdict verdict = LA_READS_UNKNOWN;

	if (bs->given_up)
		verdict = LA_READS_FAST;
	else if (bs->waits > 0 && bs->waits >= bs->needed)
		verdict = LA_READS_SLOW;
	la_history_note_pages(bs->indexrelid, verdict);
}

/* Are reads to be started ahead?  NEEDED: where no wait is, they are from the first one on. */
bool
la_evidence_arms(LaBitmapScan *bs)
{
	if (!bs->armed && bs->needed == 0 && la_evidence_is_observing(bs))
		bs->armed = true;
	return bs->armed;
}

/* Is there a buffer to be pinned that the scan itself can do without? */
bool
la_evidence_may_read(void)
{
	return la_budget_has_pin(false);
}

/* Is it to be found out whether reads are waits? */
bool
la_evidence_is_observing(LaBitmapScan *bs)
{
	if (bs->given_up && la_issue_blocks_read() >= bs->try_again)
	{
		bs->given_up = false;
		bs->waits = bs->fast = 0;
	}
	return !bs->armed && !bs->given_up;
}

bool
la_evidence_is_cached(LaBitmapScan *bs, BlockNumber block)
{
	Buffer		recent;

	return la_issue_is_cached(bs->real, block, &recent);
}

/* A page was read, which took so long. */
static void
note_read(LaBitmapScan *bs, double us)
{
	if (!la_evidence_is_observing(bs))
		return;
	if (us >= bs->config.min_read_us)
		bs->waits++;
	else
		bs->fast++;
	if (bs->waits >= bs->needed)
		bs->armed = true;
	else if (bs->fast >= FAST_ENOUGH)
	{
		bs->given_up = true;
		bs->try_again = la_issue_blocks_read() + HOLDOFF;
	}
}

/* Read and pin a page of the index.  If it is not known whether reads are waits, time it. */
Buffer
la_evidence_read(LaBitmapScan *bs, BlockNumber block)
{
	Buffer		buffer = InvalidBuffer;
	bool		observing = la_evidence_is_observing(bs);
	LaReadResult r = la_issue_read(bs->real, block, InvalidBuffer, observing, false, &buffer);

	if (observing && r.missed)
		note_read(bs, r.us);
	return buffer;
}

/* Start the read of a page of the index, if it is not cached. */
void
la_evidence_advise(LaBitmapScan *bs, BlockNumber block)
{
	if (la_leafahead_issue_page(&bs->leaf, block))
		count_activated(bs);
}
