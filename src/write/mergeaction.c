/*
 * mergeaction.c
 *	  What MERGE will do with a row of its plan, as far as it can be known ahead.
 *
 *	row --> matched? --> the first action whose condition holds --> new tuple
 *
 * The plan of MERGE joins the source with the target.  Its rows have the source's columns, and the
 * address of the target's row if there is one.  Which action is taken, and what it writes, the
 * server computes when it is the row's turn, by expressions of the source's columns and the old
 * tuple.  Here the same expressions are computed ahead, but only those that nobody can notice to
 * be computed twice (attach/effects.c); the server computes them again.
 *
 *	UNDECIDED	If the condition of an action may not be computed ahead, nothing is known of a row
 *		that comes to it: the next actions may or may not be tried.
 *	UNKNOWN COLUMN	If the new value of a column may not be computed ahead, such as that of
 *		nextval(), the column is unknown, and what does not depend on it is known.
 *
 * Only the columns that the caller wants are computed, as a rule those of indexes.  An expression
 * that fails is the server's to raise, if it comes to it: nothing is known of the row then
 * (base/attempt.c).
 *
 * Params: an InitPlan may be waiting for the first use of its value, and a function of a
 * procedural language may have to fetch the value of a variable.  Expressions with these are not
 * computed ahead.
 *
 * Invariant: only functions are called that have no effects and read no state.
 *
 * src/write/mergeaction.c
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "write/write_int.h"

struct LaMergeColumn
{
	AttrNumber	attno;
	ExprState  *value;
};

struct LaMergeInto
{
	ModifyTableState *mt;
	MemoryContext context;
	ExprContext *econtext;
};

/* In the current memory context, which lives as long as the query. */
LaMergeInto *
la_mergeaction_create(ModifyTableState *mt)
{
	LaMergeInto *merge = palloc0(sizeof(LaMergeInto));

	merge->mt = mt;
	merge->context = CurrentMemoryContext;
	merge->econtext = CreateExprContext(mt->ps.state);
	return merge;
}

/* ---- which expressions may be computed ahead ------------------------------------ */

static void
refuse_param(LaEffects *effects, int param, void *arg)
{
	la_effects_add(effects, LA_HAS_EFFECTS, NULL);
}

static bool
has_external_param(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXTERN)
		return true;
	return expression_tree_walker(node, has_external_param, context);
}

static bool
is_pure(const LaMergeInto *merge, Node *expression, bool *may_fail)
{
	ParamListInfo params = merge->mt->ps.state->es_param_list_info;
	LaEffects	effects = {.note_param = refuse_param};

	la_effects_of_expression(&effects, expression);
	if ((effects.flags & LA_MAY_FAIL) != 0)
		*may_fail = true;
	return (effects.flags & ~LA_MAY_FAIL) == 0 &&
		(params == NULL || params->paramFetch == NULL ||
		 !has_external_param(expression, NULL));
}

static void
prepare_condition(const LaMergeInto *merge, List *condition, bool *decides, bool *may_fail,
				  ExprState **state)
{
	*decides = is_pure(merge, (Node *) condition, may_fail);
	if (!*decides || condition == NIL)
		return;
	*state = la_compile_qual(condition);
	*decides = *state != NULL;
}

/* A column that the action sets. */
static void
prepare_column(const LaMergeInto *merge, LaMergeAction *action, AttrNumber attno, Expr *value,
			   const Bitmapset *wanted)
{
	int			member = attno - FirstLowInvalidHeapAttributeNumber;
	bool		may_fail = false;
	LaMergeColumn *column = &action->columns[action->ncolumns];

	if (wanted != NULL && !bms_is_member(member, wanted))
		return;
	if (is_pure(merge, (Node *) value, &may_fail))
		column->value = la_compile_expression(value, NULL);
	if (column->value == NULL)
	{
		action->unknown = bms_add_member(action->unknown, member);
		return;
	}
	action->known = bms_add_member(action->known, member);
	action->columns_may_fail |= may_fail;
	column->attno = attno;
	action->ncolumns++;
}

static void
prepare_columns(const LaMergeInto *merge, LaMergeAction *action, const MergeAction *plan,
				Relation table, const Bitmapset *wanted)
{
	const ListCell *number = list_head(plan->updateColnos);
	ListCell   *lc;

	action->columns = palloc0(list_length(plan->targetList) * sizeof(LaMergeColumn));
	action->new = la_alloc_table_slot(&merge->mt->ps.state->es_tupleTable, RelationGetDescr(table),
									  &TTSOpsVirtual);
	foreach(lc, plan->targetList)
	{
		const TargetEntry *entry = lfirst(lc);
		AttrNumber	attno = entry->resno;

		if (entry->resjunk)
			continue;
		if (plan->commandType == CMD_UPDATE)
		{
			attno = lfirst_int(number);
			number = lnext(plan->updateColnos, number);
		}
		prepare_column(merge, action, attno, entry->expr, wanted);
	}
}

/* Prepare actions (MergeActionStates), whose new tuples have the columns of this table. */
static List *
prepare_actions(const LaMergeInto *merge, LaMergeActions *actions, List *states, Relation table,
				const Bitmapset *wanted)
{
	List	   *list = NIL;
	ListCell   *lc;

	foreach(lc, states)
	{
		const MergeAction *plan = ((MergeActionState *) lfirst(lc))->mas_action;
		LaMergeAction *action = palloc0(sizeof(LaMergeAction));

		action->command = plan->commandType;
		action->number = list_length(list);
		prepare_condition(merge, (List *) plan->qual, &action->decides, &action->may_fail,
						  &action->condition);
		if (plan->commandType == CMD_INSERT || plan->commandType == CMD_UPDATE)
		{
			prepare_columns(merge, action, plan, table, wanted);
			actions->useful = true;
		}
		list = lappend(list, action);
	}
	return list;
}

