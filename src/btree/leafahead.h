/*
 * leafahead.h
 *	  Reads of the leaf pages that a scan of a stock btree index will come to.
 *
 * One for each scan, within the room's own record of it.  See leafahead.c.
 *
 * src/btree/leafahead.h
 */
#ifndef LA_LEAFAHEAD_H
#define LA_LEAFAHEAD_H

#include "access/genam.h"
#include "access/nbtree.h"
#include "utils/rel.h"

#include "base/budget.h"
#include "base/counters.h"
#include "window/leaf_policy.h"
#include "window/saving.h"
#include "window/share.h"

typedef struct LaLeafAhead
{
	Relation	index;
	IndexScanDesc scan;
	MemoryContext context;		/* of the ring; lives as long as the scan */
	LaBudget   *budget;
	LaCounters *counters;
	const LaIoPolicy *of_heap;	/* SHARE: heap blocks of the same scan, or
								 * NULL */
	bool		is_counted;		/* activation and distance are counted here */

	LaLeafPolicy policy;
	LaShare		share;
	LaSaving	saving;
	BlockNumber index_size;		/* see la_issue_exists() */
	int			nstarted;		/* OTHERS: pages not visited yet */
	struct LaLeafRing *ring;	/* NULL: not yet */

	/* the step in progress */
	BlockNumber previous;		/* page that it leaves, or InvalidBlockNumber */
	int64		reads;			/* blocks read when it began */
	double		start;			/* its time */
} LaLeafAhead;

/* Has nbtree found nothing on its page that ends the scan in this direction? */
static inline bool
la_leafahead_has_more(BTScanOpaque so, ScanDirection dir)
{
	return ScanDirectionIsForward(dir) ? so->currPos.moreRight : so->currPos.moreLeft;
}

extern void la_leafahead_init(LaLeafAhead *la, Relation index, IndexScanDesc scan,
							  MemoryContext context, LaBudget *budget, LaCounters *counters);
extern bool la_leafahead_issue_page(LaLeafAhead *la, BlockNumber page);
extern int	la_leafahead_limit(LaLeafAhead *la);
extern void la_leafahead_issue(LaLeafAhead *la, ScanDirection dir, int64 rows_wanted);
extern void la_leafahead_begin_step(LaLeafAhead *la);
extern void la_leafahead_end_step(LaLeafAhead *la, bool found, ScanDirection dir,
								  int64 rows_wanted);
extern void la_leafahead_rescan(LaLeafAhead *la, bool ended_early);
extern void la_leafahead_free(LaLeafAhead *la);

#endif							/* LA_LEAFAHEAD_H */
