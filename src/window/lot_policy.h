/*
 * lot_policy.h
 *	  Are blocks issued in the order of the table rather than in that of the scan?
 *
 * Pure functions of counters, like io_policy.h.  See lot_policy.c.
 *
 * src/window/lot_policy.h
 */
#ifndef LA_LOT_POLICY_H
#define LA_LOT_POLICY_H

#include "window/io_policy.h"

/* What became of a lot, once its blocks were issued. */
typedef struct LaLotResult
{
	int			visits;
	int			blocks;			/* that were entered; some were cached */
	int			uncached;		/* distinct blocks that were not cached */
	int			close;			/* ... within LaLotPolicy.near_gap of the
								 * previous one */
	bool		limited;		/* the producer had no more visits for now */
} LaLotResult;

typedef struct LaLotPolicy
{
	int			size;			/* blocks of the next lot */
	int			limit;			/* ... at most */
	int			first_limit;	/* ... in a scan that begins */
	int			gap;			/* blocks in between that are read as well */
	int			near_gap;		/* blocks closer than this may be neighbours
								 * in a lot of `limit` blocks */
	int			until_probe;	/* blocks to be issued in the order of need */
	int64_t		again_at;		/* no lot before this visit */
	int			pause;			/* visits until the lot after a useless one */
	int			last_blocks;	/* in the last lot */
	int			nissued;		/* visits in the lot to issued blocks, and how */
	int			nevicted;		/* many of these had to be read again */
} LaLotPolicy;

extern void la_lot_policy_init(LaLotPolicy *p, int limit, double read_us);
extern int	la_lot_policy_size(LaLotPolicy *p, const LaIoPolicy *io);
extern int	la_lot_policy_gap(const LaLotPolicy *p, int nblocks, uint64_t nbetween);
extern void la_lot_policy_on_lot(LaLotPolicy *p, const LaIoPolicy *io, const LaLotResult *r);
extern void la_lot_policy_restart(LaLotPolicy *p);
extern void la_lot_policy_on_issue(LaLotPolicy *p);
extern void la_lot_policy_on_visit(LaLotPolicy *p, bool evicted);

#endif							/* LA_LOT_POLICY_H */
