/*
 * rowsource.h
 *	  Where rows to come are from, and which blocks they need.
 *
 * See ahead.c.
 *
 * src/rows/rowsource.h
 */
#ifndef LA_ROWSOURCE_H
#define LA_ROWSOURCE_H

#include "btree/descent.h"

#define LA_AHEAD_RELATIONS	512 /* of the tables and indexes of a statement */
#define LA_ROW_VISITS		96	/* of one row, at most */

typedef enum LaRowVisitState
{
	ROW_VISIT_FRESH,			/* the leaf page of the row's key in an index */
	ROW_VISIT_DEFERRED,			/* ... for which an inner page is being read */
	ROW_VISIT_KNOWN,			/* the block is known */
	ROW_VISIT_NONE				/* there is none */
} LaRowVisitState;

typedef struct LaRowVisit
{
	BlockNumber block;
	uint16		rel;			/* see la_ahead_add_relation() */
	uint8		item;			/* the source's own: which of the row's keys */
	uint8		state;			/* a LaRowVisitState */
	uint8		more;			/* blocks behind it, see LaForeseen */
	bool		foreseen;		/* by its stage's window */
} LaRowVisit;

/* The visits of a row: those of the first stage, and those of the second. */
typedef struct LaAheadRow
{
	uint8		nfirst;
	uint8		nvisits;		/* of both */
	uint8		room;			/* for visits */
	bool		planned;		/* those of the first stage are there */
	bool		located;		/* ... and of the second */
	LaRowVisit *visits;
} LaAheadRow;

/* Where rows come from.  They are numbered from 0, and numbers are not used again. */
typedef struct LaRowSource
{
	void	   *arg;
	Size		own_size;		/* see la_ahead_own() */
	uint8		nearer;			/* the second stage stays in the nearest of so
								 * many parts of the rows; 0: see PIPELINE */

	/* makes row n known, the next one; false if it cannot be known now */
	bool		(*fetch) (void *arg, uint64 n);

	/*
	 * Names the row's visits: of the first stage, or of the second if there
	 * is no first.  A row that needs no first stage, where others do, sets
	 * `located`, and its visits are of the second.  Only what has a descent
	 * may be visited in the first stage.
	 */
	void		(*plan) (void *arg, uint64 n, LaAheadRow *row);

	/*
	 * Sets the key of a row's visit in the index's descent, or its block with
	 * la_ahead_set_block() where there is none; false if the row has no key.
	 */
	bool		(*set_key) (void *arg, uint64 n, const LaRowVisit *visit);

	/*
	 * Names the row's visits of the second stage, given what its visit of the
	 * first stage has found.  Called for each of those until it returns true;
	 * NULL without a first stage.
	 */
	bool		(*locate) (void *arg, uint64 n, LaAheadRow *row,
						   const LaMatches *matches, bool last);
} LaRowSource;

typedef struct LaAhead LaAhead;

#endif							/* LA_ROWSOURCE_H */
