/*
 * repeated.c
 *	  A plan that a node repeats for each of its rows, read ahead.
 *
 *		rows to come --> values --> [ row | row | row | row ] --> execution of the plan (stock)
 *		(scan_rows.c,                 tail  ^          ^  head
 *		 child_rows.c,                      leaf pages heap blocks
 *		 stored_rows.c,                     (lookups.c, rows/ahead.c)
 *		 values_rows.c)
 *
 * The plan is a correlated subplan.  When it is executed anew, its Params have the values of the
 * node's current row.  What it looks up in indexes by these values is looked up early for rows to
 * come.
 *
 * Behaviours
 *	PASS	While no block is read, an execution costs a few comparisons.  Nothing is prepared
 *		before a second execution has read one.
 *	TURN	The row whose turn it is, is known by the values of the Params, whatever the node does
 *		with its rows.  It is looked for among those that are known.  Rows before it have had no
 *		turn, since a filter, CASE, AND or COALESCE has left them out, and are skipped.  Where it
 *		is not found, the rows that are known are forgotten, and look-ahead goes on behind the
 *		node's current row.
 *	REPEATED	Successive rows with the same values are one row here.
 *	BOUNDED	Where not all rows will be processed, no more are known than have been, and below a
 *		LIMIT no more than will be wanted at the rate so far.
 *
 * Invariants
 *	- These are hints.  The plan is executed by the server, for the rows for which it is.
 *	- Of the rows to come, values of columns are taken.  Nothing is evaluated that could fail or be
 *	  noticed.
 *
 * src/nestloop/repeated.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "nestloop/nestloop_int.h"
#include "window/window.h"

#define MISSES			2		/* see PASS */
#define MAX_EQUAL		64		/* rows with the same values, passed over at a
								 * time */

/* ---- values of rows ------------------------------------------------------------------ */

/* What is kept with a row that is known: an array of the values. */
static inline NullableDatum *
known(const LaRepeated *r, uint64 n)
{
	return la_ahead_own(r->ahead, n);
}

static inline Form_pg_attribute
attribute_of(const LaRepeated *r, int i)
{
	return TupleDescAttr(r->slot->tts_tupleDescriptor, i);
}

static bool
are_equal(const LaRepeated *r, const NullableDatum *a, const NullableDatum *b)
{
	for (int i = 0; i < r->nparams; i++)
	{
		Form_pg_attribute att = attribute_of(r, i);

		if (a[i].isnull != b[i].isnull ||
			(!a[i].isnull && !datumIsEqual(a[i].value, b[i].value, att->attbyval, att->attlen)))
			return false;
	}
	return true;
}

static void
free_values(const LaRepeated *r, NullableDatum *values)
{
	for (int i = 0; i < r->nparams; i++)
	{
		if (!attribute_of(r, i)->attbyval && DatumGetPointer(values[i].value) != NULL)
			pfree(DatumGetPointer(values[i].value));
		values[i].value = (Datum) 0;
		values[i].isnull = true;
	}
}

/* Copy the values into the place of a row, which may have those of an earlier row. */
static void
keep_values(const LaRepeated *r, NullableDatum *place, const NullableDatum *values)
{
	MemoryContext old = MemoryContextSwitchTo(la_ahead_copies(r->ahead));

	free_values(r, place);
	for (int i = 0; i < r->nparams; i++)
	{
		Form_pg_attribute att = attribute_of(r, i);

		place[i].isnull = values[i].isnull;
		if (!values[i].isnull)
			place[i].value = datumCopy(values[i].value, att->attbyval, att->attlen);
	}
	MemoryContextSwitchTo(old);
}

/* Those of the node's current row.  Returns false if one is not there. */
static bool
current_values(const LaRepeated *r, NullableDatum *values)
{
	const ParamExecData *params = r->node->state->es_param_exec_vals;

	for (int i = 0; i < r->nparams; i++)
	{
		const ParamExecData *param = &params[r->params[i]];

		if (param->execPlan != NULL)
			return false;
		values[i].value = param->value;
		values[i].isnull = param->isnull;
	}
	return true;
}

/* Those of a row to come.  Returns false if none is known now. */
static bool
coming_values(const LaRepeated *r, NullableDatum *values)
{
	TupleTableSlot *slot = r->to_come == NULL ? NULL : r->to_come->next(r->to_come);

	if (slot == NULL)
		return false;
	for (int i = 0; i < r->nparams; i++)
		values[i].value = slot_getattr(slot, r->attributes[i], &values[i].isnull);
	return true;
}

