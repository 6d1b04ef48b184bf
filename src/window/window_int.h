/*
 * window_int.h
 *	  What the files of this room share.
 *
 * src/window/window_int.h
 */
#ifndef LA_WINDOW_INT_H
#define LA_WINDOW_INT_H

#include "storage/block.h"
#include "storage/buf.h"
#include "utils/relcache.h"

#include "base/base.h"
#include "window/cache_policy.h"
#include "window/lot_policy.h"
#include "window/readahead.h"
#include "window/window.h"

/* ---- bufferhint: where this backend has seen blocks in shared buffers ---- */

extern Buffer la_bufferhint_find(Relation rel, BlockNumber block);
extern void la_bufferhint_note(Relation rel, BlockNumber block, Buffer buffer);

/* ---- lot: foreseen visits whose blocks are issued in the order of the table ---- */

struct Visit;

extern void la_lot_init(LaWindow *window);
extern void la_lot_clear(LaWindow *window);
extern void la_lot_free(LaWindow *window);
extern bool la_lot_top_up(LaWindow *window);
extern void la_lot_on_read(LaWindow *window, const struct Visit *visit,
						   const LaReadResult *result);

/* ---- window_int: a window: shared by the files that fill its ring ---- */

/*
 * See window.c and lot.c.
 */

#define RECENT_SLOTS	256		/* a power of 2 */
#define RECENT_VISITS	256
#define LA_LOT_WAITS	16		/* a power of 2 */

typedef enum VisitState
{
	VISIT_UNKNOWN,				/* not foreseen */
	VISIT_CACHED,
	VISIT_ISSUED,
	VISIT_LOT,					/* issued as part of a lot */
	VISIT_CONTROL,				/* not cached, not issued, to be timed */
	VISIT_RECENT,
	VISIT_SEQUENTIAL,			/* left to the kernel's read-ahead */
	VISIT_NEAR,					/* the same, as long as that works */
	VISIT_STREAM				/* the same, as part of a stream */
} VisitState;

typedef struct Visit
{
	BlockNumber block;
	Buffer		recent;			/* where it was, or InvalidBuffer */
	union
	{
		OffsetNumber offset;	/* of the first row wanted */
		uint16		turn;		/* VISIT_LOT, instead: see lot.c */
	};
	uint16		rel;			/* index into rels */
	uint8		state;			/* a VisitState */
	bool		on_trial:1;		/* counted in undecided */
	bool		served:1;		/* the kernel would have read it ahead */
	uint8		more:4;			/* see LaForeseen */
	int16		slot;			/* of an asynchronous read in flight, or -1 */
} Visit;

typedef struct RecentSlot
{
	uint64		id;				/* see la_block_id() */
	uint64		visit;
} RecentSlot;

/* A visit of a lot. */
typedef struct LotEntry
{
	uint64		id;				/* of the block, see la_block_id() */
	uint64		visit;			/* its place in the ring */
} LotEntry;

/* See lot.c. */
typedef struct LaLot
{
	LaLotPolicy policy;
	LaLotResult result;			/* of the entries that were issued */
	uint64		first;			/* its first visit */
	double		issued_us;		/* when the last of its blocks was issued */
	double		previous_issued_us; /* the same of the lot before it */
	double		wait_us;		/* a read of so long was one from the storage */
	uint32		nissued;		/* blocks of all lots */
	uint16		done;			/* those that were issued up to this turn have
								 * come on time */
	int			n;				/* its entries */
	int			next;			/* ... of which this is to be issued next */
	LotEntry   *entries;		/* policy.first_limit, or NULL: there was no
								 * lot yet */
	int			gap;			/* blocks in between that a request reads as
								 * well */
	uint64		last_uncached;	/* block id, or LA_NO_BLOCK */
	uint64		issued_end;		/* no block of the lot has been issued from
								 * this one on */
	uint64		range_first;	/* blocks to be issued by one request */
	uint64		range_last;		/* or LA_NO_BLOCK */
	uint64		waits[LA_LOT_WAITS];	/* blocks of requests that are to be
										 * waited for */
	uint32		first_wait;
	uint32		last_wait;
	int			nrequests;		/* since the last one of them */
} LaLot;

struct LaWindow
{
	Relation   *rels;			/* behind the ring */
	BlockNumber *sizes;			/* of each, see la_issue_exists() */
	bool		local;			/* they are temporary */
	LaProducer	producer;
	LaIoPolicy *policy;
	LaCachePolicy *cache_policy;	/* or NULL */
	LaCounters *counters;
	LaSaving	saving;
	LaShare		share;
	LaReadahead readahead;

	uint64		head;			/* next visit to be consumed */
	uint64		tail;			/* next visit to be foreseen */
	uint64		reach;			/* so many visits ahead, at most, for now */
	uint64		page_touched;	/* visits before this had their first touch */
	int			in_flight;		/* issued, not consumed, not settled */
	int			nsettled;		/* issued, known to be done, not consumed */
	int			limit;			/* blocks in flight, at most, for now */
	uint64		last_foreseen;	/* block id */
	int			run;			/* visits from block to next block */
	int			near_run;		/* visits to a block near the previous one */
	int			undecided;		/* foreseen and left to the kernel on trial */

	LaLot		lot;

	LaAio	   *aio;			/* under direct I/O, else NULL */
	uint64		settled;		/* visits before this hold no buffer */

	LaBudget   *budget;
	Size		bytes;			/* taken from it by lot.c, for entries and a
								 * larger ring */
	Visit	   *ring;
	uint64		mask;			/* of its slots, whose number is a power of 2 */
	RecentSlot	recent[RECENT_SLOTS];
};

#define la_window_count(window, counter) ((window)->counters->c[counter]++)

/* Append a visit to the ring. */
static inline Visit *
la_window_append(LaWindow *w, const LaForeseen *f)
{
	Visit	   *v = &w->ring[w->tail++ & w->mask];

	v->block = f->block;
	v->offset = f->offset;
	v->rel = f->rel;
	v->recent = InvalidBuffer;
	v->slot = -1;
	v->state = VISIT_UNKNOWN;
	v->on_trial = v->served = false;
	v->more = f->more;
	la_window_count(w, LA_BLOCKS_FORESEEN);
	return v;
}

/* Note that a block is foreseen, or visited.  Was it, too, in so many visits before this one? */
static inline bool
la_window_note_block(LaWindow *w, uint64 id, uint64 nvisits)
{
	/* blocks of different partitions often have the same numbers */
	RecentSlot *slot = &w->recent[(id + (id >> 32) * 37) % RECENT_SLOTS];
	bool		found = slot->id == id && w->tail - slot->visit < nvisits;

	slot->id = id;
	slot->visit = w->tail;
	return found;
}

/* Is the block of a visit in shared buffers? */
static inline bool
la_window_is_cached(LaWindow *w, Visit *v)
{
	return la_issue_is_cached(w->rels[v->rel], v->block, &v->recent);
}

#endif							/* LA_WINDOW_INT_H */
