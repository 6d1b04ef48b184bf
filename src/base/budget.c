/*
 * budget.c
 *	  Limits of the memory and the pins that look-ahead takes.
 *
 * Rooms ask before they allocate or pin something in order to look further ahead, and do
 * without if the answer is no: the scan goes on as stock, or with what it has.  What is
 * needed to return the next row is taken without asking, and counted.
 *
 *		la_budget_has()			may so many bytes be allocated?
 *		la_budget_has_spare()	is there more than others are likely to want?
 *		la_budget_take()		they were allocated
 *		la_budget_return()		they were freed
 *		la_budget_follow()		both, for what a memory context has
 *		la_budget_has_pin()		is there a buffer to be pinned?  (May it stay so: attach/attach.h)
 *		la_budget_take_pin()	it was pinned
 *		la_budget_return_pin()	it was unpinned
 *		la_budget_end()			the node's memory context is reset
 *
 * Memory is limited by settings, per scan and per backend.
 *
 * Pins are limited per backend, to its share of shared buffers as GetPinLimit() of
 * PostgreSQL 18 defines it, less those that any backend is assumed to hold (RESERVED_PINS,
 * the server's own estimate).  If shared_buffers is small for max_connections, the limit is
 * zero.  From 17 on the server is asked as well, because it knows the backend's other pins.
 * Temporary tables have buffers of their own, of which a quarter may be pinned, as in 18.
 *
 * A pin counts if stock would not hold it at that row, and look-ahead holds it when control
 * returns to the executor, or while it executes nodes of the plan.  Such are pins of leaf
 * pages, of outer rows of a hash join, of asynchronous reads, and of pages of the visibility
 * map.  Pins that are released before that are among the few that any function of the
 * server may need.
 *
 * Invariant: backend_used and backend_pins are the sums over all budgets.  A node calls
 * la_budget_end() from a callback of its memory context, so this holds after errors, too.
 * The pins of a failed query are released by its resource owner before that; those of
 * an open cursor count as long as it is open.
 *
 * src/base/budget.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "base/base.h"
#include "base/compat.h"

#define RESERVED_PINS		8
#define LOCAL_SHARE			4	/* one of so many local buffers */

static Size backend_used = 0;
static int	backend_pins[2] = {0};	/* on shared and on local buffers */

bool
la_budget_has(LaBudget *budget, Size bytes)
{
	return budget->used + bytes <= budget->limit &&
		backend_used + bytes <= (Size) la_backend_memory * 1024;
}

/* The same for what is wanted least: it leaves others a quarter and a half of the limits. */
bool
la_budget_has_spare(LaBudget *budget, Size bytes)
{
	return budget->used + bytes <= budget->limit / 4 * 3 &&
		backend_used + bytes <= (Size) la_backend_memory * 1024 / 2;
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

/*
 * Account for what a memory context has grown or shrunk by; *accounted keeps what was taken for it.
 * Returns its bytes.
 */
Size
la_budget_follow(LaBudget *budget, MemoryContext context, Size *accounted)
{
	Size		now = MemoryContextMemAllocated(context, false);

	if (now > *accounted)
		la_budget_take(budget, now - *accounted);
	else
		la_budget_return(budget, *accounted - now);
	*accounted = now;
	return now;
}

/* The server always grants one pin, so that its callers can proceed: ask for two. */
bool
la_budget_has_pin(bool local)
{
	int			limit = local ? num_temp_buffers / LOCAL_SHARE :
		NBuffers / (MaxBackends + NUM_AUXILIARY_PROCS) - RESERVED_PINS;
	uint32		pins = 2;

	if (backend_pins[local] >= limit)
		return false;
	la_limit_additional_pins(&pins, local);
	return pins == 2;
}

void
la_budget_take_pin(LaBudget *budget, bool local)
{
	budget->pins[local]++;
	backend_pins[local]++;
}

void
la_budget_return_pin(LaBudget *budget, bool local)
{
	Assert(budget->pins[local] > 0);
	budget->pins[local]--;
	backend_pins[local]--;
}

void
la_budget_end(LaBudget *budget)
{
	backend_used -= budget->used;
	budget->used = 0;
	for (int local = 0; local < 2; local++)
	{
		backend_pins[local] -= budget->pins[local];
		budget->pins[local] = 0;
	}
}
