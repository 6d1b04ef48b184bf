/*
 * probebatch.h
 *	  Outer rows taken ahead in batches, and their look-ups.
 *
 * src/hashjoin/probebatch.h
 */
#ifndef LA_PROBEBATCH_H
#define LA_PROBEBATCH_H

#include "storage/buf.h"

#include "attach/runahead.h"
#include "base/budget.h"
#include "base/stats.h"
#include "hashjoin/hashtable.h"

#define PROBE_BATCH_ROWS	32
#define PROBE_BATCH_PINS	8	/* buffers that a batch keeps pinned */

/* An outer row, and its look-up. */
typedef struct LaProbeRow
{
	TupleTableSlot *slot;
	HashJoinTuple candidate;	/* first row of its chain, or NULL */
	uint32		hash;
	int32		key;			/* where keys are compared as int4 */
	bool		can_match;		/* no null key prevents it */
	uint32		skipped;		/* rows before it that cannot match */
} LaProbeRow;

typedef struct LaProbeBatch
{
	LaProbeRow	rows[PROBE_BATCH_ROWS];
	TupleTableSlot *slots[PROBE_BATCH_ROWS];	/* for copies of them */
	Buffer		pins[PROBE_BATCH_PINS]; /* of copies by reference */
	int			nrows;
	int			npins;
} LaProbeBatch;

/* The outer rows of a hash join, or the rows that are inserted into a shared table. */
typedef struct LaProbeBatches
{
	LaHashTable table;
	bool		prepared;		/* for the present scan of the outer side */
	bool		runs_ahead;		/* rows are taken ahead */
	ExecProcNodeMtd exec_outer; /* the outer child's, if the table is shared */

	/* The rest is for probebatch.c only.  What is known of the join: */
	PlanState  *outer;			/* where rows come from */
	bool		inserts;		/* they are inserted, not looked up */
	bool		by_value;		/* the first ncolumns are all passed by value */
	int			ncolumns;		/* only these are needed; -1: the whole row */
	LaRunAhead	ahead;
	LaCounters	counters;

	/* The present scan: */
	bool		takes_all;		/* all rows will be taken, if nothing fails */
	bool		judged;			/* may_run_ahead() has been answered */
	bool		judged_takes_all;	/* the value of takes_all that it was for */
	bool		judged_may;		/* the answer */
	bool		filter_first;	/* rows are tested before they are copied */
	int			batch_rows;		/* to be taken at a time; 0: none ahead */

	/* Its rows: */
	bool		eof;
	uint32		skipped;		/* rows since the last one that can match */
	int			position;		/* in the current batch */
	LaProbeBatch *current;		/* being joined, while the other is fetched */
	LaProbeBatch both[2];
	LaBudget	budget;			/* of pins */
} LaProbeBatches;

extern void la_probebatch_init(LaProbeBatches *b, HashJoinState *node, bool shared,
							   bool inserts);
extern void la_probebatch_begin(LaProbeBatches *b);
extern void la_probebatch_prepare(LaProbeBatches *b, bool usable);
extern LaProbeRow *la_probebatch_next(LaProbeBatches *b);
extern void la_probebatch_clear(LaProbeBatches *b);
extern void la_probebatch_end(LaProbeBatches *b);

#endif							/* LA_PROBEBATCH_H */
