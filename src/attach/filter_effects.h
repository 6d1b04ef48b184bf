/*
 * filter_effects.h
 *	  What a filter may do that has been evaluated before.
 *
 * src/attach/filter_effects.h
 */
#ifndef LA_FILTER_EFFECTS_H
#define LA_FILTER_EFFECTS_H

#include "attach/effects.h"

extern void la_effects_of_filter(LaEffects *effects, List *clauses);

#endif							/* LA_FILTER_EFFECTS_H */
