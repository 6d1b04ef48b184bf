/*
 * scatter.h
 *	  How the rows of neighbouring index entries lie in the table.
 *
 * Pure functions, without PostgreSQL's headers: test/unit checks them.  See scatter.c.
 *
 * src/plancost/scatter.h
 */
#ifndef LA_SCATTER_H
#define LA_SCATTER_H

#include <stdint.h>

#define LA_SCATTER_RUNS 4		/* of 8, 32, 128 and 512 entries */

typedef struct LaScatter
{
	double		entries;		/* that were looked at */
	double		steps[LA_SCATTER_RUNS]; /* in runs of so many neighbours, from
										 * an entry to the next one ... */
	double		blocks[LA_SCATTER_RUNS];	/* ... and to another block */
	double		span;			/* blocks of the table between nearly all of
								 * an index page's rows; the widest */
} LaScatter;

extern void la_scatter_add(LaScatter *scatter, uint32_t *blocks, int n);
extern double la_scatter_reads(const LaScatter *scatter, double rows, double ordered);

#endif							/* LA_SCATTER_H */
