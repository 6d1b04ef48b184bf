/*
 * quicksort.h
 *	  Multikey quicksort of rows by the bytes of their keys.
 *
 * src/indexbuild/quicksort.h
 */
#ifndef LA_QUICKSORT_H
#define LA_QUICKSORT_H

#include "indexbuild/sorttuple.h"

typedef struct LaSortEntry
{
	uint64		word;			/* eight bytes of the key, as a number */
	LaSortTuple *tuple;
} LaSortEntry;

extern void la_quicksort(LaSortEntry *a, Size n, uint32 depth);

#endif							/* LA_QUICKSORT_H */
