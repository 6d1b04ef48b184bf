/*
 * scatter.c
 *	  How the rows of neighbouring index entries lie in the table.
 *
 * The planner knows the correlation between the order of an index and that of the table.  Where
 * it is high, it supposes that rows of neighbouring entries share blocks.  That need not be so:
 * with values that follow the table's order by and large, but not one by one (times of arrival,
 * numbers that several sessions draw), the correlation may be 0.999, and each row of a small range
 * in a block of its own.  The index itself shows it:
 *
 *		entries				blocks of their rows
 *		17 17 17 17 18 18	3, 3, 3, 3, 4, 4		in order: many rows in a block
 *							3, 90, 41, 77, 12, 63	a block for each row, all of them within
 *													a span of some hundred
 *
 * A scan of some rows takes as many blocks as a run of so many entries does.  Runs are of several
 * lengths, since neighbours share the more blocks, the more of them there are.  And all together do
 * not take more than there are where they lie: what is read again has been read a moment ago.
 *
 * src/plancost/scatter.c
 */
#include <stdbool.h>
#include <stdlib.h>

#include "plancost/scatter.h"

#define SHORTEST_RUN	8
#define RUN_FACTOR		4
#define LEAST_ENTRIES	64

static int
compare_blocks(const void *a, const void *b)
{
	uint32_t	x = *(const uint32_t *) a,
				y = *(const uint32_t *) b;

	return (x > y) - (x < y);
}

/* How many other blocks follow the first one, in a run that is sorted here? */
static int
other_blocks(uint32_t *blocks, int n)
{
	int			others = 0;

	qsort(blocks, n, sizeof(*blocks), compare_blocks);
	for (int i = 1; i < n; i++)
		others += blocks[i] != blocks[i - 1];
	return others;
}

/* The blocks of a page's entries, in their order, which is not kept. */
void
la_scatter_add(LaScatter *scatter, uint32_t *blocks, int n)
{
	double		span;
	int			length = SHORTEST_RUN;

	if (n < 1)
		return;
	/* longer runs are made of shorter ones, so these may be sorted before */
	for (int i = 0; i < LA_SCATTER_RUNS; i++, length *= RUN_FACTOR)
	{
		for (int first = 0; first + length <= n; first += length)
		{
			scatter->blocks[i] += other_blocks(blocks + first, length);
			scatter->steps[i] += length - 1;
		}
	}
	scatter->entries += n;

	/* a few that lie elsewhere do not count */
	qsort(blocks, n, sizeof(*blocks), compare_blocks);
	span = blocks[n - 1 - n / 10] - (double) blocks[n / 10];
	if (span > scatter->span)
		scatter->span = span;
}

/* The blocks of so many neighbours: between the lengths of runs, they grow evenly. */
static double
blocks_of_run(const LaScatter *s, double rows)
{
	double		before = 1.0,
				blocks = 1.0,
				slope = 0.0;
	double		length = SHORTEST_RUN;

	for (int i = 0; i < LA_SCATTER_RUNS && s->steps[i] > 0.0; i++, length *= RUN_FACTOR)
	{
		double		here = 1.0 + (length - 1.0) * s->blocks[i] / s->steps[i];

		slope = (here - blocks) / (length - before);
		if (rows <= length)
			break;
		before = length;
		blocks = here;
	}
	return blocks + (rows - before) * (slope > 0.0 ? slope : 0.0);
}

/* How many blocks a scan of so many rows reads, if it were these in order. */
double
la_scatter_reads(const LaScatter *scatter, double rows, double ordered)
{
	double		reads;

	if (!(scatter->entries >= LEAST_ENTRIES) || !(rows > 1.0))
		return ordered;
	reads = blocks_of_run(scatter, rows);
	if (reads > ordered + scatter->span)
		reads = ordered + scatter->span;

	/*
	 * entries that were looked at are few: what is nearly in order is in
	 * order
	 */
	return reads > 2.0 * ordered + 8.0 ? reads : ordered;
}
