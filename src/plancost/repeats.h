/*
 * repeats.h
 *	  How often a subquery is executed.
 *
 * src/plancost/repeats.h
 */
#ifndef LA_REPEATS_H
#define LA_REPEATS_H

#include "nodes/pathnodes.h"

extern double la_repeats(PlannerInfo *root);

#endif							/* LA_REPEATS_H */
