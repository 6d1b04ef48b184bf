/*
 * leafbatch.h
 *	  One index leaf page that was read ahead, and nbtree's state for it.
 *
 * src/scan/leafbatch.h
 */
#ifndef LA_LEAFBATCH_H
#define LA_LEAFBATCH_H

#include "access/nbtree.h"

#include "attach/descriptors.h"
#include "attach/follow.h"
#include "scan/scan_int.h"

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

/* An item, as a row to come. */
static inline void
la_leafbatch_coming(const BTScanPosData *pos, int item, LaComingRow *row)
{
	row->tid = pos->items[item].heapTid;
	row->id = (uint64) pos->currPage << 16 | (uint64) item;
	row->buffer = InvalidBuffer;
}

extern bool la_leafbatch_has_taken(IndexScanDesc scan, ScanDirection dir, int items);
extern int	la_leafbatch_rows(BTScanPos pos, char *tuples, int item, int by, LaIndexRow *rows,
							  int max);
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

#endif							/* LA_LEAFBATCH_H */
