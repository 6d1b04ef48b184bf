/*
 * replay_stream_test.c
 *	  What the policy of recovery costs beside the depth that suits best, and beside none.
 *
 * test/unit/replay_stream_test.c
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "simulation.h"
#include "replay_stream.h"

static bool verbose = false;

static const Disk local = {90, 65000, 0.3, 0};
static const Disk volume = {1000, 16000, 0.3, 0};
static const Disk limited = {1000, 5000, 0.3, 0};
static const Disk slow = {4000, 3000, 0.3, 0};

static const int depths[] = {0, 16, 32, 64, 128, 256, 512, 1000};

#define DEPTHS ((int) (sizeof(depths) / sizeof(depths[0])))

/* A part of the WAL: so many references. */
typedef struct Part
{
	Wal			wal;
	long		references;
} Part;

static double
replay_parts(Recovery *r, const Disk *disk, int fixed, const Part *parts, int n)
{
	begin_recovery(r, disk, fixed);
	for (int i = 0; i < n; i++)
		replay_references(r, &parts[i].wal, parts[i].references);
	return r->now_us;
}

/* The time at the best depth that stays, or without look-ahead. */
static double
best_fixed(const Disk *disk, const Part *parts, int n, int *depth)
{
	double		best = INFINITY;
	Recovery	r;

	for (int i = 0; i < DEPTHS; i++)
	{
		double		us = replay_parts(&r, disk, depths[i], parts, n);

		if (us < best)
		{
			best = us;
			*depth = depths[i];
		}
	}
	return best;
}

/* How many references are replayed in so many seconds, if not slowly? */
static long
references_in(const Disk *disk, const Wal *wal, double seconds)
{
	Recovery	r;
	long		with;

	begin_recovery(&r, disk, 64);
	replay_until(&r, wal, seconds * 1e6);
	with = r.place;
	begin_recovery(&r, disk, 0);
	replay_until(&r, wal, seconds * 1e6);
	return r.place > with ? r.place : with;
}

/* Is the policy within a share of the best? */
static void
check_within(const char *what, const Disk *disk, const Part *parts, int n, double share)
{
	Recovery	r;
	int			depth = 0;
	double		best = best_fixed(disk, parts, n, &depth);
	double		us = replay_parts(&r, disk, -1, parts, n);
	double		times = us / best;

	check(what, times <= 1 + share);
	if (times > 1 + share || verbose)
		printf("%s: %.3f s, at best %.3f s by depth %d: %.3f (depth %d, at most %d; %ld advised, %ld wasted, %ld comparisons, %.3f s without)\n",
			   what, us / 1e6, best / 1e6, depth, times, r.p.depth, r.deepest, r.advised, r.wasted,
			   r.comparisons, r.without_us / 1e6);
}

static void
check_ramp(const char *what, const Disk *disk, int misses)
{
	Wal			wal = {misses, 0, 0, 0, false};
	Part		part = {wal, references_in(disk, &wal, 3)};

	check_within(what, disk, &part, 1, 0.01);
	part.references /= 3;
	check_within("... 1 s", disk, &part, 1, 0.02);
}

static void
test_ramp(void)
{
	check_ramp("3 s, local disk", &local, 1000);
	check_ramp("3 s, local disk, half of the blocks in memory", &local, 500);
	check_ramp("3 s, local disk, 7 of 8", &local, 125);
	check_ramp("3 s, 1 ms and 16k", &volume, 1000);
	check_ramp("3 s, 1 ms and 16k, half of the blocks in memory", &volume, 500);
	check_ramp("3 s, 1 ms and 16k, 7 of 8", &volume, 125);
	check_ramp("3 s, 1 ms and 5k", &limited, 1000);
	check_ramp("3 s, 1 ms and 5k, half of the blocks in memory", &limited, 500);
	check_ramp("3 s, 1 ms and 5k, 7 of 8", &limited, 125);
	check_ramp("3 s, 4 ms and 3k", &slow, 1000);
}

static void
check_images(const char *what, const Disk *disk, int misses, int images, int shadows)
{
	Wal			wal = {misses, images, shadows, 0, false};
	Part		part = {wal, references_in(disk, &wal, 20)};

	check_within(what, disk, &part, 1, 0.02);
	part.references /= 20;
	check_within("... 1 s", disk, &part, 1, 0.10);
}

static void
test_images(void)
{
	check_images("local disk, few reads, most advice wasted", &local, 10, 200, 700);
	check_images("local disk, many reads", &local, 300, 200, 400);
	check_images("1 ms and 16k, hardly a read", &volume, 2, 200, 700);
	check_images("1 ms and 16k, few reads", &volume, 10, 200, 700);
	check_images("1 ms and 16k, some reads", &volume, 40, 200, 700);
	check_images("1 ms and 16k, many reads", &volume, 300, 200, 400);
	check_images("1 ms and 5k, hardly a read", &limited, 2, 200, 700);
	check_images("1 ms and 5k, few reads", &limited, 10, 200, 700);
	check_images("1 ms and 5k, some reads", &limited, 40, 200, 700);
	check_images("1 ms and 5k, many reads", &limited, 300, 200, 400);
	check_images("4 ms and 3k, few reads", &slow, 2, 200, 700);
}

