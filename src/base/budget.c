/*
 * budget.c
 *	  How much memory and how many buffers look-ahead may take.
 *
 * Rooms ask before they take something in order to look further ahead, and do
 * without if the answer is no: the scan goes on as stock, or with what it has.
 * What is needed to return the next row is taken without asking, and counted.
 *
 *		la_budget_has()		is there room for so many bytes?
 *		la_budget_take()	they were allocated
 *		la_budget_return()	they were freed
 *		la_budget_has_pin()	may one more buffer stay pinned?
 *		la_budget_take_pin()
 *		la_budget_return_pin()
 *		la_budget_end()		whatever is left of the node's goes with its memory
 *							context
 *
 * Memory is limited by settings, per scan and per backend.
 *
 * Pins are limited per backend, by what the server grants one: its share of shared
 * buffers, as GetPinLimit() of 18 defines it, less what any backend is taken to hold
 * anyway (RESERVED_PINS, the server's own estimate).  From 17 on, the server is asked
 * as well, because it knows of pins that are not ours.  Where shared_buffers is small
 * for max_connections, nothing is left, and look-ahead keeps no pin at all.  Temporary
 * tables have buffers of their own, of which a quarter may be used, as in 18.
 *
 * What is counted is a pin that look-ahead holds when control goes back to the executor,
 * or while it runs nodes of the plan, and that stock would not hold at that row:
 * buffers of outer rows of a hash join, leaf pages, asynchronous reads, pages of the
 * visibility map.  A pin that is dropped before is one of the few that any function
 * of the server may need, and is not counted.
 *
 * Invariant: backend_used and backend_pins are the sums of what all budgets have.  A node
 * calls la_budget_end() from a callback of its memory context, so that this
 * holds after errors, too.  The pins of a failed query are released by its resource
 * owner before that, and those of an open cursor count as long as it is open.
 *
 * src/base/budget.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "utils/guc.h"

#include "base/budget.h"
#include "base/compat.h"
#include "base/guc.h"

#define RESERVED_PINS		8
#define SHARE_OF_LOCAL		4

static Size backend_used = 0;
static int	backend_pins[2] = {0};	/* of shared and of local buffers */

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

static int
pin_limit(bool local)
{
	if (local)
		return num_temp_buffers / SHARE_OF_LOCAL;
	return NBuffers / (MaxBackends + NUM_AUXILIARY_PROCS) - RESERVED_PINS;
}

/*
 * The server always grants one pin, which is what a caller needs to do anything at all:
 * so ask for two.
 */
bool
la_budget_has_pin(bool local)
{
	uint32		pins = 2;

	if (backend_pins[local] >= pin_limit(local))
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
