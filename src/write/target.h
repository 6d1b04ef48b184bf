/*
 * target.h
 *	  A table that rows are written to, and the leaf pages of its btree indexes that a row needs.
 *
 * src/write/target.h
 */
#ifndef LA_TARGET_H
#define LA_TARGET_H

#include "executor/tuptable.h"

#include "write/ahead.h"

#define LA_TARGET_INDEXES	16	/* of a table; others are left alone */

typedef struct LaTargetIndex LaTargetIndex;

typedef struct LaTarget
{
	LaAhead    *ahead;
	Relation	heap;
	EState	   *estate;			/* of expressions; NULL until needed */
	int			nindexes;
	LaTargetIndex *indexes;
	bool		has_arbiters;	/* ON CONFLICT looks some of them up first */
	int			heap_rel;		/* its number in ahead, then */
} LaTarget;

extern bool la_target_is_possible(Relation heap);
extern LaTarget *la_target_create(LaAhead *ahead, Relation heap, int nindexes,
								  Relation *indexes, bool generated_known);
extern void la_target_set_arbiters(LaTarget *target, List *arbiters);
extern void la_target_plan(const LaTarget *target, LaAheadRow *row);
extern bool la_target_locate(const LaTarget *target, LaAheadRow *row,
							 const LaMatches *matches, bool last);
extern bool la_target_set_key(LaTarget *target, int rel, TupleTableSlot *slot);

#endif							/* LA_TARGET_H */
