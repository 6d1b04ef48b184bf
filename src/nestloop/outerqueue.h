/*
 * outerqueue.h
 *	  The queue of outer rows that were fetched before the join asked for them.
 *
 * src/nestloop/outerqueue.h
 */
#ifndef LA_OUTERQUEUE_H
#define LA_OUTERQUEUE_H

#include "nestloop/nestloop_int.h"

#define LA_QUEUE_SIZE	1024	/* rows; a power of 2 */
#define LA_NO_INNER		PG_UINT16_MAX

/* How far the search of a row's inner side has come; see innersearch.c. */
typedef enum LaRowState
{
	ROW_FRESH,
	ROW_DEFERRED,				/* an inner page of the index is being read */
	ROW_LEAF,					/* its leaf page is known */
	ROW_LOCATED					/* its heap blocks are known, if any */
} LaRowState;

/* An outer row and what its inner scan will need. */
typedef struct LaOuterRow
{
	TupleTableSlot *slot;
	uint16		inner;			/* which of the inner scans, or LA_NO_INNER */
	uint16		nvisits;		/* of the heap, beginning with first_visit */
	uint32		first_visit;
	uint32		first_match;
	uint16		nmatches;
	bool		matches_kept;	/* all of them are in LaInnerSearch.matches */
	uint8		state;			/* a LaRowState */
	bool		leaf_foreseen;	/* the leaf page is a visit of the leaf window */
	BlockNumber leaf;
	Buffer		leaf_recent;	/* the buffer that had the leaf page */
} LaOuterRow;

/* Each row has a number that is not used again. */
typedef struct LaOuterQueue
{
	LaNestLoop *join;
	MemoryContext context;		/* of the rows' copies */
	Size		accounted;		/* what of it was taken from the budget */
	uint64		head;			/* the row to be returned next */
	uint64		tail;			/* the row to be fetched next */
	bool		at_end;			/* the outer child has no more rows */
	TupleTableSlot *returned;	/* the row returned last, or NULL */
	LaOuterRow	rows[LA_QUEUE_SIZE];
} LaOuterQueue;

/* A row that is in the queue. */
static inline LaOuterRow *
la_outerqueue_at(LaOuterQueue *queue, uint64 n)
{
	return &queue->rows[n & (LA_QUEUE_SIZE - 1)];
}

extern void la_outerqueue_reset_row(LaOuterRow *row);
extern LaOuterRow *la_outerqueue_row(LaOuterQueue *queue, uint64 n);
extern LaOuterRow *la_outerqueue_head(LaOuterQueue *queue);
extern TupleTableSlot *la_outerqueue_return_head(LaOuterQueue *queue);
extern void la_outerqueue_clear(LaOuterQueue *queue);

#endif							/* LA_OUTERQUEUE_H */
