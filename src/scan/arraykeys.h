/*
 * arraykeys.h
 *	  Leaf pages that the next elements of an IN list will need.
 *
 * src/scan/arraykeys.h
 */
#ifndef LA_ARRAYKEYS_H
#define LA_ARRAYKEYS_H

#include "scan/scan_int.h"

extern void la_arraykeys_advance(LaScan *ls, ScanDirection dir, int64 rows_wanted);
extern void la_arraykeys_forget(LaScan *ls);

#endif							/* LA_ARRAYKEYS_H */
