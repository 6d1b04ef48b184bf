/*
 * config.c
 *	  The configuration of a scan's policies, from settings and from what is known.
 *
 * The policies are pure functions: what they decide by is put together here, once for each scan.
 *
 * src/window/config.c
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

#include "base/base.h"
#include "base/compat.h"
#include "window/window.h"

#define MICROSECONDS_PER_MILLISECOND 1000.0

/* Trials of cache prefetch in index scans: see cache_policy.c */
#define TRIAL_VISITS	64
#define FASTER			0.88	/* noise must not decide */
#define LONG_VISIT_US	4.0		/* ten times what waiting for memory takes */

/*
 * effective_io_concurrency of the tablespace that was looked up last.  Most scans of a session
 * want the same one, and the server's look-up takes two hash tables.
 */
static struct
{
	bool		valid;
	Oid			tablespace;
	int			session;		/* the session's setting then */
	int			concurrency;
}			last_tablespace;

static void
forget_tablespace(Datum arg, int cacheid, uint32 hashvalue)
{
	last_tablespace.valid = false;
}

static int
concurrency_of(Oid tablespace)
{
	static bool listening = false;

	if (last_tablespace.valid && last_tablespace.tablespace == tablespace &&
		last_tablespace.session == effective_io_concurrency)
		return last_tablespace.concurrency;
	if (!listening)
	{
		CacheRegisterSyscacheCallback(TABLESPACEOID, forget_tablespace, (Datum) 0);
		listening = true;
	}
	/* the look-up may fail, or call forget_tablespace() */
	last_tablespace.session = -1;
	last_tablespace.valid = true;
	last_tablespace.concurrency = get_tablespace_io_concurrency(tablespace);
	last_tablespace.tablespace = tablespace;
	last_tablespace.session = effective_io_concurrency;
	return last_tablespace.concurrency;
}

/*
 * The configuration of a policy for reads of this relation.  known_by: the index for which
 * history.c may know whether they are waits.
 */
LaIoPolicyConfig
la_config_reads(Relation rel, bool read_to_end, Oid known_by)
{
	/* more than a tablespace's own setting allows is not kept in flight */
	int			concurrency = concurrency_of(rel->rd_rel->reltablespace);
	int			distance = concurrency == effective_io_concurrency ?
		la_max_distance : Min(la_max_distance, concurrency);
	LaIoPolicyConfig config = {
		.max_distance = Max(distance, 1),
		.miss_threshold = la_miss_threshold,
		.min_read_us = la_min_read_time * MICROSECONDS_PER_MILLISECOND,
		.touch_distance = la_cache_prefetch_distance,
		.advice_works = la_share_most(distance) > 0 && (!la_direct_io() || la_aio_is_needed(rel)),
		.read_to_end = read_to_end,
		.end_is_certain = read_to_end,
		.known_slow = la_history_known_slow(known_by, rel->rd_rel->reltablespace),
		.force = la_force
	};

	return config;
}

/*
 * The same for a scan that cannot change its distance: no more than the session's share of the
 * tablespace's limit allows when it begins.
 */
LaIoPolicyConfig
la_config_reads_now(Relation rel, bool read_to_end, Oid known_by)
{
	LaIoPolicyConfig config = la_config_reads(rel, read_to_end, known_by);
	int			share = la_share_of_backend(rel->rd_rel->reltablespace);

	config.max_distance = Max(Min(config.max_distance, share), 1);
	config.advice_works &= share > 0;
	return config;
}

/*
 * The configuration of cache prefetch for an index scan.  To be called once for each scan of
 * known_by: see history.c.
 */
LaCachePolicyConfig
la_config_cache(Oid known_by)
{
	LaCachePolicyConfig config = {
		.threshold = la_cache_prefetch_threshold,
		.distance = la_cache_prefetch_distance,
		.trial = TRIAL_VISITS,
		.faster = FASTER,
		.visit_us = LONG_VISIT_US,
		.known_unhelpful = la_history_known_unhelpful(known_by)
	};

	return config;
}
