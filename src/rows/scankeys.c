/*
 * scankeys.c
 *	  The search key of an index scan for a row that is known ahead.
 *
 * The scan's runtime keys are expressions over Params with values of the row, which the executor
 * evaluates when it rescans the scan.  Here they are evaluated for a row whose turn has not come.
 * Usually the expression is such a Param itself, and its value an attribute of the row.  Otherwise
 * the executor's own compiled expression is evaluated, in an ExprContext of this file with the
 * Params that the row will have (params.c).
 *
 * Behaviour ATTEMPT: an expression that may fail, such as k + 1, is evaluated by
 * la_attempt_compute().  The row has no key if it fails; the executor finds the error when the
 * row's turn comes, or never.
 * Functions may leave half of what they keep between calls behind, so this expression is compiled
 * once more for this file, and again after an error.  After several errors there are no keys.
 *
 *		row --(LaRowParams)--> Params --(runtime keys)--> values
 *				 \_______________________________________________^
 *					  an attribute itself
 *
 * RANGE: behind the columns that are compared for equality, one may have a bound at which the scan
 * begins in its direction, and one at which it ends:
 *
 *		device = $1 AND ts <= $2 ORDER BY ts DESC LIMIT 1		begins at $2, within the device
 *		k BETWEEN $1 AND $2										begins at $1, ends at $2
 *
 * A bound excludes nulls, and so does IS NOT NULL, which the planner adds for min() and max().  So
 * the side where the index has its nulls is bounded by null, if by nothing else.
 *
 * Invariant: of the scan's keys, the key has those that compare the index's first columns for
 * equality, one for each column, and at most two of the column behind them.  So it finds all
 * entries that the scan finds, and perhaps others.
 *
 * There is no key
 *	- where an expression, or the comparison, must not be evaluated early (attach/runahead.c);
 *	- for a row with a value that is stored out of line: it would have to be read;
 *	- for a row whose Params are not known ahead (params.c).
 *
 * src/rows/scankeys.c
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/tableam.h"
#include "catalog/pg_am.h"
#include "executor/executor.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "rows/rows_int.h"

typedef struct ScanKeyColumn
{
	ScanKey		key;			/* of the scan; has the value if constant.
								 * RANGE: NULL for null */
	ExprState  *expression;		/* runtime key, or NULL */
	AttrNumber	attribute;		/* of the row, if that is the value */
	bool		toastable;
	Expr	   *attempted;		/* what is compiled here, as it may fail; or
								 * NULL */
} ScanKeyColumn;

struct LaScanKeys
{
	LaKeyedScan *scan;
	LaKeyRows  *rows;
	int			nequal;			/* columns compared for equality */
	int			ncolumns;		/* the same, and RANGE: the beginning */
	bool		has_end;		/* RANGE: which is behind all columns */
	int			nbounds;		/* RANGE: those that are not null */
	ScanKeyColumn columns[INDEX_MAX_KEYS + 1];
	LaParams   *params;			/* of expressions; NULL if none has any */
	bool		may_fail;		/* one of the expressions */
	int			nfailures;
};

