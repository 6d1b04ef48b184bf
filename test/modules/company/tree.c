/*
 * tree.c
 *	  Plans of running queries, looked at from within.
 *
 *	la_company_observe(int)	returns its argument, and looks at all queries that are being
 *							executed: walks their plan state trees, prints their plans,
 *							digests their plan trees, counts the buffers that are pinned.
 *							It is declared to be immutable and leakproof, so that it may
 *							be in expressions that are evaluated early.
 *	la_company.every		only the first three calls, and every so many
 *	la_company.walk			walk the trees; also when ExecutorRun starts and ends
 *	la_company.explain		print plans: text, json, analyze (as text, with what
 *							instrumentation has counted so far)
 *
 * la_company_workers() tells how many workers the queries have had, since la_company_reset().
 *
 * Printing follows pg_query_state, but for copies of the instrumentation, since
 * ExplainNode() ends the cycle that a node is in.
 *
 * A plan state tree is valid if it consists of the nodes that ExecutorStart has made, if
 * each is of the kind that its Plan asks for, and its children are of that Plan's children.
 *
 * test/modules/company/tree.c
 */
#include "postgres.h"

#include "commands/explain.h"
#include "executor/instrument.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "base/compat.h"
#ifdef LA_HAVE_EXPLAIN_HOOK
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#include "company.h"

PG_FUNCTION_INFO_V1(la_company_observe);
PG_FUNCTION_INFO_V1(la_company_observations);
PG_FUNCTION_INFO_V1(la_company_explained);
PG_FUNCTION_INFO_V1(la_company_pins);
PG_FUNCTION_INFO_V1(la_company_most_pins);
PG_FUNCTION_INFO_V1(la_company_workers);

enum
{
	EXPLAIN_OFF, EXPLAIN_TEXT, EXPLAIN_JSON, EXPLAIN_ANALYZE
};

static const struct config_enum_entry explain_options[] = {
	{"off", EXPLAIN_OFF, false},
	{"text", EXPLAIN_TEXT, false},
	{"json", EXPLAIN_JSON, false},
	{"analyze", EXPLAIN_ANALYZE, false},
	{NULL, 0, false}
};

static bool walk = false;
static int	explain = EXPLAIN_OFF;
static int	every = 1;

static int	ncalls = 0;
static int	nobservations = 0;
static int	most_pins = 0;
static int	nworkers = 0;
static char *explained = NULL;	/* the outermost query, when last printed */

#define KIND(name) {T_##name, T_##name##State, #name}
static const struct
{
	NodeTag		plan;
	NodeTag		state;
	const char *name;
}			kinds[] = {

	KIND(Result), KIND(ProjectSet), KIND(ModifyTable), KIND(Append),
	KIND(MergeAppend), KIND(RecursiveUnion), KIND(BitmapAnd), KIND(BitmapOr),
	KIND(SeqScan), KIND(SampleScan), KIND(IndexScan), KIND(IndexOnlyScan),
	KIND(BitmapIndexScan), KIND(BitmapHeapScan), KIND(TidScan),
	KIND(TidRangeScan), KIND(SubqueryScan), KIND(FunctionScan), KIND(ValuesScan),
	KIND(TableFuncScan), KIND(CteScan), KIND(NamedTuplestoreScan),
	KIND(WorkTableScan), KIND(ForeignScan), KIND(CustomScan), KIND(NestLoop),
	KIND(MergeJoin), KIND(HashJoin), KIND(Material), KIND(Memoize), KIND(Sort),
	KIND(IncrementalSort), KIND(Group), KIND(Agg), KIND(WindowAgg), KIND(Unique),
	KIND(Gather), KIND(GatherMerge), KIND(Hash), KIND(SetOp), KIND(LockRows),
	KIND(Limit)
};

