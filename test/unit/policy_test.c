/*
 * policy_test.c
 *	  Simulation of the look-ahead policy: traces in, decisions out.
 *
 * A simulated scan visits blocks one after another.  Each block has a place,
 * given by a letter of the trace:
 *
 *		h	in shared buffers
 *		o	in the operating system's cache: a read takes 4 us
 *		d	on disk: a read takes 90 us
 *		n	on disk, and the block after the one before
 *		m	a mix: every other block as o, the rest as d
 *
 * The simulation keeps the ring of foreseen blocks as window.c does, asks the
 * policy what window.c asks, and reports what window.c reports.  Time is
 * counted in reads that had to be waited for, not measured.
 *
 * test/unit/policy_test.c
 */
#include <stdio.h>
#include <string.h>

#include "window/policy.h"

#define OS_CACHE_US		4.0
#define DISK_US			90.0
#define RING			8192

typedef enum Mark
{
	NOT_CACHED,
	CACHED,
	ISSUED,
	CONTROL
} Mark;

typedef struct Sim
{
	LaPolicy	policy;
	Mark		ring[RING];
	long		head;			/* visits consumed while armed */
	long		tail;			/* visits foreseen */
	int			in_flight;

	long		visit;			/* of the whole simulation, for 'm' */
	long		armed_at;		/* first visit that was armed, or -1 */
	long		armed_visits;
	long		observed;		/* visits in state OBSERVE */
	long		waits;			/* slow reads that were waited for */
	long		issued;
	long		issued_in_vain; /* of blocks that the OS had */
	long		wasted;
	int			max_in_flight;
	int			max_ahead;

	double		now_us;			/* simulated time, for memory look-ahead */
	double		passive_us;		/* per cached visit, passive */
	double		armed_us;		/* ... armed */
} Sim;

static int	passed = 0;
static int	failed = 0;

static void
check(const char *what, bool ok)
{
	if (ok)
		passed++;
	else
	{
		failed++;
		printf("not ok: %s\n", what);
	}
}

static const LaPolicyConfig defaults = {
	.max_distance = 64,
	.miss_threshold = 2,
	.min_read_us = 25,
	.memory_threshold = 64,
	.memory_distance = 8,
	.memory_trial = 64,
	.memory_faster = 0.88,
	.memory_visit_us = 4.0,
	.advice_works = true,
	.force = false
};

static void
start(Sim *s, const LaPolicyConfig *config)
{
	memset(s, 0, sizeof(*s));
	s->armed_at = -1;
	s->now_us = 1;
	s->passive_us = 1.0;
	s->armed_us = 0.6;
	la_policy_init(&s->policy, config);
}

static char
place_of(char place, long visit)
{
	if (place != 'm')
		return place;
	return visit % 2 == 0 ? 'o' : 'd';
}

static double
read_us(char place)
{
	return place == 'd' || place == 'n' ? DISK_US : place == 'o' ? OS_CACHE_US : 0.0;
}

static void
forget(Sim *s)
{
	s->wasted += s->in_flight;
	s->in_flight = 0;
	s->head = s->tail;
}

/* What window.c does for one foreseen block. */
static void
foresee(Sim *s, char place)
{
	Mark		mark = CACHED;

	if (place != 'h')
	{
		if (la_policy_control_due(&s->policy))
		{
			la_policy_on_control(&s->policy);
			mark = CONTROL;
		}
		else
		{
			la_policy_on_issue(&s->policy);
			mark = ISSUED;
			s->in_flight++;
			s->issued++;
			if (place == 'o')
				s->issued_in_vain++;
		}
	}
	s->ring[s->tail % RING] = mark;
	s->tail++;
}

static void
tick(Sim *s)
{
	s->now_us += s->policy.state == LA_ARMED ? s->armed_us : s->passive_us;
	if (la_policy_clock_due(&s->policy))
		la_policy_on_clock(&s->policy, s->now_us);
}

