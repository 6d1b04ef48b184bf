/*
 * simulation.c
 *	  A simulated scan under the policies of src/window: traces in, decisions out.
 *
 * test/unit/simulation.c
 */
#include <stdio.h>
#include <string.h>

#include "simulation.h"

const LaIoPolicyConfig io_defaults = {
	.max_distance = 64,
	.miss_threshold = 2,
	.min_read_us = 25,
	.touch_distance = 8,
	.advice_works = true,
	.force = false
};

const LaCachePolicyConfig cache_defaults = {
	.threshold = 64,
	.distance = 8,
	.trial = 64,
	.faster = 0.88,
	.visit_us = 4.0
};

static int	passed = 0;
static int	failed = 0;

void
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

/* The last line of a test's output; returns its exit status. */
int
report(void)
{
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}

void
start(Sim *s, const LaIoPolicyConfig *io, const LaCachePolicyConfig *cache)
{
	memset(s, 0, sizeof(*s));
	s->armed_at = -1;
	s->now_us = 1;
	s->passive_us = 1.0;
	s->armed_us = 0.6;
	la_io_policy_init(&s->io, io);
	la_cache_policy_init(&s->cache, cache);
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
		if (la_io_policy_control_due(&s->io))
		{
			la_io_policy_on_control(&s->io);
			mark = CONTROL;
		}
		else
		{
			la_io_policy_on_issue(&s->io);
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
	s->now_us += s->io.state == LA_ARMED ? s->armed_us : s->passive_us;
	if (la_cache_policy_clock_due(&s->cache))
		la_scan_policy_on_clock(&s->io, &s->cache, s->now_us);
}

/* One visit, of which `left` more are to come in this scan. */
void
visit(Sim *s, char trace_place, long left)
{
	LaIoPolicy *p = &s->io;
	char		place = place_of(trace_place, s->visit);
	Mark		mark = NOT_CACHED;
	double		us = read_us(place);

	if (p->state == LA_PASS)
	{
		forget(s);
		if (us >= io_defaults.min_read_us)
			s->waits++;
		la_scan_policy_on_pass(p, &s->cache, place != 'h');
		s->visit++;
		return;
	}
	if (p->state == LA_OBSERVE)
	{
		forget(s);
		if (us >= io_defaults.min_read_us)
			s->waits++;
		la_scan_policy_on_visit(p, &s->cache, place == 'h' ? LA_VISIT_HIT :
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
	while (s->tail - s->head < la_io_policy_visits_ahead(p) &&
		   s->in_flight < p->config.max_distance &&
		   s->tail - s->head < left)
		foresee(s, place_of(trace_place, s->visit + 1 + s->tail - s->head));
	if (s->in_flight > s->max_in_flight)
		s->max_in_flight = s->in_flight;
	if (p->ahead > s->max_ahead)
		s->max_ahead = p->ahead;

	if (mark == ISSUED)
		la_scan_policy_on_visit(p, &s->cache, LA_VISIT_ISSUED, OS_CACHE_US);
	else if (place == 'h')
		la_scan_policy_on_visit(p, &s->cache, LA_VISIT_HIT, 0);
	else
	{
		if (us >= io_defaults.min_read_us)
			s->waits++;
		la_scan_policy_on_visit(p, &s->cache, mark == CONTROL ? LA_VISIT_CONTROL :
						   LA_VISIT_MISS, us);
	}
	s->visit++;
}

void
visits(Sim *s, char place, long n)
{
	while (n-- > 0)
	{
		visit(s, place, n);
		tick(s);
	}
}

void
rescan(Sim *s, bool early)
{
	forget(s);
	la_scan_policy_rescan(&s->io, &s->cache, early);
}
