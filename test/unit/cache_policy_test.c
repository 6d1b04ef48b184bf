/*
 * cache_policy_test.c
 *	  Decisions of the cache policy, on simulated scans and alone.
 *
 * test/unit/cache_policy_test.c
 */
#include "simulation.h"

static void
test_trial(void)
{
	Sim			s;
	LaCachePolicyConfig unhelpful;

	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'h', 128);
	check("64 cached visits pass, 64 are timed",
		  s.armed_at < 0 && s.io.state == LA_PASS);
	visits(&s, 'h', 4);
	check("then prefetch is tried",
		  s.armed_at > 0 && s.io.ahead == 8 && !s.io.for_reads);
	visits(&s, 'h', 100000);
	check("and never goes far", s.max_ahead == 8 && s.issued == 0);
	check("kept where it is faster, but for checks", s.armed_visits > 90000);

	start(&s, &io_defaults, &cache_defaults);
	s.armed_us = 1.1;
	for (int i = 0; i < 100; i++)
	{
		/* misses that end the timing of passive visits */
		visits(&s, 'h', 100);
		visits(&s, 'o', 1);
	}
	check("a trial that a miss ended is not counted", s.armed_visits == 0);
	visits(&s, 'h', 1000000);
	check("stopped where it is not", s.armed_visits < 2000);
	s.armed_us = 0.6;
	visits(&s, 'h', 2000000);
	check("and found when it is later", s.io.state == LA_ARMED ||
		  s.armed_visits > 500000);

	unhelpful = cache_defaults;
	unhelpful.known_unhelpful = true;
	start(&s, &io_defaults, &unhelpful);
	visits(&s, 'h', 8192);
	check("not tried at once where it did not help before",
		  s.armed_visits == 0);
	visits(&s, 'h', 1000);
	check("but later", s.armed_visits > 0);

	start(&s, &io_defaults, &cache_defaults);
	s.passive_us = 8.0;
	s.armed_us = 7.6;
	visits(&s, 'h', 100000);
	check("long visits get no trial", s.armed_visits == 0);
	s.passive_us = 1.0;
	s.armed_us = 0.6;
	visits(&s, 'h', 1000000);
	check("until they are short", s.armed_visits > 500000);
}

static void
test_misses_stop(void)
{
	Sim			s;
	LaCachePolicyConfig off = cache_defaults;

	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'd', 1000);
	visits(&s, 'h', 5000);
	check("falls back to cache prefetch",
		  s.io.state == LA_ARMED && s.io.ahead == 8 && !s.io.for_reads);

	off.threshold = -1;
	start(&s, &io_defaults, &off);
	visits(&s, 'd', 1000);
	visits(&s, 'h', 5000);
	check("or disarms where cache prefetch is off",
		  s.io.state == LA_PASS);
	visits(&s, 'h', 100000);
	check("and cached scans never arm then", s.io.state == LA_PASS);
	visits(&s, 'd', 1000);
	check("until misses come back", s.io.state == LA_ARMED);
}

static void
test_rescans(void)
{
	Sim			s;

	/* cached inner side of a nested loop, ten rows each */
	start(&s, &io_defaults, &cache_defaults);
	for (int i = 0; i < 1000; i++)
	{
		visits(&s, 'h', 10);
		rescan(&s, false);
	}
	check("short cached rescans are left alone", s.armed_at < 0);
}

/* Without an io policy beside it, as for the outer rows of a nested loop. */
static void
test_alone(void)
{
	LaCachePolicy p;
	double		now_us = 1;
	int			armed = 0;

	la_cache_policy_init(&p, &cache_defaults);
	for (int i = 0; i < 10000; i++)
	{
		la_cache_policy_on_hit(&p, true);
		now_us += la_cache_policy_is_armed(&p) ? 0.6 : 1.0;
		if (la_cache_policy_clock_due(&p))
			la_cache_policy_on_clock(&p, now_us);
		armed += la_cache_policy_is_armed(&p);
	}
	check("kept where it is faster, alone",
		  armed > 9000 && p.verdict == LA_CACHE_FASTER);
	la_cache_policy_on_read(&p);
	check("a read ends it", !la_cache_policy_is_armed(&p));
	for (int i = 0; i < 64; i++)
		la_cache_policy_on_hit(&p, true);
	check("and hits are counted anew", !la_cache_policy_clock_due(&p));
	la_cache_policy_on_hit(&p, false);
	check("no trial begins where it may not", !la_cache_policy_clock_due(&p));
	la_cache_policy_disable(&p);
	for (int i = 0; i < 10000; i++)
		la_cache_policy_on_hit(&p, true);
	check("nor where it is disabled", !la_cache_policy_clock_due(&p));
}

int
main(void)
{
	test_trial();
	test_misses_stop();
	test_rescans();
	test_alone();
	return report();
}
