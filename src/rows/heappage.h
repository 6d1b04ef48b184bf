/*
 * heappage.h
 *	  The pages that a sequential scan will come to, and their rows.
 *
 * src/rows/heappage.h
 */
#ifndef LA_HEAPPAGE_H
#define LA_HEAPPAGE_H

#include "access/heapam.h"

extern BlockNumber la_heappage_after(const HeapScanDescData *scan, BlockNumber block);
extern int	la_heappage_visible(Relation rel, Snapshot snapshot, Buffer buffer,
								OffsetNumber *offsets);

#endif							/* LA_HEAPPAGE_H */