/* One visit, of which `left` more are to come in this scan. */
static void
visit(Sim *s, char trace_place, long left)
{
	LaPolicy   *p = &s->policy;
	char		place = place_of(trace_place, s->visit);
	Mark		mark = NOT_CACHED;
	double		us = read_us(place);

	if (p->state == LA_PASS)
	{
		forget(s);
		if (us >= defaults.min_read_us)
			s->waits++;
		la_policy_on_pass(p, place != 'h');
		s->visit++;
		return;
	}
	if (p->state == LA_OBSERVE)
	{
		forget(s);
		if (us >= defaults.min_read_us)
			s->waits++;
		la_policy_on_visit(p, place == 'h' ? LA_VISIT_HIT :
						   place == 'n' ? LA_VISIT_NEXT_MISS : LA_VISIT_MISS, us);
		s->observed++;
		s->visit++;
		return;
	}

	if (s->armed_at < 0)
		s->armed_at = s->visit;
	s->armed_visits++;
	if (s->head < s->tail)
	{
		mark = s->ring[s->head % RING];
		s->head++;
		if (mark == ISSUED)
			s->in_flight--;
	}
	while (s->tail - s->head < la_policy_visits_ahead(p) &&
		   s->in_flight < p->config.max_distance &&
		   s->tail - s->head < left)
		foresee(s, place_of(trace_place, s->visit + 1 + s->tail - s->head));
	if (s->in_flight > s->max_in_flight)
		s->max_in_flight = s->in_flight;
	if (p->ahead > s->max_ahead)
		s->max_ahead = p->ahead;

	if (mark == ISSUED)
		la_policy_on_visit(p, LA_VISIT_ISSUED, OS_CACHE_US);
	else if (place == 'h')
		la_policy_on_visit(p, LA_VISIT_HIT, 0);
	else
	{
		if (us >= defaults.min_read_us)
			s->waits++;
		la_policy_on_visit(p, mark == CONTROL ? LA_VISIT_CONTROL :
						   LA_VISIT_MISS, us);
	}
	s->visit++;
}

static void
visits(Sim *s, char place, long n)
{
	while (n-- > 0)
	{
		visit(s, place, n);
		tick(s);
	}
}

static void
rescan(Sim *s, bool early)
{
	forget(s);
	la_policy_rescan(&s->policy, early);
}

