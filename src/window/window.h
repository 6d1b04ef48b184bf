/*
 * window.h
 *	  The blocks that a scan is going to visit, and what was done about them.
 *
 * Each scan that looks ahead has a window.  The room that owns the scan is the window's
 * producer: it says which block comes next.  See window.c.
 *
 * src/window/window.h
 */
#ifndef LA_WINDOW_H
#define LA_WINDOW_H

#include "storage/block.h"
#include "storage/buf.h"
#include "storage/off.h"
#include "utils/relcache.h"

#include "base/budget.h"
#include "base/stats.h"
#include "window/cache_policy.h"
#include "window/io_policy.h"

/* A visit that the producer foresees: the block, and the first row wanted. */
typedef struct LaForeseen
{
	BlockNumber block;
	OffsetNumber offset;
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

extern LaIoPolicyConfig la_window_config(Relation rel, bool read_to_end,
										 Oid known_by);
extern LaCachePolicyConfig la_window_cache_config(Oid known_by);
extern LaVisitResult la_window_read_observed(Relation rel, BlockNumber block,
											 BlockNumber last, Buffer *current,
											 double *us);
extern Size la_window_size(Relation *rels, int nrels, const LaIoPolicy *policy);
extern LaWindow *la_window_create(Relation *rels, int nrels,
								  LaProducer producer, LaIoPolicy *policy,
								  LaCachePolicy *cache_policy,
								  LaCounters *counters, LaBudget *budget);
extern void la_window_visit(LaWindow *window, int rel, BlockNumber block,
							Buffer *current);
extern void la_window_clear(LaWindow *window);
extern void la_window_free(LaWindow *window);

#endif							/* LA_WINDOW_H */
