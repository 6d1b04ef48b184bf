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

#include "storage/buf.h"
#include "utils/relcache.h"

#include "base/budget.h"
#include "base/stats.h"
#include "window/cache_policy.h"
#include "window/foreseen.h"
#include "window/io_policy.h"

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

#endif							/* LA_WINDOW_H */
