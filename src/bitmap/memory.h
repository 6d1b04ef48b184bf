/*
 * memory.h
 *	  Memory of a bitmap index scan that looks ahead.
 *
 * src/bitmap/memory.h
 */
#ifndef LA_MEMORY_H
#define LA_MEMORY_H

#include "bitmap/bitmap_int.h"

extern MemoryContext la_memory_context(LaBitmapScan *bs);
extern void *la_memory_alloc(LaBitmapScan *bs, Size size);
extern void la_memory_end_call(LaBitmapScan *bs);

#endif							/* LA_MEMORY_H */
