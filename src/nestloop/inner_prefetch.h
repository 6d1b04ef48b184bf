/*
 * inner_prefetch.h
 *	  What the inner scans of queued outer rows read, started ahead of them.
 *
 * src/nestloop/inner_prefetch.h
 */
#ifndef LA_INNER_PREFETCH_H
#define LA_INNER_PREFETCH_H

#include "nestloop/nestloop_int.h"

extern LaInnerPrefetch *la_innerprefetch_create(LaNestLoop *join);
extern bool la_innerprefetch_has_rows(const LaNestLoop *join);
extern bool la_innerprefetch_is_at_end(const LaNestLoop *join);
extern bool la_innerprefetch_may_reuse(LaInner *inner);
extern TupleTableSlot *la_innerprefetch_next(LaNestLoop *join);
extern void la_innerprefetch_observe(LaNestLoop *join, TupleTableSlot *outer);
extern void la_innerprefetch_pass(LaNestLoop *join);
extern void la_innerprefetch_clear(LaNestLoop *join);

#endif							/* LA_INNER_PREFETCH_H */
