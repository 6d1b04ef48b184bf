/*
 * getbitmap.h
 *	  Between a bitmap index scan and its access method.
 *
 * src/bitmap/getbitmap.h
 */
#ifndef LA_GETBITMAP_H
#define LA_GETBITMAP_H

#include "bitmap/bitmap_int.h"

extern LaBitmapScan *la_getbitmap_of(IndexScanDesc scan);
extern bool la_getbitmap_is_eligible(Relation index);
extern void la_getbitmap_install(IndexScanDesc scan, EState *estate);

#endif							/* LA_GETBITMAP_H */
