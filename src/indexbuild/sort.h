/*
 * sort.h
 *	  Sorting the rows of an index that is being built.
 *
 * The room's own; see sort.c.
 *
 * src/indexbuild/sort.h
 */
#ifndef LA_SORT_H
#define LA_SORT_H

#include "storage/sharedfileset.h"
#include "utils/rel.h"

#include "indexbuild/run.h"
#include "indexbuild/normalizedkey.h"

typedef struct LaSort LaSort;

/* A row on its way out. */
typedef struct LaSortedRow
{
	IndexTuple	tuple;			/* valid until the next row */
	bool		equal;			/* has the key of the row before */
	bool		dead;
	bool		has_null;
} LaSortedRow;

extern LaSort *la_sort_begin(Relation index, LaNormalizedKey *key, Size memory,
							 bool may_give_up, SharedFileSet *files,
							 int participant);
extern void la_sort_put(LaSort *sort, ItemPointer tid, const Datum *values,
						const bool *isnull, bool alive);
extern void la_sort_export(LaSort *sort);
extern void la_sort_import(LaSort *sort, int participant);
extern void la_sort_perform(LaSort *sort);
extern bool la_sort_next(LaSort *sort, LaSortedRow *row);
extern void la_sort_rewind(LaSort *sort);
extern bool la_sort_given_up(const LaSort *sort);
extern bool la_sort_has_long_keys(const LaSort *sort);
extern bool la_sort_spilled(const LaSort *sort);
extern void la_sort_end(LaSort *sort);

#endif							/* LA_SORT_H */
