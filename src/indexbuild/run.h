/*
 * run.h
 *	  Sorted rows in temporary files, and their merge.
 *
 * The room's own; see run.c.
 *
 * src/indexbuild/run.h
 */
#ifndef LA_RUN_H
#define LA_RUN_H

#include "storage/buffile.h"

#include "indexbuild/row.h"

typedef struct LaRunWriter LaRunWriter;
typedef struct LaMerge LaMerge;

/* A row on its way out of a merge. */
typedef struct LaMergedRow
{
	IndexTuple	tuple;			/* valid until the next row */
	const uint8 *key;
	uint32		key_length;
	uint32		common;			/* bytes that it shares with the row before */
	uint32		flags;
} LaMergedRow;

/* Gives rows in order, or NULL at the end. */
typedef LaRow *(*LaRowSource) (void *arg);

extern LaRunWriter *la_run_create(BufFile *file, Size buffer);
extern void la_run_write(LaRunWriter *writer, const LaMergedRow *row);
extern void la_run_finish(LaRunWriter *writer);

extern LaMerge *la_merge_create(int max_sources, Size buffer);
extern void la_merge_add_file(LaMerge *merge, BufFile *file);
extern void la_merge_add_memory(LaMerge *merge, LaRowSource next, void *arg);
extern bool la_merge_next(LaMerge *merge, LaMergedRow *row);
extern void la_merge_free(LaMerge *merge);

#endif							/* LA_RUN_H */
