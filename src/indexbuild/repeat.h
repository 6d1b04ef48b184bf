/*
 * repeat.h
 *	  May what an index evaluates for a row be evaluated once more?
 *
 * The room's own; see repeat.c.
 *
 * src/indexbuild/repeat.h
 */
#ifndef LA_REPEAT_H
#define LA_REPEAT_H

#include "nodes/execnodes.h"

extern bool la_may_repeat(const IndexInfo *info);

#endif							/* LA_REPEAT_H */
