/*
 * scatter_test.c
 *	  How the rows of index entries lie in the table.
 *
 * test/unit/scatter_test.c
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plancost/scatter.h"
#include "simulation.h"

#define ENTRIES 366
#define PER_BLOCK 60			/* rows of the table */
#define TABLE 168000			/* blocks */

static bool
near(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance * fabs(b);
}

/* A leaf page in the middle of the index, whose rows are up to so many blocks from their place. */
static LaScatter
looked_at(int pages, int spread)
{
	LaScatter	s = {0};

	srand(1);
	for (int page = 0; page < pages; page++)
	{
		uint32_t	blocks[ENTRIES];

		for (int i = 0; i < ENTRIES; i++)
			blocks[i] = 50000 + page * 10000 + i / PER_BLOCK + (spread ? rand() % spread : 0);
		la_scatter_add(&s, blocks, ENTRIES);
	}
	return s;
}

static double
in_order(double rows)
{
	return rows / PER_BLOCK;
}

static void
test_order(void)
{
	LaScatter	s = looked_at(2, 0);

	check("entries", s.entries == 2 * ENTRIES);
	check("runs of 8, 32 and 128", s.steps[0] == 2 * 45 * 7 && s.steps[1] == 2 * 11 * 31 &&
		  s.steps[2] == 2 * 2 * 127 && s.steps[3] == 0);
	for (double rows = 0.5; rows < 1e7; rows *= 3)
		check("in order, nothing changes", la_scatter_reads(&s, rows, in_order(rows)) == in_order(rows));
}

static void
test_near(void)
{
	LaScatter	s = looked_at(2, 3400);
	double		span = s.span;

	check("a span of most of them", span > 2500 && span < 3400);
	check("some hundred rows, nearly as many blocks",
		  near(la_scatter_reads(&s, 498, in_order(498)), 498, 0.1));
	check("many rows: those in order, and the span",
		  la_scatter_reads(&s, 50000, in_order(50000)) == in_order(50000) + span);
	check("very many: what is in order is most of it",
		  la_scatter_reads(&s, 5e6, in_order(5e6)) == in_order(5e6));
	check("a row", la_scatter_reads(&s, 1, in_order(1)) == in_order(1));
	check("hardly more than in order is in order", la_scatter_reads(&s, 5, in_order(5)) == in_order(5));
}

/* 1,200 entries on a page, of 12 values; the rows of each are in 75 blocks of 150. */
static void
test_duplicates(void)
{
	LaScatter	s = {0};
	uint32_t	blocks[1200];

	srand(1);
	for (int i = 0; i < 1200; i++)
		blocks[i] = i / 33 + rand() % 150;
	la_scatter_add(&s, blocks, 1200);
	check("the rows of a value", near(la_scatter_reads(&s, 100, 3), 75, 0.1));
	check("of four", near(la_scatter_reads(&s, 400, 12), 150, 0.15));
	check("more are read in order in the end", la_scatter_reads(&s, 5000, 150) <= 150 + s.span);
}

static void
test_random(void)
{
	LaScatter	s = looked_at(1, TABLE);

	check("anywhere: a block for each row", near(la_scatter_reads(&s, 10000, in_order(10000)), 10000, 0.02));
}

static void
test_strays(void)
{
	LaScatter	s = {0};
	uint32_t	blocks[ENTRIES];

	for (int i = 0; i < ENTRIES; i++)
		blocks[i] = i % 20 == 0 ? 160000 - i : 100 + i / PER_BLOCK;
	la_scatter_add(&s, blocks, ENTRIES);
	check("a few that lie elsewhere are no span", s.span < 10);
}

static void
test_little(void)
{
	LaScatter	s = {0};
	uint32_t	blocks[] = {7, 3, 900, 42};

	check("nothing is known", la_scatter_reads(&s, 1000, 17) == 17);
	la_scatter_add(&s, blocks, 0);
	check("of no entry nothing follows", s.entries == 0);
	la_scatter_add(&s, blocks, 4);
	check("a few make no run", s.entries == 4 && s.steps[0] == 0);
	check("too little is known", la_scatter_reads(&s, 1000, 17) == 17);
	s = looked_at(2, 3400);
	check("no number of rows", la_scatter_reads(&s, NAN, 17) == 17);
	check("infinitely many", la_scatter_reads(&s, INFINITY, INFINITY) == INFINITY);
	check("with an end", la_scatter_reads(&s, INFINITY, 17) == 17 + s.span);
}

int
main(void)
{
	test_order();
	test_near();
	test_duplicates();
	test_random();
	test_strays();
	test_little();
	return report();
}
