/*
 * io_policy_test.c
 *	  Decisions of the io policy, on simulated scans.
 *
 * test/unit/io_policy_test.c
 */
#include "simulation.h"

static void
test_arming(void)
{
	Sim			s;

	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'd', 3);
	check("three slow reads are waited for before arming",
		  s.armed_at < 0 && s.waits == 3);
	visits(&s, 'd', 1);
	check("the fourth visit looks ahead", s.armed_at == 3);
}

static void
test_ramp(void)
{
	Sim			s;
	int			before;

	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'd', 3);
	visit(&s, 'd', 1000);
	before = s.io.ahead;
	check("starts with 2 ahead", before == 2);
	visit(&s, 'd', 1000);
	check("doubles with an issued block consumed", s.io.ahead == 4);
	visits(&s, 'd', 10000);
	check("reaches max_distance in flight", s.max_in_flight == 64);
	check("and never more", s.max_in_flight <= 64);
	check("waits for few reads once ramped: controls only", s.waits < 30);

	start(&s, &io_defaults, &cache_defaults);
	s.io.config.max_distance = 1;
	visits(&s, 'd', 1000);
	check("max_distance 1 is obeyed", s.max_in_flight == 1);
}

static void
test_lost_control(void)
{
	Sim			s;

	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'd', 8);
	for (int i = 0; i < 100 && !la_io_policy_control_due(&s.io); i++)
		la_io_policy_on_issue(&s.io);
	check("a control is due", la_io_policy_control_due(&s.io));
	la_io_policy_on_control(&s.io);
	check("one at a time", !la_io_policy_control_due(&s.io));
	la_io_policy_on_lost_control(&s.io);
	check("one that is lost is made good", la_io_policy_control_due(&s.io));
}

static void
test_mixed(void)
{
	Sim			s;

	/* 7 of 8 visits cached: more visits than 64 must be foreseen */
	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'd', 8);
	for (int i = 0; i < 4000; i++)
	{
		LaIoPolicy *p = &s.io;

		la_io_policy_on_visit(p, i % 8 == 0 ? LA_VISIT_ISSUED : LA_VISIT_HIT, 0);
	}
	check("hits in between do not shrink the distance", s.io.ahead == 256);

	/* half in the OS cache: still worth it, and not disarmed */
	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'm', 20000);
	check("a mixed scan stays armed", s.io.state == LA_ARMED &&
		  s.armed_visits > 19000);
}

static void
test_os_cache(void)
{
	Sim			s;

	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'o', 1000);
	check("fast reads never arm", s.armed_at < 0 && s.issued == 0);
	visits(&s, 'o', 100000);
	check("not even in long scans", s.issued == 0);

	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'd', 5000);
	check("armed by slow reads", s.io.state == LA_ARMED);
	visits(&s, 'o', 5000);
	check("disarmed when the OS has the blocks", s.io.state != LA_ARMED);
	check("after little advice in vain", s.issued_in_vain < 2000);
	visits(&s, 'd', 5000);
	check("armed again when reads are slow again",
		  s.io.state == LA_ARMED);
}

/* Misses are ignored during a hold-off: so many visits may be reported at once. */
static void
test_rest(void)
{
	LaIoPolicyConfig c = io_defaults;
	LaIoPolicy	p;
	int			rest;

	la_io_policy_init(&p, &c);
	check("no rest before a hold-off", la_io_policy_rest(&p) == 0);
	la_io_policy_hold_off(&p);
	rest = la_io_policy_rest(&p);
	for (int i = 1; i < rest; i++)
		la_io_policy_on_pass(&p, true);
	check("misses are ignored as long as it rests", p.state == LA_PASS && la_io_policy_rest(&p) == 1);
	la_io_policy_on_pass(&p, true);
	check("... and no longer", p.state == LA_OBSERVE);

	la_io_policy_hold_off(&p);
	check("the next rest is longer", la_io_policy_rest(&p) == 2 * rest);
	la_io_policy_on_rest(&p, 2 * rest);
	check("a rest is over at once", la_io_policy_rest(&p) == 0 && p.state == LA_PASS);
	la_io_policy_on_pass(&p, true);
	check("... and misses count", p.state == LA_OBSERVE);

	c.advice_works = false;
	la_io_policy_init(&p, &c);
	check("always rest where advice does not work", la_io_policy_rest(&p) > 0);
}

/*
 * Blocks close to each other.  of_kernel tells how many of ten such reads the
 * kernel's read-ahead serves.
 */