/*
 * The actions for rows that are matched by a row of this table.  wanted: columns of new tuples.
 */
LaMergeActions *
la_mergeaction_matched(LaMergeInto *merge, ResultRelInfo *relation, const Bitmapset *wanted)
{
	MemoryContext old = MemoryContextSwitchTo(merge->context);
	LaMergeActions *actions = palloc0(sizeof(LaMergeActions));
	List	   *condition = la_merge_join_condition(merge->mt, relation - merge->mt->resultRelInfo);

	prepare_condition(merge, condition, &actions->decides, &actions->may_fail,
					  &actions->join_condition);
	actions->matched = prepare_actions(merge, actions, la_merge_matched_actions(relation),
									   relation->ri_RelationDesc, wanted);
	actions->others = prepare_actions(merge, actions, la_merge_by_source_actions(relation),
									  relation->ri_RelationDesc, wanted);
	MemoryContextSwitchTo(old);
	return actions;
}

/*
 * The actions for rows that are not matched.  wanted: columns of new tuples, which have those of
 * the table that the statement names; NULL: all.
 */
LaMergeActions *
la_mergeaction_not_matched(LaMergeInto *merge, const Bitmapset *wanted)
{
	MemoryContext old = MemoryContextSwitchTo(merge->context);
	LaMergeActions *actions = palloc0(sizeof(LaMergeActions));
	Relation	root = merge->mt->rootResultRelInfo->ri_RelationDesc;

	actions->decides = true;
	actions->matched = prepare_actions(merge, actions,
									   la_merge_not_matched_actions(merge->mt->resultRelInfo),
									   root, wanted);
	MemoryContextSwitchTo(old);
	return actions;
}

/* ---- a row -------------------------------------------------------------------- */

static ExprContext *
set_row(const LaMergeInto *merge, TupleTableSlot *row, TupleTableSlot *old)
{
	ExprContext *econtext = merge->econtext;

	ResetExprContext(econtext);
	econtext->ecxt_innertuple = row;
	econtext->ecxt_scantuple = old;
	return econtext;
}

typedef struct Condition
{
	ExprState  *state;
	ExprContext *econtext;
	bool		holds;
} Condition;

static void
check(void *arg)
{
	Condition  *c = arg;

	c->holds = ExecQual(c->state, c->econtext);
}

/* Returns false if the condition is not known, or fails. */
static bool
check_condition(const LaMergeInto *merge, bool decides, bool may_fail, ExprState *state,
				bool *holds)
{
	Condition	c = {state, merge->econtext, true};

	if (!decides)
		return false;
	if (may_fail && state != NULL)
	{
		if (!la_attempt_compute(check, &c))
			return false;
	}
	else if (state != NULL)
		check(&c);
	*holds = c.holds;
	return true;
}

/*
 * The INSERT or UPDATE that will be done for this row of the plan; NULL if there is none, or if it
 * is not known.  old: the row of the table that matches, if there is one.
 */
LaMergeAction *
la_mergeaction_choose(LaMergeInto *merge, const LaMergeActions *actions, TupleTableSlot *row,
					  TupleTableSlot *old)
{
	bool		holds;
	ListCell   *lc;

	(void) set_row(merge, row, old);
	if (!check_condition(merge, actions->decides, actions->may_fail, actions->join_condition,
						 &holds))
		return NULL;
	foreach(lc, holds ? actions->matched : actions->others)
	{
		LaMergeAction *action = lfirst(lc);

		if (!check_condition(merge, action->decides, action->may_fail, action->condition, &holds))
			return NULL;
		if (holds)
			return action->columns != NULL ? action : NULL;
	}
	return NULL;
}

typedef struct Forming
{
	const LaMergeInto *merge;
	LaMergeAction *action;
	ExprContext *econtext;
} Forming;

static void
compute_columns(void *arg)
{
	Forming    *f = arg;
	TupleTableSlot *new = f->action->new;

	for (int i = 0; i < f->action->ncolumns; i++)
	{
		const LaMergeColumn *column = &f->action->columns[i];

		new->tts_values[column->attno - 1] =
			ExecEvalExprSwitchContext(column->value, f->econtext,
									  &new->tts_isnull[column->attno - 1]);
	}
}

/*
 * The new tuple of the row.  Columns that an INSERT does not know are null, and those that an
 * UPDATE does not know are old.  NULL if an expression fails.  It remains until the next call of
 * this function or la_mergeaction_choose().
 */
TupleTableSlot *
la_mergeaction_form(LaMergeInto *merge, LaMergeAction *action, TupleTableSlot *row,
					TupleTableSlot *old)
{
	TupleTableSlot *new = action->new;
	int			natts = new->tts_tupleDescriptor->natts;
	Forming		forming = {merge, action, set_row(merge, row, old)};

	ExecClearTuple(new);
	if (old != NULL)
	{
		slot_getallattrs(old);
		memcpy(new->tts_values, old->tts_values, natts * sizeof(Datum));
		memcpy(new->tts_isnull, old->tts_isnull, natts * sizeof(bool));
	}
	else
		memset(new->tts_isnull, true, natts * sizeof(bool));
	if (!action->columns_may_fail)
		compute_columns(&forming);
	else if (!la_attempt_compute(compute_columns, &forming))
		return NULL;
	return ExecStoreVirtualTuple(new);
}