/* A row that is known, as a slot. */
static TupleTableSlot *
as_slot(const LaRepeated *r, uint64 n)
{
	const NullableDatum *values = known(r, n);

	ExecClearTuple(r->slot);
	for (int i = 0; i < r->nparams; i++)
	{
		r->slot->tts_values[i] = values[i].value;
		r->slot->tts_isnull[i] = values[i].isnull;
	}
	return ExecStoreVirtualTuple(r->slot);
}

/* ---- LaRowSource ---------------------------------------------------------------------- */

/* The row whose turn it is, or behaviours REPEATED and BOUNDED. */
static bool
fetch(void *arg, uint64 n)
{
	LaRepeated *r = arg;
	NullableDatum values[FUNC_MAX_ARGS];
	int64		ahead = n - la_ahead_next_row(r->ahead);

	if (ahead == 0)
	{
		if (!current_values(r, values))
			return false;
		keep_values(r, known(r, n), values);
		if (r->to_come != NULL)
			r->to_come->restart(r->to_come);
		return true;
	}
	if (!la_force &&
		!la_runahead_may_fetch(&r->context, r->node->state, ahead, r->executions))
		return false;
	for (int i = 0; i < MAX_EQUAL; i++)
	{
		if (!coming_values(r, values))
			return false;
		if (are_equal(r, values, known(r, n - 1)))
			continue;
		keep_values(r, known(r, n), values);
		return true;
	}
	return false;
}

static void
plan_visits(void *arg, uint64 n, LaAheadRow *row)
{
	LaRepeated *r = arg;

	la_lookups_plan(r->lookups, as_slot(r, n), row);
}

static bool
set_key(void *arg, uint64 n, const LaRowVisit *visit)
{
	LaRepeated *r = arg;

	return la_lookups_set_key(r->lookups, as_slot(r, n), visit->rel);
}

static bool
locate(void *arg, uint64 n, LaAheadRow *row, const LaMatches *matches, bool last)
{
	(void) la_lookups_locate(((LaRepeated *) arg)->lookups, row, matches);
	return last;
}

/* ---- preparation ----------------------------------------------------------------------- */

/* Where the node's rows come from.  NULL if that cannot be known ahead. */
static LaRowsToCome *
create_rows_to_come(LaRepeated *r, const char **refused)
{
	PlanState  *node = r->node;

	switch (nodeTag(node))
	{
		case T_SeqScanState:
		case T_BitmapHeapScanState:
		case T_TidRangeScanState:
		case T_IndexScanState:
		case T_IndexOnlyScanState:
			*refused = la_gate_refuses_rows(node);
			return *refused != NULL ? NULL : la_scanrows_create((ScanState *) node, &r->hints);
		case T_FunctionScanState:
		case T_TableFuncScanState:
		case T_CteScanState:
		case T_NamedTuplestoreScanState:
			return la_storedrows_create((ScanState *) node, &r->hints, &r->context, refused);
		case T_ValuesScanState:
			return la_valuesrows_create((ValuesScanState *) node, &r->hints);
		case T_SubqueryScanState:
			return la_childrows_create(node, ((SubqueryScanState *) node)->subplan,
									   &r->context, refused);
		default:
			return la_childrows_create(node, outerPlanState(node), &r->context, refused);
	}
}

static void
create_slot(LaRepeated *r, const TupleDesc desc)
{
	la_rowparams_init(&r->rows.params, r->node->state, r->nparams);
	for (int i = 0; i < r->nparams; i++)
		la_rowparams_add(&r->rows.params, r->params[i], i + 1);
	r->slot = la_alloc_table_slot(&r->node->state->es_tupleTable, desc, &TTSOpsVirtual);
}

static TupleDesc
values_desc(const LaRepeated *r)
{
	TupleDesc	desc = CreateTemplateTupleDesc(r->nparams);
	List	   *types = r->node->state->es_plannedstmt->paramExecTypes;

	for (int i = 0; i < r->nparams; i++)
		TupleDescInitEntry(desc, i + 1, NULL, list_nth_oid(types, r->params[i]), -1, 0);
	return desc;
}

/* The statement ends, and not by an error: rows may be known that had no turn. */
static void
on_shutdown(Datum arg)
{
	LaRepeated *r = (LaRepeated *) DatumGetPointer(arg);

	la_ahead_clear(r->ahead);
	la_lookups_release(r->lookups);
}

