/*
 * params.h
 *	  The executor's Params as they will be for an outer row in the queue.
 *
 * src/nestloop/params.h
 */
#ifndef LA_PARAMS_H
#define LA_PARAMS_H

#include "nestloop/nestloop_int.h"

extern bool la_params_walker(Node *node, void *arg);
extern LaParams *la_params_create(LaNestLoop *join, Bitmapset *used, bool *outer);
extern ParamExecData *la_params_get(LaParams *params, TupleTableSlot *outer);

#endif							/* LA_PARAMS_H */
