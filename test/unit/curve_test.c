/*
 * curve_test.c
 *	  The knee of curves that are known, and sums of times.
 *
 * test/unit/curve_test.c
 */
#include <math.h>
#include <stdlib.h>

#include "simulation.h"
#include "calibrate/curve.h"

#define DEPTHS 9

/* Is it that, within this share? */
static bool
is_near(double value, double expected, double share)
{
	return fabs(value - expected) <= share * fabs(expected) + 1e-9;
}

/* Reads that take so long, but not more of them than the device can make in a second. */
static void
limited(double *iops, double us, double most)
{
	for (int i = 0; i < DEPTHS; i++)
		iops[i] = fmin(exp2(i) * 1e6 / us, most);
}

/* Reads that queue: each in flight makes the others slower. */
static void
queued(double *iops, double c, double most)
{
	for (int i = 0; i < DEPTHS; i++)
		iops[i] = most * exp2(i) / (exp2(i) + c);
}

static double
knee_of(const double *iops)
{
	LaKnee		knee;

	la_curve_knee(iops, DEPTHS, &knee);
	return knee.depth;
}

static void
test_knee(void)
{
	double		iops[DEPTHS];
	LaKnee		knee;

	limited(iops, 1000, 16000);
	la_curve_knee(iops, DEPTHS, &knee);
	check("a limit of 16 reads in flight: nine tenths of it", is_near(knee.depth, 14.4, 0.03));
	check("... and its rates", is_near(knee.rate, 14400, 0.02) && is_near(knee.best_rate, 16000, 0.02));

	limited(iops, 100, 10000);
	check("a device that makes one read at a time", knee_of(iops) == 1.0);
	limited(iops, 100, 1e9);
	check("a rate that grows to the end", is_near(knee_of(iops), 0.9 * 256, 0.01));

	/* nine tenths of the rate at 256 */
	queued(iops, 3, 70000);
	check("reads that queue", is_near(knee_of(iops), 0.9 * 256 * 3 / (0.1 * 256 + 3), 0.05));
	queued(iops, 40, 5000);
	check("... with a late knee", is_near(knee_of(iops), 0.9 * 256 * 40 / (0.1 * 256 + 40), 0.05));

	limited(iops, 1000, 4000);
	iops[8] = 2000;
	check("a rate that falls behind its best", is_near(knee_of(iops), 3.6, 0.1));
	for (int i = 0; i < DEPTHS; i++)
		iops[i] = 5000 - 100 * i;
	check("rates that only fall", knee_of(iops) == 1.0);
	la_curve_knee(iops, 1, &knee);
	check("one rate", knee.depth == 1.0);
}

/* The first depth that was measured at or behind the knee. */
static void
test_place(void)
{
	check("a knee at the least depth", la_curve_place(1.0) == 0);
	check("... or below it", la_curve_place(0.5) == 0);
	check("at a depth that was measured", la_curve_place(8.0) == 3);
	check("... or so near that only the search for it differs", la_curve_place(8.0 * (1 + 1e-9)) == 3);
	check("behind it", la_curve_place(8.001) == 4);
	check("before the greatest one", la_curve_place(200) == 8);
}

/* Does noise move the knee by more than that? */
static bool
is_robust(double noise, double share, bool pause)
{
	double		iops[DEPTHS];

	srand(1);
	for (int n = 0; n < 200; n++)
	{
		queued(iops, 3, 70000);
		for (int i = 0; i < DEPTHS; i++)
			iops[i] *= 1.0 + noise * (rand() % 2001 - 1000) / 1000.0;
		if (pause)
			iops[rand() % DEPTHS] *= 0.4;
		if (!is_near(knee_of(iops), 24.1, share))
			return false;
	}
	return true;
}

static void
test_noise(void)
{
	check("rates that are wrong by up to 2%", is_robust(0.02, 0.2, false));
	check("a depth at which others used the disk", is_robust(0.0, 0.2, true));
}

static void
test_lines(void)
{
	double		x[] = {1, 2, 4, 8, 16};
	double		line[] = {13, 15, 19, 27, 43};
	double		falling[] = {5, 4, 3, 2, 1};
	double		rates[] = {100, 80, 120};

	check("a line", is_near(la_curve_slope(x, line, 5), 2.0, 1e-9));
	check("a falling one is none", la_curve_slope(x, falling, 5) == 0.0);
	check("one point", la_curve_slope(x, line, 1) == 0.0);
	check("how rates differ", is_near(la_curve_spread(rates, 3), 0.5, 1e-9));
	check("a single one does not", la_curve_spread(rates, 1) == 0.0);
}

static void
test_times(void)
{
	static LaTimes times;
	static LaTimes extremes;

	check("no times", la_times_average(&times) == 0.0 && la_times_quantile(&times, 0.5) == 0.0);
	for (int i = 1; i <= 1000; i++)
		la_times_add(&times, i);
	check("the average", is_near(la_times_average(&times), 500.5, 1e-9));
	check("the median", is_near(la_times_quantile(&times, 0.5), 500, 0.05));
	check("99 of 100", is_near(la_times_quantile(&times, 0.99), 990, 0.05));
	check("all", is_near(la_times_quantile(&times, 1.0), 1000, 0.05));

	la_times_add(&extremes, 0.0);
	la_times_add(&extremes, -1.0);
	la_times_add(&extremes, 1e30);
	check("times that are too short or too long", extremes.count == 3 &&
		  la_times_quantile(&extremes, 0.5) < 2.0 && la_times_quantile(&extremes, 1.0) > 1e8);
}

int
main(void)
{
	test_knee();
	test_place();
	test_noise();
	test_lines();
	test_times();
	return report();
}
