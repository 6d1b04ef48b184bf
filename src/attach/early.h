/*
 * early.h
 *	  May the outer side of a join be run ahead of the join?
 *
 * src/attach/early.h
 */
#ifndef LA_EARLY_H
#define LA_EARLY_H

#include "nodes/execnodes.h"

typedef struct LaEarly
{
	bool		takes_all;		/* rows of the outer side, if nothing fails */
	Bitmapset  *initplan_params;	/* that InitPlans of the statement set */
} LaEarly;

extern bool la_early_is_safe(const LaEarly *early, PlanState *outer);
extern bool la_early_is_errorfree(const LaEarly *early, Node *expression);
extern Bitmapset *la_early_initplan_params(const EState *estate);

#endif							/* LA_EARLY_H */
