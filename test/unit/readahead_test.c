/*
 * readahead_test.c
 *	  Unit tests of src/window/readahead.c.
 *
 * test/unit/readahead_test.c
 */
#include <stdlib.h>
#include <string.h>

#include "simulation.h"
#include "window/readahead.h"

#define TABLE 100000

/* Of so many visits, the share that would have been in memory. */
static double
share(const uint64_t *blocks, int n)
{
	LaReadahead r;
	int			served = 0;

	memset(&r, 0, sizeof(r));
	for (int i = 0; i < n; i++)
		served += la_readahead_serves(&r, blocks[i]);
	return (double) served / n;
}

/* So many different blocks of as many from 5000 on, in random order. */
static void
draw(uint64_t *blocks, int n, int span)
{
	static uint64_t all[TABLE];

	for (int i = 0; i < span; i++)
		all[i] = 5000 + i;
	for (int i = 0; i < n; i++)
	{
		int			other = i + rand() % (span - i);

		blocks[i] = all[other];
		all[other] = all[i];
	}
}

/* Twenty times rows of a span of blocks, in its order, as those of one value after the other. */
static int
passes(uint64_t *blocks)
{
	static bool visited[TABLE];
	int			n = 0;

	for (int pass = 0; pass < 20; pass++)
	{
		for (int block = pass * 8; block < 3400 + pass * 8; block++)
		{
			if (rand() % 7 != 0 || visited[block])
				continue;
			visited[block] = true;
			blocks[n++] = 5000 + block;
		}
	}
	return n;
}

int
main(void)
{
	static uint64_t blocks[TABLE];
	LaReadahead r;

	srand(1);
	draw(blocks, 3700, 3700);
	check("of all blocks in any order, a third is there", share(blocks, 3700) > 0.3);
	check("of all blocks in twenty rising passes, most are", share(blocks, passes(blocks)) > 0.5);
	draw(blocks, 500, 3700);
	check("of one in seven, nearly all are", share(blocks, 500) < 0.1);
	draw(blocks, 10000, TABLE);
	check("in a large table, all are", share(blocks, 10000) < 0.02);
	for (int i = 0; i < 1000; i++)
		blocks[i] = 5000 + i;
	check("in order, none is but the first ones", share(blocks, 1000) > 0.99);
	for (int i = 0; i < 1000; i++)
		blocks[i] = 6000 - i;
	check("backwards, all are", share(blocks, 1000) == 0);
	for (int i = 0; i < 1000; i++)
		blocks[i] = i % 100 * 64;
	check("a block that was visited is there", share(blocks, 1000) == 0.9);
	for (int i = 0; i < 1000; i++)
		blocks[i] = i % 100 * 64 * LA_READAHEAD_WORDS;
	check("but not for ever", share(blocks, 1000) == 0);
	memset(&r, 0, sizeof(r));
	check("the first block of a table", !la_readahead_serves(&r, 0) && la_readahead_serves(&r, 0));
	check("the last one that there may be", !la_readahead_serves(&r, UINT64_MAX - 100));
	return report();
}
