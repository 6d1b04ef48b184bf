/*
 * bitmappages.h
 *	  The pages that a bitmap heap scan will come to.
 *
 * src/toast/bitmappages.h
 */
#ifndef LA_TOAST_BITMAPPAGES_H
#define LA_TOAST_BITMAPPAGES_H

#include "access/htup_details.h"
#include "nodes/execnodes.h"

typedef struct LaBitmapPages LaBitmapPages;

/* What the bitmap says of a page. */
typedef struct LaBitmapPage
{
	BlockNumber block;
	int			n;				/* of offsets, or -1: all rows may be meant */
	OffsetNumber offsets[MaxHeapTuplesPerPage];
} LaBitmapPage;

extern LaBitmapPages *la_bitmappages_create(BitmapHeapScanState *node, MemoryContext context);
extern const LaBitmapPage *la_bitmappages_after(LaBitmapPages *pages, BlockNumber block);
extern bool la_bitmappages_is_advised(const LaBitmapPages *pages, int distance);
extern void la_bitmappages_restart(LaBitmapPages *pages);

#endif							/* LA_TOAST_BITMAPPAGES_H */
