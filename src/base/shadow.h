/*
 * shadow.h
 *	  A copy of an index's relation descriptor, whose access method is ours.
 *
 * The executor reaches an access method only through scan->indexRelation->rd_indam.  A room that
 * gets between the two points indexRelation at such a copy, and back at the index around every call
 * of the access method, which expects the index itself.  The record of the scan begins with the
 * copy, so that routines of ours find it:
 *
 *		RelationData shadow;		must be first
 *		Relation	real;			the index
 *		IndexScanDesc scan;
 *
 * Of the copy only rd_indam and pgstat_info are used, by indexam.c.
 *
 * src/base/shadow.h
 */
#ifndef LA_SHADOW_H
#define LA_SHADOW_H

#include "access/amapi.h"
#include "access/relscan.h"
#include "pgstat.h"
#include "utils/rel.h"

/*
 * Evaluate a call of the access method.  An error in it leaves the index in the descriptor: no scan
 * goes on after an error, and if one is ended, the access method's amendscan is called directly.
 */
#define la_shadow_call(record, call) \
	do { \
		(record)->scan->indexRelation = (record)->real; \
		call; \
		(record)->scan->indexRelation = &(record)->shadow; \
	} while (0)

static inline void
la_shadow_init(Relation shadow, Relation real, IndexAmRoutine *routine)
{
	/* the copy must find the statistics entry that the index uses */
	(void) pgstat_should_count_relation(real);
	*shadow = *real;
	shadow->rd_indam = routine;
}

#endif							/* LA_SHADOW_H */
