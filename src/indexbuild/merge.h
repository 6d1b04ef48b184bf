/*
 * merge.h
 *	  Merging sorted rows of files and of memory.
 *
 * src/indexbuild/merge.h
 */
#ifndef LA_MERGE_H
#define LA_MERGE_H

#include "indexbuild/run.h"
#include "indexbuild/sortmemory.h"

typedef struct LaMerge LaMerge;

extern LaMerge *la_merge_create(int max_sources, Size buffer);
extern void la_merge_add_file(LaMerge *merge, BufFile *file);
extern void la_merge_add_memory(LaMerge *merge, LaSortMemory *memory);
extern const LaRunTuple *la_merge_next(LaMerge *merge);
extern void la_merge_free(LaMerge *merge);

#endif							/* LA_MERGE_H */
