/*
 * gin.h
 *	  Pages of a GIN index that a bitmap index scan is going to read.
 *
 * src/bitmap/gin.h
 */
#ifndef LA_GIN_H
#define LA_GIN_H

#include "bitmap/bitmap_int.h"

extern bool la_gin_is_stock(const IndexAmRoutine *am);
extern int64 la_gin_getbitmap(LaBitmapScan *bs, TIDBitmap *tbm);

#endif							/* LA_GIN_H */
