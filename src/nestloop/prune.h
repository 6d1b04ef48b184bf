/*
 * prune.h
 *	  Which partition will the inner side scan for an outer row in the queue?
 *
 * src/nestloop/prune.h
 */
#ifndef LA_PRUNE_H
#define LA_PRUNE_H

#include "nestloop/nestloop_int.h"

extern LaPrune *la_prune_create(LaNestLoop *join, const char **refused);
extern int	la_prune_find(LaPrune *prune, TupleTableSlot *outer);

#endif							/* LA_PRUNE_H */
