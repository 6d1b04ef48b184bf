/*
 * keyahead.h
 *	  The rows that a foreign key's checks or actions will look for, read ahead.
 *
 * src/write/keyahead.h
 */
#ifndef LA_KEYAHEAD_H
#define LA_KEYAHEAD_H

#include "nodes/execnodes.h"
#include "nodes/params.h"

#include "write/tidlog.h"

typedef struct LaKeyAhead LaKeyAhead;

/* What to look ahead over. */
typedef struct LaKeyEvents
{
	Oid			constraint;
	Oid			table;			/* that is written */
	bool		is_check;		/* else an action */
	LaTidLog   *log;			/* NULL: rows are behind each other in the
								 * table */
	int			kinds;			/* of the log's entries */
	int64		first;			/* the log's first entry that may be one */
	bool		by_key;			/* keys are asked for, not rows */
	bool		is_kept;		/* for longer than a statement */
} LaKeyEvents;

/* The one whose turn it is. */
typedef struct LaKeyAsked
{
	const ItemPointerData *tid; /* by row: as its tuple will be known */
	const ItemPointerData *old; /* ... as it is in the log */
	ParamListInfo key;			/* by key */
} LaKeyAsked;

extern LaKeyAhead *la_keyahead_create(MemoryContext context, EState *estate,
									  const LaKeyEvents *events);
extern void la_keyahead_turn(LaKeyAhead *k, Relation table, const LaKeyAsked *asked);
extern bool la_keyahead_expects(LaKeyAhead *k, Relation table, ParamListInfo key);
extern void la_keyahead_end(LaKeyAhead *k);
extern void la_keyahead_reset(LaKeyAhead *k);

#endif							/* LA_KEYAHEAD_H */
