/*
 * values.h
 *	  The values of a row that are stored out of line.
 *
 * src/toast/values.h
 */
#ifndef LA_TOAST_VALUES_H
#define LA_TOAST_VALUES_H

#include "storage/bufmgr.h"
#include "utils/snapshot.h"

#include "attach/follow.h"
#include "toast/columns.h"

struct varatt_external;

/* Where rows are looked at. */
typedef struct LaValueRows
{
	Relation	table;
	Snapshot	snapshot;
	BufferAccessStrategy *strategy; /* of the scan, or NULL */
	LaToastColumns columns;
	TupleDesc	desc;			/* of the rows; NULL: the table's */
	bool		versions;		/* those named by their addresses themselves,
								 * and no later ones */
	Oid			toast_table;
} LaValueRows;

/* A row's values. */
typedef struct LaRowValues
{
	int			n;
	int64		chunks;			/* of all of them */
	Oid			ids[LA_TOAST_COLUMNS];
} LaRowValues;

extern bool la_values_pointer(Datum value, struct varatt_external *pointer);
extern void la_values_add(LaRowValues *values, Datum value, Oid toast_table);
extern bool la_values_find(const LaValueRows *rows, const LaComingRow *row, LaRowValues *values);

#endif							/* LA_TOAST_VALUES_H */
