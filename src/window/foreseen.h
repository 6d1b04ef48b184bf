/*
 * foreseen.h
 *	  Visits that are foreseen, and who foresees them.
 *
 * src/window/foreseen.h
 */
#ifndef LA_FORESEEN_H
#define LA_FORESEEN_H

#include "storage/block.h"
#include "storage/off.h"

#define LA_RUN_BLOCKS	16		/* of a visit; the kernel may cut requests of
								 * more than 128 kB short */

/* A visit that the producer foresees: the block, and the first row wanted. */
typedef struct LaForeseen
{
	BlockNumber block;
	OffsetNumber offset:12;		/* a larger one is not on any page */
	uint16		more:4;			/* blocks behind it that the server reads by
								 * itself after it; 0 unless set */
	uint16		rel;			/* of the window's relations; 0 unless set */
} LaForeseen;

/* A block of a relation, as a number; neighbours have neighbouring numbers. */
#define la_block_id(rel, block) (((uint64) (rel) << 32) | (block))
#define LA_NO_BLOCK				(PG_UINT64_MAX - 1) /* nobody's neighbour */

typedef struct LaProducer
{
	void	   *arg;

	/* return the visit after the previous one; false if there is none now */
	bool		(*next_visit) (void *arg, LaForeseen *visit);

	/* start over behind the row about to be returned */
	void		(*restart) (void *arg);
} LaProducer;

typedef struct LaWindow LaWindow;

#endif							/* LA_FORESEEN_H */
