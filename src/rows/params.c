/*
 * params.c
 *	  The executor's Params as they will be for a row that is known ahead.
 *
 * A node that repeats a plan for each row passes values of the row to it through Params: a nested
 * loop to its inner side (NestLoop.nestParams), any node to a correlated subplan
 * (SubPlan.parParam).  For a row whose turn has not come, expressions over them are evaluated with
 * a copy of all Params in which these have the row's values:
 *
 *		es_param_exec_vals ----copy----> values <---- attributes of the row
 *
 * The other Params that are used belong to nodes above, which would rescan the node if they
 * changed, so they have the right value now; or to an InitPlan.
 *
 * The values are not known ahead
 *	- while an InitPlan whose Param is used has not run;
 *	- where a value of the row is stored out of line: it would have to be read;
 *	- where an expression has a subplan, which takes Params from the executor's array, not
 *	  from the ExprContext (la_params_walker() finds it).
 *
 * Invariant: the executor's own Params are never changed.
 *
 * src/rows/params.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

#include "base/compat.h"
#include "rows/rows.h"

struct LaParams
{
	const LaRowParams *row;
	ParamExecData *values;
	int			nvalues;
	Bitmapset  *own;			/* those used that are values of the row */
	Bitmapset  *others;			/* those used that are not */
};

/*
 * A tree walker: add the Params that an expression uses to *arg, a Bitmapset *.  Returns true
 * if it has a subplan.
 */
bool
la_params_walker(Node *node, void *arg)
{
	Bitmapset **used = arg;

	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return true;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		*used = bms_add_member(*used, ((Param *) node)->paramid);
	return expression_tree_walker(node, la_params_walker, arg);
}

/* In the current memory context; there is room for so many. */
void
la_rowparams_init(LaRowParams *row, EState *estate, int max)
{
	row->estate = estate;
	row->n = 0;
	row->params = palloc(sizeof(int) * Max(max, 1));
	row->attributes = palloc(sizeof(AttrNumber) * Max(max, 1));
}

void
la_rowparams_add(LaRowParams *row, int param, AttrNumber attribute)
{
	row->params[row->n] = param;
	row->attributes[row->n] = attribute;
	row->n++;
}

/* The attribute of the row that this expression is; 0 if it is something else. */
AttrNumber
la_rowparams_attribute(const LaRowParams *row, Expr *expression)
{
	while (IsA(expression, RelabelType))
		expression = ((RelabelType *) expression)->arg;
	if (!IsA(expression, Param) || ((Param *) expression)->paramkind != PARAM_EXEC)
		return 0;
	for (int i = 0; i < row->n; i++)
	{
		if (row->params[i] == ((Param *) expression)->paramid)
			return row->attributes[i];
	}
	return 0;
}

/* *has_values is set to true if a Param that is used is a value of the row, else unchanged. */
LaParams *
la_params_create(const LaRowParams *row, Bitmapset *used, bool *has_values)
{
	LaParams   *params = palloc0(sizeof(LaParams));

	params->row = row;
	params->others = bms_copy(used);
	for (int i = 0; i < row->n; i++)
	{
		if (!bms_is_member(row->params[i], params->others))
			continue;
		*has_values = true;
		params->own = bms_add_member(params->own, row->params[i]);
		params->others = bms_del_member(params->others, row->params[i]);
	}
	params->nvalues = list_length(row->estate->es_plannedstmt->paramExecTypes);
	params->values = palloc0(sizeof(ParamExecData) * Max(params->nvalues, 1));
	return params;
}

/*
 * All Params, with the values of this row; NULL if one that is used is not known.  The array is
 * valid until the next call.
 */
ParamExecData *
la_params_get(LaParams *params, TupleTableSlot *slot)
{
	const LaRowParams *row = params->row;
	ParamExecData *now = row->estate->es_param_exec_vals;
	int			other = -1;

	while ((other = bms_next_member(params->others, other)) >= 0)
	{
		if (now[other].execPlan != NULL)
			return NULL;
	}
	memcpy(params->values, now, params->nvalues * sizeof(ParamExecData));
	for (int i = 0; i < row->n; i++)
	{
		ParamExecData *param = &params->values[row->params[i]];

		param->execPlan = NULL;
		param->value = slot_getattr(slot, row->attributes[i], &param->isnull);
		if (!param->isnull && bms_is_member(row->params[i], params->own) &&
			TupleDescAttr(slot->tts_tupleDescriptor, row->attributes[i] - 1)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(param->value)))
			return NULL;
	}
	return params->values;
}