static void
near_visits(Sim *s, int n, int of_kernel)
{
	LaIoPolicy *p = &s->io;

	for (int i = 0; i < n; i++)
	{
		double		us = i % 10 < 10 - of_kernel ? DISK_US : OS_CACHE_US;

		if (p->state == LA_PASS)
			la_io_policy_on_pass(p, true);
		else if (p->state == LA_ARMED && !la_io_policy_leave_near(p))
		{
			la_io_policy_on_issue(p);
			s->issued++;
			la_io_policy_on_visit(p, LA_VISIT_ISSUED, OS_CACHE_US);
		}
		else
		{
			if (us == DISK_US)
				s->waits++;
			la_io_policy_on_visit(p, LA_VISIT_NEAR_MISS, us);
		}
	}
}

static void
test_near(void)
{
	Sim			s;

	start(&s, &io_defaults, &cache_defaults);
	near_visits(&s, 10000, 9);
	check("near reads that the kernel serves never arm",
		  s.io.state != LA_ARMED);

	start(&s, &io_defaults, &cache_defaults);
	near_visits(&s, 9, 0);
	check("near reads arm after four times as many waits",
		  s.io.state == LA_ARMED);
	near_visits(&s, 10000, 0);
	check("and are issued when the kernel does not serve them",
		  s.issued > 9000 && s.waits < 100);

	/* the kernel needs some reads to find out */
	start(&s, &io_defaults, &cache_defaults);
	near_visits(&s, 5, 0);
	near_visits(&s, 10000, 8);
	check("nor do those that it serves after some waits", s.io.state != LA_ARMED && s.waits < 2100);
	check("... as those of distant storage", !s.io.kernel_is_slow);

	start(&s, &io_defaults, &cache_defaults);
	for (int i = 0; i < 18; i++)
		near_visits(&s, 1, i % 2 == 0 ? 10 : 0);
	check("near reads arm where the kernel serves every other one", s.io.state == LA_ARMED);

	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'd', 1000);
	s.issued = 0;
	near_visits(&s, 10000, 9);
	check("an armed scan leaves near runs to a kernel that serves them",
		  s.issued == 0);
	check("which is not slow", !s.io.kernel_is_slow);

	/* nine of ten, but what is left takes a millisecond */
	start(&s, &io_defaults, &cache_defaults);
	for (int i = 0; i < 100; i++)
	{
		if (s.io.state == LA_PASS)
			la_io_policy_on_pass(&s.io, true);
		else
			la_io_policy_on_visit(&s.io, LA_VISIT_NEXT_MISS, i % 10 == 9 ? 1000.0 : OS_CACHE_US);
	}
	check("read-ahead of distant storage is too slow, even from block to block",
		  s.io.state == LA_ARMED && s.io.kernel_is_slow);
	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'd', 1000);
	s.issued = 0;
	for (int i = 0; i < 100; i++)
		la_io_policy_on_visit(&s.io, LA_VISIT_NEXT_MISS, i % 16 == 15 ? DISK_US : OS_CACHE_US);
	check("that of a disk is not", s.io.state == LA_ARMED && !s.io.kernel_is_slow);
}

/* A nested loop: what is observed is done twice. */
static void
test_nested_loop(void)
{
	Sim			s;
	LaIoPolicyConfig config = io_defaults;
	LaCachePolicyConfig never = {.threshold = -1};

	config.costly_to_observe = true;
	config.kernel_reads_near = true;
	start(&s, &config, &never);
	for (int i = 0; i < 10000; i++)
	{
		/* rows that find the page of the index, and one that turns to the next */
		visits(&s, 'n', 1);
		visits(&s, 'h', 3);
	}
	check("pages one after the other are seldom observed",
		  s.observed < 1000 && s.io.state != LA_ARMED);
	check("and nothing is said of how slow reads are",
		  s.io.verdict == LA_READS_UNKNOWN);
	visits(&s, 'd', 5000);
	check("others are found in the end", s.io.state == LA_ARMED);

	start(&s, &config, &never);
	visits(&s, 'd', 1);
	visits(&s, 'h', 128);
	check("hits end it", s.io.state == LA_PASS);
	visits(&s, 'd', 32);
	check("... for a while", s.io.state == LA_PASS);
	visits(&s, 'd', 200);
	check("... and no longer", s.io.state == LA_ARMED);
}

