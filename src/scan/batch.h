/*
 * batch.h
 *	  One index leaf page that was read ahead, and nbtree's state for it.
 *
 * src/scan/batch.h
 */
#ifndef LA_BATCH_H
#define LA_BATCH_H

#include "access/nbtree.h"

#include "scan/shim.h"

typedef struct LaBatch
{
	BTScanPos	pos;			/* copy of currPos, used items only */
	int			max_items;		/* allocated in pos */
	char	   *tuples;			/* copy of currTuples, index-only scans */
	uint8	   *heap;			/* HEAP_xxx for each item, index-only scans */
	int		   *killed;			/* items reported dead */
	int			nkilled;
	int		   *elements;		/* array keys, until 16: see leaf.c, G */
	Size		bytes;			/* taken from the scan's budget */
} LaBatch;

/* What all batches of a scan share. */
typedef struct LaBatches
{
	LaScan	   *ls;
	LaBatch    *spare;			/* a batch to use again */
	BTScanOpaque kill_state;	/* for _bt_killitems; NULL until needed */
} LaBatches;

#define la_bt_opaque(ls)	((BTScanOpaque) (ls)->scan->opaque)

/* The part of a position that is in use. */
#define la_pos_size(pos) \
	(offsetof(BTScanPosData, items) + \
	 ((pos)->lastItem + 1) * sizeof(BTScanPosItem))

extern int	la_batch_items_taken(IndexScanDesc scan, ScanDirection dir);
extern Size la_batch_most_bytes(const LaBatches *bs);
extern LaBatch *la_batch_copy(LaBatches *bs, BTScanPos pos,
							  const char *tuples);
extern void la_batch_own_pin(LaBatches *bs);
extern void la_batch_free(LaBatches *bs, LaBatch *b);
extern void la_batch_free_spare(LaBatches *bs);
extern void la_batch_save_elements(LaBatches *bs, LaBatch *b, bool of_mark);
extern void la_batch_kill(LaBatches *bs, LaBatch *b, int item);
extern void la_batch_apply_kills(LaBatches *bs, LaBatch *b);
extern void la_batch_give_position(LaBatches *bs, LaBatch *b, int item,
								   ScanDirection dir);
extern void la_batch_give_mark(LaBatches *bs, LaBatch *b, int item);
extern void la_batch_turn_array_keys(LaScan *ls, ScanDirection dir);

#endif							/* LA_BATCH_H */
