/*
 * innerkeys.c
 *	  The inner scan's search key for an outer row in the queue.
 *
 * The scan's runtime keys are expressions over Params with values of the outer row, which the
 * executor evaluates when it rescans the inner side.  Here they are evaluated for a row that is
 * still in the queue.  Usually the expression is such a Param itself, and its value an
 * attribute of the row.  Otherwise the executor's own compiled expression is evaluated, in an
 * ExprContext of this file with the Params that the row will have (params.c).
 *
 *		outer row --(nestParams)--> Params --(runtime keys)--> values
 *				 \_______________________________________________^
 *					  an attribute itself
 *
 * Invariant: of the scan's keys, the key has those that compare the index's first columns for
 * equality, one for each column.  So it finds all entries that the scan finds, and perhaps
 * others.
 *
 * There is no key
 *	- where an expression, or the comparison, must not be evaluated early (attach/runahead.c);
 *	- for a row with a value that is stored out of line: it would have to be read;
 *	- for a row whose Params are not known ahead (params.c).
 *
 * src/nestloop/innerkeys.c
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "executor/executor.h"

#include "base/compat.h"
#include "nestloop/innerkeys.h"
#include "nestloop/params.h"

typedef struct InnerKeyColumn
{
	ScanKey		key;			/* of the scan; has the value if constant */
	ExprState  *expression;		/* runtime key, or NULL */
	AttrNumber	attribute;		/* of the outer row, if that is the value */
	bool		toastable;
} InnerKeyColumn;

struct LaInnerKeys
{
	LaInner    *inner;
	int			ncolumns;
	InnerKeyColumn columns[INDEX_MAX_KEYS];
	LaParams   *params;			/* of expressions; NULL if none has any */
};

/* The attribute of the outer row that this expression is; 0 if it is something else. */
static AttrNumber
outer_attribute(NestLoop *plan, Expr *expression)
{
	ListCell   *lc;

	while (IsA(expression, RelabelType))
		expression = ((RelabelType *) expression)->arg;
	if (!IsA(expression, Param) || ((Param *) expression)->paramkind != PARAM_EXEC)
		return 0;
	foreach(lc, plan->nestParams)
	{
		NestLoopParam *nlp = lfirst(lc);

		if (nlp->paramno == ((Param *) expression)->paramid)
			return nlp->paramval->varattno;
	}
	return 0;
}

/* The equality key of that column, or NULL if there is none or more than one. */
static ScanKey
equality_key(LaInner *inner, int column)
{
	ScanKey		found = NULL;

	for (int i = 0; i < inner->nkeys; i++)
	{
		ScanKey		key = &inner->scankeys[i];

		if (key->sk_attno != column + 1 ||
			key->sk_strategy != BTEqualStrategyNumber ||
			(key->sk_flags & (SK_SEARCHARRAY | SK_ROW_HEADER | SK_ROW_MEMBER |
							  SK_SEARCHNULL | SK_SEARCHNOTNULL)) != 0)
			continue;
		if (found != NULL)
			return NULL;
		found = key;
	}
	return found;
}

/*
 * Fill in the column, and add the Params of its expression to *params.  Returns false if its
 * value cannot be known ahead, with keys_refused if it must not be evaluated early.
 */
static bool
init_column(LaInnerKeys *keys, InnerKeyColumn *column, ScanKey key, Bitmapset **params)
{
	LaInner    *inner = keys->inner;
	LaNestLoop *join = inner->join;
	NestLoop   *plan = (NestLoop *) join->node->js.ps.plan;

	memset(column, 0, sizeof(*column));
	column->key = key;
	for (int i = 0; i < inner->nruntime; i++)
	{
		Expr	   *expression;

		if (inner->runtime[i].scan_key != key)
			continue;
		column->expression = inner->runtime[i].key_expr;
		column->toastable = inner->runtime[i].key_toastable;
		expression = column->expression->expr;
		column->attribute = outer_attribute(plan, expression);
		if (column->attribute != 0)
			return true;
		inner->keys_refused = la_runahead_refuses_expression(&join->ahead, (Node *) expression);
		return inner->keys_refused == NULL && !la_params_walker((Node *) expression, params);
	}
	return (key->sk_flags & SK_ISNULL) == 0;
}

