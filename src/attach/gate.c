/*
 * gate.c
 *	  May this be done early?  The one place where rooms ask.
 *
 * A room names the node, or the relation, and what it wants to do early.
 *
 *	ROWS	Take the rows to come of a scan from its own descriptor, and read their pages.  A
 *		descriptor is its access method's own: the table's has to be heap.
 *	CHILD	Execute the child of a node before the node asks for the row.  The rows of joins and
 *		writes are judged by runahead.c as well.  What is asked here is who else may look at the
 *		child's position:
 *
 *		WHERE CURRENT OF takes the row's address from the slot of a scan.  To find it the server
 *		goes from the topmost node of the cursor's plan through Append, Result, Limit and
 *		SubqueryScan.  Where it could come to a scan through the child, that scan must stay on the
 *		row that the cursor has returned.  Below Sort, Agg and joins it finds none.  With FOR UPDATE
 *		it takes the row that LockRows has locked, and a plan that locks rows is never early.
 *
 *		Nobody can ask while the statement runs to its end, if nothing in it has effects and no
 *		code of others gets the rows: then the cursor is behind its last row.
 *
 * Invariant: a room that wants one of these does not decide about it by itself.
 *
 * src/attach/gate.c
 */
#include "postgres.h"

#include "attach/gate.h"
#include "attach/runahead.h"
#include "attach/statement.h"

/* ---- ROWS ---------------------------------------------------------------------- */

const char *
la_gate_refuses_rows(const PlanState *scan)
{
	return la_gate_is_heap(((const ScanState *) scan)->ss_currentRelation) ? NULL :
		"a table access method is not heap";
}

/* ---- CHILD --------------------------------------------------------------------- */

static bool
is_scan_of_table(const PlanState *ps)
{
	switch (nodeTag(ps))
	{
		case T_SeqScanState:
		case T_SampleScanState:
		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
		case T_ForeignScanState:
		case T_CustomScanState:
			return true;
		default:
			return false;
	}
}

/*
 * Where a search that is at "ps" may go on: the number of nodes, the first of them, and all if
 * they are members.
 */
static int
searched_below(PlanState *ps, PlanState **first, PlanState ***members)
{
	*first = NULL;
	*members = NULL;
	switch (nodeTag(ps))
	{
		case T_AppendState:
			*members = ((AppendState *) ps)->appendplans;
			return ((AppendState *) ps)->as_nplans;
		case T_ResultState:
		case T_LimitState:
			*first = outerPlanState(ps);
			return *first != NULL;
		case T_SubqueryScanState:
			*first = ((SubqueryScanState *) ps)->subplan;
			return 1;
		default:
			return 0;
	}
}

/* Does the search come from "ps" to the node, or to any scan if that is NULL? */
static bool
search_reaches(PlanState *ps, const PlanState *node)
{
	PlanState **members;
	PlanState  *first;
	int			n;

	if (node == NULL ? is_scan_of_table(ps) : ps == node)
		return true;
	n = searched_below(ps, &first, &members);
	for (int i = 0; i < n; i++)
	{
		if (search_reaches(members == NULL ? first : members[i], node))
			return true;
	}
	return false;
}

/* May the child of the node be executed before its turn? */
const char *
la_gate_refuses_child(PlanState *node, PlanState *child)
{
	const LaStatement *s = la_statement_of(node->state);
	const LaRun *run = la_statement_run(node->state);
	PlanState **members;
	PlanState  *first;

	if (searched_below(node, &first, &members) == 0 || !search_reaches(child, NULL) ||
		(run->to_end && run->no_code && la_runahead_is_without_effects(node->state)) ||
		(s != NULL && !search_reaches(s->top, node)))
		return NULL;
	return "a cursor may be asked which row of a scan it is on";
}