static void
test_rescans(void)
{
	Sim			s;

	/* a nested loop over a primary key */
	start(&s, &io_defaults, &cache_defaults);
	for (int i = 0; i < 100000; i++)
	{
		visits(&s, i % 3 == 0 ? 'd' : 'h', 1);
		rescan(&s, false);
	}
	check("scans of one visit never arm", s.armed_at < 0);

	/* twenty rows each */
	start(&s, &io_defaults, &cache_defaults);
	for (int i = 0; i < 100; i++)
	{
		visits(&s, 'd', 20);
		rescan(&s, false);
	}
	check("evidence is carried over: armed from the first visit on",
		  s.armed_visits == 2000 - 3);
	check("nothing foreseen beyond the end", s.wasted == 0);

	/* LIMIT 5 inside of a long index range, again and again */
	start(&s, &io_defaults, &cache_defaults);
	for (int i = 0; i < 1000; i++)
	{
		for (int j = 0; j < 5; j++)
			visit(&s, 'd', 1000);
		rescan(&s, true);
	}
	check("early ends are learnt: little is wasted", s.wasted < 500);
	check("while most waits are gone", s.waits < 2500);

	/* ... and a long one after that ramps again */
	for (int j = 0; j < 5000; j++)
		visit(&s, 'd', 5000 - j);
	check("a longer scan than usual still ramps", s.max_in_flight == 64);
}

static void
test_settings(void)
{
	Sim			s;
	LaIoPolicyConfig c = io_defaults;

	c.force = true;
	start(&s, &c, &cache_defaults);
	check("force arms at once", s.io.state == LA_ARMED &&
		  la_io_policy_visits_ahead(&s.io) == 256);
	visits(&s, 'o', 10000);
	check("and never disarms", s.io.state == LA_ARMED);
	rescan(&s, true);
	check("nor shrinks", la_io_policy_visits_ahead(&s.io) == 256);

	c = io_defaults;
	c.advice_works = false;
	start(&s, &c, &cache_defaults);
	visits(&s, 'd', 10000);
	check("where advice does not work, none is given", s.issued == 0);

	c = io_defaults;
	c.miss_threshold = 0;
	start(&s, &c, &cache_defaults);
	visits(&s, 'd', 2);
	check("miss_threshold 0 arms on the first miss", s.armed_at == 1);

	c = io_defaults;
	c.min_read_us = 0;
	start(&s, &c, &cache_defaults);
	visits(&s, 'o', 100);
	check("min_read_time 0 takes every read for a wait", s.armed_at == 3);
}

static void
test_knowledge(void)
{
	Sim			s;
	LaIoPolicyConfig c = io_defaults;

	c.read_to_end = true;
	start(&s, &c, &cache_defaults);
	visits(&s, 'd', 2);
	check("a scan that is read to its end still needs evidence",
		  s.io.state != LA_ARMED);
	visits(&s, 'd', 3);
	check("... and begins at full distance", s.max_in_flight == 64 || s.max_ahead >= 64);

	c = io_defaults;
	start(&s, &c, &cache_defaults);
	visits(&s, 'd', 100);
	check("slow reads are remembered", s.io.verdict == LA_READS_SLOW);
	start(&s, &c, &cache_defaults);
	visits(&s, 'o', 100);
	check("fast reads are remembered", s.io.verdict == LA_READS_FAST);
	start(&s, &c, &cache_defaults);
	visits(&s, 'h', 10000);
	check("hits are no verdict", s.io.verdict == LA_READS_UNKNOWN);

	c.known_slow = true;
	start(&s, &c, &cache_defaults);
	visits(&s, 'd', 2);
	check("known slow reads arm at the first miss", s.armed_at == 1);
	visits(&s, 'd', 10000);
	check("... and are looked at like any others", s.io.state == LA_ARMED &&
		  s.io.verdict == LA_READS_SLOW && s.waits < 60);

	start(&s, &c, &cache_defaults);
	visits(&s, 'o', 100);
	check("what is known can be wrong: 4 + 2 * 16 reads are issued in vain",
		  s.issued_in_vain > 0 && s.issued_in_vain <= 36);
	check("... and the new verdict counts", s.io.verdict == LA_READS_FAST &&
		  s.io.state != LA_ARMED);
	visits(&s, 'o', 10000);
	check("... for the rest of the scan", s.issued_in_vain <= 36);

	start(&s, &c, &cache_defaults);
	visits(&s, 'h', 10000);
	check("known slow reads alone arm nothing", s.issued == 0);
}

