/*
 * budget.h
 *	  How much memory look-ahead may take, per scan and per backend.
 *
 * src/base/budget.h
 */
#ifndef LA_BUDGET_H
#define LA_BUDGET_H

/* One for each scan, with nothing used at first. */
typedef struct LaBudget
{
	Size		limit;			/* bytes */
	Size		used;
} LaBudget;

extern bool la_budget_has(LaBudget *budget, Size bytes);
extern void la_budget_take(LaBudget *budget, Size bytes);
extern void la_budget_return(LaBudget *budget, Size bytes);
extern void la_budget_end(LaBudget *budget);

#endif							/* LA_BUDGET_H */
