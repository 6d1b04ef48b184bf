/*
 * bitmap_int.h
 *	  A bitmap index scan: shared by the files of this room.
 *
 * src/bitmap/bitmap_int.h
 */
#ifndef LA_BITMAP_INT_H
#define LA_BITMAP_INT_H

#include "access/amapi.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "nodes/tidbitmap.h"
#include "utils/rel.h"

#include "base/budget.h"
#include "base/shadow.h"
#include "base/stats.h"
#include "btree/leafahead.h"

typedef struct LaBitmapScan
{
	RelationData shadow;		/* must be first: scan->indexRelation points
								 * here, see base/shadow.h */

	Relation	real;			/* the index */
	IndexScanDesc scan;
	int64		(*getbitmap) (struct LaBitmapScan *bs, TIDBitmap *tbm); /* gin.c, range.c */
	MemoryContext context;		/* lives as long as the query */
	MemoryContext memory;		/* of what look-ahead needs, or NULL */
	Oid			heaprelid;
	Oid			indexrelid;
	LaIoPolicyConfig config;
	LaCounters	counters;
	LaBudget	budget;
	LaLeafAhead leaf;			/* reads of index pages, and their policy */
	struct LaGin *gin;			/* gin.c; NULL until it is first needed */

	/* GIN: see evidence.c */
	int			calls;			/* of amgetbitmap, this one included */
	int64		try_again;		/* observe again when so many blocks were read */
	bool		counted;		/* as activated */

	MemoryContextCallback callback;
} LaBitmapScan;

#endif							/* LA_BITMAP_INT_H */
