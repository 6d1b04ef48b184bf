/*
 * heapvisit.h
 *	  The heap blocks of a scan, as its rows are returned.
 *
 * src/scan/heapvisit.h
 */
#ifndef LA_HEAPVISIT_H
#define LA_HEAPVISIT_H

#include "scan/scan_int.h"
#include "window/window.h"

/* What is known of an entry: will the executor fetch its heap row? */
#define LA_HEAP_UNKNOWN		0
#define LA_HEAP_NEEDED		1
#define LA_HEAP_NOT_NEEDED	2

extern bool la_heapvisit_is_needed(LaScan *ls, ItemPointer tid);
extern bool la_heapvisit_is_known_needed(LaScan *ls, ItemPointer tid, uint8 *known);
extern void la_heapvisit_pass(LaScan *ls, bool missed);
extern void la_heapvisit_observe(LaScan *ls, BlockNumber block);
extern void la_heapvisit_turn_to(LaScan *ls, LaWindow *window, BlockNumber block);

#endif							/* LA_HEAPVISIT_H */
