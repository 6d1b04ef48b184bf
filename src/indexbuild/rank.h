/*
 * rank.h
 *	  Numbers for the values of a column, in the order of the column's values.
 *
 * The room's own; see rank.c.
 *
 * src/indexbuild/rank.h
 */
#ifndef LA_RANK_H
#define LA_RANK_H

#include "utils/rel.h"

typedef struct LaRanks LaRanks;

/* a number in fixed point */
typedef struct LaRank
{
	uint32		whole;
	uint64		fraction;
} LaRank;

extern LaRanks *la_ranks_create(Relation index, int column, Size memory,
								double rows);
extern bool la_ranks_find(LaRanks *ranks, Datum value, LaRank *rank);
extern bool la_ranks_are_worthwhile(const LaRanks *ranks);

#endif							/* LA_RANK_H */
