/*
 * prune.h
 *	  Which partition will a plan scan for a row that is known ahead?
 *
 * src/rows/prune.h
 */
#ifndef LA_PRUNE_H
#define LA_PRUNE_H

#include "executor/execPartition.h"

#include "rows/scankeys.h"

typedef struct LaPrune LaPrune;

extern LaPrune *la_prune_create(PartitionPruneState *pruning, LaKeyRows *rows,
								const char **refused);
extern int	la_prune_find(LaPrune *prune, TupleTableSlot *row);

#endif							/* LA_PRUNE_H */