static bool
create_ahead(LaRepeated *r)
{
	Size		own_size = sizeof(NullableDatum) * r->nparams;
	LaRowSource source = {
		.arg = r,
		.own_size = own_size,
		.nearer = 2,
		.fetch = fetch,
		.plan = plan_visits,
		.set_key = set_key,
		.locate = locate
	};
	LaAheadConfig config = {
		.rel = la_lookups_narrowest(r->lookups),
		.nrels = la_lookups_relations(r->lookups),
		.known_by = la_lookups_known_by(r->lookups),
		.estate = r->node->state,
		.takes_all = la_runahead_takes_all(&r->context, r->node->state),
		.order = LA_ORDER_BY_PROBE
	};

	r->ahead = la_ahead_create(&source, &config);
	if (r->ahead == NULL)
		return false;
	RegisterExprContextCallback(GetPerTupleExprContext(r->node->state), on_shutdown,
								PointerGetDatum(r));
	return la_lookups_set_ahead(r->lookups, r->ahead);
}

/* Which of the rows that the node repeats the plan for will be taken? */
static void
find_context(LaRepeated *r)
{
	static const LaDemandContext all = {NULL, LA_DEMAND_ALL, false};

	/* the rows are those of its child, in one call */
	if (la_demand_reads_all(r->node))
		r->context = all;
	else
		la_demand_context(r->node, &r->context);
}

/*
 * Returns false if nothing can be known ahead; *refused is the reason that prohibits it, or some of
 * it, if any.
 */
static bool
prepare_parts(LaRepeated *r, const char **refused)
{
	*refused = la_runahead_refuses_plan(r->plan);
	if (*refused != NULL)
		return false;
	find_context(r);
	r->hints.join = r->node;
	r->hints.outer = r->node;
	r->hints.hints_only = true;
	r->budget.limit = (Size) la_scan_memory * 1024;
	r->rows.context = CurrentMemoryContext;
	r->rows.budget = &r->budget;
	r->rows.ahead = &r->hints;
	create_slot(r, values_desc(r));
	r->lookups = la_lookups_create(r->plan, &r->rows, r->first_match_only, false);
	if (r->lookups == NULL || !la_lookups_prepare(r->lookups, refused))
		return false;
	*refused = NULL;			/* of some lookups only */
	r->to_come = create_rows_to_come(r, refused);
	return r->to_come != NULL && create_ahead(r);
}

static void
prepare(LaRepeated *r)
{
	MemoryContext old = MemoryContextSwitchTo(r->node->state->es_query_cxt);
	const char *refused = NULL;

	r->refused = !prepare_parts(r, &refused);
	if (refused != NULL)
		la_stats_refuse(r->node->state, LA_KIND_SUBPLAN, InvalidOid, InvalidOid, refused);
	MemoryContextSwitchTo(old);
}

/* ---- executions -------------------------------------------------------------------------- */

/* Behaviour TURN: have the row whose turn it is be the next one that is known, or none be. */
static bool
find_row(LaRepeated *r, const NullableDatum *values)
{
	uint64		head = la_ahead_next_row(r->ahead);
	uint64		n = head;

	if (!la_ahead_has_rows(r->ahead))
		return true;
	while (n < la_ahead_end_of_rows(r->ahead) && !are_equal(r, known(r, n), values))
		n++;
	if (n == la_ahead_end_of_rows(r->ahead))
	{
		/* REPEATED, or a row that was not expected */
		if (head > 0 && are_equal(r, known(r, head - 1), values))
			return false;
		while (la_ahead_has_rows(r->ahead))
			la_ahead_skip(r->ahead);
		la_ahead_clear(r->ahead);
		return true;
	}
	for (; head < n; head++)
		la_ahead_skip(r->ahead);
	return true;
}

/* The plan begins a new execution. */
void
la_repeated_execute(LaRepeated *r)
{
	bool		missed = r->missed;
	NullableDatum values[FUNC_MAX_ARGS];

	r->missed = false;
	r->executions++;
	r->nmissed += missed;
	if (r->refused)
		return;
	if (r->ahead == NULL)
	{
		if (r->nmissed < MISSES && !la_force)
			return;
		prepare(r);
		if (r->refused)
			return;
	}
	if (la_ahead_next(r->ahead, missed) && current_values(r, values) && find_row(r, values))
		(void) la_ahead_turn(r->ahead);
}

/* Its memory is freed. */
void
la_repeated_end(LaRepeated *r)
{
	la_budget_end(&r->budget);
	if (r->ahead == NULL)
		return;
	la_ahead_end(r->ahead, LA_KIND_SUBPLAN, RelationGetRelid(la_lookups_first(r->lookups)->heap),
				 la_lookups_known_by(r->lookups));
}