/* Recovery begins with empty buffers: nothing is waited for, and nothing is written back at first. */
static void
check_filling(const char *what, const Disk *disk, int misses)
{
	Wal			fills = {misses, 200, 700, 0, true};
	Wal			full = {misses, 200, 700, 0, false};
	Part		parts[] = {{fills, references_in(disk, &fills, 1)}, {full, references_in(disk, &full, 2)}};

	check_within(what, disk, parts, 1, 0.02);
	check_within("... and then writes", disk, parts, 2, 0.02);
}

static void
test_filling(void)
{
	check_filling("free buffers, local disk, no reads", &local, 0);
	check_filling("free buffers, local disk, hardly a read", &local, 2);
	check_filling("free buffers, 1 ms and 16k, no reads", &volume, 0);
	check_filling("free buffers, 1 ms and 5k, no reads", &limited, 0);
}

/* Blocks that more than one record ahead needs are advised again, which is no reason to do without. */
static void
check_repeats(const char *what, const Disk *disk, int misses, int repeats)
{
	Wal			wal = {misses, 0, 0, repeats, false};
	Part		part = {wal, references_in(disk, &wal, 1)};
	Recovery	r;

	check_within(what, disk, &part, 1, 0.02);
	(void) replay_parts(&r, disk, -1, &part, 1);
	check("... without a comparison", r.comparisons == 0 && r.wasted > 0);
}

static void
test_repeats(void)
{
	check_repeats("repeats, local disk", &local, 500, 300);
	check_repeats("repeats, 1 ms and 16k", &volume, 600, 300);
	check_repeats("repeats, 1 ms and 5k", &limited, 600, 300);
}

/* What was true of the WAL changes: the best depth of each part is what counts. */
static void
check_change(const char *what, const Disk *disk, const Part *parts, int n, double share)
{
	Recovery	r;
	double		best = 0;
	double		us = replay_parts(&r, disk, -1, parts, n);
	int			depth;

	for (int i = 0; i < n; i++)
		best += best_fixed(disk, &parts[i], 1, &depth);
	check(what, us <= best * (1 + share));
	if (us > best * (1 + share) || verbose)
		printf("%s: %.3f s, at best %.3f s: %.3f (depth %d, at most %d; %ld comparisons, %.3f s without)\n",
			   what, us / 1e6, best / 1e6, us / best, r.p.depth, r.deepest, r.comparisons,
			   r.without_us / 1e6);
}

static void
test_changes(void)
{
	static const Wal images = {5, 200, 700, 0, false};
	static const Wal cold = {400, 5, 10, 0, false};
	static const Wal memory = {0, 5, 10, 0, false};
	const Disk *disks[] = {&local, &volume, &limited};

	for (int i = 0; i < 3; i++)
	{
		const Disk *d = disks[i];
		Part		parts[] = {
			{images, references_in(d, &images, 5)},
			{cold, references_in(d, &cold, 5)},
			{images, references_in(d, &images, 5)},
			{memory, references_in(d, &memory, 2)},
			{cold, references_in(d, &cold, 5)}
		};

		check_change("images, then none, and images again", d, parts, 5, 0.02);
	}
}

static void
test_any(int n)
{
	int			too_slow = 0;
	int			too_deep = 0;

	srand(2);
	for (int i = 0; i < n; i++)
	{
		double		read_us = 50 + rand() % 4000;
		Disk		d = {read_us, (4 + rand() % 40) * 1e6 / read_us, 0.1 * (rand() % 8), rand() % 3 == 0 ? 20000 : 0};
		Wal			wal = {rand() % (rand() % 2 ? 20 : 400), rand() % 300, rand() % 1000, 0, false};
		Part		part;
		Recovery	r;
		double		best;
		double		us;
		int			depth = 0;

		if (wal.misses + wal.images + wal.shadows > 1000)
			wal.shadows = 1000 - wal.misses - wal.images;
		part = (Part) {wal, references_in(&d, &wal, 20)};
		best = best_fixed(&d, &part, 1, &depth);
		us = replay_parts(&r, &d, -1, &part, 1);
		too_deep += r.deepest >= 512 && r.wasted * 4 > r.advised;
		if (us <= best * 1.06)
			continue;
		too_slow++;
		printf("read %.0f us, %.0f IOPS, noise %.1f, stall %.0f; %d misses, %d images, %d shadows: %.3f s, at best %.3f s by depth %d: %.3f (depth %d, at most %d; %ld comparisons, %.3f s without)\n",
			   d.read_us, d.iops, d.noise, d.stall_us, wal.misses, wal.images, wal.shadows, us / 1e6, best / 1e6,
			   depth, us / best, r.p.depth, r.deepest, r.comparisons, r.without_us / 1e6);
	}
	check("any storage and WAL: never 6% slower than the best depth, or none", too_slow == 0);
	check("... and never deep in vain", too_deep == 0);
}

int
main(int argc, char **argv)
{
	verbose = argc > 1;
	test_ramp();
	test_images();
	test_filling();
	test_repeats();
	test_changes();
	test_any(argc > 1 ? atoi(argv[1]) : 16);
	return report();
}
