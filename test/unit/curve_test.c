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

static void
test_knee(void)
{
	double		iops[DEPTHS];

	limited(iops, 1000, 16000);
	check("a limit of 16 reads in flight: nine tenths of it, on the way from 8 to 16",
		  is_near(la_curve_knee(iops, DEPTHS), 8 * exp2(0.8), 0.001));
	check("... measured at 16", la_curve_knee_place(iops, DEPTHS) == 4);

	limited(iops, 100, 10000);
	check("a device that makes one read at a time", la_curve_knee(iops, DEPTHS) == 1.0);
	check("... measured at 1", la_curve_knee_place(iops, DEPTHS) == 0);

	limited(iops, 100, 1e9);
	check("a rate that grows to the end", is_near(la_curve_knee(iops, DEPTHS), 128 * exp2(0.8), 0.001));

	limited(iops, 1000, 4000);
	iops[8] = 2000;
	check("a rate that falls behind its best", la_curve_knee(iops, DEPTHS) <= 4.0);
	iops[0] = 5000;
	check("a first one that is the best", la_curve_knee(iops, DEPTHS) == 1.0);
	for (int i = 0; i < DEPTHS; i++)
		iops[i] = 0;
	check("no rate at all", la_curve_knee(iops, DEPTHS) == 1.0);
}

/* Noise of the rates moves the knee by little. */
static void
test_noise(void)
{
	bool		near = true;

	srand(1);
	for (int n = 0; n < 1000; n++)
	{
		double		iops[DEPTHS];

		/* in a queue, where each read in flight makes the others slower */
		for (int i = 0; i < DEPTHS; i++)
			iops[i] = 70000.0 * exp2(i) / (exp2(i) + 3.0) * (0.98 + 0.04 * (rand() % 1000) / 1000.0);
		near = near && la_curve_knee(iops, DEPTHS) > 15 && la_curve_knee(iops, DEPTHS) < 40;
	}
	check("rates that are wrong by up to 2%", near);
}

static void
test_lines(void)
{
	double		x[] = {1, 2, 4, 8, 16};
	double		line[] = {13, 15, 19, 27, 43};
	double		falling[] = {5, 4, 3, 2, 1};
	double		steady[] = {100, 101, 99, 100, 20, 180, 100, 100};
	double		unsteady[] = {100, 30, 120, 40, 110, 35, 105, 100};

	check("a line", is_near(la_curve_slope(x, line, 5), 2.0, 1e-9));
	check("a falling one is none", la_curve_slope(x, falling, 5) == 0.0);
	check("one point", la_curve_slope(x, line, 1) == 0.0);
	check("one pause and its end are no spread", la_curve_spread(steady, 8) < 0.05);
	check("several are", la_curve_spread(unsteady, 8) > 0.5);
	check("too few rates", la_curve_spread(unsteady, 3) == 0.0);
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
	test_noise();
	test_lines();
	test_times();
	return report();
}
