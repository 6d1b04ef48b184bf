/*
 * rows_int.h
 *	  What the files of this room share.
 *
 * src/rows/rows_int.h
 */
#ifndef LA_ROWS_INT_H
#define LA_ROWS_INT_H

#include "storage/block.h"
#include "utils/relcache.h"

#include "base/base.h"
#include "rows/rows.h"
#include "window/window.h"

/* Attempts of keys, or of choices of a partition, that may fail; each costs microseconds. */
#define LA_MAX_FAILURES	16

/* ---- aheadrows: rows to come, and the two stages in which their blocks are read ---- */

/*
 * For ahead.c only.
 */

#define LA_AHEAD_FIRST_ROWS 128 /* known ahead; a power of 2 */
#define LA_AHEAD_NO_ROW		PG_UINT64_MAX
#define LA_TOUCH_STEPS		4

typedef struct LaAheadPosition
{
	uint64		row;
	int			visit;
} LaAheadPosition;

typedef struct LaAheadStage
{
	LaAhead    *ahead;
	bool		first;
	LaReads		reads;
	LaAheadPosition next;		/* to be foreseen */
	LaAheadPosition current;	/* being visited */
	uint64		foreseen_leaf;	/* last, of the first stage; see SHARED LEAF */
} LaAheadStage;

struct LaAhead
{
	LaRowSource source;
	LaBudget	budget;
	MemoryContext keys;			/* of the key that is being searched for */
	BlockNumber block;			/* see la_ahead_set_block() */
	int			nrels;
	int			max_rels;
	Relation   *rels;
	LaDescent **descents;
	LaAheadStage first;
	LaAheadStage second;
	bool		may_touch;
	LaCachePolicy touch;		/* a visit is a row; see TOUCHED */
	bool		touching;
	uint64		touch_next[LA_TOUCH_STEPS]; /* the row each step is due for */
	uint32		identity;		/* 0 if all rows will be taken */
	bool		reading;		/* through the windows */
	uint64		deferred;		/* none is in state DEFERRED before it */
	uint64		head;			/* the row whose turn is next */
	uint64		tail;			/* the row to be fetched next */
	int			taken;			/* rows known ahead that had their turn */
	int			skipped;		/* ... that had none */
	MemoryContext memory;		/* of the ring and its rows */
	MemoryContext copies;		/* see la_ahead_copies() */
	Size		accounted;		/* what of both was taken from the budget */
	Size		copies_accounted;
	uint64		mask;			/* of the ring's slots */
	LaAheadRow **ring;			/* rows stay where they are when it grows */
	LaCounters	sum;			/* of both stages, see la_ahead_counters() */
};

static inline LaAheadRow *
la_ahead_row_at(LaAhead *a, uint64 n)
{
	return a->ring[n & a->mask];
}

static inline LaAheadPosition
la_ahead_start_of(uint64 row)
{
	LaAheadPosition p = {row, 0};

	return p;
}

extern LaAheadRow *la_ahead_fetch_row(LaAhead *a, uint64 n);
extern bool la_ahead_find_leaf(LaAhead *a, uint64 n, LaRowVisit *v, bool may_wait);
extern bool la_ahead_search_leaf(LaAhead *a, uint64 n, LaAheadRow *row, int i, Buffer buffer);
extern bool la_ahead_visit(LaAheadStage *stage, uint64 n, int i, Buffer *buffer);
extern void la_ahead_locate(LaAhead *a, uint64 n, LaAheadRow *row);
extern bool la_ahead_next_visit(void *arg, LaForeseen *foreseen);
extern void la_ahead_restart(void *arg);

/* ---- aheadtouch ---- */

extern void la_ahead_touch_rows(LaAhead *a);

/* ---- bucket: the page of a hash index where a value's bucket begins ---- */

extern BlockNumber la_bucket_of(Relation index, Datum value);

#endif							/* LA_ROWS_INT_H */
