/*
 * quicksort.h
 *	  Sorting rows by the bytes of their keys, in memory.
 *
 * The room's own; see quicksort.c.
 *
 * src/indexbuild/quicksort.h
 */
#ifndef LA_QUICKSORT_H
#define LA_QUICKSORT_H

#include "port/pg_bswap.h"

#include "indexbuild/row.h"

typedef struct LaSortEntry
{
	uint64		word;			/* eight bytes of the key, as a number */
	LaRow	   *row;
} LaSortEntry;

static inline uint64
la_row_word(const LaRow *row, uint32 depth)
{
	uint64		word;

	if (depth >= row->key_length)
		return 0;
	memcpy(&word, la_row_key(row) + depth, sizeof(word));
	return pg_ntoh64(word);
}

extern void la_sort_entries(LaSortEntry *a, Size n, uint32 depth);

#endif							/* LA_QUICKSORT_H */
