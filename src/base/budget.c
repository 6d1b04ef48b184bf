/*
 * budget.c
 *	  How much memory look-ahead may take, per scan and per backend.
 *
 * Rooms ask before they take memory in order to look further ahead, and do
 * without if the answer is no: the scan goes on as stock, or with what it has.
 * What is needed to return the next row is taken without asking, and counted.
 *
 *		la_budget_has()		is there room for so many bytes?
 *		la_budget_take()	they were allocated
 *		la_budget_return()	they were freed
 *		la_budget_end()		whatever is left of the scan's is freed with its
 *							memory context
 *
 * Invariant: backend_used is the sum of the used of all scans.  A scan calls
 * la_budget_end() from a callback of its memory context, so that this holds
 * after errors, too.
 *
 * src/base/budget.c
 */
#include "postgres.h"

#include "base/budget.h"
#include "base/guc.h"

static Size backend_used = 0;

bool
la_budget_has(LaBudget *budget, Size bytes)
{
	return budget->used + bytes <= budget->limit &&
		backend_used + bytes <= (Size) la_backend_memory * 1024;
}

void
la_budget_take(LaBudget *budget, Size bytes)
{
	budget->used += bytes;
	backend_used += bytes;
}

void
la_budget_return(LaBudget *budget, Size bytes)
{
	Assert(budget->used >= bytes);
	budget->used -= bytes;
	backend_used -= bytes;
}

void
la_budget_end(LaBudget *budget)
{
	backend_used -= budget->used;
	budget->used = 0;
}
