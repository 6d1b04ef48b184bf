/*
 * rows_to_come.h
 *	  The rows that a node is about to process, behind its current one.
 *
 * src/subplan/rows_to_come.h
 */
#ifndef LA_ROWS_TO_COME_H
#define LA_ROWS_TO_COME_H

#include "executor/tuptable.h"

typedef struct LaRowsToCome LaRowsToCome;

/* Embedded in what a source of rows keeps for the node. */
struct LaRowsToCome
{
	/* continue behind the node's current row */
	void		(*restart) (LaRowsToCome *rows);

	/*
	 * The next row, valid until the next call, or NULL if it is not known
	 * now. Some rows may be left out, and others may not be processed.
	 */
	TupleTableSlot *(*next) (LaRowsToCome *rows);
};

#endif							/* LA_ROWS_TO_COME_H */