/* Fill in the scan, of an index of this table.  Returns false if its reads cannot be known. */
bool
la_keyedscan_init(LaKeyedScan *s, PlanState *ps, Relation heap)
{
	int			norderbys = 0;

	if (IsA(ps, IndexScanState))
	{
		IndexScanState *scan = (IndexScanState *) ps;

		norderbys = scan->iss_NumOrderByKeys;
		s->scandesc = &scan->iss_ScanDesc;
		s->index = scan->iss_RelationDesc;
		s->direction = ((IndexScan *) ps->plan)->indexorderdir;
		s->scankeys = scan->iss_ScanKeys;
		s->nkeys = scan->iss_NumScanKeys;
		s->runtime = scan->iss_RuntimeKeys;
		s->nruntime = scan->iss_NumRuntimeKeys;
	}
	else if (IsA(ps, IndexOnlyScanState))
	{
		IndexOnlyScanState *scan = (IndexOnlyScanState *) ps;

		norderbys = scan->ioss_NumOrderByKeys;
		s->scandesc = &scan->ioss_ScanDesc;
		s->index = scan->ioss_RelationDesc;
		s->direction = ((IndexOnlyScan *) ps->plan)->indexorderdir;
		s->scankeys = scan->ioss_ScanKeys;
		s->nkeys = scan->ioss_NumScanKeys;
		s->runtime = scan->ioss_RuntimeKeys;
		s->nruntime = scan->ioss_NumRuntimeKeys;
		s->index_only = true;
	}
	else if (IsA(ps, BitmapIndexScanState))
	{
		BitmapIndexScanState *scan = (BitmapIndexScanState *) ps;

		s->index = scan->biss_RelationDesc;
		s->direction = ForwardScanDirection;
		s->scankeys = scan->biss_ScanKeys;
		s->nkeys = scan->biss_NumScanKeys;
		s->runtime = scan->biss_RuntimeKeys;
		s->nruntime = scan->biss_NumRuntimeKeys;
	}
	else
		return false;
	s->heap = heap;
	if (norderbys > 0 || s->nruntime == 0 || s->index == NULL ||
		s->index->rd_rel->relam != BTREE_AM_OID ||
		!la_gate_is_heap(s->heap))
		return false;
	s->scan = ps;
	return true;
}

/* What a key does for a scan of its direction. */
typedef enum KeyRole
{
	KEY_EQUAL,
	KEY_BEGINS,
	KEY_ENDS
} KeyRole;

static KeyRole
role_of(const LaKeyedScan *scan, const ScanKeyData *key)
{
	bool		backward = ScanDirectionIsBackward(scan->direction);
	bool		desc = (scan->index->rd_indoption[key->sk_attno - 1] & INDOPTION_DESC) != 0;
	bool		lower = key->sk_strategy > BTEqualStrategyNumber;

	if (key->sk_strategy == BTEqualStrategyNumber)
		return KEY_EQUAL;
	return (lower != desc) != backward ? KEY_BEGINS : KEY_ENDS;
}

static inline bool
is_comparison(const ScanKeyData *key)
{
	return (key->sk_flags & (SK_SEARCHARRAY | SK_ROW_HEADER | SK_ROW_MEMBER |
							 SK_SEARCHNULL | SK_SEARCHNOTNULL)) == 0;
}

/* The first key of that column with that role, or NULL. */
static ScanKey
find_key(const LaKeyedScan *scan, int column, KeyRole role)
{
	for (int i = 0; i < scan->nkeys; i++)
	{
		ScanKey		key = &scan->scankeys[i];

		if (key->sk_attno == column + 1 && is_comparison(key) && role_of(scan, key) == role)
			return key;
	}
	return NULL;
}

/* Is there a key that excludes the column's nulls? */
static bool
excludes_nulls(const LaKeyedScan *scan, int column)
{
	for (int i = 0; i < scan->nkeys; i++)
	{
		const ScanKeyData *key = &scan->scankeys[i];

		if (key->sk_attno == column + 1 &&
			(is_comparison(key) || (key->sk_flags & SK_SEARCHNOTNULL) != 0))
			return true;
	}
	return false;
}

static inline int
nvalues(const LaScanKeys *keys)
{
	return keys->ncolumns + keys->has_end;
}