static void
test_arming(void)
{
	Sim			s;
	LaPolicyConfig unhelpful;

	start(&s, &defaults);
	visits(&s, 'd', 3);
	check("three slow reads are waited for before arming",
		  s.armed_at < 0 && s.waits == 3);
	visits(&s, 'd', 1);
	check("the fourth visit looks ahead", s.armed_at == 3);

	start(&s, &defaults);
	visits(&s, 'h', 128);
	check("64 cached visits pass, 64 are timed",
		  s.armed_at < 0 && s.policy.state == LA_PASS);
	visits(&s, 'h', 4);
	check("then memory look-ahead is tried",
		  s.armed_at > 0 && s.policy.ahead == 8 && !s.policy.io);
	visits(&s, 'h', 100000);
	check("and never goes far", s.max_ahead == 8 && s.issued == 0);
	check("kept where it is faster, but for checks", s.armed_visits > 90000);

	start(&s, &defaults);
	s.armed_us = 1.1;
	for (int i = 0; i < 100; i++)
	{
		/* misses that end the timing of passive visits */
		visits(&s, 'h', 100);
		visits(&s, 'o', 1);
	}
	check("a trial that a miss ended is not counted", s.armed_visits == 0);
	visits(&s, 'h', 1000000);
	check("given up where it is not", s.armed_visits < 2000);
	s.armed_us = 0.6;
	visits(&s, 'h', 2000000);
	check("and found when it is later", s.policy.state == LA_ARMED ||
		  s.armed_visits > 500000);

	unhelpful = defaults;
	unhelpful.known_unhelpful = true;
	start(&s, &unhelpful);
	visits(&s, 'h', 8192);
	check("not tried at once where it did not help before",
		  s.armed_visits == 0);
	visits(&s, 'h', 1000);
	check("but later", s.armed_visits > 0);

	start(&s, &defaults);
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
test_ramp(void)
{
	Sim			s;
	int			before;

	start(&s, &defaults);
	visits(&s, 'd', 3);
	visit(&s, 'd', 1000);
	before = s.policy.ahead;
	check("starts with 2 ahead", before == 2);
	visit(&s, 'd', 1000);
	check("doubles with an issued block consumed", s.policy.ahead == 4);
	visits(&s, 'd', 10000);
	check("reaches max_distance in flight", s.max_in_flight == 64);
	check("and never more", s.max_in_flight <= 64);
	check("waits for few reads once ramped: controls only", s.waits < 30);

	start(&s, &defaults);
	s.policy.config.max_distance = 1;
	visits(&s, 'd', 1000);
	check("max_distance 1 is obeyed", s.max_in_flight == 1);
}

static void
test_mixed(void)
{
	Sim			s;

	/* 7 of 8 visits cached: more visits than 64 must be foreseen */
	start(&s, &defaults);
	visits(&s, 'd', 8);
	for (int i = 0; i < 4000; i++)
	{
		LaPolicy   *p = &s.policy;

		la_policy_on_visit(p, i % 8 == 0 ? LA_VISIT_ISSUED : LA_VISIT_HIT, 0);
	}
	check("hits in between do not shrink the distance", s.policy.ahead == 256);

	/* half in the OS cache: still worth it, and not disarmed */
	start(&s, &defaults);
	visits(&s, 'm', 20000);
	check("a mixed scan stays armed", s.policy.state == LA_ARMED &&
		  s.armed_visits > 19000);
}

static void
test_os_cache(void)
{
	Sim			s;

	start(&s, &defaults);
	visits(&s, 'o', 1000);
	check("fast reads never arm", s.armed_at < 0 && s.issued == 0);
	visits(&s, 'o', 100000);
	check("not even in long scans", s.issued == 0);

	start(&s, &defaults);
	visits(&s, 'd', 5000);
	check("armed by slow reads", s.policy.state == LA_ARMED);
	visits(&s, 'o', 5000);
	check("disarmed when the OS has the blocks", s.policy.state != LA_ARMED);
	check("after little advice in vain", s.issued_in_vain < 2000);
	visits(&s, 'd', 5000);
	check("armed again when reads are slow again",
		  s.policy.state == LA_ARMED);
}

static void
test_misses_stop(void)
{
	Sim			s;
	LaPolicyConfig off = defaults;

	start(&s, &defaults);
	visits(&s, 'd', 1000);
	visits(&s, 'h', 5000);
	check("falls back to memory look-ahead",
		  s.policy.state == LA_ARMED && s.policy.ahead == 8 && !s.policy.io);

	off.memory_threshold = -1;
	start(&s, &off);
	visits(&s, 'd', 1000);
	visits(&s, 'h', 5000);
	check("or disarms where memory look-ahead is off",
		  s.policy.state == LA_PASS);
	visits(&s, 'h', 100000);
	check("and cached scans never arm then", s.policy.state == LA_PASS);
	visits(&s, 'd', 1000);
	check("until misses come back", s.policy.state == LA_ARMED);
}

/*
 * Blocks close to each other.  of_kernel tells how many of ten such reads the
 * kernel's read-ahead serves.
 */
static void
near_visits(Sim *s, int n, int of_kernel)
{
	LaPolicy   *p = &s->policy;

	for (int i = 0; i < n; i++)
	{
		double		us = i % 10 < 10 - of_kernel ? DISK_US : OS_CACHE_US;

		if (p->state == LA_PASS)
			la_policy_on_pass(p, true);
		else if (p->state == LA_ARMED && !la_policy_leave_near(p))
		{
			la_policy_on_issue(p);
			s->issued++;
			la_policy_on_visit(p, LA_VISIT_ISSUED, OS_CACHE_US);
		}
		else
		{
			if (us == DISK_US)
				s->waits++;
			la_policy_on_visit(p, LA_VISIT_NEAR_MISS, us);
		}
	}
}

static void
test_near(void)
{
	Sim			s;

	start(&s, &defaults);
	near_visits(&s, 10000, 9);
	check("near reads that the kernel serves never arm",
		  s.policy.state != LA_ARMED);

	start(&s, &defaults);
	near_visits(&s, 9, 0);
	check("near reads arm after four times as many waits",
		  s.policy.state == LA_ARMED);
	near_visits(&s, 10000, 0);
	check("and are issued when the kernel does not serve them",
		  s.issued > 9000 && s.waits < 100);

	start(&s, &defaults);
	visits(&s, 'd', 1000);
	s.issued = 0;
	near_visits(&s, 10000, 9);
	check("an armed scan leaves near runs to a kernel that serves them",
		  s.issued == 0);
}

/* A nested loop: what is observed is done twice. */
static void
test_nested_loop(void)
{
	Sim			s;
	LaPolicyConfig config = defaults;

	config.memory_threshold = -1;
	config.nested_loop = true;
	start(&s, &config);
	for (int i = 0; i < 10000; i++)
	{
		/* rows that find the page of the index, and one that turns to the next */
		visits(&s, 'n', 1);
		visits(&s, 'h', 3);
	}
	check("pages one after the other are seldom observed",
		  s.observed < 1000 && s.policy.state != LA_ARMED);
	check("and nothing is said of how slow reads are",
		  s.policy.verdict == LA_READS_UNKNOWN);
	visits(&s, 'd', 5000);
	check("others are found in the end", s.policy.state == LA_ARMED);

	start(&s, &config);
	visits(&s, 'd', 1);
	visits(&s, 'h', 128);
	check("hits end it", s.policy.state == LA_PASS);
	visits(&s, 'd', 32);
	check("... for a while", s.policy.state == LA_PASS);
	visits(&s, 'd', 200);
	check("... and no longer", s.policy.state == LA_ARMED);
}

static void
test_rescans(void)
{
	Sim			s;

	/* a nested loop over a primary key */
	start(&s, &defaults);
	for (int i = 0; i < 100000; i++)
	{
		visits(&s, i % 3 == 0 ? 'd' : 'h', 1);
		rescan(&s, false);
	}
	check("scans of one visit never arm", s.armed_at < 0);

	/* twenty rows each */
	start(&s, &defaults);
	for (int i = 0; i < 100; i++)
	{
		visits(&s, 'd', 20);
		rescan(&s, false);
	}
	check("evidence is carried over: armed from the first visit on",
		  s.armed_visits == 2000 - 3);
	check("nothing foreseen beyond the end", s.wasted == 0);

	/* LIMIT 5 inside of a long index range, again and again */
	start(&s, &defaults);
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

	/* cached inner side of a nested loop, ten rows each */
	start(&s, &defaults);
	for (int i = 0; i < 1000; i++)
	{
		visits(&s, 'h', 10);
		rescan(&s, false);
	}
	check("short cached rescans are left alone", s.armed_at < 0);
}

static void
test_settings(void)
{
	Sim			s;
	LaPolicyConfig c = defaults;

	c.force = true;
	start(&s, &c);
	check("force arms at once", s.policy.state == LA_ARMED &&
		  la_policy_visits_ahead(&s.policy) == 256);
	visits(&s, 'o', 10000);
	check("and never disarms", s.policy.state == LA_ARMED);
	rescan(&s, true);
	check("nor shrinks", la_policy_visits_ahead(&s.policy) == 256);

	c = defaults;
	c.advice_works = false;
	start(&s, &c);
	visits(&s, 'd', 10000);
	check("where advice does not work, none is given", s.issued == 0);

	c = defaults;
	c.miss_threshold = 0;
	start(&s, &c);
	visits(&s, 'd', 2);
	check("miss_threshold 0 arms on the first miss", s.armed_at == 1);

	c = defaults;
	c.min_read_us = 0;
	start(&s, &c);
	visits(&s, 'o', 100);
	check("min_read_time 0 takes every read for a wait", s.armed_at == 3);
}

static void
test_knowledge(void)
{
	Sim			s;
	LaPolicyConfig c = defaults;

	c.read_to_end = true;
	start(&s, &c);
	visits(&s, 'd', 2);
	check("a scan that is read to its end still needs evidence",
		  s.policy.state != LA_ARMED);
	visits(&s, 'd', 3);
	check("... and begins at full distance", s.max_in_flight == 64 || s.max_ahead >= 64);

	c = defaults;
	start(&s, &c);
	visits(&s, 'd', 100);
	check("slow reads are remembered", s.policy.verdict == LA_READS_SLOW);
	start(&s, &c);
	visits(&s, 'o', 100);
	check("fast reads are remembered", s.policy.verdict == LA_READS_FAST);
	start(&s, &c);
	visits(&s, 'h', 10000);
	check("hits are no verdict", s.policy.verdict == LA_READS_UNKNOWN);

	c.known_slow = true;
	start(&s, &c);
	visits(&s, 'd', 2);
	check("known slow reads arm at the first miss", s.armed_at == 1);
	visits(&s, 'd', 10000);
	check("... and are looked at like any others", s.policy.state == LA_ARMED &&
		  s.policy.verdict == LA_READS_SLOW && s.waits < 60);

	start(&s, &c);
	visits(&s, 'o', 100);
	check("what is known can be wrong: 4 + 2 * 16 reads are issued in vain",
		  s.issued_in_vain > 0 && s.issued_in_vain <= 36);
	check("... and the new verdict counts", s.policy.verdict == LA_READS_FAST &&
		  s.policy.state != LA_ARMED);
	visits(&s, 'o', 10000);
	check("... for the rest of the scan", s.issued_in_vain <= 36);

	start(&s, &c);
	visits(&s, 'h', 10000);
	check("known slow reads alone arm nothing", s.issued == 0);
}

/* n reads that follow cached blocks, each of them slow or not. */
static void
stream_reads(LaPolicy *p, int n, bool slow)
{
	for (int i = 0; i < n; i++)
	{
		la_policy_on_uncached(p, true);
		if (la_policy_leave_stream(p))
			la_policy_on_visit(p, LA_VISIT_STREAM_MISS,
							   slow ? DISK_US : OS_CACHE_US);
		else
			la_policy_on_visit(p, LA_VISIT_ISSUED, OS_CACHE_US);
	}
}

static void
test_streams(void)
{
	Sim			s;
	LaPolicy   *p = &s.policy;

	start(&s, &defaults);
	visits(&s, 'd', 100);
	check("no stream at first", !la_policy_leave_stream(p));
	for (int i = 0; i < 1000; i++)
		la_policy_on_uncached(p, i % 3 == 0);
	check("a third of the blocks makes no stream", !la_policy_leave_stream(p));
	stream_reads(p, 40, true);
	check("most of them do, and waits may begin it", la_policy_leave_stream(p));
	stream_reads(p, 200, true);
	stream_reads(p, 300, false);
	check("streams that the kernel serves are left to it",
		  la_policy_leave_stream(p));
	stream_reads(p, 1024, false);
	check("... for as long as it does, and end look-ahead for reads",
		  la_policy_leave_stream(p) && p->state != LA_ARMED);

	start(&s, &defaults);
	visits(&s, 'd', 100);
	stream_reads(p, 400, true);
	check("streams that it does not serve are issued",
		  p->state == LA_ARMED && !la_policy_leave_stream(p));
	stream_reads(p, 700, true);
	check("... for a while", !la_policy_leave_stream(p));
	stream_reads(p, 600, true);
	check("... then tried again", p->stream.pause > 2048);
	for (int i = 0; i < 100; i++)
		la_policy_on_uncached(p, false);
	check("other blocks end a stream", p->follow_share < 100);
}

int
main(void)
{
	test_arming();
	test_ramp();
	test_mixed();
	test_os_cache();
	test_misses_stop();
	test_near();
	test_nested_loop();
	test_rescans();
	test_settings();
	test_knowledge();
	test_streams();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
