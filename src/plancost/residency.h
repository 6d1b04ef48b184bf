/*
 * residency.h
 *	  Which share of a relation's blocks is in memory.
 *
 * src/plancost/residency.h
 */
#ifndef LA_RESIDENCY_H
#define LA_RESIDENCY_H

#include "utils/relcache.h"

/* Not known. */
#define LA_RESIDENCY_UNKNOWN	(-1.0)

extern double la_residency(Relation rel, BlockNumber blocks);

#endif							/* LA_RESIDENCY_H */
