/*
 * sortmemory.h
 *	  The rows of a sort that are in memory.
 *
 * src/indexbuild/sortmemory.h
 */
#ifndef LA_SORTMEMORY_H
#define LA_SORTMEMORY_H

#include "indexbuild/sorttuple.h"

typedef struct LaSortMemory LaSortMemory;

extern LaSortMemory *la_sortmemory_create(Size limit);
extern bool la_sortmemory_is_empty(const LaSortMemory *m);
extern LaSortTuple *la_sortmemory_reserve(LaSortMemory *m, Size size, Size *space);
extern void la_sortmemory_add(LaSortMemory *m, LaSortTuple *tuple, Size size);
extern void la_sortmemory_sort(LaSortMemory *m);
extern void la_sortmemory_rewind(LaSortMemory *m);
extern LaSortTuple *la_sortmemory_next(LaSortMemory *m);
extern void la_sortmemory_clear(LaSortMemory *m);

#endif							/* LA_SORTMEMORY_H */
