/*
 * cache_policy.c
 *	  Is it faster to prefetch cached pages into the CPU's caches?
 *
 * Where pages come from memory, prefetch makes visits up to 1.7 times as fast; where they are
 * in the CPU's caches, it costs a tenth or two (figures in bench/).  Which is the case cannot
 * be seen from the blocks, so it is timed:
 *
 *	IDLE ---------> BASELINE -----------> WARM_UP --> TRIAL ------> KEPT
 *	 ^   threshold   ^   |    timed                    |  faster     |
 *	 |   hits        |   | visits are long             |             |
 *	 +---------------|---+<----------------------------+ not faster  |
 *	 |   pause,      |                                               |
 *	 |   doubling    +------------ SETTLE <--------------------------+
 *	 +---- a read, in any phase              checked again
 *
 * BASELINE and TRIAL take config.trial visits each.  WARM_UP and SETTLE are not timed, as the
 * first visits with prefetch, and the first ones without it, are not typical.  A visit of many
 * rows, or of rows that need much computation, has little to gain: where BASELINE finds visits
 * longer than visit_us, there is no trial.  With known_unhelpful there is none in the first
 * PAUSE_FIRST visits either.
 *
 * Invariant: in IDLE, attend_at is later than the visit that was counted last.
 *
 * src/window/cache_policy.c
 */
#include <string.h>

#include "window/cache_policy.h"

#define WARM_UP_VISITS		16
#define SETTLE_VISITS		512 /* more than a leaf page has items, mostly */
#define KEPT_VISITS			16384
#define PAUSE_FIRST			8192
#define PAUSE_LAST			(1 << 20)

static void
set_phase(LaCachePolicy *p, LaCachePhase phase, int64_t visits)
{
	p->phase = phase;
	p->phase_start_us = 0;
	p->attend_at = p->length.total + visits;
}

void
la_cache_policy_init(LaCachePolicy *p, const LaCachePolicyConfig *config)
{
	memset(p, 0, sizeof(*p));
	p->config = *config;
	p->pause = PAUSE_FIRST;
	if (config->known_unhelpful)
		p->again_at = PAUSE_FIRST;
	la_cache_policy_reset(p);
}

/* Never look ahead. */
void
la_cache_policy_disable(LaCachePolicy *p)
{
	p->config.threshold = -1;
	la_cache_policy_reset(p);
}

/* The scan ended, or starts again with other keys.  Scans of one visit cannot look ahead. */
void
la_cache_policy_rescan(LaCachePolicy *p)
{
	(void) la_scan_length_end(&p->length);
	if (la_cache_policy_is_armed(p) && !la_scan_length_reaches(&p->length, 2))
		la_cache_policy_reset(p);
}

/* A hit has reached attend_at. */
void
la_cache_policy_attend(LaCachePolicy *p, bool may_begin)
{
	if (p->phase != LA_CACHE_IDLE)
		return;					/* la_cache_policy_on_clock() follows */
	if (may_begin && p->length.total >= p->again_at &&
		la_scan_length_reaches(&p->length, p->config.threshold / 4))
		set_phase(p, LA_CACHE_BASELINE, 0);
	else
		la_cache_policy_reset(p);
}

/* Prefetch does not pay off: the next trial is later, and later each time. */
static void
refuse(LaCachePolicy *p)
{
	la_cache_policy_reset(p);
	p->verdict = LA_CACHE_NOT_FASTER;
	p->again_at = p->length.total + p->pause;
	p->pause = la_min(p->pause * 2, PAUSE_LAST);
}

/* The time is now_us.  To be called when la_cache_policy_clock_due() returns true. */
void
la_cache_policy_on_clock(LaCachePolicy *p, double now_us)
{
	switch (p->phase)
	{
		case LA_CACHE_IDLE:
			break;

		case LA_CACHE_SETTLE:
			set_phase(p, LA_CACHE_BASELINE, p->config.trial);
			p->phase_start_us = now_us;
			break;

		case LA_CACHE_BASELINE:
			if (p->phase_start_us == 0)
			{
				p->phase_start_us = now_us;
				p->attend_at = p->length.total + p->config.trial;
				break;
			}
			p->baseline_us = now_us - p->phase_start_us;
			if (p->baseline_us > p->config.trial * p->config.visit_us)
				refuse(p);
			else
				set_phase(p, LA_CACHE_WARM_UP, WARM_UP_VISITS);
			break;

		case LA_CACHE_WARM_UP:
			set_phase(p, LA_CACHE_TRIAL, p->config.trial);
			p->phase_start_us = now_us;
			break;

		case LA_CACHE_TRIAL:
			if (now_us - p->phase_start_us < p->baseline_us * p->config.faster)
			{
				set_phase(p, LA_CACHE_KEPT, KEPT_VISITS);
				p->verdict = LA_CACHE_FASTER;
				p->pause = PAUSE_FIRST;
			}
			else
				refuse(p);
			break;

		case LA_CACHE_KEPT:
			set_phase(p, LA_CACHE_SETTLE, SETTLE_VISITS);
			break;
	}
}