const char *
tree_name(NodeTag tag)
{
	for (int i = 0; i < (int) lengthof(kinds); i++)
	{
		if (kinds[i].state == tag)
			return kinds[i].name;
	}
	return NULL;
}

void
tree_forget(void)
{
	ncalls = nobservations = most_pins = nworkers = 0;
	if (explained != NULL)
		pfree(explained);
	explained = NULL;
}

/* ---- walks -------------------------------------------------------------------- */

static bool
note_node(PlanState *ps, void *arg)
{
	Execution  *query = (Execution *) arg;

	/* twice: count, and write down */
	if (query->nodes != NULL)
		query->nodes[query->nnodes] = ps;
	query->nnodes++;
	return planstate_tree_walker(ps, note_node, arg);
}

/* What the tree consists of when the query starts. */
void
tree_note(Execution *query)
{
	note_node(query->desc->planstate, query);
	query->nodes = MemoryContextAlloc(query->desc->estate->es_query_cxt,
									  query->nnodes * sizeof(PlanState *));
	query->nnodes = 0;
	note_node(query->desc->planstate, query);
}

/* A query ends: how many workers its nodes have launched last. */
void
tree_at_end(Execution *query)
{
	for (int i = 0; i < query->nnodes; i++)
	{
		PlanState  *ps = query->nodes[i];

		if (IsA(ps, GatherState))
			nworkers += castNode(GatherState, ps)->nworkers_launched;
		else if (IsA(ps, GatherMergeState))
			nworkers += castNode(GatherMergeState, ps)->nworkers_launched;
	}
}

Datum
la_company_workers(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(nworkers);
}

/* What is wrong with this node, or NULL. */
static const char *
fault_of(PlanState *ps, const EState *estate)
{
	int			i = 0;

	while (i < (int) lengthof(kinds) && kinds[i].state != nodeTag(ps))
		i++;
	if (i == (int) lengthof(kinds))
		return psprintf("tag %d is not that of a plan state", (int) nodeTag(ps));
	if (ps->plan == NULL)
		return "there is no plan";
	if (nodeTag(ps->plan) != kinds[i].plan)
		return psprintf("%s has a plan of tag %d", kinds[i].name, (int) nodeTag(ps->plan));
	if (ps->state != estate)
		return "another EState";
	if (ps->ExecProcNode == NULL || ps->ExecProcNodeReal == NULL)
		return "no function to execute it";
	if (ps->ps_ExprContext != NULL && !IsA(ps->ps_ExprContext, ExprContext))
		return "a wrong ExprContext";
	if (ps->ps_ResultTupleSlot != NULL && !IsA(ps->ps_ResultTupleSlot, TupleTableSlot))
		return "a wrong slot";
	if (outerPlanState(ps) != NULL && outerPlanState(ps)->plan != outerPlan(ps->plan))
		return "the outer child is of another plan";
	if (innerPlanState(ps) != NULL && innerPlanState(ps)->plan != innerPlan(ps->plan))
		return "the inner child is of another plan";
	return NULL;
}

typedef struct Walk
{
	Execution  *query;
	int			n;				/* nodes seen */
	bool		faulty;
} Walk;

static bool
check_node(PlanState *ps, void *arg)
{
	Walk	   *w = (Walk *) arg;
	const char *fault = fault_of(ps, w->query->desc->estate);

	if (fault == NULL &&
		(w->n >= w->query->nnodes || w->query->nodes[w->n] != ps))
		fault = psprintf("%s is not what was there at the start",
						 tree_name(nodeTag(ps)));
	if (fault != NULL)
	{
		complain("plan state tree, node %d: %s", w->n, fault);
		w->faulty = true;
		return true;
	}
	w->n++;
	return planstate_tree_walker(ps, check_node, arg);
}

static bool
is_valid(Execution *query)
{
	Walk		w = {query, 0, false};

	check_node(query->desc->planstate, &w);
	if (!w.faulty && w.n != query->nnodes)
	{
		complain("plan state tree: %d nodes instead of %d", w.n, query->nnodes);
		w.faulty = true;
	}
	return !w.faulty;
}

