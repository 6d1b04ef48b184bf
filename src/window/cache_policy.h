/*
 * cache_policy.h
 *	  Is it faster to prefetch cached pages into the CPU's caches?
 *
 * Pure functions of counters and times, like io_policy.h.  See cache_policy.c.
 *
 * src/window/cache_policy.h
 */
#ifndef LA_CACHE_POLICY_H
#define LA_CACHE_POLICY_H

#include "window/scan_length.h"

typedef struct LaCachePolicyConfig
{
	int			threshold;		/* hits in a row before a trial, or -1: never */
	int			distance;		/* visits to look ahead */
	int			trial;			/* visits timed without it, and with it */
	double		faster;			/* it is kept below this share of the time */
	double		visit_us;		/* longer visits have little to gain */
	bool		known_unhelpful;	/* it was not faster in an earlier scan */
} LaCachePolicyConfig;

/* See cache_policy.c; from WARM_UP on, the policy is armed. */
typedef enum LaCachePhase
{
	LA_CACHE_IDLE,
	LA_CACHE_SETTLE,
	LA_CACHE_BASELINE,
	LA_CACHE_WARM_UP,
	LA_CACHE_TRIAL,
	LA_CACHE_KEPT
} LaCachePhase;

typedef enum LaCacheVerdict
{
	LA_CACHE_UNKNOWN,
	LA_CACHE_FASTER,
	LA_CACHE_NOT_FASTER
} LaCacheVerdict;

typedef struct LaCachePolicy
{
	LaCachePolicyConfig config;
	LaCachePhase phase;
	LaCacheVerdict verdict;
	LaScanLength length;
	int64_t		attend_at;		/* visit at which a trial may begin (IDLE), or
								 * the time is wanted */
	double		phase_start_us; /* 0: not known yet */
	double		baseline_us;	/* what `trial` visits took without it */
	int64_t		again_at;		/* no trial before this visit */
	int			pause;			/* visits until the one after the next */
} LaCachePolicy;

extern void la_cache_policy_init(LaCachePolicy *p, const LaCachePolicyConfig *config);
extern void la_cache_policy_disable(LaCachePolicy *p);
extern void la_cache_policy_rescan(LaCachePolicy *p);
extern void la_cache_policy_attend(LaCachePolicy *p, bool may_begin);
extern void la_cache_policy_on_clock(LaCachePolicy *p, double now_us);

/* Looking ahead? */
static inline bool
la_cache_policy_is_armed(const LaCachePolicy *p)
{
	return p->phase >= LA_CACHE_WARM_UP;
}

/* IDLE: count hits from here on. */
static inline void
la_cache_policy_reset(LaCachePolicy *p)
{
	p->phase = LA_CACHE_IDLE;
	p->attend_at = p->config.threshold < 0 ? INT64_MAX :
		p->length.total + p->config.threshold + 1;
}

/* A visit for which nothing was read; may_begin: a trial may begin now. */
static inline void
la_cache_policy_on_hit(LaCachePolicy *p, bool may_begin)
{
	if (++p->length.total >= p->attend_at)
		la_cache_policy_attend(p, may_begin);
}

/*
 * A visit for which something was read, or which another policy observes: cache prefetch cannot
 * help, nor be timed.
 */
static inline void
la_cache_policy_on_read(LaCachePolicy *p)
{
	p->length.total++;
	la_cache_policy_reset(p);
}

/* Does the policy want to know the time? */
static inline bool
la_cache_policy_clock_due(const LaCachePolicy *p)
{
	return p->length.total >= p->attend_at;
}

#endif							/* LA_CACHE_POLICY_H */
