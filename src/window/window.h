/*
 * window.h
 *	  What the room window/ offers to others.
 *
 * src/window/window.h
 */
#ifndef LA_WINDOW_H
#define LA_WINDOW_H

#include "executor/instrument.h"
#include "storage/block.h"
#include "storage/buf.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "storage/off.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "base/base.h"
#include "base/compat.h"
#include "window/cache_policy.h"
#include "window/io_policy.h"

/* ---- issue ---- */

/* Ask the CPU to load the cache line of this address. */
#if defined(__GNUC__) || defined(__clang__)
#define la_prefetch(address)	__builtin_prefetch(address)
#else
#define la_prefetch(address)	((void) (address))
#endif

/* Where a foreseen block was found. */
typedef enum LaIssueResult
{
	LA_ISSUE_CACHED,			/* in shared buffers: in *recent */
	LA_ISSUE_STARTED,			/* its read was started */
	LA_ISSUE_NOTHING			/* neither: no read can be started here */
} LaIssueResult;

/* How a visited block came into the scan's buffer. */
typedef struct LaReadResult
{
	bool		missed;			/* it had to be read */
	double		us;				/* microseconds that took, if timed */
} LaReadResult;

/* A page of a table's visibility map, which may stay pinned for the next question. */
typedef struct LaMapPage
{
	Buffer		buffer;
	Relation	heap;
} LaMapPage;

extern bool la_issue_exists(Relation rel, BlockNumber block,
							BlockNumber *known_size);
extern bool la_issue_is_cached(Relation rel, BlockNumber block, Buffer *recent);
extern LaIssueResult la_issue_block(Relation rel, BlockNumber block,
									Buffer *recent);
extern void la_issue_range(Relation rel, BlockNumber first, BlockNumber nblocks);
extern void la_issue_touch_page(Buffer recent, OffsetNumber offset);
extern void la_issue_touch_items(Buffer recent);
extern void la_issue_touch_tuple(Buffer recent, OffsetNumber offset);
extern LaReadResult la_issue_read(Relation rel, BlockNumber block,
								  Buffer recent, bool timed, bool counted,
								  Buffer *current);
extern void la_issue_replace_current(Relation rel, Buffer buffer, Buffer *current);
extern bool la_issue_all_visible(Relation heap, BlockNumber block, LaMapPage *map,
								 LaBudget *budget);
extern void la_issue_release_map(LaMapPage *map, LaBudget *budget);
extern double la_issue_clock_us(void);

/* Blocks that this backend has read into buffers so far, shared and local. */
static inline int64
la_issue_blocks_read(void)
{
	return pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read;
}

/* Uses of buffers by this backend so far: blocks that it has read, and that it has found. */
static inline int64
la_issue_buffers_used(void)
{
	return la_issue_blocks_read() + pgBufferUsage.shared_blks_hit +
		pgBufferUsage.local_blks_hit;
}

/* ---- aio: asynchronous reads into shared buffers, for direct I/O ---- */

typedef struct LaAio LaAio;

#ifdef LA_HAVE_AIO
extern bool la_aio_works(Relation rel);
extern Size la_aio_size(int slots);
extern LaAio *la_aio_create(int slots, LaBudget *budget);
extern bool la_aio_has_room(const LaAio *aio);
extern LaIssueResult la_aio_start(LaAio *aio, Relation rel, BlockNumber block,
								  int *slot, Buffer *recent);
extern bool la_aio_settle(LaAio *aio, int slot, Buffer *recent);
extern LaReadResult la_aio_finish(LaAio *aio, int slot, Relation rel,
								  Buffer *current);
extern void la_aio_cancel(LaAio *aio, int slot);
#else
#define la_aio_works(rel)				((void) (rel), false)
#define la_aio_size(slots)				((void) (slots), (Size) 0)
#define la_aio_create(slots, budget)	((void) (slots), (void) (budget), (LaAio *) NULL)
#define la_aio_has_room(aio)			false
#define la_aio_start(aio, rel, block, slot, recent) ((void) (slot), LA_ISSUE_NOTHING)
#define la_aio_settle(aio, slot, recent) false
#define la_aio_finish(aio, slot, rel, current) ((LaReadResult) {false, 0.0})
#define la_aio_cancel(aio, slot)		((void) 0)
#endif

/* Are reads of the relation started here?  Advice has no effect on files opened with O_DIRECT. */
static inline bool
la_aio_is_needed(Relation rel)
{
	return la_direct_io() && la_aio_works(rel);
}

/* ---- config ---- */

