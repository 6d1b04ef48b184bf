/*
 * elements.h
 *	  Leaf pages that the next elements of an IN list will need.
 *
 * src/scan/elements.h
 */
#ifndef LA_ELEMENTS_H
#define LA_ELEMENTS_H

#include "scan/shim.h"

typedef struct LaElements LaElements;

extern LaElements *la_elements_create(LaScan *ls);
extern void la_elements_free(LaScan *ls, LaElements *el);
extern void la_elements_advance(LaElements *el, ScanDirection dir,
								int64 rows_wanted);

#endif							/* LA_ELEMENTS_H */
