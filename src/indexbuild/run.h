/*
 * run.h
 *	  Runs: sorted rows in temporary files.
 *
 * src/indexbuild/run.h
 */
#ifndef LA_RUN_H
#define LA_RUN_H

#include "access/itup.h"
#include "storage/buffile.h"

typedef struct LaRunWriter LaRunWriter;
typedef struct LaRunReader LaRunReader;

/* A row of a run. */
typedef struct LaRunTuple
{
	IndexTuple	tuple;
	uint8	   *key;
	uint32		key_length;
	uint32		common;			/* bytes shared with the key of the row before */
	uint32		flags;			/* of LaSortTuple */
} LaRunTuple;

extern LaRunWriter *la_run_create(BufFile *file, Size buffer);
extern void la_run_write(LaRunWriter *w, const LaRunTuple *row);
extern void la_run_finish(LaRunWriter *w);

extern LaRunReader *la_run_open(BufFile *file, Size buffer);
extern bool la_run_read(LaRunReader *r, LaRunTuple *row);

#endif							/* LA_RUN_H */
