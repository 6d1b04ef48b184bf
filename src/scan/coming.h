/*
 * coming.h
 *	  The rows that an index scan will come to, for a room that follows it.
 *
 * src/scan/coming.h
 */
#ifndef LA_SCAN_COMING_H
#define LA_SCAN_COMING_H

#include "scan/scan_int.h"

extern void la_coming_follow(LaScan *ls, ScanState *node);

#endif							/* LA_SCAN_COMING_H */
