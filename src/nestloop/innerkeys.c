/*
 * innerkeys.c
 *	  The inner side's search key for an outer row, before the row's turn.
 *
 * The scan's runtime keys are expressions over Params with values of the outer row,
 * which the executor evaluates when it rescans the inner side.  Here they are evaluated
 * for a row that is still in the queue: most often the expression is such a Param
 * itself, and its value is an attribute of the row.  Otherwise the executor's own
 * compiled expression is evaluated, in an ExprContext of ours with the Params that the
 * row will have (params.c).
 *
 *		outer row --(nestParams)--> Params --(runtime keys)--> values
 *								 \________________________________^
 *
 * Of the scan's keys only those are used which compare the index's first columns for
 * equality, one for each column; others are for the executor to check.
 *
 * Stands down
 *	- where an expression, or the comparison, must not be evaluated early
 *	  (attach/runahead.c);
 *	- for a row with a value that is stored out of line: reading it is real work;
 *	- for a row while a Param of the expression is an InitPlan that has not run.
 *
 * src/nestloop/innerkeys.c
 */
#include "postgres.h"

#include "access/skey.h"
#include "access/stratnum.h"
#include "executor/executor.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "nestloop/nestloop_int.h"

typedef struct InnerKeyColumn
{
	ScanKey		key;			/* of the scan: has the value, if it is
								 * constant */
	ExprState  *expression;		/* runtime key, or NULL */
	AttrNumber	attribute;		/* of the outer row, if that is the value */
	bool		toastable;
} InnerKeyColumn;

struct LaInnerKeys
{
	LaInner    *inner;
	LaDescent  *descent;
	int			ncolumns;
	InnerKeyColumn columns[INDEX_MAX_KEYS];

	LaParams   *params;			/* for expressions that are more than an
								 * attribute of the outer row */
};

/* Which attribute of the outer row is this expression?  0 if it is something else. */
static AttrNumber
outer_attribute(NestLoop *plan, Expr *expression)
{
	ListCell   *lc;

	while (IsA(expression, RelabelType))
		expression = ((RelabelType *) expression)->arg;
	if (!IsA(expression, Param) ||
		((Param *) expression)->paramkind != PARAM_EXEC)
		return 0;
	foreach(lc, plan->nestParams)
	{
		NestLoopParam *nlp = lfirst(lc);

		if (nlp->paramno == ((Param *) expression)->paramid)
			return nlp->paramval->varattno;
	}
	return 0;
}

/* The only equality key of that column, or NULL. */
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
 * Fill in the column.  Returns false if it cannot be known ahead, and notes why it must
 * not be; *params are the Params that it uses, but for one that is an attribute of the
 * outer row.
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
		inner->keys_refused = la_runahead_refuses_expression(&join->ahead,
															 (Node *) expression);
		return inner->keys_refused == NULL &&
			la_params_collect((Node *) expression, params);
	}
	return (key->sk_flags & SK_ISNULL) == 0;
}

/* May keys be compared early? */
static bool
comparisons_are_fit(const LaInnerKeys *keys)
{
	LaInner    *inner = keys->inner;

	for (int i = 0; i < keys->ncolumns; i++)
	{
		Oid			type;
		Oid			function = la_descent_comparison(keys->descent, i, &type);

		inner->keys_refused = la_runahead_refuses_support(&inner->join->ahead,
														  function, type);
		if (inner->keys_refused != NULL)
			return false;
	}
	return true;
}

/*
 * Returns NULL if there is no key to be known ahead.
 */
static LaInnerKeys *
create(LaInner *inner)
{
	LaNestLoop *join = inner->join;
	LaInnerKeys *keys = palloc0(sizeof(LaInnerKeys));
	Bitmapset  *used = NULL;
	bool		outer = false;

	keys->inner = inner;
	keys->descent = la_descent_create(inner->index, inner->heap,
									  LA_DESCENT_ALL);
	for (int i = 0; i < INDEX_MAX_KEYS; i++)
	{
		ScanKey		key = equality_key(inner, i);
		Bitmapset  *params = NULL;

		if (key == NULL ||
			!init_column(keys, &keys->columns[i], key, &params) ||
			!la_descent_add_column(keys->descent, key->sk_subtype,
								   key->sk_collation))
			break;
		keys->ncolumns++;
		outer |= keys->columns[i].attribute != 0;
		used = bms_add_members(used, params);
	}
	if (!bms_is_empty(used))
		keys->params = la_params_create(join, used, &outer);
	if (outer && keys->ncolumns > 0 && comparisons_are_fit(keys))
		return keys;
	la_descent_free(keys->descent);
	return NULL;
}

/*
 * The keys of this scan, made when they are first wanted.  NULL if it has none that
 * could be known ahead, or there is no memory for them.
 */
LaInnerKeys *
la_innerkeys_of(LaInner *inner)
{
	LaNestLoop *join = inner->join;
	Size		size = sizeof(LaInnerKeys) + la_descent_size();
	MemoryContext old;

	if (inner->keys_tried || inner->scan == NULL ||
		!la_budget_has(&join->budget, size))
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

LaDescent *
la_innerkeys_descent(LaInnerKeys *keys)
{
	return keys->descent;
}

/* Does the key say all that the inner scan's keys say? */
bool
la_innerkeys_are_all(const LaInnerKeys *keys)
{
	return keys->ncolumns == keys->inner->nkeys;
}

static LaKeyResult
set_columns(LaInnerKeys *keys, TupleTableSlot *slot)
{
	ExprContext *econtext = keys->inner->join->econtext;

	if (keys->params != NULL)
	{
		if (!la_params_set(keys->params, slot))
			return LA_KEY_UNKNOWN;
		econtext->ecxt_param_exec_vals = la_params_values(keys->params);
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
			return LA_KEY_NULL;
		if (c->toastable)
		{
			if (VARATT_IS_EXTERNAL(DatumGetPointer(value)))
				return LA_KEY_UNKNOWN;
			value = PointerGetDatum(PG_DETOAST_DATUM(value));
		}
		la_descent_set(keys->descent, i, value);
	}
	return LA_KEY_SET;
}

/*
 * Make the descent's key that of this outer row.  It is good until the next call for any
 * of the join's inner scans.
 */
LaKeyResult
la_innerkeys_set(LaInnerKeys *keys, TupleTableSlot *outer)
{
	ExprContext *econtext = keys->inner->join->econtext;
	MemoryContext old;
	LaKeyResult result;

	ResetExprContext(econtext);
	old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	result = set_columns(keys, outer);
	MemoryContextSwitchTo(old);
	return result;
}
