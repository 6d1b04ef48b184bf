/*
 * node_effects.h
 *	  What a plan node evaluates, and when.
 *
 * src/attach/node_effects.h
 */
#ifndef LA_NODE_EFFECTS_H
#define LA_NODE_EFFECTS_H

#include "attach/effects.h"

typedef struct LaNodeEffects
{
	LaEffects	start;			/* in the first call after the start or a
								 * rescan */
	LaEffects	keys;			/* of a hash join, for each outer row, before
								 * anything else */
	LaEffects	later;			/* in any call */
} LaNodeEffects;

extern void la_node_effects(PlanState *ps, bool filter_passed, LaNodeEffects *e);

#endif							/* LA_NODE_EFFECTS_H */
