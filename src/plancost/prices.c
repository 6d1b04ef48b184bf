/*
 * prices.c
 *	  What reading a block costs, in the planner's unit, by the reads in flight.
 *
 * Costs of plans are sums of what the processor takes and of what reads take, so both must be in
 * one unit.  The processor's prices (cpu_tuple_cost and others) are the user's, and most of a
 * plan's cost depends on them, so the unit is theirs: it is the time that makes a tuple of
 * a sequential scan cost what it takes on this machine (tuple_us).  A block read at depth d costs
 * random_us(d) / unit_us, and a block in order sequential_us / unit_us.
 *
 * There are no prices where a block would cost next to nothing, or next to everything, as by
 * a setting that is no price.  A price is never less than that of a sequential block, and never
 * rises with the depth, so that a scan's reads cost at least what all of them would at its greatest
 * depth.  Nor does it fall faster than the depth rises: twice as many reads in flight take no less
 * time together.  Times that say otherwise have been measured on busy storage.
 *
 * The operating system reads ahead of a sequential scan while the processor is busy with its rows,
 * so that the shorter of both times hardly shows.  The planner adds them up.
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
#define MAX_PRICE	1e6			/* sequential blocks, or units */

/* Of a time that passes meanwhile; the rest is for starting reads, and for copies. */
#define HIDDEN_SHARE	0.75

static double
least(double a, double b)
{
	return a < b ? a : b;
}

/* Microseconds, if a tuple takes so many, and has that price.  0: that makes no unit. */
double
la_prices_unit(double tuple_us, double tuple_price)
{
	double		unit_us = tuple_us / tuple_price;

	/* (NaN fails each of these comparisons) */
	return tuple_us > 0.0 && tuple_price > 0.0 && isfinite(unit_us) ? unit_us : 0.0;
}

/* False: they make no prices. */
bool
la_prices_make(LaPrices *prices, const double *random_us, double sequential_us, double unit_us)
{
	double		sequential = sequential_us / unit_us;
	double		before = MAX_PRICE,
				half = 0.0;

	if (!(sequential_us > 0.0) || !(unit_us > 0.0) ||
		!(sequential >= 1.0 / MAX_PRICE) || !(sequential <= MAX_PRICE))
		return false;
	for (int i = 0; i < LA_PRICE_DEPTHS; i++)
	{
		double		blocks = random_us[i] / sequential_us;

		if (!(random_us[i] > 0.0) || !(blocks <= MAX_PRICE))
			return false;
		blocks = blocks > half ? blocks : half;
		before = least(before, blocks > 1.0 ? blocks : 1.0);
		half = before / 2.0;
		prices->at[i] = before * sequential;
	}
	prices->sequential = prices->sequential_read = sequential;
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
la_prices_blend(LaPrices *prices, double share, double random, double sequential)
{
	for (int i = 0; i < LA_PRICE_DEPTHS; i++)
		prices->at[i] = share * prices->at[i] + (1.0 - share) * random;
	prices->sequential = share * prices->sequential + (1.0 - share) * sequential;
	prices->sequential_read *= share;
}

/* Blocks in order are read so many times, and but for the first time at that price. */
void
la_prices_repeat(LaPrices *prices, double repeats, double again)
{
	prices->sequential = (prices->sequential + (repeats - 1.0) * least(again, prices->sequential)) /
		repeats;
	prices->sequential_read /= repeats;
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

/*
 * What a sequential scan of so many blocks takes less than run_cost, as reads and work go on at the
 * same time.
 */
double
la_prices_hidden(const LaPrices *prices, double blocks, double run_cost)
{
	double		work = run_cost - blocks * prices->sequential;
	double		reads = blocks * prices->sequential_read;

	/* (NaN fails each of these comparisons) */
	if (!(work > 0.0) || !(reads > 0.0) || !isfinite(least(work, reads)))
		return 0.0;
	return HIDDEN_SHARE * least(work, reads);
}

/*
 * How many blocks of a relation come into a cache that keeps so many of them, by visits at random
 * (Mackert and Lohman, 1989).  Until it is full each comes once; then each visit is a read, unless
 * the block is one of those that are kept.
 */
double
la_prices_fetches(double pages, double visits, double kept)
{
	double		until_full;

	if (!(pages >= 1.0) || !(visits > 0.0))
		return 0.0;
	kept = kept > 1.0 ? kept : 1.0;
	if (kept >= pages)
		return least(2.0 * pages * visits / (2.0 * pages + visits), pages);
	until_full = 2.0 * pages * kept / (2.0 * pages - kept);
	if (visits <= until_full)
		return 2.0 * pages * visits / (2.0 * pages + visits);
	return kept + (visits - until_full) * (pages - kept) / pages;
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
