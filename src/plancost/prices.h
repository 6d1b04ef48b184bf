/*
 * prices.h
 *	  What reading a block costs, in the planner's unit, by the reads in flight.
 *
 * Pure functions, without PostgreSQL's headers: test/unit checks them.  See prices.c.
 *
 * src/plancost/prices.h
 */
#ifndef LA_PRICES_H
#define LA_PRICES_H

#include <stdbool.h>

#define LA_PRICE_DEPTHS 9		/* 1, 2, 4, ... 256 */

typedef struct LaPrices
{
	double		at[LA_PRICE_DEPTHS];	/* of one block, at that depth */
	double		sequential;		/* of one block in order */
	double		sequential_read;	/* of that, what is measured */
} LaPrices;

/* How many reads a scan has in flight. */
typedef struct LaReach
{
	double		distance;		/* at most; 1: it does not look ahead */
	double		waits;			/* reads at depth 1 before it looks ahead */
	bool		ramps;			/* it may be left early: the distance doubles */
} LaReach;

extern double la_prices_unit(double tuple_us, double tuple_price);
extern bool la_prices_make(LaPrices *prices, const double *random_us, double sequential_us,
						   double unit_us);
extern void la_prices_share(LaPrices *prices, double processes, double divisor);
extern void la_prices_blend(LaPrices *prices, double share, double random, double sequential);
extern void la_prices_repeat(LaPrices *prices, double repeats, double again);
extern double la_prices_at(const LaPrices *prices, double depth);
extern double la_prices_hidden(const LaPrices *prices, double blocks, double run_cost);
extern double la_prices_fetches(double pages, double visits, double kept);
extern double la_prices_scan(const LaPrices *prices, const LaReach *reach, double reads);

#endif							/* LA_PRICES_H */
