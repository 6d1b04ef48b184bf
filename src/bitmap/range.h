/*
 * range.h
 *	  Leaf pages of a btree index that a bitmap index scan is going to read.
 *
 * src/bitmap/range.h
 */
#ifndef LA_RANGE_H
#define LA_RANGE_H

#include "bitmap/bitmap_int.h"

extern bool la_range_is_stock(const IndexAmRoutine *am);
extern void la_range_init(LaBitmapScan *bs);
extern int64 la_range_getbitmap(LaBitmapScan *bs, TIDBitmap *tbm);

#endif							/* LA_RANGE_H */
