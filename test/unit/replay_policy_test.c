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
#include <string.h>

#include "simulation.h"
#include "replay/replay_depth.h"
#include "replay/replay_trial.h"

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

/* ---- is there anything to be gained by advice? ------------------------------------- */

#define CPU_US		12.0		/* of replay, per block that is read */
#define ADVICE_US	1.0			/* of advice, where the operating system has the block */

/* One read in so many comes from the disk; 0: none. */
typedef struct Mix
{
	int			one_in;
	double		disk_us;
} Mix;

/* Replay of reads of a mix, as replay.c puts it to the policy. */
typedef struct Replay
{
	LaReplayPolicy p;
	LaReplayWindow w;
	double		us;				/* elapsed */
	double		without_us;		/* ... in trials */
	long		trials;
} Replay;

static void
begin_replay(Replay *r)
{
	memset(r, 0, sizeof(*r));
	la_replay_policy_init(&r->p, BASE);
}

/*
 * How long a cold read is waited for that was started so many reads before its turn: these took the
 * processor's time, and that of the cold ones among them.
 */
static double
read_wait(const Mix *m, bool cold, int depth)
{
	double		share = m->one_in > 0 ? 1.0 / m->one_in : 0;

	if (!cold)
		return 0;
	return fmax(m->disk_us - depth * (CPU_US + ADVICE_US), 0) / (1 + depth * share);
}

static void
replay_read(Replay *r, const Mix *m, bool cold)
{
	bool		advise = r->p.advise;
	double		wait = read_wait(m, cold, advise ? r->p.depth : 0);
	double		us = CPU_US + wait + (advise ? ADVICE_US : 0);
	LaReplayWindow full;

	r->us += us;
	if (!advise)
	{
		r->without_us += us;
		if (la_replay_policy_without(&r->p, 1, wait))
			memset(&r->w, 0, sizeof(r->w));
		return;
	}
	r->w.reads++;
	r->w.wait_us += wait;
	r->w.elapsed_us += us;
	if (!la_replay_policy_window_full(&r->p, &r->w))
		return;
	full = r->w;
	memset(&r->w, 0, sizeof(r->w));
	la_replay_policy_window(&r->p, &full);
	if (la_replay_policy_trial(&r->p, &full))
		r->trials++;
}

static bool
is_cold(const Mix *m, long i)
{
	/* (at random, and the same each time) */
	unsigned	hash = (unsigned) i * 2654435761u;

	hash ^= hash >> 15;
	hash *= 2246822519u;
	hash ^= hash >> 13;
	return m->one_in > 0 && hash % (unsigned) m->one_in == 0;
}

static double
replay_mix(Replay *r, const Mix *m, long reads)
{
	double		before = r->us;

	for (long i = 0; i < reads; i++)
		replay_read(r, m, is_cold(m, i));
	return r->us - before;
}

/* The same with a depth that stays; 0: without advice. */
static double
fixed(const Mix *m, long reads, int depth)
{
	double		us = 0;

	for (long i = 0; i < reads; i++)
		us += CPU_US + read_wait(m, is_cold(m, i), depth) + (depth > 0 ? ADVICE_US : 0);
	return us;
}

static void
test_mixes(void)
{
	static const int one_in[] = {1, 2, 5, 10, 16, 17, 18, 20, 30, 50, 100, 200, 300, 500, 700, 1000, 5000};
	static const double disk_us[] = {1000, 90, 250, 10000};
	const long	reads = 1000000;
	bool		good = true;

	for (size_t i = 0; i < sizeof(one_in) / sizeof(one_in[0]); i++)
	{
		for (size_t j = 0; j < sizeof(disk_us) / sizeof(disk_us[0]); j++)
		{
			Mix			m = {one_in[i], disk_us[j]};
			Replay		r;
			double		best = fmin(fixed(&m, reads, LA_REPLAY_MAX_DEPTH), fixed(&m, reads, 0));
			double		us;

			begin_replay(&r);
			us = replay_mix(&r, &m, reads);

			/* (so slow a disk needs a depth that it takes some time to come to) */
			if (m.disk_us > 1000)
				us = replay_mix(&r, &m, reads);
			if (us <= best * 1.02)
				continue;
			printf("one of %d reads takes %.0f us: %.3f s, at best %.3f s (depth %d, %ld trials)\n",
				   m.one_in, m.disk_us, us / 1e6, best / 1e6, r.p.depth, r.trials);
			good = false;
		}
	}
	check("mixes: never 2% slower than the best depth, or none", good);
}

