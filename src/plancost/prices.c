/*
 * prices.c
 *	  What reading a block costs, in the planner's unit, by the reads in flight.
 *
 * The planner's unit is what a block of a sequential scan costs: seq_page_cost is what the storage
 * takes for one.  So a block read at depth d costs seq_page_cost * random_us(d) / sequential_us,
 * and sequential scans keep the price that they have.
 *
 * A price is never less than that of a sequential block, and never rises with the depth, so that
 * a scan's reads cost at least what all of them would at its greatest depth.  Nor does it fall
 * faster than the depth rises: twice as many reads in flight take no less time together.  Times
 * that say otherwise have been measured on busy storage.
 *
 * A scan that looks ahead waits for its first reads one by one (miss_threshold), and then has as
 * many in flight as it may, or as there are (RAMP in window/io_policy.c).  One that may be left
 * early begins with two, and doubles them.
 *
 * src/plancost/prices.c
 */
#include <math.h>

#include "plancost/prices.h"

/* Storage that is so slow by its measurement has not been measured well. */
#define MAX_PRICE	1e6			/* sequential blocks */

static double
least(double a, double b)
{
	return a < b ? a : b;
}

/* False: they make no prices. */
bool
la_prices_make(LaPrices *prices, const double *random_us, double sequential_us,
			   double sequential_price)
{
	double		before = MAX_PRICE,
				half = 0.0;

	/* (NaN fails each of these comparisons) */
	if (!(sequential_us > 0.0) || !isfinite(sequential_us) ||
		!(sequential_price > 0.0) || !isfinite(sequential_price * MAX_PRICE))
		return false;
	for (int i = 0; i < LA_PRICE_DEPTHS; i++)
	{
		double		blocks = random_us[i] / sequential_us;

		if (!(random_us[i] > 0.0) || !(blocks <= MAX_PRICE))
			return false;
		blocks = blocks > half ? blocks : half;
		before = least(before, blocks > 1.0 ? blocks : 1.0);
		half = before / 2.0;
		prices->at[i] = before * sequential_price;
	}
	return true;
}

/*
 * So many processes read at the same time, and the planner is going to divide what a block costs by
 * divisor.  No price falls.
 */
void
la_prices_share(LaPrices *prices, double processes, double divisor)
{
	LaPrices	alone = *prices;
	double		depth = 1.0;

	for (int i = 0; i < LA_PRICE_DEPTHS; i++, depth *= 2.0)
	{
		double		shared = divisor * la_prices_at(&alone, processes * depth);

		if (shared > alone.at[i])
			prices->at[i] = shared;
	}
}

/* Only a share of the blocks has these prices; for the rest, the depth does not matter. */
void
la_prices_blend(LaPrices *prices, double share, double other)
{
	for (int i = 0; i < LA_PRICE_DEPTHS; i++)
		prices->at[i] = share * prices->at[i] + (1.0 - share) * other;
}

/*
 * Of one block.  Between the depths that have been measured, the time that as many reads take
 * together grows evenly.
 */
double
la_prices_at(const LaPrices *prices, double depth)
{
	const double *at = prices->at;
	double		below = 1.0;

	if (!(depth > 1.0))
		return *at;
	while (depth >= 2.0 * below)
	{
		below *= 2.0;
		if (++at == &prices->at[LA_PRICE_DEPTHS - 1])
			return *at;
	}
	return (below * at[0] + (depth - below) * (2.0 * at[1] - at[0])) / depth;
}

/* Of all the blocks that a scan reads; there may be less than one. */
double
la_prices_scan(const LaPrices *prices, const LaReach *reach, double reads)
{
	double		alone = least(reads, reach->distance > 1.0 ? reach->waits : reads);
	double		cost = alone * la_prices_at(prices, 1.0);
	double		left = reads - alone;

	for (double depth = 2.0; reach->ramps && left > 0.0 && depth < reach->distance; depth *= 2.0)
	{
		double		now = least(left, depth);

		cost += now * la_prices_at(prices, now);
		left -= now;
	}
	return cost + left * la_prices_at(prices, least(left, reach->distance));
}