/* What the reads of a scan's first row tell. */
static void
test_first_row(void)
{
	Sim			s;
	LaIoPolicyConfig c = io_defaults;

	c.read_to_end = true;
	start(&s, &c, &cache_defaults);
	la_io_policy_on_first_row(&s.io, 4, 4 * DISK_US);
	visits(&s, 'd', 10);
	check("slow reads of the first row: the first miss arms", s.armed_at == 1);

	start(&s, &c, &cache_defaults);
	la_io_policy_on_first_row(&s.io, 4, 4 * DISK_US);
	visits(&s, 'o', 10000);
	check("... and if they were deceiving, few reads are issued in vain",
		  s.issued_in_vain > 0 && s.issued_in_vain <= 36 && s.io.verdict == LA_READS_FAST);

	start(&s, &c, &cache_defaults);
	la_io_policy_on_first_row(&s.io, 4, 4 * DISK_US);
	la_io_policy_on_miss(&s.io);
	la_io_policy_doubt(&s.io);
	check("doubted: the scan's own reads have to show it",
		  s.io.state == LA_OBSERVE && !s.io.for_reads && !s.io.assumed);
	visits(&s, 'd', 10);
	check("... which they do, if they are waits", s.armed_at == c.miss_threshold);

	start(&s, &c, &cache_defaults);
	la_io_policy_on_first_row(&s.io, 4, 4 * OS_CACHE_US);
	check("fast ones say nothing", !s.io.config.known_slow);
	la_io_policy_on_first_row(&s.io, 0, 1000000.0);
	check("nor does a first row without reads", !s.io.config.known_slow);
	la_io_policy_on_first_row(&s.io, c.miss_threshold - 1, 1000000.0);
	check("nor fewer reads than have to be waits", !s.io.config.known_slow);
	la_io_policy_on_first_row(&s.io, 1000, 1000000.0);
	check("nor those of many rows before the first one", !s.io.config.known_slow);
}

/* A scan of an index whose scans are known to begin with waits, and to be read to their end. */
static LaIoPolicyConfig
cold_config(int expected)
{
	LaIoPolicyConfig c = io_defaults;

	c.known_slow = true;
	c.begins_cold = true;
	c.read_to_end = true;
	c.expected = expected;
	return c;
}

static void
test_begin(void)
{
	Sim			s;
	LaIoPolicyConfig c = cold_config(10);

	start(&s, &c, &cache_defaults);
	visits(&s, 'd', 10);
	check("ten cold rows: one wait", s.armed_at == 0 && s.waits == 1 && s.issued == 9);
	check("... which begin cold", la_io_policy_began_cold(&s.io));
	check("... and confirm it", la_io_policy_verdict(&s.io) == LA_READS_SLOW);
	start(&s, &c, &cache_defaults);
	visits(&s, 'd', 30);
	check("thirty cold rows: one wait", s.waits == 1 && s.issued == 29);

	start(&s, &c, &cache_defaults);
	visits(&s, 'h', 50);
	check("cached rows end it soon", s.io.state == LA_PASS && s.armed_visits <= 17);
	check("... and do not begin cold", !la_io_policy_began_cold(&s.io));
	check("... nor say anything of reads",
		  la_io_policy_verdict(&s.io) == LA_READS_UNKNOWN);
	visits(&s, 'd', 20);
	check("... and later misses arm again", s.io.state == LA_ARMED);

	start(&s, &c, &cache_defaults);
	visits(&s, 'o', 1000);
	check("what is known can be wrong: few reads are issued in vain",
		  s.issued_in_vain > 0 && s.issued_in_vain <= 36 &&
		  s.io.verdict == LA_READS_FAST);
	start(&s, &c, &cache_defaults);
	visits(&s, 'o', 5);
	check("a short scan suspects it",
		  la_io_policy_verdict(&s.io) == LA_READS_SEEM_FAST);

	c = cold_config(1);
	start(&s, &c, &cache_defaults);
	check("one expected row is not worth it", s.io.state == LA_PASS);
	c = cold_config(10);
	c.known_slow = false;
	start(&s, &c, &cache_defaults);
	check("reads have to be known as waits", s.io.state == LA_PASS);
	c = cold_config(10);
	c.advice_works = false;
	start(&s, &c, &cache_defaults);
	check("... and to be possible", s.io.state == LA_PASS);

	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'd', 1);
	check("one read alone gains nothing", !la_io_policy_began_cold(&s.io));
	visits(&s, 'h', 1);
	check("two visits do", la_io_policy_began_cold(&s.io));
	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'h', 20);
	visits(&s, 'd', 20);
	check("reads behind cached rows are no beginning", !la_io_policy_began_cold(&s.io));
}