extern LaIoPolicyConfig la_config_reads(Relation rel, bool read_to_end, Oid known_by);
extern LaIoPolicyConfig la_config_reads_now(Relation rel, bool read_to_end, Oid known_by);
extern LaCachePolicyConfig la_config_cache(Oid known_by);

/* ---- foreseen: visits that are foreseen, and who foresees them ---- */

#define LA_RUN_BLOCKS	16		/* of a visit; the kernel may cut requests of
								 * more than 128 kB short */

/* A visit that the producer foresees: the block, and the first row wanted. */
typedef struct LaForeseen
{
	BlockNumber block;
	OffsetNumber offset:12;		/* a larger one is not on any page */
	uint16		more:4;			/* blocks behind it that the server reads by
								 * itself after it; 0 unless set */
	uint16		rel;			/* of the window's relations; 0 unless set */
} LaForeseen;

/* A block of a relation, as a number; neighbours have neighbouring numbers. */
#define la_block_id(rel, block) (((uint64) (rel) << 32) | (block))
#define LA_NO_BLOCK				(PG_UINT64_MAX - 1) /* nobody's neighbour */

typedef struct LaProducer
{
	void	   *arg;

	/* return the visit after the previous one; false if there is none now */
	bool		(*next_visit) (void *arg, LaForeseen *visit);

	/* start over behind the row about to be returned */
	void		(*restart) (void *arg);
} LaProducer;

typedef struct LaWindow LaWindow;

/* ---- history: what earlier scans have learnt, for later ones ---- */

/* How far earlier executions of a statement have read a scan. */
typedef struct LaHistoryDemand
{
	int32_t		early_visits;	/* when they left it early, 1/16ths, or 0 */
	bool		to_end;			/* the last ones have not */
} LaHistoryDemand;

extern void la_history_init(void);
extern double la_history_read_us(Oid tablespace);
extern void la_history_note_read(Oid tablespace, double us);
extern void la_history_note_single_read(Oid tablespace, double us);
extern int	la_history_single_read(Oid tablespace, double *us, double *error_us);
extern bool la_history_known_slow(Oid index, Oid tablespace);
extern bool la_history_pages_known_slow(Oid index, Oid tablespace);
extern bool la_history_known_fast(Oid index);
extern bool la_history_known_cached(Oid index);
extern bool la_history_known_unhelpful(Oid index);
extern void la_history_note_cached(Oid index, bool cached);
extern bool la_history_begins_cold(Oid index);
extern bool la_history_begins_with_reads(Oid index);
extern void la_history_note(Oid index, LaIoVerdict reads, LaCacheVerdict cache);
extern void la_history_note_pages(Oid index, LaIoVerdict reads);
extern void la_history_note_begin(Oid index, bool cold);
extern uint32 la_history_scan_of(Oid index, uint64 query, int node);
extern LaHistoryDemand la_history_demand(uint32 scan);
extern void la_history_note_demand(uint32 scan, int64 visits, bool ended_early);

/* ---- window: the blocks that a scan is going to visit, and what was done about them ---- */

/*
 * Each scan that looks ahead has a window.  The room that owns the scan is the window's
 * producer: it says which block comes next.  See window.c.
 */

extern LaVisitResult la_window_read_observed(Relation rel, BlockNumber block,
											 BlockNumber last, Buffer *current,
											 LaCounters *counters, double *us);
extern Size la_window_size(Relation *rels, int nrels, const LaIoPolicy *policy);
extern LaWindow *la_window_create(Relation *rels, int nrels,
								  LaProducer producer, LaIoPolicy *policy,
								  LaCachePolicy *cache_policy,
								  LaCounters *counters, LaBudget *budget);
extern void la_window_set_relation(LaWindow *window, int i, Relation rel);
extern uint64 la_window_reach(const LaWindow *window);
extern bool la_window_has_reads(const LaWindow *window);
extern void la_window_visit(LaWindow *window, int rel, BlockNumber block,
							Buffer *current);
extern void la_window_skip(LaWindow *window, int rel, BlockNumber block);
extern void la_window_clear(LaWindow *window);
extern void la_window_forget_waits(LaWindow *w);
extern void la_window_free(LaWindow *window);

/* ---- reads: reads of blocks that are made for the server, a moment before its own ---- */

/* Reads of some relations' blocks, in the order of need. */
typedef struct LaReads
{
	Relation   *rels;
	LaIoPolicy	policy;
	LaCounters	counters;
	LaWindow   *window;			/* NULL until look-ahead first may begin */

	/* for state OBSERVE: the last visit, if there was one */
	bool		visited;
	int			last_rel;
	BlockNumber last_block;
} LaReads;

