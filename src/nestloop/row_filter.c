/*
 * row_filter.c
 *	  Will a row pass the filter of its scan?
 *
 * The filter is evaluated for rows to come, so that nothing is read for rows that will not pass it.
 * Of its clauses only those are that can neither fail nor be noticed (attach/runahead.c); the
 * others are taken to be true.  So is all of it while an InitPlan whose Param is used has not run.
 *
 * src/nestloop/row_filter.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

#include "base/compat.h"
#include "rows/rows.h"
#include "nestloop/nestloop_int.h"

struct LaRowFilter
{
	EState	   *estate;
	ExprState  *clauses;
	ExprContext *econtext;
	Bitmapset  *params;			/* that they use */
};

/* In the current memory context.  NULL if there is nothing to be evaluated. */
LaRowFilter *
la_rowfilter_create(ScanState *scan, const LaRunAhead *hints)
{
	LaRowFilter *f;
	Bitmapset  *params = NULL;
	List	   *usable = NIL;
	ListCell   *lc;

	foreach(lc, scan->ps.plan->qual)
	{
		Node	   *clause = lfirst(lc);

		if (la_runahead_refuses_expression(hints, clause) == NULL &&
			!la_params_walker(clause, &params))
			usable = lappend(usable, clause);
	}
	if (usable == NIL)
		return NULL;
	f = palloc0(sizeof(LaRowFilter));
	f->estate = scan->ps.state;
	f->clauses = la_compile_qual(usable);
	if (f->clauses == NULL)
		return NULL;
	f->econtext = CreateExprContext(f->estate);
	f->params = params;
	return f;
}

bool
la_rowfilter_passes(LaRowFilter *f, TupleTableSlot *row)
{
	int			param = -1;
	bool		result;

	if (f == NULL)
		return true;
	while ((param = bms_next_member(f->params, param)) >= 0)
	{
		if (f->estate->es_param_exec_vals[param].execPlan != NULL)
			return true;
	}
	ResetExprContext(f->econtext);
	f->econtext->ecxt_scantuple = row;
	result = ExecQual(f->clauses, f->econtext);
	f->econtext->ecxt_scantuple = NULL;
	return result;
}
