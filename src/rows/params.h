/*
 * params.h
 *	  The executor's Params as they will be for a row that is known ahead.
 *
 * src/rows/params.h
 */
#ifndef LA_PARAMS_H
#define LA_PARAMS_H

#include "nodes/execnodes.h"

/* Params that have a row's values: those that a node passes to a plan that it repeats for each. */
typedef struct LaRowParams
{
	EState	   *estate;
	int			n;
	int		   *params;
	AttrNumber *attributes;		/* of the row, likewise */
} LaRowParams;

typedef struct LaParams LaParams;

extern bool la_params_walker(Node *node, void *arg);
extern void la_rowparams_init(LaRowParams *row, EState *estate, int max);
extern void la_rowparams_add(LaRowParams *row, int param, AttrNumber attribute);
extern AttrNumber la_rowparams_attribute(const LaRowParams *row, Expr *expression);
extern LaParams *la_params_create(const LaRowParams *row, Bitmapset *used, bool *has_values);
extern ParamExecData *la_params_get(LaParams *params, TupleTableSlot *slot);

#endif							/* LA_PARAMS_H */
