/*
 * scan_int.h
 *	  What the files of this room share.
 *
 * src/scan/scan_int.h
 */
#ifndef LA_SCAN_INT_H
#define LA_SCAN_INT_H

#include "access/amapi.h"
#include "access/genam.h"
#include "access/heapam.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/xlogdefs.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "attach/descriptors.h"
#include "base/base.h"
#include "btree/btree.h"
#include "window/scan_policy.h"
#include "window/window.h"

/* ---- scan_int ---- */

typedef struct LaScan LaScan;

/* A way of looking ahead.  Functions that its role in LaScan does not need are NULL. */
typedef struct LaScanOps
{
	/* can the position be taken over from the access method now? */
	bool		(*may_begin) (LaScan *ls, ScanDirection dir);
	/* take it over; false: the scan has no rows, and nothing was taken */
	bool		(*begin) (LaScan *ls, ScanDirection dir);
	/* the scan starts over; false: the access method has to make it */
	bool		(*rescan) (LaScan *ls, ScanKey keys, int nkeys);
	/* return the next row as amgettuple does */
	bool		(*gettuple) (LaScan *ls, ScanDirection dir);
	/* may the access method be asked for the next row before it is wanted? */
	bool		(*may_run_ahead) (LaScan *ls);
	/* mark and restore the position; NULL or false: the access method has to */
	void		(*mark) (LaScan *ls);
	bool		(*restore) (LaScan *ls);
	/* the scan starts over or ends: the position is not needed any more */
	void		(*drop) (LaScan *ls);
} LaScanOps;

typedef struct LaScanWay
{
	const LaScanOps *ops;		/* NULL: this way is not needed */
	void	   *state;			/* private to the file of ops; NULL: not yet */
} LaScanWay;

/* What is known beforehand of how far the scan will be read. */
typedef struct LaScanDemand
{
	LimitState *limit;			/* the one that counts its rows, or NULL */
	bool		read_to_end;
	double		rows;			/* that the planner expects, of one execution */
	uint32		identity;		/* see la_history_scan_of() */
} LaScanDemand;

/* What the gate has said of pages of the index before their turn: early.c */
typedef enum LaPages
{
	LA_PAGES_UNKNOWN,
	LA_PAGES_REFUSED,
	LA_PAGES_NOW,				/* until the next rescan, or run */
	LA_PAGES_ALWAYS
} LaPages;

struct LaScan
{
	RelationData shadow;		/* must be first: scan->indexRelation points
								 * here, see base/base.h */

	Relation	real;			/* the index */
	IndexScanDesc scan;
	PlanState  *node;
	MemoryContext context;		/* lives as long as the query */
	LaKind		kind;
	LaPages		pages;
	uint64		pages_run;		/* in which LA_PAGES_NOW was said */
	bool		keeps_errors;	/* of pages before their turn, until then */
	Oid			heaprelid;
	Oid			indexrelid;
	LaScanDemand demand;
	ScanDirection order;		/* of the index in which the plan returns them */
	int			max_leaf_pages;

	LaIoPolicy	policy;			/* see scan_policy.h */
	LaCachePolicy cache_policy;
	LaCounters	counters;
	LaBudget	budget;

	const LaScanOps *owner;		/* of the position; NULL: the access method */
	LaScanWay	ahead;			/* owner when armed: leaf.c, rowqueue.c */
	LaScanWay	source;			/* owner from a rescan on: tidsource.c */
	LaScanWay	watch;			/* called in place of amgettuple: graph.c */
	struct LaFollower *follower;	/* that is told of its rows, or NULL */

	LaLeafAhead leaf;			/* reads of index pages; enabled for nbtree */
	struct LaArrayKeys *arraykeys;	/* NULL: nothing to look ahead in, or not
									 * yet */
	bool		arraykeys_tried;

	/* while the access method owns the position */
	Buffer		seen_buffer;	/* heap buffer at the previous call */
	BlockNumber observed_block; /* heap block read last in state OBSERVE */
	int64		seen_reads;		/* blocks read when heap blocks were last
								 * compared */
	int64		nrows;			/* that the access method has returned */
	ScanDirection last_dir;		/* of the last call of the access method */
	BlockNumber moved_page;		/* leaf page that nbtree was put back on */
	bool		ended;			/* the last call has found no row */

	LaMapPage	map;			/* of index-only scans */
	BlockNumber index_size;		/* see la_issue_exists() */

	MemoryContextCallback callback;
};

#define la_scan_heap(ls)	la_heap_fetch((ls)->scan)

/* The heap block that the executor has pinned for the current row. */
static inline BlockNumber
la_scan_heap_block(LaScan *ls)
{
	Buffer		buffer = la_scan_heap(ls)->xs_cbuf;

	return BufferIsValid(buffer) ? BufferGetBlockNumber(buffer) : InvalidBlockNumber;
}

/* Have the scan never look ahead by itself. */
static inline void
la_scan_disable_lookahead(LaScan *ls)
{
	la_io_policy_disable(&ls->policy);
	la_cache_policy_disable(&ls->cache_policy);
	la_io_policy_disable(&ls->leaf.policy.io);
}

