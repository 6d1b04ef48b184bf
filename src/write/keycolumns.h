/*
 * keycolumns.h
 *	  The columns of a foreign key, and the index of the other table that has them.
 *
 * src/write/keycolumns.h
 */
#ifndef LA_KEYCOLUMNS_H
#define LA_KEYCOLUMNS_H

#include "btree/descent.h"

/* The columns that are compared, in the constraint's order. */
typedef struct LaKeyColumns
{
	int			n;
	AttrNumber	here[INDEX_MAX_KEYS];	/* of the table that is written */
	AttrNumber	there[INDEX_MAX_KEYS];	/* of the other table */
	Oid			conindid;
	Oid			other;
} LaKeyColumns;

extern bool la_keycolumns_load(LaKeyColumns *k, Oid constraint, bool is_check, Oid table);
extern Relation la_keycolumns_open_index(const LaKeyColumns *k, Relation other, bool is_check,
										 AttrNumber *columns, int *ncolumns);
extern LaDescent *la_keycolumns_descent(Relation table, Relation other, Relation index,
										const AttrNumber *columns, int ncolumns);

#endif							/* LA_KEYCOLUMNS_H */
