/*
 * replay_policy_test.c
 *	  The depth that recovery comes to on storage that is known, and its figures.
 *
 * The storage takes so long for a read, and makes so many per second.  Replay needs some time of the
 * processor for each record that reads a block, and waits for what is left of the read.
 *
 * test/unit/replay_policy_test.c
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "simulation.h"
#include "replay/replay_policy.h"

#define BASE 16

typedef struct Storage
{
	double		read_us;
	double		iops;
	double		cpu_us;			/* of replay, per block */
	double		gone;			/* deeper than that, pages are gone before their turn; 0: never */
} Storage;

/* Microseconds that replay waits for a read. */
static double
wait_us(const Storage *s, int depth)
{
	double		between = fmax(s->read_us / depth, 1e6 / s->iops);
	double		wait = fmax(between - s->cpu_us, 0);

	if (s->gone > 0 && depth > s->gone)
		wait += s->read_us * (1 - s->gone / depth);
	return wait;
}

/* So many windows of reads; returns the time per read of the last half. */
static double
run(LaReplayPolicy *p, const Storage *s, int windows)
{
	double		us = 0;
	double		reads = 0;

	for (int i = 0; i < windows; i++)
	{
		double		wait = wait_us(s, p->depth);
		LaReplayWindow w = {0};

		while (!la_replay_policy_window_full(p, &w))
		{
			w.reads++;
			w.wait_us += wait;
		}
		w.elapsed_us = w.wait_us + w.reads * s->cpu_us;
		if (i >= windows / 2)
		{
			us += w.elapsed_us;
			reads += w.reads;
		}
		la_replay_policy_window(p, &w);
	}
	return us / reads;
}

static void
test_depth(void)
{
	LaReplayPolicy p;
	Storage		volume = {1000, 16000, 20, 0};
	Storage		limited = {1000, 5000, 20, 0};
	Storage		slow = {4000, 1e9, 10, 0};
	Storage		fast = {90, 60000, 30, 0};
	Storage		small = {1000, 1e9, 5, 64};

	la_replay_policy_init(&p, BASE);
	check("it begins with the server's default", p.depth == BASE && p.advise);
	check("1 ms, 16k: the limit of the volume", run(&p, &volume, 400) <= 62.5 * 1.03);
	check("... no deeper than eight times what it needs", p.depth <= 128);

	la_replay_policy_init(&p, BASE);
	check("1 ms, 5k: at its limit from the beginning", run(&p, &limited, 400) <= 200 * 1.001);
	check("... the depth stays", p.depth == BASE);

	la_replay_policy_init(&p, BASE);
	check("4 ms without a limit: the processor is", run(&p, &slow, 400) <= 10 * 1.06);
	check("... within the server's limit", p.depth >= 256 && p.depth <= LA_REPLAY_MAX_DEPTH);

	la_replay_policy_init(&p, BASE);
	run(&p, &fast, 400);
	check("a local disk: the default does", p.depth == BASE);

	la_replay_policy_init(&p, BASE);
	check("pages that are gone: not worse than without us",
		  run(&p, &small, 400) <= 5 + wait_us(&small, BASE));
	check("... at the best depth", p.depth == 64);

	/* whatever the storage */
	srand(1);
	for (int i = 0; i < 2000; i++)
	{
		Storage		s = {50 + rand() % 10000, 500 + rand() % 100000, 1 + rand() % 100,
			rand() % 3 == 0 ? 8 + rand() % 500 : 0};
		double		before;
		double		us;

		la_replay_policy_init(&p, BASE);
		us = run(&p, &s, 300);
		before = s.cpu_us + wait_us(&s, BASE);
		if (us > before * 1.02)
		{
			printf("read %.0f us, %.0f IOPS, processor %.0f us, gone %.0f: %.1f us, %.1f with the default\n",
				   s.read_us, s.iops, s.cpu_us, s.gone, us, before);
			check("slower than the default", false);
			return;
		}
	}
	check("2,000 storages: never 2% slower than the default", true);
}

static void
test_less(void)
{
	LaReplayPolicy p;
	Storage		slow = {4000, 1e9, 10, 0};
	Storage		fast = {90, 1e9, 30, 0};

	la_replay_policy_init(&p, BASE);
	run(&p, &slow, 100);
	check("deep, while it is needed", p.depth >= 256);
	run(&p, &fast, 2000);
	check("less, when nothing is late any more", p.depth == BASE);
	run(&p, &slow, 5000);
	check("deep again", p.depth >= 256);
}