/* May the columns be compared early?  Sets keys_refused if not. */
static bool
comparisons_may_be_early(const LaInnerKeys *keys)
{
	LaInner    *inner = keys->inner;

	for (int i = 0; i < keys->ncolumns; i++)
	{
		Oid			type;
		Oid			function = la_descent_comparison(inner->descent, i, &type);

		inner->keys_refused = la_runahead_refuses_support(&inner->join->ahead,
														  function, type);
		if (inner->keys_refused != NULL)
			return false;
	}
	return true;
}

static LaInnerKeys *
create(LaInner *inner)
{
	LaNestLoop *join = inner->join;
	LaInnerKeys *keys = palloc0(sizeof(LaInnerKeys));
	Bitmapset  *used = NULL;
	bool		outer = false;

	keys->inner = inner;
	inner->descent = la_descent_create(inner->index, inner->heap, LA_DESCENT_ALL);
	for (int i = 0; i < INDEX_MAX_KEYS; i++)
	{
		ScanKey		key = equality_key(inner, i);
		Bitmapset  *params = NULL;

		if (key == NULL ||
			!init_column(keys, &keys->columns[i], key, &params) ||
			!la_descent_add_column(inner->descent, key->sk_subtype,
								   key->sk_collation))
			break;
		keys->ncolumns++;
		outer |= keys->columns[i].attribute != 0;
		used = bms_add_members(used, params);
	}
	if (!bms_is_empty(used))
		keys->params = la_params_create(join, used, &outer);
	if (outer && keys->ncolumns > 0 && comparisons_may_be_early(keys))
		return keys;
	la_descent_free(inner->descent);
	inner->descent = NULL;
	return NULL;
}

/*
 * The scan's key, created when it is first needed.  NULL if none can be known ahead, or the
 * budget has no room.
 */
LaInnerKeys *
la_innerkeys_get(LaInner *inner)
{
	LaNestLoop *join = inner->join;
	Size		size = sizeof(LaInnerKeys) + la_descent_size();
	MemoryContext old;

	if (inner->keys_tried || inner->scan == NULL || !la_budget_has(&join->budget, size))
		return inner->keys;
	inner->keys_tried = true;
	old = MemoryContextSwitchTo(join->context);
	if (join->econtext == NULL)
		join->econtext = CreateExprContext(join->node->js.ps.state);
	inner->keys = create(inner);
	if (inner->keys != NULL)
		la_budget_take(&join->budget, size);
	MemoryContextSwitchTo(old);
	return inner->keys;
}

/* Does it have all keys of the scan? */
bool
la_innerkeys_are_complete(const LaInnerKeys *keys)
{
	return keys->ncolumns == keys->inner->nkeys;
}

static bool
set_columns(LaInnerKeys *keys, TupleTableSlot *slot)
{
	ExprContext *econtext = keys->inner->join->econtext;

	if (keys->params != NULL)
	{
		ParamExecData *params = la_params_get(keys->params, slot);

		if (params == NULL)
			return false;
		econtext->ecxt_param_exec_vals = params;
	}
	for (int i = 0; i < keys->ncolumns; i++)
	{
		InnerKeyColumn *c = &keys->columns[i];
		bool		isnull = false;
		Datum		value;

		if (c->attribute != 0)
			value = slot_getattr(slot, c->attribute, &isnull);
		else if (c->expression != NULL)
			value = ExecEvalExpr(c->expression, econtext, &isnull);
		else
			value = c->key->sk_argument;
		if (isnull)
			return false;
		if (!la_descent_set_stored(keys->inner->descent, i, value, c->toastable))
			return false;
	}
	return true;
}

/*
 * Set the key of the scan's descent for this outer row.  Returns false if no entry can match,
 * or the key cannot be known ahead.
 */
bool
la_innerkeys_set(LaInnerKeys *keys, TupleTableSlot *outer)
{
	ExprContext *econtext = keys->inner->join->econtext;
	MemoryContext old;
	bool		result;

	ResetExprContext(econtext);
	old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	result = set_columns(keys, outer);
	MemoryContextSwitchTo(old);
	return result;
}
