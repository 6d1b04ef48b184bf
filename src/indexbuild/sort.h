/*
 * sort.h
 *	  Sorting the rows of an index that is being built.
 *
 * src/indexbuild/sort.h
 */
#ifndef LA_SORT_H
#define LA_SORT_H

#include "access/itup.h"
#include "storage/sharedfileset.h"
#include "utils/rel.h"

#include "indexbuild/normalizedkey.h"

typedef struct LaSort LaSort;

/* The outcome of putting rows.  Of several processes, the greatest one counts. */
typedef enum LaSortOutcome
{
	LA_SORT_COMPLETE,
	LA_SORT_NO_KEY,				/* a row has no normalized key */
	LA_SORT_LONG_KEYS			/* keys are too long */
} LaSortOutcome;

/* A row that is returned in order. */
typedef struct LaSortedRow
{
	IndexTuple	tuple;			/* valid until the next row */
	bool		equal;			/* to the row before, in all key columns */
	bool		dead;
	bool		has_null;		/* in a key column */
} LaSortedRow;

extern LaSort *la_sort_begin(Relation index, LaNormalizedKey *key, Size memory,
							 bool may_restart, SharedFileSet *files,
							 int participant);
extern void la_sort_put(LaSort *sort, ItemPointer tid, Datum *values, bool *isnull,
						bool alive);
extern LaSortOutcome la_sort_outcome(const LaSort *sort);
extern void la_sort_export(LaSort *sort);
extern void la_sort_import(LaSort *sort, int participant);
extern void la_sort_perform(LaSort *sort);
extern void la_sort_rewind(LaSort *sort);
extern bool la_sort_next(LaSort *sort, LaSortedRow *row);
extern bool la_sort_has_spilled(const LaSort *sort);
extern void la_sort_end(LaSort *sort);

#endif							/* LA_SORT_H */
