/*
 * history.h
 *	  What earlier scans have learnt, for later ones.
 *
 * src/window/history.h
 */
#ifndef LA_HISTORY_H
#define LA_HISTORY_H

#include "window/cache_policy.h"
#include "window/io_policy.h"

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
extern void la_history_note(Oid index, LaIoVerdict reads, LaCacheVerdict cache);
extern void la_history_note_pages(Oid index, LaIoVerdict reads);
extern void la_history_note_begin(Oid index, bool cold);
extern uint32 la_history_scan_of(Oid index, uint64 query, int node);
extern LaHistoryDemand la_history_demand(uint32 scan);
extern void la_history_note_demand(uint32 scan, int64 visits, bool ended_early);

#endif							/* LA_HISTORY_H */