/* The next row of the access method. */
static inline bool
la_scan_am_gettuple(LaScan *ls, ScanDirection dir)
{
	bool		found;

	la_shadow_call(ls, found = ls->watch.ops ? ls->watch.ops->gettuple(ls, dir) :
				   ls->real->rd_indam->amgettuple(ls->scan, dir));
	ls->last_dir = dir;
	ls->nrows += found;
	return found;
}

/*
 * How many rows the Limit above may still take after the current one.  It does not count those that
 * a cursor takes backward.
 */
static inline int64
la_scan_rows_wanted(LaScan *ls, ScanDirection dir)
{
	return dir == ls->order ? la_demand_rows_wanted(ls->demand.limit) : PG_INT64_MAX;
}

/*
 * The next entry of a btree scan, if nbtree has the position and it is on the same leaf page: the
 * step that _bt_next would take, so that a passive scan costs hardly more than stock.
 */
static inline bool
la_btree_step(IndexScanDesc scan, ScanDirection dir)
{
	BTScanOpaque so = la_btree_scan(scan);
	BTScanPosItem *item;

	if (scan->kill_prior_tuple || !BTScanPosIsValid(so->currPos))
		return false;
	if (ScanDirectionIsForward(dir) && so->currPos.itemIndex < so->currPos.lastItem)
		item = &so->currPos.items[++so->currPos.itemIndex];
	else if (ScanDirectionIsBackward(dir) && so->currPos.itemIndex > so->currPos.firstItem)
		item = &so->currPos.items[--so->currPos.itemIndex];
	else
		return false;

	scan->xs_recheck = false;
	scan->xs_heaptid = item->heapTid;
	if (scan->xs_want_itup)
		scan->xs_itup = (IndexTuple) (so->currTuples + item->tupleOffset);
	return true;
}

/* ---- arraykeys: leaf pages that the next elements of an IN list will need ---- */

extern void la_arraykeys_advance(LaScan *ls, ScanDirection dir, int64 rows_wanted);
extern void la_arraykeys_forget(LaScan *ls);

/* ---- deferred: between a btree scan and nbtree until there is a reason to attach it ---- */

typedef void (*la_deferred_end) (PlanState *node, bool read);

extern void la_deferred_install(IndexScanDesc scan, PlanState *node, la_deferred_end end);
extern bool la_deferred_was_quiet(Relation index);
extern bool la_deferred_remove(IndexScanDesc scan);

/* ---- early: may an index scan read pages of its index before their turn? ---- */

extern bool la_early_ask(LaScan *ls);
extern void la_early_rescan(LaScan *ls);

/* Asked for each page: the gate has answered, as a rule. */
static inline bool
la_early_refuses_pages(LaScan *ls)
{
	if (ls->pages == LA_PAGES_UNKNOWN ||
		(ls->pages == LA_PAGES_NOW && ls->pages_run != la_statements_run(ls->node->state)->number))
		return !la_early_ask(ls);
	return ls->pages == LA_PAGES_REFUSED;
}

/* ---- graph: pages that a search in an HNSW graph will need ---- */

extern void la_graph_watch(LaScan *ls);

/* ---- heapvisit: the heap blocks of a scan, as its rows are returned ---- */

/* What is known of an entry: will the executor fetch its heap row? */
#define LA_HEAP_UNKNOWN		0
#define LA_HEAP_NEEDED		1
#define LA_HEAP_NOT_NEEDED	2

extern bool la_heapvisit_is_needed(LaScan *ls, ItemPointer tid);
extern bool la_heapvisit_is_known_needed(LaScan *ls, ItemPointer tid, uint8 *known);
extern void la_heapvisit_pass(LaScan *ls, bool missed);
extern void la_heapvisit_observe(LaScan *ls, BlockNumber block);
extern void la_heapvisit_turn_to(LaScan *ls, LaWindow *window, BlockNumber block);

/* ---- killed ---- */

/* Where an access method found an entry. */
typedef struct LaIndexEntry
{
	ItemPointerData tid;		/* the heap row it points to */
	OffsetNumber offset;		/* its place on the index page */
	BlockNumber page;			/* InvalidBlockNumber: cannot be killed */
	XLogRecPtr	lsn;			/* of the page when it was read (GiST) */
} LaIndexEntry;

/* Entries of one index page that were reported dead. */
typedef struct LaKilledItems
{
	/* marks them, as the access method would; NULL: it marks none */
	void		(*kill) (LaScan *ls, struct LaKilledItems *killed);

	BlockNumber page;
	XLogRecPtr	lsn;
	int			n;
	LaIndexEntry *entries;		/* MaxIndexTuplesPerPage of them; NULL until
								 * the first */

	/* hash: primary bucket pages, pinned while their entries are in a queue */
	Buffer		pins[2];

	void	   *work;			/* the method's, allocated when needed */
} LaKilledItems;

