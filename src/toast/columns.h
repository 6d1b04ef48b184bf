/*
 * columns.h
 *	  The columns of a table whose values may be fetched from out of line.
 *
 * src/toast/columns.h
 */
#ifndef LA_TOAST_COLUMNS_H
#define LA_TOAST_COLUMNS_H

#include "nodes/execnodes.h"
#include "utils/rel.h"

#define LA_TOAST_COLUMNS	8	/* more are left alone */

typedef struct LaToastColumns
{
	int			n;
	AttrNumber	numbers[LA_TOAST_COLUMNS];
} LaToastColumns;

extern bool la_toastcolumns_of_scan(LaToastColumns *c, ScanState *scan);
extern bool la_toastcolumns_of_filter(ScanState *scan);
extern bool la_toastcolumns_of_copy(LaToastColumns *c, Relation table, List *names);
extern bool la_toastcolumns_of_rows(LaToastColumns *c, TupleDesc desc);

#endif							/* LA_TOAST_COLUMNS_H */
