/*
 * inner_prefetch.h
 *	  The rows in the queue of a nested loop: shared by outerqueue.c, inner_prefetch.c and cache_prefetch.c.
 *
 * src/nestloop/inner_prefetch.h
 */
#ifndef LA_INNER_PREFETCH_H
#define LA_INNER_PREFETCH_H

#include "nestloop/nestloop_int.h"

#define MAX_ROWS		1024	/* a power of 2 */
#define MAX_VISITS		2048	/* of all rows; a power of 2 */
#define MAX_ROW_VISITS	32		/* of one row; the rest is left to the scan */
#define MAX_TIDS		128		/* of one row that are looked at */
#define MAX_MATCHES		4096	/* of all rows, kept; a power of 2 */
#define MAX_ROW_MATCHES 64		/* of one row */
#define NO_INNER		PG_UINT16_MAX

typedef enum RowState
{
	ROW_FRESH,
	ROW_PUT_OFF,				/* an inner page is being read */
	ROW_LEAF,					/* its leaf page is known */
	ROW_LOCATED					/* its heap blocks are known, if any */
} RowState;

typedef struct Row
{
	TupleTableSlot *slot;
	uint16		inner;			/* which of the inner scans, or NO_INNER */
	BlockNumber leaf;
	Buffer		recent;			/* where the leaf page was seen;
								 * cache_prefetch.c */
	uint32		first_visit;	/* of the heap */
	uint16		nvisits;
	uint8		state;			/* a RowState */
	bool		told;			/* its leaf page is a visit of the window */
	bool		complete;		/* all of its matches are known */
	uint32		first_match;
	uint16		nmatches;
} Row;

struct LaInnerPrefetch
{
	/* outerqueue.c */
	MemoryContext context;		/* of the rows' copies */
	const TupleTableSlotOps *ops;
	TupleDesc	desc;
	uint64		head;			/* next row to be handed over */
	uint64		tail;			/* next row to be pulled */
	Size		accounted;		/* of the copies, with the budget */
	bool		eof;
	TupleTableSlot *last;		/* handed over last */

	/* inner_prefetch.c: where the producers stand */
	bool		put_off;		/* there may be rows put off */
	uint64		leaf_row;
	uint64		told_leaf;		/* told last, a place */
	uint64		heap_row;
	int			heap_visit;

	/* the visit that is being made */
	uint64		visited_row;
	int			visited;

	uint64		read_leaf;		/* visited last, a place */
	Buffer		vmbuf;			/* of the heap of this inner scan */
	int			vm_inner;
	ItemPointerData tids[MAX_TIDS];
	Row			single;			/* in state OBSERVE */
	Row			rows[MAX_ROWS];

	/* reuse of the matches, behaviour G */
	Row		   *current;		/* handed over last, if it was looked at */

	/* cache_prefetch.c: the next row of each stage */
	uint64		to_find;
	uint64		to_touch_items;
	uint64		to_locate;
	uint64		to_touch_tuples;

	/* of rows that are located and not yet handed over */
	uint32		first_visit;
	uint32		end_visit;
	uint32		first_match;	/* ... or were handed over last */
	uint32		end_match;
	LaForeseen	visits[MAX_VISITS];
	Buffer		recent[MAX_VISITS]; /* of these visits; cache_prefetch.c */
	ItemPointerData matches[MAX_MATCHES];
};

#define leaf_place(row)		la_block_id((row)->inner, (row)->leaf)
#define inner_of(join, row)	(&(join)->inners[(row)->inner])
#define row_of(prefetch, n)	(&(prefetch)->rows[(n) & (MAX_ROWS - 1)])
#define visit_of(prefetch, n)	(&(prefetch)->visits[(n) & (MAX_VISITS - 1)])
#define recent_of(prefetch, n) (&(prefetch)->recent[(n) & (MAX_VISITS - 1)])

/* ... for the visits of one more row? */
static inline bool
la_innerprefetch_has_room(const LaInnerPrefetch *prefetch)
{
	return prefetch->end_visit - prefetch->first_visit <= MAX_VISITS - MAX_ROW_VISITS;
}

/* outerqueue.c */
extern void la_outerqueue_init(LaNestLoop *join, LaInnerPrefetch *prefetch);
extern Row *la_outerqueue_row(LaNestLoop *join, uint64 n);
extern void la_outerqueue_reset_row(Row *row);
extern Row *la_outerqueue_head(LaNestLoop *join);
extern TupleTableSlot *la_outerqueue_hand_over(LaNestLoop *join);
extern void la_outerqueue_clear(LaInnerPrefetch *prefetch);

/* inner_prefetch.c */
extern bool la_innerprefetch_find_leaf(LaNestLoop *join, Row *row, bool may_wait);
extern void la_innerprefetch_search_leaf(LaNestLoop *join, Row *row, Buffer *buffer);

/* cache_prefetch.c */
extern void la_cacheprefetch_rows(LaNestLoop *join);

#endif							/* LA_INNER_PREFETCH_H */