void
tree_check(Execution *query)
{
	if (walk)
		(void) is_valid(query);
}

/* ---- EXPLAIN of a running query --------------------------------------------------- */

static char *
print(QueryDesc *desc)
{
	ExplainState *es = NewExplainState();

	es->analyze = explain == EXPLAIN_ANALYZE && desc->instrument_options != 0;
	es->buffers = es->analyze;
	es->timing = false;
	es->costs = !es->analyze;
	es->verbose = true;
	es->format = explain == EXPLAIN_JSON ? EXPLAIN_FORMAT_JSON : EXPLAIN_FORMAT_TEXT;
	ExplainBeginOutput(es);
	ExplainPrintPlan(es, desc);
	ExplainEndOutput(es);
	return es->str->data;
}

static char *
print_with_copies(Execution *query)
{
	int			n = query->nnodes;
	LaNodeInstrumentation **saved = palloc(n * sizeof(LaNodeInstrumentation *));
	char	   *text = NULL;

	for (int i = 0; i < n; i++)
	{
		PlanState  *ps = query->nodes[i];

		saved[i] = ps->instrument;
		if (ps->instrument == NULL)
			continue;
		ps->instrument = palloc(sizeof(LaNodeInstrumentation));
		*ps->instrument = *saved[i];
		INSTR_TIME_SET_ZERO(la_instr_start_time(ps->instrument));
	}
	PG_TRY();
	{
		text = print(query->desc);
	}
	PG_FINALLY();
	{
		for (int i = 0; i < n; i++)
			query->nodes[i]->instrument = saved[i];
	}
	PG_END_TRY();
	return text;
}

/* What is printed does not change while a query runs, but for what was counted. */
static void
observe_plan(Execution *query)
{
	char	   *text = print_with_copies(query);

	if (query->outer != NULL)
		return;
	if (explained != NULL)
	{
		if (explain != EXPLAIN_ANALYZE && strcmp(explained, text) != 0)
			complain("the plan is another one now: %s", text);
		pfree(explained);
	}
	explained = MemoryContextStrdup(TopMemoryContext, text);
}

/* ---- pins -------------------------------------------------------------------------- */

/* Buffers that are pinned; by this backend, where there is no other. */
static int
count_pins(void)
{
	int			n = 0;

	for (int i = 1; i <= NBuffers; i++)
	{
		if (BUF_STATE_GET_REFCOUNT(la_buffer_state(i)) > 0)
			n++;
	}
	for (int i = 0; i < NLocBuffer; i++)
	{
		if (LocalRefCount[i] > 0)
			n++;
	}
	return n;
}

Datum
la_company_pins(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(count_pins());
}

Datum
la_company_most_pins(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(most_pins);
}

/* ---- observation --------------------------------------------------------------------- */

static void
observe(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "observation",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	nobservations++;
	for (Execution *query = running; query != NULL; query = query->outer)
	{
		plan_check(query, "while it runs");
		if ((!walk && explain == EXPLAIN_OFF) || !is_valid(query))
			continue;
		if (explain != EXPLAIN_OFF)
			observe_plan(query);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

Datum
la_company_observe(PG_FUNCTION_ARGS)
{
	most_pins = Max(most_pins, count_pins());
	if (++ncalls <= 3 || ncalls % every == 0)
		observe();
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

Datum
la_company_observations(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(nobservations);
}

Datum
la_company_explained(PG_FUNCTION_ARGS)
{
	if (explained == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(explained));
}

void
tree_define_settings(void)
{
	DefineCustomBoolVariable("la_company.walk", "", NULL, &walk,
							 false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("la_company.explain", "", NULL, &explain, EXPLAIN_OFF,
							 explain_options, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("la_company.every", "", NULL, &every,
							1, 1, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
}