static void
test_suggest(void)
{
	static const double knee[9] = {1000, 500, 250, 125, 62.5, 61, 60.5, 61, 70};
	LaReplayPolicy p;

	check("the knee of what was measured", la_replay_knee(knee, 9) == 16);
	check("one measurement", la_replay_knee(knee, 1) == 1);
	la_replay_policy_init(&p, BASE);
	check("a calibrated depth counts at once", la_replay_policy_suggest(&p, 128) && p.depth == 128);
	check("... unless it is less", !la_replay_policy_suggest(&p, 8) && p.depth == 128);
	check("... within limits", la_replay_policy_suggest(&p, 9999) && p.depth == LA_REPLAY_MAX_DEPTH);
	la_replay_policy_init(&p, 0);
	check("a base of 0", p.depth == 1);
	la_replay_policy_init(&p, 100000);
	check("a base beyond limits", p.depth == LA_REPLAY_MAX_DEPTH);
}

/* Reads until the policy changes its mind, at most so many; returns them. */
static long
reads_until(LaReplayPolicy *p, bool slow, long most)
{
	for (long i = 1; i <= most; i++)
	{
		if (la_replay_policy_read(p, slow))
			return i;
	}
	return most + 1;
}

static void
test_memory(void)
{
	LaReplayPolicy p;
	long		first;
	long		second;

	la_replay_policy_init(&p, BASE);
	first = reads_until(&p, false, 100000);
	check("fast reads: a trial without advice", first <= 2000 && !p.advise);
	check("... that goes on while they are fast", reads_until(&p, false, 100000) == 100001);
	check("... and ends after a few slow ones", reads_until(&p, true, 100) <= 4 && p.advise);
	second = reads_until(&p, false, 100000);
	check("the next trial comes later", second >= 2 * first);

	la_replay_policy_init(&p, BASE);
	check("no trial while reads are slow", reads_until(&p, true, 100000) == 100001);
	for (long i = 0; i < 100000 && p.advise; i++)
		la_replay_policy_read(&p, i % 100 == 0);
	check("... or some of them are", p.advise);
}

static void
test_causes(void)
{
	check("a read from memory is no wait", la_replay_redo_cause(20, 1, 25, true) == LA_REPLAY_PROCESSOR);
	check("a slow read is", la_replay_redo_cause(900, 1, 25, true) == LA_REPLAY_READS);
	check("many fast ones are not", la_replay_redo_cause(100, 8, 25, false) == LA_REPLAY_PROCESSOR);
	check("a long time without reads: a conflict", la_replay_redo_cause(5000, 0, 25, true) == LA_REPLAY_CONFLICT);
	check("... where there can be one", la_replay_redo_cause(5000, 0, 25, false) == LA_REPLAY_PROCESSOR);
	check("no read takes so long", la_replay_redo_cause(3e6, 1, 25, true) == LA_REPLAY_CONFLICT);
	check("... but where there is no conflict", la_replay_redo_cause(3e6, 1, 25, false) == LA_REPLAY_READS);
	check("an event of the WAL", la_replay_event_cause("Activity", "RecoveryWalStream") == LA_REPLAY_WAL);
	check("a lock", la_replay_event_cause("Lock", "relation") == LA_REPLAY_CONFLICT);
	check("a pin", la_replay_event_cause("BufferPin", "BufferPin") == LA_REPLAY_CONFLICT);
	check("a pause", la_replay_event_cause("IPC", "RecoveryPause") == LA_REPLAY_PAUSE);
	check("no event", la_replay_event_cause(NULL, NULL) == LA_REPLAY_PROCESSOR);
	check("another one", la_replay_event_cause("IO", "DataFileWrite") == LA_REPLAY_PROCESSOR);
}

static void
test_rates(void)
{
	double		rate = 0;
	double		other;

	for (int i = 0; i < 40; i++)
		rate = la_replay_rate(rate, 0, 250, 0.25);
	check("a steady rate is shown from the beginning",
		  fabs(la_replay_rate_shown(rate, 0, 10) - 1000) < 1);
	other = la_replay_rate(0, 0, 10000, 10);
	check("... however often it is computed", fabs(rate - other) < 1e-6 * rate);
	check("it fades", la_replay_rate(1000, 0, 0, 60) < 369 && la_replay_rate(1000, 0, 0, 60) > 367);
	check("... more slowly over 15 minutes", la_replay_rate(1000, 2, 0, 60) > 900);
	check("no time", la_replay_rate(5, 1, 10, 0) == 5 && la_replay_rate_shown(5, 1, 0) == 0);

	check("caught up", la_replay_catch_up(0, 0, 1, 5) == 0);
	check("a gap that closes", fabs(la_replay_catch_up(1000, 300, 0, 100) - 5) < 1e-9);
	check("waiting for WAL is not being slow", fabs(la_replay_catch_up(1000, 100, 0.5, 100) - 10) < 1e-9);
	check("a gap that does not", la_replay_catch_up(1000, 100, 0, 100) < 0);
	check("nothing known", la_replay_catch_up(1000, 0, 0, 0) < 0 && la_replay_catch_up(1000, 1, 1, 0) < 0);
	check("not a number", la_replay_catch_up(1000, NAN, NAN, NAN) < 0);
}

int
main(void)
{
	test_depth();
	test_less();
	test_suggest();
	test_memory();
	test_causes();
	test_rates();
	return report();
}
