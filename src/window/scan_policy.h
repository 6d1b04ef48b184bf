/*
 * scan_policy.h
 *	  The two policies of an index scan, side by side: which of them decides.
 *
 * Both count the same visits.  A wait costs as much as hundreds of visits to cached pages, so
 * the io policy leads:
 *
 *		io policy					cache policy
 *		PASS						not armed; begins no trial during a hold-off
 *		OBSERVE, ARMED for_reads	IDLE
 *		ARMED, not for_reads		armed, assisted by the io policy
 *
 * src/window/scan_policy.h
 */
#ifndef LA_SCAN_POLICY_H
#define LA_SCAN_POLICY_H

#include "window/cache_policy.h"
#include "window/io_policy.h"

/*
 * A visit in state PASS without a miss.  Returns false, and counts nothing, if it needs a
 * decision; then la_scan_policy_on_pass() counts it.
 */
static inline bool
la_scan_policy_quiet_visit(LaIoPolicy *io, LaCachePolicy *cache)
{
	if (cache->length.total + 1 >= cache->attend_at)
		return false;
	cache->length.total++;
	io->length.total++;
	return true;
}

/* A visit in state PASS; missed: a buffer has been read since the previous one. */
static inline void
la_scan_policy_on_pass(LaIoPolicy *io, LaCachePolicy *cache, bool missed)
{
	la_io_policy_on_pass(io, missed);
	if (missed)
		la_cache_policy_on_read(cache);
	else
		la_cache_policy_on_hit(cache, io->length.total >= io->holdoff_until);
}

/* So many visits were not counted, none of which missed. */
static inline void
la_scan_policy_begin_late(LaIoPolicy *io, LaCachePolicy *cache, int visits)
{
	int64_t		until = cache->attend_at - cache->length.total - 1;

	visits = (int) la_min(until, visits);
	cache->length.total += visits;
	io->length.total += visits;
}

/* A visit in state OBSERVE or ARMED. */
static inline void
la_scan_policy_on_visit(LaIoPolicy *io, LaCachePolicy *cache, LaVisitResult result,
						double us)
{
	la_io_policy_on_visit(io, result, us);
	if (io->state == LA_ARMED && !io->for_reads)
		la_cache_policy_on_hit(cache, false);
	else
		la_cache_policy_on_read(cache);
}

/* The time is now_us.  To be called when la_cache_policy_clock_due() returns true. */
static inline void
la_scan_policy_on_clock(LaIoPolicy *io, LaCachePolicy *cache, double now_us)
{
	bool		was_armed = la_cache_policy_is_armed(cache);

	la_cache_policy_on_clock(cache, now_us);
	if (was_armed && !la_cache_policy_is_armed(cache))
		la_io_policy_stop(io);
	else if (!was_armed && la_cache_policy_is_armed(cache))
		la_io_policy_assist(io, cache->config.distance);
}

/*
 * The scan ended, or starts again with other keys.  The io policy decides for both whether
 * scans are long enough to look ahead.
 */
static inline void
la_scan_policy_rescan(LaIoPolicy *io, LaCachePolicy *cache, bool ended_early)
{
	la_io_policy_rescan(io, ended_early);
	(void) la_scan_length_end(&cache->length);
	if (la_cache_policy_is_armed(cache) && io->state != LA_ARMED)
		la_cache_policy_reset(cache);
}

#endif							/* LA_SCAN_POLICY_H */
