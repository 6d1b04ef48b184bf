/*
 * lookups.h
 *	  What a plan that is repeated for each row looks up in indexes by the row's values.
 *
 * src/subplan/lookups.h
 */
#ifndef LA_LOOKUPS_H
#define LA_LOOKUPS_H

#include "rows/ahead.h"
#include "rows/scankeys.h"

typedef struct LaLookups LaLookups;

extern LaLookups *la_lookups_create(PlanState *plan, LaKeyRows *rows, bool first_match_only,
									const char **refused);
extern Relation la_lookups_table(const LaLookups *l);
extern Oid	la_lookups_known_by(const LaLookups *l);
extern bool la_lookups_set_ahead(LaLookups *l, LaAhead *ahead);
extern void la_lookups_plan(LaLookups *l, TupleTableSlot *row, LaAheadRow *visits);
extern bool la_lookups_set_key(LaLookups *l, TupleTableSlot *row, int rel);
extern void la_lookups_locate(LaLookups *l, LaAheadRow *row, const LaMatches *matches);
extern void la_lookups_release(LaLookups *l);

#endif							/* LA_LOOKUPS_H */
