/*
 * arraykeys.h
 *	  Leaf pages that the next elements of an IN list will need.
 *
 * src/scan/arraykeys.h
 */
#ifndef LA_ARRAYKEYS_H
#define LA_ARRAYKEYS_H

#include "scan/scan_int.h"

typedef struct LaArrayKeys LaArrayKeys;

extern LaArrayKeys *la_arraykeys_create(LaScan *ls);
extern void la_arraykeys_free(LaScan *ls, LaArrayKeys *ak);
extern void la_arraykeys_advance(LaArrayKeys *ak, ScanDirection dir, int64 distance);

#endif							/* LA_ARRAYKEYS_H */
