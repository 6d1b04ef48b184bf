/*
 * prices_test.c
 *	  Prices of reads, made from measured times.
 *
 * test/unit/prices_test.c
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plancost/prices.h"
#include "simulation.h"

/* A volume whose reads take 1 ms, 16,000 a second at most, and 50 us in order. */
static const double volume[LA_PRICE_DEPTHS] = {1000, 500, 250, 125, 62.5, 62.5, 62.5, 62.5, 62.5};
#define SEQUENTIAL_US 50.0

static const LaReach to_end = {64, 2, false};
static const LaReach early = {64, 2, true};
static const LaReach passive = {1, 2, false};

static bool
near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (1.0 + fabs(b));
}

/* In a unit of so many sequential blocks. */
static LaPrices
prices_of(const double *random_us, double blocks)
{
	LaPrices	p;

	if (!la_prices_make(&p, random_us, SEQUENTIAL_US, SEQUENTIAL_US * blocks))
		check("these times make prices", false);
	return p;
}

static void
test_made(void)
{
	LaPrices	p = prices_of(volume, 1.0);

	check("alone", near(la_prices_at(&p, 1), 20));
	check("at depth", near(la_prices_at(&p, 16), 1.25) && near(la_prices_at(&p, 1000), 1.25));
	check("between two depths", near(la_prices_at(&p, 1.6), 12.5) && near(la_prices_at(&p, 24), 1.25));
	check("at no depth at all", near(la_prices_at(&p, 0), 20) && near(la_prices_at(&p, -1), 20) &&
		  near(la_prices_at(&p, NAN), 20));
	check("at an infinite one", near(la_prices_at(&p, INFINITY), 1.25));
	check("in order", near(p.sequential, 1));
	p = prices_of(volume, 10);
	check("in another unit", near(la_prices_at(&p, 1), 2) && near(la_prices_at(&p, 64), 0.125) && near(p.sequential, 0.1));
}

static void
test_unit(void)
{
	const double bad[] = {0, -1, NAN, INFINITY, -INFINITY};

	check("a tuple of a tenth of a microsecond for a hundredth", near(la_prices_unit(0.1, 0.01), 10));
	check("half the price, twice the unit", near(la_prices_unit(0.1, 0.005), 20));
	for (int i = 0; i < (int) (sizeof(bad) / sizeof(bad[0])); i++)
	{
		check("a bad time of a tuple", la_prices_unit(bad[i], 0.01) == 0);
		check("a bad price of a tuple", la_prices_unit(0.1, bad[i]) == 0);
	}
	check("a unit that is infinite", la_prices_unit(1e300, 1e-300) == 0);
	check("one that is next to nothing", la_prices_unit(1e-300, 1e300) == 0);
}

static void
test_shape(void)
{
	double		us[LA_PRICE_DEPTHS] = {100, 60, 80, 40, 20, 30, 500, 10, 1};
	LaPrices	p = prices_of(us, 1.0);
	bool		falls = true;

	for (int i = 1; i < LA_PRICE_DEPTHS; i++)
		falls &= p.at[i] <= p.at[i - 1];
	check("no deeper read costs more", falls);
	check("none costs less than a sequential one", near(la_prices_at(&p, 256), 1));
	us[1] = 1;
	us[0] = 1000;
	p = prices_of(us, 1.0);
	check("two reads take no less time than one", near(la_prices_at(&p, 2), 10));
}

static void
test_refused(void)
{
	const double bad[] = {0, -1, NAN, INFINITY, -INFINITY, 1e300};
	LaPrices	p;

	for (int i = 0; i < (int) (sizeof(bad) / sizeof(bad[0])); i++)
	{
		for (int d = 0; d < LA_PRICE_DEPTHS; d++)
		{
			double		us[LA_PRICE_DEPTHS];

			memcpy(us, volume, sizeof(us));
			us[d] = bad[i];
			check("a bad time", !la_prices_make(&p, us, SEQUENTIAL_US, 1.0));
		}
		check("a bad unit", bad[i] == 1e300 || !la_prices_make(&p, volume, SEQUENTIAL_US, bad[i]));
		check("a bad sequential time", !la_prices_make(&p, volume, bad[i], 1.0));
	}
	check("prices that overflow", !la_prices_make(&p, volume, SEQUENTIAL_US, 1e-305));
	check("prices that vanish", !la_prices_make(&p, volume, SEQUENTIAL_US, 1e305));
	check("a sequential time next to nothing", !la_prices_make(&p, volume, 1e-300, 1.0));
	check("a sequential time that is longer than all",
		  la_prices_make(&p, volume, 5000, 50.0) && near(la_prices_at(&p, 1), 100) && near(p.sequential, 100));
}

static void
test_scans(void)
{
	LaPrices	p = prices_of(volume, 1.0);

	check("nothing read", la_prices_scan(&p, &to_end, 0) == 0);
	check("one block is a wait", near(la_prices_scan(&p, &to_end, 1), 20));
	check("part of one is part of it", near(la_prices_scan(&p, &to_end, 0.25), 5));
	check("two are two", near(la_prices_scan(&p, &to_end, 2), 40));
	check("three are three: the last one is alone", near(la_prices_scan(&p, &to_end, 3), 60));
	check("ten: two waits, eight together", near(la_prices_scan(&p, &to_end, 10), 40 + 8 * 2.5));
	check("ten thousand at depth", near(la_prices_scan(&p, &to_end, 10000), 40 + 9998 * 1.25));
	check("without look-ahead, each is a wait", near(la_prices_scan(&p, &passive, 10000), 200000));
	check("a ramp: 2 waits, 2, 4, 8, 16, 32 and the rest",
		  near(la_prices_scan(&p, &early, 164), 40 + 2 * 10 + 4 * 5 + 8 * 2.5 + 148 * 1.25));
	check("a ramp that ends early", near(la_prices_scan(&p, &early, 5), 40 + 2 * 10 + 20));
	check("so does one that is infinite", isinf(la_prices_scan(&p, &to_end, INFINITY)));
}