extern void la_reads_visit(LaReads *reads, int rel, BlockNumber block, bool foreseen,
						   Buffer *buffer);
extern void la_reads_no_visit(LaReads *reads);

/* ---- saving: how much time look-ahead saves. See saving.c ---- */

/* The kernel's copy of a page, which direct reads do without. */
#define LA_SAVING_COPY_US	4.0

/* What is known of reads in a tablespace, for the reads of one scan. */
typedef struct LaSaving
{
	double		read_us;		/* of a single one, or 0 if not known */
	double		error_us;		/* half of the interval in which it probably
								 * is */
} LaSaving;

extern void la_saving_init(LaSaving *s, Oid tablespace);
extern double la_saving_before_issue(const LaSaving *s);
extern void la_saving_after_issue(LaCounters *counters, double before);
extern void la_saving_on_range(const LaSaving *s, LaCounters *counters, double before);

/* A read has taken so long, whether or not it was started early. */
static inline void
la_saving_on_read(LaCounters *counters, double us)
{
	counters->c[LA_WAIT_NS] += (int64) (us * 1000.0);
}

/*
 * The read of a block that was issued has taken so long.  served: the kernel would have read it
 * ahead (readahead.c).
 */
static inline void
la_saving_on_issued_read(const LaSaving *s, LaCounters *counters, double us, bool served)
{
	la_saving_on_read(counters, us);
	if (s->read_us == 0.0)
		return;
	if (served)
	{
		counters->c[LA_SAVED_NS] += (int64) ((LA_SAVING_COPY_US - us) * 1000.0);
		return;
	}
	counters->c[LA_SAVED_NS] += (int64) ((s->read_us - us) * 1000.0);
	counters->c[LA_SAVED_ERROR_NS] += (int64) (s->error_us * 1000.0);
}

/* ---- share: the limit of a tablespace, shared by the sessions that look ahead in it ---- */

#define LA_SHARE_VISITS	16		/* after which a share is asked for again */

/* Of one who starts reads: a window, or the leaf pages of a scan. */
typedef struct LaShare
{
	MemoryContext context;		/* in which it is */
	struct LaShareMember *member;	/* NULL: not yet */
	int			limit;			/* reads that may be in flight */
	int			visits_left;	/* until that is asked for again */
	bool		uses;			/* reads were started since, or would have
								 * been */
} LaShare;

extern void la_share_init(void);
extern void la_share_end(LaShare *share);
extern void la_share_refresh(LaShare *share, Oid tablespace);
extern void la_share_note_read(Oid tablespace);
extern int	la_share_of_backend(Oid tablespace);
extern int	la_share_most(int distance);

/* uses: it is about to start reads.  context: where it is allocated. */
static inline void
la_share_begin(LaShare *share, bool uses, MemoryContext context)
{
	memset(share, 0, sizeof(*share));
	share->limit = PG_INT32_MAX;
	share->context = context;
	share->uses = uses;
}

/* Is there a limit for anyone? */
static inline bool
la_share_is_limited(void)
{
	return la_tablespace_max_in_flight > 0;
}

/* At each visit: how many reads may be in flight, of so many? */
static inline int
la_share_limit(LaShare *share, Oid tablespace, int most)
{
	if (!la_share_is_limited())
	{
		share->limit = PG_INT32_MAX;
		share->visits_left = 0;
		return most;
	}
	if (share->visits_left-- <= 0)
		la_share_refresh(share, tablespace);
	return Min(share->limit, most);
}

/* A read was started, or would have been. */
static inline void
la_share_on_use(LaShare *share)
{
	share->uses = true;
}

/* A read was waited for: meanwhile others may have come, or gone. */
static inline void
la_share_on_wait(LaShare *share)
{
	share->visits_left = 0;
}

/* ---- storage ---- */

#define LA_STORAGE_DEPTHS 9		/* 1, 2, 4, ... 256 */

typedef struct LaStorage
{
	double		random_us[LA_STORAGE_DEPTHS];	/* microseconds per 8 kB block
												 * of random reads at that
												 * depth: wall time / reads */
	double		sequential_us;	/* per block */
	double		extra_block_us; /* of each further neighbour in a request */
	double		tuple_us;		/* of the processor, for a tuple of a
								 * sequential scan in memory, its condition
								 * and its count; 0: not known */
} LaStorage;

extern void la_storage_init(void);
extern bool la_storage_get(Oid tablespace, LaStorage *storage);
extern void la_storage_set(Oid tablespace, const LaStorage *storage);
extern void la_storage_forget(void);

#endif							/* LA_WINDOW_H */
