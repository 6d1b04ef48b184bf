/*
 * outerqueue.h
 *	  The queue of outer rows that were fetched before the join asked for them.
 *
 * src/nestloop/outerqueue.h
 */
#ifndef LA_OUTERQUEUE_H
#define LA_OUTERQUEUE_H

#include "nestloop/nestloop_int.h"
#include "rows/childqueue.h"

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

typedef struct LaOuterQueue
{
	LaChildQueue rows;
	LaOuterRow	inner[LA_QUEUE_SIZE];
} LaOuterQueue;

/* A row that is in the queue. */
static inline LaOuterRow *
la_outerqueue_at(LaOuterQueue *queue, uint64 n)
{
	return &queue->inner[n & (LA_QUEUE_SIZE - 1)];
}

extern void la_outerqueue_init(LaOuterQueue *queue, LaNestLoop *join);
extern void la_outerqueue_reset_row(LaOuterRow *row);
extern LaOuterRow *la_outerqueue_row(LaOuterQueue *queue, uint64 n);
extern LaOuterRow *la_outerqueue_head(LaOuterQueue *queue);

#endif							/* LA_OUTERQUEUE_H */