/* Compile expressions that may fail, in the context of the rows.  Returns false if that fails. */
static bool
compile_attempted(LaScanKeys *keys)
{
	MemoryContext old = MemoryContextSwitchTo(keys->rows->context);
	ParamListInfo external = keys->rows->params.estate->es_param_list_info;
	bool		result = true;

	for (int i = 0; i < nvalues(keys) && result; i++)
	{
		ScanKeyColumn *c = &keys->columns[i];

		if (c->attempted == NULL)
			continue;
		c->expression = la_compile_expression(c->attempted, external);
		keys->may_fail = true;
		result = c->expression != NULL;
	}
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * Fill in the column, and add the Params of its expression to *params.  Returns false if its
 * value cannot be known ahead, with keys_refused if it must not be evaluated early.
 */
static bool
init_column(LaScanKeys *keys, ScanKeyColumn *column, ScanKey key, Bitmapset **params)
{
	LaKeyedScan *scan = keys->scan;

	memset(column, 0, sizeof(*column));
	column->key = key;
	for (int i = 0; i < scan->nruntime; i++)
	{
		Expr	   *expression;
		bool		may_fail;

		if (scan->runtime[i].scan_key != key)
			continue;
		column->expression = scan->runtime[i].key_expr;
		column->toastable = scan->runtime[i].key_toastable;
		expression = column->expression->expr;
		column->attribute = la_rowparams_attribute(&keys->rows->params, expression);
		if (column->attribute != 0)
			return true;
		scan->keys_refused = la_runahead_refuses_attempt(keys->rows->ahead,
														 (Node *) expression, &may_fail);
		column->attempted = may_fail ? expression : NULL;
		return scan->keys_refused == NULL && !la_params_walker((Node *) expression, params);
	}
	return (key->sk_flags & SK_ISNULL) == 0;
}

/* May the columns be compared early?  Sets keys_refused if not. */
static bool
comparisons_may_be_early(const LaScanKeys *keys)
{
	LaKeyedScan *scan = keys->scan;

	for (int i = 0; i < nvalues(keys); i++)
	{
		int			column = i == keys->ncolumns ? keys->nequal : i;
		Oid			type;
		Oid			function;

		if (keys->columns[i].key == NULL)
			continue;
		function = la_descent_comparison(scan->descent, i, &type);
		scan->keys_refused = la_runahead_refuses_support(keys->rows->ahead, function, type,
														 scan->index->rd_indcollation[column]);
		if (scan->keys_refused != NULL)
			return false;
	}
	return true;
}

/* What the values of a key depend on. */
typedef struct KeyNeeds
{
	Bitmapset  *params;
	bool		attributes;		/* of the row */
} KeyNeeds;

/* Have the next value be that of this key.  Returns false if there is none, or it is not known. */
static bool
add_value(LaScanKeys *keys, ScanKey key, KeyNeeds *needs)
{
	ScanKeyColumn *column = &keys->columns[nvalues(keys)];
	Bitmapset  *params = NULL;

	if (key == NULL || !init_column(keys, column, key, &params))
		return false;
	needs->attributes |= column->attribute != 0;
	needs->params = bms_add_members(needs->params, params);
	return true;
}

static inline bool
is_strict(const ScanKeyData *key)
{
	return key->sk_strategy == BTLessStrategyNumber || key->sk_strategy == BTGreaterStrategyNumber;
}

/* RANGE: have the next value be that of this key, or else null, if nulls are on that side. */
static bool
add_bound(LaScanKeys *keys, ScanKey key, bool has_nulls, KeyNeeds *needs)
{
	if (key != NULL && add_value(keys, key, needs))
	{
		keys->nbounds++;
		return true;
	}
	memset(&keys->columns[nvalues(keys)], 0, sizeof(ScanKeyColumn));
	return has_nulls;
}

/* RANGE */
static void
add_range(LaScanKeys *keys, KeyNeeds *needs)
{
	const LaKeyedScan *scan = keys->scan;
	LaDescent  *descent = scan->descent;
	int			column = keys->nequal;
	Oid			collation = scan->index->rd_indcollation[column];
	bool		nulls_begin = ((scan->index->rd_indoption[column] & INDOPTION_NULLS_FIRST) != 0) !=
		ScanDirectionIsBackward(scan->direction);
	ScanKey		key = find_key(scan, column, KEY_BEGINS);

	if (!excludes_nulls(scan, column))
		return;
	if (add_bound(keys, key, nulls_begin, needs))
	{
		key = keys->columns[nvalues(keys)].key;
		if (!la_descent_add_column(descent, key ? key->sk_subtype : InvalidOid,
								   key ? key->sk_collation : collation))
			return;
		la_descent_set_bound(descent, key == NULL || is_strict(key));
		if (key == NULL)
			la_descent_set_null(descent, keys->ncolumns);
		keys->ncolumns++;
	}
	key = find_key(scan, column, KEY_ENDS);
	if (keys->ncolumns > 0 && add_bound(keys, key, !nulls_begin, needs))
	{
		key = keys->columns[nvalues(keys)].key;
		keys->has_end = la_descent_add_end(descent, key ? key->sk_subtype : InvalidOid,
										   key ? key->sk_collation : collation,
										   key == NULL || is_strict(key));
		if (key == NULL && keys->has_end)
			la_descent_set_null(descent, keys->ncolumns);
	}
}

/* RANGE: do the scan's keys compare for anything else than equality? */
bool
la_keyedscan_is_range(const LaKeyedScan *scan)
{
	for (int i = 0; i < scan->nkeys; i++)
	{
		if (is_comparison(&scan->scankeys[i]) &&
			scan->scankeys[i].sk_strategy != BTEqualStrategyNumber)
			return true;
	}
	return false;
}

/* Can no row be null and comply with another key?  Then the server does not look into the index. */
static bool
is_contradictory(const LaKeyedScan *scan)
{
	for (int i = 0; i < scan->nkeys; i++)
	{
		const ScanKeyData *key = &scan->scankeys[i];

		if ((key->sk_flags & SK_SEARCHNULL) != 0 && excludes_nulls(scan, key->sk_attno - 1))
			return true;
	}
	return false;
}

static LaScanKeys *
create(LaKeyedScan *scan, LaKeyRows *rows, bool with_range)
{
	LaScanKeys *keys = palloc0(sizeof(LaScanKeys));
	KeyNeeds	needs = {NULL, false};

	keys->scan = scan;
	keys->rows = rows;
	scan->descent = la_descent_create(scan->index, scan->heap);
	while (keys->nequal < IndexRelationGetNumberOfKeyAttributes(scan->index))
	{
		ScanKey		key = find_key(scan, keys->nequal, KEY_EQUAL);

		if (!add_value(keys, key, &needs) ||
			!la_descent_add_column(scan->descent, key->sk_subtype, key->sk_collation))
			break;
		keys->ncolumns = ++keys->nequal;
	}
	if (with_range && keys->nequal < IndexRelationGetNumberOfKeyAttributes(scan->index))
		add_range(keys, &needs);
	if (!bms_is_empty(needs.params))
		keys->params = la_params_create(&rows->params, needs.params, &needs.attributes);
	if (needs.attributes && keys->ncolumns > 0 && comparisons_may_be_early(keys) &&
		compile_attempted(keys))
		return keys;
	la_descent_free(scan->descent);
	scan->descent = NULL;
	return NULL;
}

/*
 * The scan's key, created when it is first needed.  NULL if none can be known ahead, or the
 * budget has no room.
 */
LaScanKeys *
la_scankeys_get(LaKeyedScan *scan, LaKeyRows *rows)
{
	Size		size = sizeof(LaScanKeys) + la_descent_size();
	Size		with_end = size + la_descent_end_size();
	MemoryContext old;

	if (scan->keys_tried || scan->scan == NULL || !la_budget_has(rows->budget, with_end))
		return scan->keys;
	scan->keys_tried = true;
	if (is_contradictory(scan))
		return NULL;
	old = MemoryContextSwitchTo(rows->context);
	if (rows->econtext == NULL)
		rows->econtext = CreateExprContext(rows->params.estate);
	scan->keys = create(scan, rows, true);
	/* what a bound needs may be refused where the other columns may be early */
	if (scan->keys == NULL && la_keyedscan_is_range(scan))
		scan->keys = create(scan, rows, false);
	if (scan->keys != NULL)
		la_budget_take(rows->budget, scan->keys->has_end ? with_end : size);
	MemoryContextSwitchTo(old);
	return scan->keys;
}

/* Does it have all keys of the scan, and compares them for equality? */
bool
la_scankeys_are_complete(const LaScanKeys *keys)
{
	return keys->nequal == keys->scan->nkeys;
}

/* Does the key have that one of the scan's, or one that does as much, or nearly so? */
static bool
covers(const LaScanKeys *keys, const ScanKeyData *key)
{
	bool		not_null = (key->sk_flags & SK_SEARCHNOTNULL) != 0;
	int			column = key->sk_attno - 1;

	if (!is_comparison(key) && !not_null)
		return false;
	if (column < keys->nequal)
		return not_null || role_of(keys->scan, key) == KEY_EQUAL;
	if (column > keys->nequal || nvalues(keys) == keys->nequal)
		return false;
	if (not_null)
		return true;
	return role_of(keys->scan, key) == KEY_ENDS ?
		keys->has_end && keys->columns[keys->ncolumns].key != NULL :
		keys->ncolumns > keys->nequal && keys->columns[keys->nequal].key != NULL;
}

/* ... or as a range? */
bool
la_scankeys_are_covered(const LaScanKeys *keys)
{
	for (int i = 0; i < keys->scan->nkeys; i++)
	{
		if (!covers(keys, &keys->scan->scankeys[i]))
			return false;
	}
	return true;
}

/* RANGE: does it begin at the index's beginning, or go on to its end? */
bool
la_scankeys_are_open(const LaScanKeys *keys)
{
	return keys->nequal == 0 && keys->nbounds < 2;
}

static bool
set_columns(LaScanKeys *keys, TupleTableSlot *slot)
{
	ExprContext *econtext = keys->rows->econtext;

	if (keys->params != NULL)
	{
		ParamExecData *params = la_params_get(keys->params, slot);

		if (params == NULL)
			return false;
		econtext->ecxt_param_exec_vals = params;
	}
	for (int i = 0; i < nvalues(keys); i++)
	{
		ScanKeyColumn *c = &keys->columns[i];
		bool		isnull = false;
		Datum		value;

		if (c->key == NULL)
			continue;
		if (c->attribute != 0)
			value = slot_getattr(slot, c->attribute, &isnull);
		else if (c->expression != NULL)
			value = ExecEvalExpr(c->expression, econtext, &isnull);
		else
			value = c->key->sk_argument;
		if (isnull)
			return false;
		if (!la_descent_set_stored(keys->scan->descent, i, value, c->toastable))
			return false;
	}
	return true;
}

typedef struct Attempt
{
	LaScanKeys *keys;
	TupleTableSlot *row;
	bool		has_key;
} Attempt;

static void
attempt_columns(void *arg)
{
	Attempt    *a = arg;

	a->has_key = set_columns(a->keys, a->row);
}

/* Behaviour ATTEMPT: after an error.  A domain may have got another constraint meanwhile. */
static bool
compile_again(LaScanKeys *keys)
{
	for (int i = 0; i < nvalues(keys); i++)
	{
		Node	   *attempted = (Node *) keys->columns[i].attempted;
		bool		may_fail;

		if (attempted != NULL &&
			la_runahead_refuses_attempt(keys->rows->ahead, attempted, &may_fail) != NULL)
			return false;
	}
	return compile_attempted(keys);
}

/* Behaviour ATTEMPT: does the row have a key? */
static bool
try_columns(LaScanKeys *keys, TupleTableSlot *row)
{
	Attempt		attempt = {keys, row, false};

	if (keys->nfailures >= LA_MAX_FAILURES || !la_attempt_is_allowed())
		return false;
	if (la_attempt_compute(attempt_columns, &attempt))
		return attempt.has_key;
	keys->nfailures = compile_again(keys) ? keys->nfailures + 1 : LA_MAX_FAILURES;
	return false;
}

/*
 * Set the key of the scan's descent for this row.  Returns false if no entry can match, or the
 * key cannot be known ahead.
 */
bool
la_scankeys_set(LaScanKeys *keys, TupleTableSlot *row)
{
	ExprContext *econtext = keys->rows->econtext;
	MemoryContext old;
	bool		result;

	ResetExprContext(econtext);
	old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	result = keys->may_fail ? try_columns(keys, row) : set_columns(keys, row);
	MemoryContextSwitchTo(old);
	return result;
}
