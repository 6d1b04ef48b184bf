/*
 * mark.c
 *	  Plans whose costs were adjusted are marked, and EXPLAIN says so.
 *
 * The mark has to go where the plan goes, into the plan cache and out of it, and a PlannedStmt has
 * no field for extensions before 19.  So it is a PlanInvalItem with the number of a cache that does
 * not exist.  The server only compares these numbers, so the item never matches and invalidates
 * nothing.
 *
 * Before 18, the server has no hook for a line of EXPLAIN.  A message of level DEBUG1 tells when a
 * plan is made, in all versions.
 *
 * src/plancost/mark.c
 */
#include "postgres.h"

#include "base/base.h"
#include "base/compat.h"
#include "plancost/plancost_int.h"

#ifdef LA_HAVE_EXPLAIN_HOOK
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

#define MARK_CACHE_ID (-1)		/* of no cache: the server counts its caches
								 * from 0 */

/* The mark of a plan whose costs were adjusted. */
static PlanInvalItem *
make_mark(void)
{
	PlanInvalItem *mark = makeNode(PlanInvalItem);

	mark->cacheId = MARK_CACHE_ID;
	mark->hashValue = 0;
	return mark;
}

void
la_mark_adjusted(PlannedStmt *plan)
{
	plan->invalItems = lappend(plan->invalItems, make_mark());
	ereport(DEBUG1,
			(errmsg_internal("costs of reads were adjusted for this plan")));
}

#ifdef LA_HAVE_EXPLAIN_HOOK

static explain_per_plan_hook_type prev_per_plan_hook = NULL;

static bool
is_adjusted(const PlannedStmt *plan)
{
	ListCell   *lc;

	foreach(lc, plan->invalItems)
	{
		if (lfirst_node(PlanInvalItem, lc)->cacheId == MARK_CACHE_ID)
			return true;
	}
	return false;
}

static void
explain_plan(PlannedStmt *plan, IntoClause *into, ExplainState *es, const char *query,
			 ParamListInfo params, QueryEnvironment *environment)
{
	if (prev_per_plan_hook)
		prev_per_plan_hook(plan, into, es, query, params, environment);

	if (la_explain && es->costs && is_adjusted(plan))
		ExplainPropertyText("Look-Ahead Costs", "adjusted", es);
}

void
la_mark_init(void)
{
	prev_per_plan_hook = explain_per_plan_hook;
	explain_per_plan_hook = explain_plan;
}

#else							/* !LA_HAVE_EXPLAIN_HOOK */

void
la_mark_init(void)
{
}

#endif							/* LA_HAVE_EXPLAIN_HOOK */
