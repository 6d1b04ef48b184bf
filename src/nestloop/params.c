/*
 * params.c
 *	  The executor's Params as they will be for an outer row in the queue.
 *
 * The join passes values of the outer row to the inner side through Params
 * (NestLoop.nestParams).  For a row that is still in the queue, expressions over them are
 * evaluated with a copy of all Params in which those of the join have the row's values:
 *
 *		es_param_exec_vals ----copy----> values <---- nestParams of the row
 *
 * The other Params that are used belong to nodes above this join, which would rescan it if
 * they changed, so they have the right value now; or to an InitPlan.
 *
 * The values are not known ahead
 *	- while an InitPlan whose Param is used has not run;
 *	- where a value of the row is stored out of line: it would have to be read;
 *	- where an expression has a subplan, which takes Params from the executor's array, not
 *	  from the ExprContext (la_params_walker() finds it).
 *
 * Invariant: the executor's own Params are never changed.
 *
 * src/nestloop/params.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

#include "base/compat.h"
#include "nestloop/params.h"

struct LaParams
{
	LaNestLoop *join;
	ParamExecData *values;
	int			nvalues;
	Bitmapset  *own;			/* those used that are values of the outer row */
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

/* *outer is set to true if a Param that is used is a value of the outer row, else unchanged. */
LaParams *
la_params_create(LaNestLoop *join, Bitmapset *used, bool *outer)
{
	LaParams   *params = palloc0(sizeof(LaParams));
	EState	   *estate = join->estate;
	ListCell   *lc;

	params->join = join;
	params->others = bms_copy(used);
	foreach(lc, ((NestLoop *) join->node->js.ps.plan)->nestParams)
	{
		int			param = ((NestLoopParam *) lfirst(lc))->paramno;

		if (!bms_is_member(param, params->others))
			continue;
		*outer = true;
		params->own = bms_add_member(params->own, param);
		params->others = bms_del_member(params->others, param);
	}
	params->nvalues = list_length(estate->es_plannedstmt->paramExecTypes);
	params->values = palloc0(sizeof(ParamExecData) * Max(params->nvalues, 1));
	return params;
}

/*
 * All Params, with the values of this outer row; NULL if one that is used is not known.  The
 * array is valid until the next call.
 */
ParamExecData *
la_params_get(LaParams *params, TupleTableSlot *outer)
{
	NestLoopState *node = params->join->node;
	ParamExecData *now = node->js.ps.state->es_param_exec_vals;
	ListCell   *lc;
	int			other = -1;

	while ((other = bms_next_member(params->others, other)) >= 0)
	{
		if (now[other].execPlan != NULL)
			return NULL;
	}
	memcpy(params->values, now, params->nvalues * sizeof(ParamExecData));
	foreach(lc, ((NestLoop *) node->js.ps.plan)->nestParams)
	{
		NestLoopParam *nlp = lfirst(lc);
		ParamExecData *param = &params->values[nlp->paramno];

		param->execPlan = NULL;
		param->value = slot_getattr(outer, nlp->paramval->varattno, &param->isnull);
		if (!param->isnull && bms_is_member(nlp->paramno, params->own) &&
			TupleDescAttr(outer->tts_tupleDescriptor,
						  nlp->paramval->varattno - 1)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(param->value)))
			return NULL;
	}
	return params->values;
}
