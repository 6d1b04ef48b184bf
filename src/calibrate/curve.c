/*
 * curve.c
 *	  What follows from reads that were measured: pure functions.
 *
 * THE KNEE of a curve of reads per second, measured with 1, 2, 4, ... of them in flight, is the
 * least depth that reaches nine tenths of the rate at the greatest depth.  More in flight than that
 * brings hardly anything, and each read takes longer, since it queues.
 *
 * THE FIT.  On most storage the rate rises slowly where that happens, by some 5% for twice the
 * depth.  A rate that is measured wrongly by 2% would move the knee by a third, and that at the
 * greatest depth all the more.  So the knee is not looked for among the rates, but on the curve
 *
 *		rate(depth) = limit / (1 + (c / depth)^p)^(1/p)
 *
 * that fits all of them best.  Its three parameters say what there is to say of a device: rates
 * grow with the depth at first, and are limited in the end; c is the depth where the two lines
 * meet, and p says how sharp the corner is.  With p = 1 each read delays the others, as in
 * a queue; with a large p a limit is imposed on a device that has not reached its own, as on cloud
 * volumes.  The best fit has the least sum of distances on a logarithmic scale, not of their
 * squares: one depth at which others used the disk then hardly counts.
 *
 * Only rates are compared.  A knee from latencies would be another one on storage that limits the
 * rate of reads whatever their number.
 *
 * src/calibrate/curve.c
 */
#include <math.h>
#include <stdlib.h>

#include "calibrate/curve.h"

#define KNEE_SHARE		0.9

/* The knee is found by halving, so one at a measured depth may come out a little above it. */
#define DEPTH_TOLERANCE	1e-6	/* in octaves */

/* the parameter c is tried from 1/4 to 1024, in steps of a sixteenth of an octave */
#define FIRST_STEP		(-32)
#define LAST_STEP		160

static const double sharpness[] = {1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0};

typedef struct Fit
{
	double		c;
	double		p;
	double		log_limit;
	double		distance;		/* of the rates from the curve, all together */
} Fit;

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

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

/* Logarithm of the rate at 2^place, as a share of the limit. */
static double
log_share(const Fit *fit, double place)
{
	return -log1p(pow(fit->c / exp2(place), fit->p)) / fit->p;
}

/* With c and p given, the limit that fits best, and how well. */
static void
fit_limit(Fit *fit, const double *rates, int n)
{
	double		limits[LA_CURVE_MAX];

	for (int i = 0; i < n; i++)
		limits[i] = log(rates[i]) - log_share(fit, i);
	qsort(limits, n, sizeof(double), compare_doubles);
	fit->log_limit = limits[n / 2];
	fit->distance = 0.0;
	for (int i = 0; i < n; i++)
		fit->distance += fabs(limits[i] - fit->log_limit);
}

static Fit
fit_curve(const double *rates, int n)
{
	Fit			best = {.distance = HUGE_VAL};

	for (size_t i = 0; i < sizeof(sharpness) / sizeof(sharpness[0]); i++)
	{
		for (int step = FIRST_STEP; step <= LAST_STEP; step++)
		{
			Fit			fit = {.c = exp2(step / 16.0),.p = sharpness[i]};

			fit_limit(&fit, rates, n);
			if (fit.distance < best.distance - 1e-9)
				best = fit;
		}
	}
	return best;
}

/*
 * The knee of positive rates at 1, 2, 4, ... 2^(n-1), with n up to LA_CURVE_MAX.  The rate grows
 * with the depth, so the knee is found by halving.
 */
void
la_curve_knee(const double *rates, int n, LaKnee *knee)
{
	Fit			fit = fit_curve(rates, n);
	double		best = log_share(&fit, n - 1);
	double		below = 0.0,
				above = n - 1;

	if (log_share(&fit, 0.0) >= best + log(KNEE_SHARE))
		above = 0.0;
	for (int i = 0; i < 40 && above > 0.0; i++)
	{
		double		middle = (below + above) / 2;

		if (log_share(&fit, middle) >= best + log(KNEE_SHARE))
			above = middle;
		else
			below = middle;
	}
	knee->depth = exp2(above);
	knee->rate = exp(fit.log_limit + log_share(&fit, above));
	knee->best_rate = exp(fit.log_limit + best);
}

/* The first depth that was measured at or behind a knee: as a power of two. */
int
la_curve_place(double knee)
{
	double		place = ceil(log2(knee) - DEPTH_TOLERANCE);

	return place > 0.0 ? (int) place : 0;
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

/* How much rates differ, as a share of the least. */
double
la_curve_spread(const double *rates, int n)
{
	double		least = rates[0],
				most = rates[0];

	for (int i = 1; i < n; i++)
	{
		least = fmin(least, rates[i]);
		most = fmax(most, rates[i]);
	}
	return least > 0.0 ? most / least - 1.0 : 0.0;
}
