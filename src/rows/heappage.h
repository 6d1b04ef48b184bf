/*
 * heappage.h
 *	  The pages that a scan of a table will come to, and their rows.
 *
 * src/rows/heappage.h
 */
#ifndef LA_HEAPPAGE_H
#define LA_HEAPPAGE_H

#include "access/heapam.h"

extern BlockNumber la_heappage_after(const HeapScanDescData *scan, BlockNumber block);
extern bool la_heappage_row(Page page, OffsetNumber offset, HeapTuple tuple);
extern int	la_heappage_visible(Relation rel, Snapshot snapshot, Buffer buffer,
								OffsetNumber *offsets);
extern bool la_heappage_is_visible(Relation rel, Snapshot snapshot, Buffer buffer,
								   const ItemPointerData *tid, HeapTuple tuple);
extern bool la_heappage_version(Relation rel, Snapshot snapshot, Buffer buffer,
								const ItemPointerData *tid, HeapTuple tuple);
extern int	la_heappage_versions(Relation rel, Snapshot snapshot, Buffer buffer,
								 OffsetNumber *offsets, int n);

#endif							/* LA_HEAPPAGE_H */
