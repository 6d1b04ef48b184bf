/*
 * curve.h
 *	  What follows from reads that were measured: pure functions.
 *
 * src/calibrate/curve.h
 */
#ifndef LA_CURVE_H
#define LA_CURVE_H

#include <stdint.h>

/* Times, counted by their size: 16 sizes between one microsecond and two, two and four, ... */
#define LA_TIMES_PER_OCTAVE 16
#define LA_TIMES_SIZES		(LA_TIMES_PER_OCTAVE * 30)

typedef struct LaTimes
{
	int64_t		count;
	double		sum_us;
	int64_t		counts[LA_TIMES_SIZES];
} LaTimes;

extern void la_times_add(LaTimes *times, double us);
extern double la_times_average(const LaTimes *times);
extern double la_times_quantile(const LaTimes *times, double share);

#define LA_CURVE_MAX 16			/* depths */

typedef struct LaKnee
{
	double		depth;
	double		rate;			/* there, as the fitted curve says */
	double		best_rate;		/* at the greatest depth, likewise */
} LaKnee;

extern void la_curve_knee(const double *rates, int n, LaKnee *knee);
extern int	la_curve_place(double knee);
extern double la_curve_slope(const double *x, const double *y, int n);
extern double la_curve_spread(const double *rates, int n);

#endif							/* LA_CURVE_H */
