/*
 * leaf.h
 *	  Index leaf pages read ahead of the scan (nbtree).
 *
 * src/scan/leaf.h
 */
#ifndef LA_LEAF_H
#define LA_LEAF_H

#include "attach/follow.h"
#include "scan/scan_int.h"

extern const LaScanOps la_leaf_ops;

extern bool la_leaf_step(LaScan *ls, ScanDirection dir, int64 rows_wanted);
extern bool la_leaf_peek(LaScan *ls, int n, LaComingRow *row);

#endif							/* LA_LEAF_H */
