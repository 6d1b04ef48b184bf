/*
 * shared.h
 *	  Parallel Hash: a shared table, fetched ahead.
 *
 * src/hashjoin/shared.h
 */
#ifndef LA_HASHJOIN_SHARED_H
#define LA_HASHJOIN_SHARED_H

#include "nodes/execnodes.h"

extern void la_shared_attach(HashJoinState *node);

#endif							/* LA_HASHJOIN_SHARED_H */
