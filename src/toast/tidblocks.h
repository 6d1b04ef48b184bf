/*
 * tidblocks.h
 *	  The blocks of a TID scan's rows, read ahead.
 *
 * src/toast/tidblocks.h
 */
#ifndef LA_TIDBLOCKS_H
#define LA_TIDBLOCKS_H

#include "nodes/execnodes.h"

#include "base/counters.h"

typedef struct LaTidBlocks LaTidBlocks;

extern bool la_tidblocks_is_possible(const TidScanState *node);
extern LaTidBlocks *la_tidblocks_create(TidScanState *node);
extern void la_tidblocks_next(LaTidBlocks *b);
extern void la_tidblocks_returned(LaTidBlocks *b);
extern void la_tidblocks_clear(LaTidBlocks *b);
extern const LaCounters *la_tidblocks_counters(LaTidBlocks *b);

#endif							/* LA_TIDBLOCKS_H */
