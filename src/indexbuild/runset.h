/*
 * runset.h
 *	  The runs of a sort, which are merged when there are many.
 *
 * src/indexbuild/runset.h
 */
#ifndef LA_RUNSET_H
#define LA_RUNSET_H

#include "storage/sharedfileset.h"

#include "indexbuild/merge.h"

typedef struct LaRunSet LaRunSet;

/* The size from which on rows are too long for a merge of many runs in so much memory. */
#define la_runset_long_row(memory)	Max((Size) 16 * 1024, (memory) / 32)

extern LaRunSet *la_runset_create(Size memory, SharedFileSet *files, int participant);
extern void la_runset_add(LaRunSet *set, LaSortMemory *memory, Size longest);
extern void la_runset_reduce(LaRunSet *set, Size longest);
extern LaMerge *la_runset_merge(LaRunSet *set, LaSortMemory *memory);
extern void la_runset_export(LaRunSet *set);
extern void la_runset_import(LaRunSet *set, int participant);
extern void la_runset_drop(LaRunSet *set);

#endif							/* LA_RUNSET_H */
