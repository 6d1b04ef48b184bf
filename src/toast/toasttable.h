/*
 * toasttable.h
 *	  A toast table and its index.
 *
 * src/toast/toasttable.h
 */
#ifndef LA_TOASTTABLE_H
#define LA_TOASTTABLE_H

#include "utils/rel.h"

typedef struct LaToastTable
{
	Oid			table;
	Oid			index;			/* InvalidOid: not known yet */
	Relation	table_rel;		/* as they were when they were open last */
	Relation	index_rel;
	Oid			table_file;		/* their numbers, likewise */
	Oid			index_file;
} LaToastTable;

/* What this backend has fetched of its values. */
typedef struct LaToastCounts
{
	int64		values;
	int64		chunks;
} LaToastCounts;

extern void la_toasttable_init(void);
extern void la_toasttable_find_index(LaToastTable *t);
extern bool la_toasttable_open(LaToastTable *t);
extern void la_toasttable_close(LaToastTable *t);
extern LaToastCounts la_toasttable_counts(const LaToastTable *t);

#endif							/* LA_TOASTTABLE_H */
