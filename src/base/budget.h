/*
 * budget.h
 *	  Limits of the memory and the pins that look-ahead takes.
 *
 * src/base/budget.h
 */
#ifndef LA_BUDGET_H
#define LA_BUDGET_H

#include "utils/palloc.h"

/* One per node; all but the limit is zero at first. */
typedef struct LaBudget
{
	Size		limit;			/* bytes */
	Size		used;
	int			pins[2];		/* on shared and on local buffers */
} LaBudget;

extern bool la_budget_has(LaBudget *budget, Size bytes);
extern bool la_budget_has_spare(LaBudget *budget, Size bytes);
extern void la_budget_take(LaBudget *budget, Size bytes);
extern void la_budget_return(LaBudget *budget, Size bytes);
extern Size la_budget_follow(LaBudget *budget, MemoryContext context, Size *accounted);
extern bool la_budget_has_pin(bool local);
extern void la_budget_take_pin(LaBudget *budget, bool local);
extern void la_budget_return_pin(LaBudget *budget, bool local);
extern void la_budget_end(LaBudget *budget);

#endif							/* LA_BUDGET_H */