/* Reads until a trial ends, at most so many. */
static long
trial_of(const Mix *m, long most)
{
	Mix			cached = {0, 0};
	Replay		r;
	long		i = 0;

	begin_replay(&r);
	while (r.p.advise && i++ < 100000)
		replay_read(&r, &cached, false);
	for (i = 0; i < most && !r.p.advise; i++)
		replay_read(&r, m, i % m->one_in == m->one_in - 1);
	return i;
}

static void
test_memory(void)
{
	Mix			cached = {0, 0};
	Mix			cold = {1, 1000};
	Mix			some = {18, 1000};
	Mix			local = {18, 90};
	Mix			few = {3000, 1000};
	Replay		r;
	double		us;

	check("cold reads end a trial at once", trial_of(&cold, 100) <= 4);
	check("... and so does one in 18", trial_of(&some, 100000) <= 100);
	check("... also on a local disk", trial_of(&local, 100000) <= 5000);
	check("... but not so few that advice would cost more", trial_of(&few, 100000) == 100000);

	begin_replay(&r);
	us = replay_mix(&r, &cached, 1000000);
	check("memory: as without advice", us <= fixed(&cached, 1000000, 0) * 1.01);
	check("... in one trial", r.trials == 1 && !r.p.advise);
	us = replay_mix(&r, &cold, 100000);
	check("cold again: deep at once", us <= fixed(&cold, 100000, LA_REPLAY_MAX_DEPTH) * 1.1);
	check("... and so it stays", r.p.advise);
	us = replay_mix(&r, &cached, 3000000);
	check("cached again", us <= fixed(&cached, 3000000, 0) * 1.02 && !r.p.advise);

	/* it is cold: trials become rare */
	begin_replay(&r);
	replay_mix(&r, &cold, 3000000);
	check("cold: trials cost next to nothing", r.without_us <= r.us * 0.002);
	check("... and the depth is the one that is needed", r.p.depth >= 64);

	/* one slow read now and then, as another process uses the disk */
	begin_replay(&r);
	us = 0;
	for (long i = 0; i < 3000000; i++)
	{
		Mix			hiccup = {1, 20000};

		replay_read(&r, &hiccup, i % 75000 == 74999);
		us += CPU_US + (i % 75000 == 74999 ? 20000 : 0);
	}
	check("a slow read every second: as without advice", r.us <= us * 1.02);
}

static void
test_undo(void)
{
	LaReplayPolicy p;
	LaReplayWindow calm = {.elapsed_us = 100000, .reads = 2000};
	LaReplayWindow late = {.elapsed_us = 100000, .wait_us = 50000, .reads = 2000};

	la_replay_policy_init(&p, BASE);
	la_replay_policy_suggest(&p, 27);
	for (int i = 0; i < 1000 && p.depth == 27; i++)
		la_replay_policy_window(&p, &calm);
	check("a try with less is not less than the default", p.depth == BASE);
	la_replay_policy_window(&p, &late);
	check("... the first window says nothing", p.depth == BASE);
	la_replay_policy_window(&p, &late);
	check("... and undone, it is as deep as before", p.depth == 27);
}

/* Does a gap come to so many milliseconds for WAL, and paused? */
static bool
gap_is(LaReplayGap gap, double wal_ms, double pause_ms)
{
	double		wal_us;
	double		pause_us;

	la_replay_split_gap(&gap, &wal_us, &pause_us);
	return fabs(wal_us - wal_ms * 1000) < 1 && fabs(pause_us - pause_ms * 1000) < 1;
}