static void
test_shared(void)
{
	LaPrices	p = prices_of(volume, 1.0);

	la_prices_share(&p, 3, 2.4);
	check("three that wait alone do so as before", near(la_prices_at(&p, 1), 20));
	check("at the limit of the storage, none gains by others", near(la_prices_at(&p, 64), 2.4 * 1.25));
	p = prices_of(volume, 1.0);
	la_prices_share(&p, 1, 1);
	check("one has it alone", near(la_prices_at(&p, 1), 20) && near(la_prices_at(&p, 16), 1.25));
}

/* What reprice.c relies on, for many prices and scans. */
static void
test_bounds(void)
{
	bool		least = true,
				most = true,
				rises = true;

	srand(1);
	for (int i = 0; i < 10000; i++)
	{
		double		us[LA_PRICE_DEPTHS];
		LaPrices	p;
		LaReach		reach = {1 + rand() % 1024, 1 + rand() % 10, rand() % 2};
		double		reads = rand() % 5000 / 7.0;
		double		cost;

		for (int d = 0; d < LA_PRICE_DEPTHS; d++)
			us[d] = 1 + rand() % 2000;	/* (also such that no storage has) */
		p = prices_of(us, 1.0);
		la_prices_blend(&p, rand() % 11 / 10.0, 4.0, 1.0);
		cost = la_prices_scan(&p, &reach, reads);
		least &= cost >= reads * la_prices_at(&p, reach.distance) * (1 - 1e-9);
		most &= cost <= reads * la_prices_at(&p, 1) * (1 + 1e-9);
		rises &= la_prices_scan(&p, &reach, reads + 64) >= cost * (1 - 1e-9);
	}
	check("no scan costs less than at its greatest depth", least);
	check("nor more than without look-ahead", most);
	check("64 more reads do not cost less", rises);
}

static void
test_hidden(void)
{
	LaPrices	p = prices_of(volume, 1.0);

	check("of 100 blocks and as much work", near(la_prices_hidden(&p, 100, 200), 75));
	check("of more work", near(la_prices_hidden(&p, 100, 1000), 75));
	check("of less", near(la_prices_hidden(&p, 100, 120), 15));
	check("of none", la_prices_hidden(&p, 100, 100) == 0 && la_prices_hidden(&p, 100, 99) == 0);
	check("no blocks", la_prices_hidden(&p, 0, 100) == 0);
	check("no number", la_prices_hidden(&p, 100, NAN) == 0 && la_prices_hidden(&p, NAN, 100) == 0 &&
		  la_prices_hidden(&p, INFINITY, INFINITY) == 0);
	la_prices_blend(&p, 0.25, 4.0, 2.0);
	check("what is in memory hides nothing", near(la_prices_hidden(&p, 100, 1000), 0.75 * 25));
}

static void
test_blend(void)
{
	LaPrices	p = prices_of(volume, 1.0);

	la_prices_blend(&p, 0.25, 4.0, 2.0);
	check("a quarter at its price", near(la_prices_at(&p, 1), 0.25 * 20 + 0.75 * 4) &&
		  near(la_prices_at(&p, 256), 0.25 * 1.25 + 0.75 * 4) && near(p.sequential, 0.25 * 1 + 0.75 * 2));
	la_prices_blend(&p, 0.0, 4.0, 2.0);
	check("none", near(la_prices_at(&p, 1), 4) && near(la_prices_at(&p, 256), 4) && near(p.sequential, 2));
}

static void
test_repeat(void)
{
	LaPrices	p = prices_of(volume, 1.0);

	la_prices_repeat(&p, 1, 0.5);
	check("once is as before", near(p.sequential, 1) && near(p.sequential_read, 1));
	la_prices_repeat(&p, 4, 0.5);
	check("four times", near(p.sequential, (1 + 3 * 0.5) / 4) && near(p.sequential_read, 0.25) &&
		  near(la_prices_at(&p, 1), 20));
	la_prices_repeat(&p, 4, 100);
	check("a block is not more expensive the second time", near(p.sequential, 2.5 / 4));
}

static void
test_fetches(void)
{
	check("none", la_prices_fetches(100, 0, 10) == 0 && la_prices_fetches(0, 10, 10) == 0 &&
		  la_prices_fetches(NAN, 10, 10) == 0 && la_prices_fetches(100, NAN, 10) == 0);
	check("one", near(la_prices_fetches(1e6, 1, 10), 2e6 / (2e6 + 1)));
	check("all are kept", near(la_prices_fetches(100, 1e9, 100), 100));
	check("next to none", fabs(la_prices_fetches(1000, 1e6, 0) - 999e3) < 10);
	check("half are", fabs(la_prices_fetches(1000, 1e6, 500) - 5e5) < 1000);
	for (double kept = 1; kept < 1000; kept *= 3)
	{
		check("it grows with visits", la_prices_fetches(500, 5000, kept) >= la_prices_fetches(500, 4000, kept));
		check("and falls with what is kept",
			  la_prices_fetches(500, 5000, kept) >= la_prices_fetches(500, 5000, kept * 2));
	}
}

int
main(void)
{
	test_made();
	test_unit();
	test_shape();
	test_refused();
	test_scans();
	test_shared();
	test_bounds();
	test_blend();
	test_repeat();
	test_fetches();
	test_hidden();
	return report();
}
