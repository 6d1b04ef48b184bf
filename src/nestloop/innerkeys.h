/*
 * innerkeys.h
 *	  The inner scan's search key for an outer row in the queue.
 *
 * src/nestloop/innerkeys.h
 */
#ifndef LA_INNERKEYS_H
#define LA_INNERKEYS_H

#include "nestloop/nestloop_int.h"

extern LaInnerKeys *la_innerkeys_get(LaInner *inner);
extern bool la_innerkeys_set(LaInnerKeys *keys, TupleTableSlot *outer);
extern bool la_innerkeys_are_complete(const LaInnerKeys *keys);

#endif							/* LA_INNERKEYS_H */
