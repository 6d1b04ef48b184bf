/*
 * copy.h
 *	  COPY FROM that looks ahead over the rows that it has put into the table.
 *
 * src/write/copy.h
 */
#ifndef LA_COPY_H
#define LA_COPY_H

#include "access/genam.h"
#include "nodes/execnodes.h"

extern void la_copy_begin(void);
extern void la_copy_end(void);
extern bool la_copy_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
						   Relation heap, IndexUniqueCheck unique, bool unchanged,
						   IndexInfo *info);

#endif							/* LA_COPY_H */