/* The planner, and earlier executions, are wrong by a factor of 1,000. */
static void
test_estimates(void)
{
	Sim			s;
	LaIoPolicyConfig c = cold_config(10000);

	start(&s, &c, &cache_defaults);
	visits(&s, 'd', 10);
	check("too many rows expected: nothing is foreseen beyond the end",
		  s.waits == 1 && s.wasted == 0);

	c = cold_config(2);
	start(&s, &c, &cache_defaults);
	visits(&s, 'd', 2000);
	check("too few rows expected: the distance grows",
		  s.max_in_flight == 64 && s.waits < 20);

	/* the demand is unknown, and the scan is left at once */
	c = cold_config(10000);
	c.read_to_end = false;
	start(&s, &c, &cache_defaults);
	visit(&s, 'd', 10000);
	rescan(&s, true);
	check("left at the first row: two reads wasted", s.wasted <= 2);
	start(&s, &c, &cache_defaults);
	for (int i = 0; i < 3; i++)
		visit(&s, 'd', 10000);
	rescan(&s, true);
	check("left at the third row: no more than the ramp", s.wasted <= 8);

	/* the demand is known */
	c.early_visits = 10 * LA_SIXTEENTHS;
	start(&s, &c, &cache_defaults);
	for (int i = 0; i < 10; i++)
		visit(&s, 'd', 10000);
	check("left at the tenth row, as before: one wait", s.waits == 1);
	rescan(&s, true);
	check("... and none wasted", s.wasted == 0);
	c.early_visits = 1000 * LA_SIXTEENTHS;
	start(&s, &c, &cache_defaults);
	visit(&s, 'd', 10000);
	rescan(&s, true);
	check("left earlier than known: no more than is foreseen until a wait",
		  s.wasted <= 16);
	for (int i = 0; i < 100; i++)
	{
		visit(&s, 'd', 10000);
		rescan(&s, true);
	}
	check("... and little more in later scans", s.wasted <= 500);
	c.early_visits = 1 * LA_SIXTEENTHS;
	start(&s, &c, &cache_defaults);
	for (int i = 0; i < 1000; i++)
		visit(&s, 'd', 10000);
	check("left later than known: a slower ramp",
		  s.max_in_flight == 64 && s.waits < 20);
}

/* n reads that follow cached blocks, each of them slow or not. */
static void
stream_reads(LaIoPolicy *p, int n, bool slow)
{
	for (int i = 0; i < n; i++)
	{
		la_io_policy_on_uncached(p, true);
		if (la_io_policy_leave_stream(p))
			la_io_policy_on_visit(p, LA_VISIT_STREAM_MISS,
							   slow ? DISK_US : OS_CACHE_US);
		else
			la_io_policy_on_visit(p, LA_VISIT_ISSUED, OS_CACHE_US);
	}
}

static void
test_streams(void)
{
	Sim			s;
	LaIoPolicy *p = &s.io;

	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'd', 100);
	check("no stream at first", !la_io_policy_leave_stream(p));
	for (int i = 0; i < 1000; i++)
		la_io_policy_on_uncached(p, i % 3 == 0);
	check("a third of the blocks makes no stream", !la_io_policy_leave_stream(p));
	stream_reads(p, 40, true);
	check("most of them do, and waits may begin it", la_io_policy_leave_stream(p));
	stream_reads(p, 200, true);
	stream_reads(p, 300, false);
	check("streams that the kernel serves are left to it",
		  la_io_policy_leave_stream(p));
	stream_reads(p, 1024, false);
	check("... for as long as it does, and end look-ahead for reads",
		  la_io_policy_leave_stream(p) && p->state != LA_ARMED);

	start(&s, &io_defaults, &cache_defaults);
	visits(&s, 'd', 100);
	stream_reads(p, 400, true);
	check("streams that it does not serve are issued",
		  p->state == LA_ARMED && !la_io_policy_leave_stream(p));
	stream_reads(p, 700, true);
	check("... for a while", !la_io_policy_leave_stream(p));
	stream_reads(p, 600, true);
	check("... then tried again", p->stream.pause > 2048);
	for (int i = 0; i < 100; i++)
		la_io_policy_on_uncached(p, false);
	check("other blocks end a stream", p->follow_share < 100);
}

int
main(void)
{
	test_arming();
	test_ramp();
	test_lost_control();
	test_mixed();
	test_os_cache();
	test_rest();
	test_near();
	test_nested_loop();
	test_rescans();
	test_settings();
	test_knowledge();
	test_first_row();
	test_begin();
	test_estimates();
	test_streams();
	return report();
}
