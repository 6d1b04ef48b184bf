/*
 * probe.h
 *	  Outer rows joined with the rows of a table that hashtable.c has built.
 *
 * src/hashjoin/probe.h
 */
#ifndef LA_PROBE_H
#define LA_PROBE_H

#include "hashjoin/probebatch.h"

typedef struct LaProbe
{
	LaProbeBatches batches;

	/* for probe.c only */
	bool		unmatched;		/* inner rows without a match are returned */
	bool		matched;		/* "row" has had a match */
	LaProbeRow *row;			/* that is being joined, or NULL */
	HashJoinTuple match;		/* its last match, or NULL */
} LaProbe;

extern TupleTableSlot *la_probe_next(LaProbe *probe);
extern void la_probe_clear(LaProbe *probe);

#endif							/* LA_PROBE_H */
