/*
 * leafsample.h
 *	  Some leaf pages of a btree index, looked at by the planner.
 *
 * src/plancost/leafsample.h
 */
#ifndef LA_LEAFSAMPLE_H
#define LA_LEAFSAMPLE_H

#include "utils/relcache.h"

#include "plancost/scatter.h"

extern void la_leaf_sample(Relation index, LaScatter *scatter);

#endif							/* LA_LEAFSAMPLE_H */
