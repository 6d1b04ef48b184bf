/*
 * saving.c
 *	  How much time look-ahead saves: an estimate.
 *
 *		saved = sum over the reads of issued blocks (time of a single read - time it has taken)
 *				- time to issue them
 *
 * The time of a single read is the average of those that scans have waited for before they looked
 * ahead (state OBSERVE), or while nothing was in flight; of all sessions, by tablespace.  Until
 * there are READS_ENOUGH of these, it is that which pg_lookahead_calibrate() has measured, if it
 * has, with an error bound of a tenth.  Reads made while others are in flight wait for these in
 * the storage's queue, as the controls of an armed scan do, and would make too much of it.
 *
 * Issuing is timed for one block of ISSUE_SAMPLE, and for each request of several blocks, since the
 * kernel's work of starting a read is not small beside a read of 50 microseconds.
 *
 * Error.  Reads differ.  If d is the standard deviation of reads, and their average is made of n
 * of them, then in 19 of 20 cases the true one is within 2 * d / sqrt(n).  As one average is used
 * for all reads of a scan, their errors add up.
 *
 * Blocks that stock would have found read by the kernel's read-ahead would have taken it no more
 * than a copy (readahead.c).
 *
 * What the estimate does not know: what look-ahead costs of the processor's time apart from
 * issuing; and that the same blocks, once read, stay cached for others.
 *
 * src/window/saving.c
 */
#include "postgres.h"

#include "window/window.h"

#define ISSUE_SAMPLE		8
#define READS_ENOUGH		8
#define CALIBRATION_ERROR	0.1

void
la_saving_init(LaSaving *s, Oid tablespace)
{
	LaStorage	storage;

	if (la_history_single_read(tablespace, &s->read_us, &s->error_us) < READS_ENOUGH &&
		la_storage_get(tablespace, &storage))
	{
		s->read_us = storage.random_us[0] + LA_SAVING_COPY_US;
		s->error_us = s->read_us * CALIBRATION_ERROR;
	}
}

/* To be called before a block is issued; pass the result to the next function. */
double
la_saving_before_issue(const LaSaving *s)
{
	/* of all scans: short ones would be charged for too much or nothing */
	static unsigned nissued = 0;

	return s->read_us > 0.0 && nissued++ % ISSUE_SAMPLE == 0 ? la_issue_clock_us() : 0.0;
}

void
la_saving_after_issue(LaCounters *counters, double before)
{
	if (before > 0.0)
		counters->c[LA_SAVED_NS] -=
			(int64) ((la_issue_clock_us() - before) * 1000.0 * ISSUE_SAMPLE);
}

/* A request for several blocks has been made since then. */
void
la_saving_on_range(const LaSaving *s, LaCounters *counters, double before)
{
	if (s->read_us > 0.0)
		counters->c[LA_SAVED_NS] -= (int64) ((la_issue_clock_us() - before) * 1000.0);
}
