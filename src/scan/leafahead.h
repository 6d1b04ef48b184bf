/*
 * leafahead.h
 *	  Reads of the leaf pages to come, started ahead of nbtree.
 *
 * src/scan/leafahead.h
 */
#ifndef LA_LEAFAHEAD_H
#define LA_LEAFAHEAD_H

#include "scan/scan_int.h"

typedef struct LaLeafAhead LaLeafAhead;

extern void la_leafahead_init(LaScan *ls, const LaIoPolicyConfig *of_heap);
extern bool la_leafahead_may_step(LaScan *ls, ScanDirection dir);
extern bool la_leafahead_gettuple(LaScan *ls, ScanDirection dir, int64 rows_wanted);
extern void la_leafahead_issue(LaScan *ls, ScanDirection dir, int64 rows_wanted);
extern void la_leafahead_rescan(LaScan *ls, bool ended_early);
extern void la_leafahead_free(LaScan *ls);

#endif							/* LA_LEAFAHEAD_H */
