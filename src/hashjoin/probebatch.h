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
	TupleTableSlot *slots[PROBE_BATCH_ROWS];	/* of these rows' copies */
	Buffer		pins[PROBE_BATCH_PINS]; /* where copies are references */
	int			nrows;
	int			npins;
} LaProbeBatch;

/*
 * The rows of the outer side of a hash join; or, in front of a shared table that is being
 * built, those that are inserted into it.  Only "table" and "counters" are for others to
 * touch.
 */
typedef struct LaProbeBatches
{
	LaHashTable table;
	LaCounters	counters;
	bool		prepared;		/* for the present scan of the outer side */
	PlanState  *outer;			/* where rows come from */
	ExecProcNodeMtd exec_outer; /* ... and how, if the table is shared */
	bool		inserts;		/* rows are inserted, not looked up */

	/* whether rows are taken ahead */
	LaRunAhead	ahead;
	bool		takes_all;		/* all rows will be taken, if nothing fails */
	bool		runs_ahead;
	bool		judged;			/* it is known whether they may be, */
	bool		judged_takes_all;	/* ... for this value of takes_all */

	/* how rows are copied */
	int			ncolumns;		/* of a row that are needed, or -1: the row
								 * itself is */
	bool		by_value;		/* all of these columns are */
	bool		have_slots;
	LaBudget	budget;			/* of pins */

	/* how far the scan of the outer side has come */
	bool		filter_first;	/* rows are tested before they are copied */
	bool		eof;
	int			batch_rows;		/* to be taken at a time; 0: none ahead */
	uint32		skipped;		/* rows that cannot match, after the last one
								 * that can */
	int			position;		/* in the current batch */
	LaProbeBatch *current;		/* being joined, while the other one's
								 * look-ups are fetched */
	LaProbeBatch both[2];
} LaProbeBatches;

extern void la_probebatch_init(LaProbeBatches *b, HashJoinState *node, bool shared,
							   bool inserts);
extern void la_probebatch_begin(LaProbeBatches *b);
extern void la_probebatch_prepare(LaProbeBatches *b, bool usable);
extern LaProbeRow *la_probebatch_next(LaProbeBatches *b);
extern void la_probebatch_clear(LaProbeBatches *b);
extern void la_probebatch_end(LaProbeBatches *b);

#endif							/* LA_PROBEBATCH_H */