static void
test_gaps(void)
{
	/* us, slept, had_wal, arrived_us, delayed_us, may_pause */
	check("no sleep: the processor's", gap_is((LaReplayGap) {5e6, false, true, -1, -1, true}, 0, 0));
	check("... whatever else", gap_is((LaReplayGap) {5e6, false, false, 1000, 1, true}, 0, 0));
	check("a short one", gap_is((LaReplayGap) {900, true, false, -1, -1, true}, 0, 0));
	check("WAL that has just come", gap_is((LaReplayGap) {5e6, true, false, 10, -1, true}, 5000 - 0.01, 0));
	check("... and a pause behind it", gap_is((LaReplayGap) {5e6, true, false, 3e6, -1, true}, 2000, 3000));
	check("... or replay that was late", gap_is((LaReplayGap) {5e6, true, false, 5e4, -1, true}, 4950, 0));
	check("the next page of a file", gap_is((LaReplayGap) {5e3, true, false, -1, -1, true}, 5, 0));
	check("the next file", gap_is((LaReplayGap) {5e6, true, true, 10, -1, true}, 5000 - 0.01, 0));
	check("a pause", gap_is((LaReplayGap) {5e5, true, true, 1e6, -1, true}, 0, 500));
	check("... that nobody could ask for", gap_is((LaReplayGap) {5e5, true, true, -1, -1, false}, 0, 0));
	check("a short time with WAL at hand", gap_is((LaReplayGap) {3e4, true, true, -1, -1, true}, 0, 0));
	check("a delay, however short", gap_is((LaReplayGap) {3e3, true, true, 1e6, 50, false}, 0, 3));
	check("... behind a wait for WAL", gap_is((LaReplayGap) {5e6, true, false, 2e6, 50, true}, 3000, 2000));
	check("... of a file", gap_is((LaReplayGap) {5e6, true, false, -1, 50, true}, 0, 5000));
	check("one that had been over", gap_is((LaReplayGap) {5e4, true, true, -1, 1e6, true}, 0, 0));
}

static void
test_causes(void)
{
	LaReplayPolicy p;

	check("a read from memory is no wait", la_replay_redo_cause(20, 1, 25, 0, true) == LA_REPLAY_PROCESSOR);
	check("a slow read is", la_replay_redo_cause(900, 1, 25, 0, true) == LA_REPLAY_READS);
	check("many fast ones are not", la_replay_redo_cause(100, 8, 25, 0, false) == LA_REPLAY_PROCESSOR);
	check("a long time without reads: a conflict", la_replay_redo_cause(5000, 0, 25, 0, true) == LA_REPLAY_CONFLICT);
	check("... where there can be one", la_replay_redo_cause(5000, 0, 25, 0, false) == LA_REPLAY_PROCESSOR);
	check("no read takes so long", la_replay_redo_cause(3e6, 1, 25, 0, true) == LA_REPLAY_CONFLICT);
	check("... but where there is no conflict", la_replay_redo_cause(3e6, 1, 25, 0, false) == LA_REPLAY_READS);
	check("20 times as long as a read: a conflict", la_replay_redo_cause(4e4, 1, 25, 1000, true) == LA_REPLAY_CONFLICT);
	check("... not a slow read", la_replay_redo_cause(1e4, 1, 25, 1000, true) == LA_REPLAY_READS);
	check("... nor several", la_replay_redo_cause(4e4, 4, 25, 1000, true) == LA_REPLAY_READS);
	check("... nor one of less than 1 ms", la_replay_redo_cause(900, 1, 25, 40, true) == LA_REPLAY_READS);
	la_replay_policy_init(&p, BASE);
	la_replay_policy_waited(&p, 2, 2000);
	check("what a read takes, from the first one on", p.read_us == 1000);
	la_replay_policy_waited(&p, 1, 3000);
	check("... slowly another", p.read_us > 1000 && p.read_us < 1500);
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
	test_mixes();
	test_memory();
	test_undo();
	test_gaps();
	test_causes();
	test_rates();
	return report();
}
