/*
 * curve.c
 *	  What follows from reads that were measured: pure functions.
 *
 * THE KNEE of a curve of reads per second, measured with 1, 2, 4, ... of them in flight, is the
 * least depth that reaches nine tenths of the best of these rates.  Between two depths the rate is
 * taken to grow by the logarithm of the depth, along which it was measured in equal steps.  More
 * in flight than that brings hardly anything, and each read takes longer, since it queues.
 *
 * Only rates are compared.  A knee from latencies would be another one on storage that limits the
 * rate of reads whatever their number, as cloud volumes do.
 *
 * src/calibrate/curve.c
 */
#include <math.h>
#include <stdlib.h>

#include "calibrate/curve.h"

#define KNEE_SHARE		0.9
#define MAX_RATES		64

/* ---- times ---------------------------------------------------------------------- */

void
la_times_add(LaTimes *times, double us)
{
	int			size = us > 1.0 ? (int) (log2(us) * LA_TIMES_PER_OCTAVE) : 0;

	times->counts[size < LA_TIMES_SIZES ? size : LA_TIMES_SIZES - 1]++;
	times->count++;
	times->sum_us += us;
}

double
la_times_average(const LaTimes *times)
{
	return times->count > 0 ? times->sum_us / times->count : 0.0;
}

/* The time that this share of them do not exceed, within 5%. */
double
la_times_quantile(const LaTimes *times, double share)
{
	int64_t		wanted = (int64_t) ceil(share * times->count);
	int64_t		seen = 0;

	for (int size = 0; size < LA_TIMES_SIZES; size++)
	{
		seen += times->counts[size];
		if (seen >= wanted && seen > 0)
			return exp2((size + 0.5) / LA_TIMES_PER_OCTAVE);
	}
	return 0.0;
}

/* ---- the knee --------------------------------------------------------------------- */

static double
rate_at_knee(const double *iops, int n)
{
	double		best = 0.0;

	for (int i = 0; i < n; i++)
		best = iops[i] > best ? iops[i] : best;
	return KNEE_SHARE * best;
}

/* Which of the depths measured is the first one at or behind the knee?  It is 2 to this power. */
int
la_curve_knee_place(const double *iops, int n)
{
	double		wanted = rate_at_knee(iops, n);
	int			place = 0;

	while (place < n - 1 && iops[place] < wanted)
		place++;
	return place;
}

/* The knee, as a depth. */
double
la_curve_knee(const double *iops, int n)
{
	int			place = la_curve_knee_place(iops, n);
	double		below;

	if (place == 0)
		return 1.0;
	below = iops[place - 1];
	return exp2(place - 1 + (rate_at_knee(iops, n) - below) / (iops[place] - below));
}

/* ---- lines and spreads ----------------------------------------------------------- */

/* Of the straight line that fits the points best; 0 if it falls. */
double
la_curve_slope(const double *x, const double *y, int n)
{
	double		mean_x = 0.0,
				mean_y = 0.0,
				xx = 0.0,
				xy = 0.0;

	for (int i = 0; i < n; i++)
	{
		mean_x += x[i] / n;
		mean_y += y[i] / n;
	}
	for (int i = 0; i < n; i++)
	{
		xx += (x[i] - mean_x) * (x[i] - mean_x);
		xy += (x[i] - mean_x) * (y[i] - mean_y);
	}
	return xx > 0.0 && xy > 0.0 ? xy / xx : 0.0;
}

static int
compare_rates(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

/*
 * How much rates at different times differ, as a share of their median.  The greatest and the
 * least are left out: a single pause of the storage says nothing of the others.
 */
double
la_curve_spread(const double *rates, int n)
{
	double		sorted[MAX_RATES];

	if (n < 4 || n > MAX_RATES)
		return 0.0;
	for (int i = 0; i < n; i++)
		sorted[i] = rates[i];
	qsort(sorted, n, sizeof(double), compare_rates);
	return sorted[n / 2] > 0.0 ? (sorted[n - 2] - sorted[1]) / sorted[n / 2] : 0.0;
}