extern void la_killed_add(LaScan *ls, LaKilledItems *killed, const LaIndexEntry *entry);
extern void la_killed_apply(LaScan *ls, LaKilledItems *killed);
extern void la_killed_unpin(LaKilledItems *killed);
extern void la_killed_free(LaKilledItems *killed);

/* ---- leaf: index leaf pages read ahead of the scan (nbtree) ---- */

extern const LaScanOps la_leaf_ops;

extern bool la_leaf_step(LaScan *ls, ScanDirection dir, int64 rows_wanted);
extern bool la_leaf_peek(LaScan *ls, int n, LaComingRow *row);

/* ---- leafbatch: one index leaf page that was read ahead, and nbtree's state for it ---- */

typedef struct LaLeafBatch
{
	BTScanPos	pos;			/* copy of currPos up to its last item */
	int			max_items;		/* allocated in pos */
	char	   *tuples;			/* copy of currTuples, index-only scans */
	int			tuples_size;
	uint8	   *heap;			/* LA_HEAP_xxx for each item, index-only scans */
	int			heap_size;
	int		   *killed;			/* items reported dead */
	int			nkilled;
	int		   *array_elems;	/* until 16: see ARRAYS in leaf.c */
	Size		bytes;			/* taken from the scan's budget */
} LaLeafBatch;

/* What all batches of a scan share. */
typedef struct LaLeafBatchPool
{
	LaScan	   *ls;
	LaLeafBatch *spare;			/* a batch to use again */
	BTScanOpaque kill_state;	/* for _bt_killitems; NULL until needed */
} LaLeafBatchPool;

#define la_bt_opaque(ls)	la_btree_scan((ls)->scan)

/* Bytes of a position up to its last item: all, if the page was read backward. */
#define la_pos_size(pos) \
	(offsetof(BTScanPosData, items) + \
	 ((pos)->lastItem + 1) * sizeof(BTScanPosItem))

/* An item, as a row to come.  tuples: of an index-only scan, else NULL. */
static inline void
la_leafbatch_coming(const BTScanPosData *pos, char *tuples, int item, LaComingRow *row)
{
	row->tid = pos->items[item].heapTid;
	row->id = (uint64) pos->currPage << 16 | (uint64) item;
	row->buffer = InvalidBuffer;
	row->tuple = tuples == NULL ? NULL : (IndexTuple) (tuples + pos->items[item].tupleOffset);
}

extern Size la_leafbatch_most_bytes(const LaLeafBatchPool *pool);
extern LaLeafBatch *la_leafbatch_copy(LaLeafBatchPool *pool, BTScanPos pos, const char *tuples);
extern void la_leafbatch_own_pin(LaLeafBatchPool *pool);
extern void la_leafbatch_free(LaLeafBatchPool *pool, LaLeafBatch *b);
extern void la_leafbatch_free_spare(LaLeafBatchPool *pool);
extern void la_leafbatch_save_array_keys(LaLeafBatchPool *pool, LaLeafBatch *b, bool of_mark);
extern void la_leafbatch_kill(LaLeafBatchPool *pool, LaLeafBatch *b, int item);
extern void la_leafbatch_apply_killed(LaLeafBatchPool *pool, LaLeafBatch *b);
extern void la_leafbatch_restore_position(LaLeafBatchPool *pool, LaLeafBatch *b,
										  int item, ScanDirection dir);
extern void la_leafbatch_restore_mark(LaLeafBatchPool *pool, LaLeafBatch *b, int item);
extern void la_leafbatch_turn_array_keys(LaScan *ls, ScanDirection dir);

/* ---- method: what look-ahead knows of index access methods other than btree ---- */

/* Any function may be NULL. */
typedef struct LaMethod
{
	/* where is the row that the access method returned last? */
	void		(*locate) (LaScan *ls, LaKilledItems *killed, LaIndexEntry *entry);

	/* mark the collected entries dead, as the access method would */
	void		(*kill) (LaScan *ls, LaKilledItems *killed);

	/*
	 * Move the current page's dead entries from the access method's own list,
	 * and back to it.  See GiST in method.c.
	 */
	void		(*take_killed) (LaScan *ls, LaKilledItems *killed);
	void		(*return_killed) (LaScan *ls, LaKilledItems *killed);

	/* how many more rows of the current index page will it return? */
	int			(*rows_on_page) (LaScan *ls);

	/* start reads of index pages that it will turn to */
	void		(*issue_pages) (LaScan *ls);

	/* does it return the distances of ORDER BY with each row? */
	bool		sets_distances;
} LaMethod;

extern const LaMethod *la_method_of(Oid am);

/* ---- rowqueue: rows read ahead through any access method's amgettuple ---- */

extern const LaScanOps la_rowqueue_ops;

/* ---- shim: between an index scan and its access method ---- */

extern LaScan *la_shim_install(IndexScanDesc scan, LaKind kind, const LaScanDemand *demand,
							   MemoryContext context);
extern LaScan *la_shim_of(IndexScanDesc scan);

/* ---- tidsource: an index scan whose TIDs another room has found already ---- */

extern bool la_tidsource_set(LaScan *ls, const LaTidSource *source);

#endif							/* LA_SCAN_INT_H */
