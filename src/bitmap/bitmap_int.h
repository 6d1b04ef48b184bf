/*
 * bitmap_int.h
 *	  What the files of this room share.
 *
 * src/bitmap/bitmap_int.h
 */
#ifndef LA_BITMAP_INT_H
#define LA_BITMAP_INT_H

#include "access/amapi.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "nodes/tidbitmap.h"
#include "storage/buf.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

#include "base/base.h"
#include "btree/btree.h"
#include "gin/gin.h"

/* ---- bitmap_int: a bitmap index scan: shared by the files of this room ---- */

typedef struct LaBitmapScan
{
	RelationData shadow;		/* must be first: scan->indexRelation points
								 * here, see base/base.h */

	Relation	real;			/* the index */
	IndexScanDesc scan;
	int64		(*getbitmap) (struct LaBitmapScan *bs, TIDBitmap *tbm); /* gin.c, range.c */
	MemoryContext context;		/* lives as long as the query */
	MemoryContext memory;		/* of what look-ahead needs, or NULL */
	Oid			heaprelid;
	Oid			indexrelid;
	LaCounters	counters;
	LaBudget	budget;

	/* btree: reads of index pages, and their policy */
	LaIoPolicyConfig config;
	LaLeafAhead leaf;

	/* GIN: the same */
	LaGinReads	reads;
	struct LaGin *gin;			/* gin.c; NULL until it is first needed */

	MemoryContextCallback callback;
} LaBitmapScan;

/* ---- getbitmap: between a bitmap index scan and its access method ---- */

extern LaBitmapScan *la_getbitmap_of(IndexScanDesc scan);
extern bool la_getbitmap_is_eligible(Relation index);
extern void la_getbitmap_install(IndexScanDesc scan, EState *estate);

/* ---- gin: pages of a GIN index that a bitmap index scan is going to read ---- */

extern int64 la_gin_getbitmap(LaBitmapScan *bs, TIDBitmap *tbm);

/* ---- memory: memory of a bitmap index scan that looks ahead ---- */

extern MemoryContext la_memory_context(LaBitmapScan *bs);
extern void *la_memory_alloc(LaBitmapScan *bs, Size size);
extern void la_memory_end_call(LaBitmapScan *bs);

/* ---- postings: leaf pages of GIN posting trees that a scan is going to read ---- */

typedef struct LaPostings LaPostings;

extern Size la_postings_size(void);
extern LaPostings *la_postings_create(LaBitmapScan *bs);
extern void la_postings_begin(LaPostings *p);
extern void la_postings_see_row(LaPostings *p);

/* ---- range: leaf pages of a btree index that a bitmap index scan is going to read ---- */

extern bool la_range_is_stock(const IndexAmRoutine *am);
extern void la_range_init(LaBitmapScan *bs);
extern int64 la_range_getbitmap(LaBitmapScan *bs, TIDBitmap *tbm);

#endif							/* LA_BITMAP_INT_H */
