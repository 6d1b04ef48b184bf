/*
 * wrap.c
 *	  Functions put around those of plan nodes, and what they count.
 *
 *	la_company.wrap
 *		node	ExecProcNode is replaced.  The wrapper calls what was there, and puts
 *				itself back, since ExecProcNodeFirst() is replaced by its own doing.
 *		plain	ExecProcNode is replaced once; the wrapper calls what ExecProcNodeReal
 *				was at that time.
 *		live	ExecProcNode is replaced once; the wrapper calls what ExecProcNodeReal
 *				is at each call.
 *		real	ExecProcNodeReal is replaced, by ExecSetExecProcNode(), and called.
 *	la_company.wrapped		all, scans, joins, others, or the number of one node
 *	la_company.wrap_row		not before this row has been received (with replace_dest)
 *	la_company.unwrap_call	as many calls later all nodes get back what they had
 *
 * Counts and the order of all calls of all queries are kept until la_company_reset().
 * la_company_keep() makes them the reference for la_company_difference().
 *
 * A parallel worker says what it has counted by a notice.
 *
 * test/modules/company/wrap.c
 */
#include "postgres.h"

#include <limits.h>

#include "access/parallel.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "company.h"

PG_FUNCTION_INFO_V1(la_company_keep);
PG_FUNCTION_INFO_V1(la_company_difference);
PG_FUNCTION_INFO_V1(la_company_calls);
PG_FUNCTION_INFO_V1(la_company_counts);

#define MAX_COUNTED		1000
#define MAX_CALLS		4000000

enum
{
	WRAP_OFF, WRAP_NODE, WRAP_PLAIN, WRAP_LIVE, WRAP_REAL
};

static const struct config_enum_entry wrap_options[] = {
	{"off", WRAP_OFF, false},
	{"node", WRAP_NODE, false},
	{"plain", WRAP_PLAIN, false},
	{"live", WRAP_LIVE, false},
	{"real", WRAP_REAL, false},
	{NULL, 0, false}
};

/* One node of one query. */
typedef struct Counted
{
	int			query;			/* from 1 on, since la_company_reset() */
	int			node;			/* plan_node_id */
	NodeTag		tag;
	int64		calls;
	int64		rows;
} Counted;

/* What happened: index of a node << 2 and one of these. */
enum
{
	ENTERED, LEFT_WITH_ROW, LEFT_AT_END
};

typedef struct Recording
{
	int			nqueries;
	int			ncounted;
	Counted		counted[MAX_COUNTED];
	int			nevents;
	int			room;
	int32	   *events;
} Recording;

static int	mode = WRAP_OFF;
static char *wrapped = NULL;
static int	wrap_row = 0;
static int	unwrap_call = 0;

static Recording current;
static Recording reference;
static int	nrows = 0;			/* received */
static int	ncalls = 0;			/* of wrappers */

static TupleTableSlot *call_node(PlanState *ps);
static TupleTableSlot *call_plain(PlanState *ps);
static TupleTableSlot *call_live(PlanState *ps);
static TupleTableSlot *call_real(PlanState *ps);

static const ExecProcNodeMtd wrappers[] = {
	[WRAP_NODE] = call_node,
	[WRAP_PLAIN] = call_plain,
	[WRAP_LIVE] = call_live,
	[WRAP_REAL] = call_real
};

bool
wrap_is_on(void)
{
	return mode != WRAP_OFF;
}

void
wrap_forget(void)
{
	current.nqueries = current.ncounted = current.nevents = 0;
	nrows = ncalls = 0;
}

/* ---- wrappers ------------------------------------------------------------- */

static Wrap *
wrap_of(PlanState *ps)
{
	for (Execution *query = running; query != NULL; query = query->outer)
	{
		if (query->desc->estate != ps->state)
			continue;
		for (int i = 0; i < query->nwraps; i++)
		{
			if (query->wraps[i].node == ps)
				return &query->wraps[i];
		}
	}
	elog(ERROR, "a wrapper is called that is not installed");
}

static void
note_event(int counted, int kind)
{
	Recording  *r = &current;

	if (r->nevents == MAX_CALLS)
		elog(ERROR, "too many calls to be recorded");
	if (r->nevents == r->room)
	{
		r->room = Max(1024, r->room * 2);
		r->events = r->events == NULL ?
			MemoryContextAlloc(TopMemoryContext, r->room * sizeof(int32)) :
			repalloc(r->events, r->room * sizeof(int32));
	}
	r->events[r->nevents++] = counted << 2 | kind;
}

static void
unwrap_all(void)
{
	for (Execution *query = running; query != NULL; query = query->outer)
	{
		for (int i = 0; i < query->nwraps; i++)
		{
			Wrap	   *w = &query->wraps[i];

			if (w->node->ExecProcNodeReal == call_real)
				ExecSetExecProcNode(w->node, w->saved);
			else if (w->node->ExecProcNode == call_node)
				w->node->ExecProcNode = w->saved;
			else if (w->node->ExecProcNode == call_plain ||
					 w->node->ExecProcNode == call_live)
				w->node->ExecProcNode = w->before;
		}
	}
}

static TupleTableSlot *
call(PlanState *ps, Wrap *w, ExecProcNodeMtd function)
{
	TupleTableSlot *slot;
	Counted    *counted = &current.counted[w->counted];

	counted->calls++;
	note_event(w->counted, ENTERED);
	if (++ncalls == unwrap_call)
		unwrap_all();
	slot = function(ps);
	if (!TupIsNull(slot))
		counted->rows++;
	note_event(w->counted, TupIsNull(slot) ? LEFT_AT_END : LEFT_WITH_ROW);
	return slot;
}

static TupleTableSlot *
call_node(PlanState *ps)
{
	Wrap	   *w = wrap_of(ps);
	TupleTableSlot *slot = call(ps, w, w->saved);

	if (ps->ExecProcNode != call_node && (unwrap_call == 0 || ncalls < unwrap_call))
	{
		w->saved = ps->ExecProcNode;
		ps->ExecProcNode = call_node;
	}
	return slot;
}

static TupleTableSlot *
call_plain(PlanState *ps)
{
	Wrap	   *w = wrap_of(ps);

	return call(ps, w, w->saved);
}

static TupleTableSlot *
call_live(PlanState *ps)
{
	return call(ps, wrap_of(ps), ps->ExecProcNodeReal);
}

static TupleTableSlot *
call_real(PlanState *ps)
{
	Wrap	   *w = wrap_of(ps);

	return call(ps, w, w->saved);
}

/* ---- installation ----------------------------------------------------------- */

static bool
is_scan(PlanState *ps)
{
	return outerPlanState(ps) == NULL && innerPlanState(ps) == NULL &&
		!IsA(ps, AppendState) && !IsA(ps, MergeAppendState) &&
		!IsA(ps, SubqueryScanState);
}

static bool
is_chosen(PlanState *ps)
{
	if (strcmp(wrapped, "all") == 0)
		return true;
	if (strcmp(wrapped, "scans") == 0)
		return is_scan(ps);
	if (strcmp(wrapped, "joins") == 0)
		return innerPlanState(ps) != NULL;
	if (strcmp(wrapped, "others") == 0)
		return !is_scan(ps) && innerPlanState(ps) == NULL;
	return pg_strtoint32(wrapped) == ps->plan->plan_node_id;
}

static void
wrap_node(Execution *query, PlanState *ps)
{
	Wrap	   *w = &query->wraps[query->nwraps++];
	Counted    *counted = &current.counted[current.ncounted];

	if (current.ncounted == MAX_COUNTED)
		elog(ERROR, "too many nodes to be counted");
	*counted = (Counted)
	{
		current.nqueries, ps->plan->plan_node_id, nodeTag(ps), 0, 0
	};
	w->counted = current.ncounted++;
	w->node = ps;
	w->before = ps->ExecProcNode;
	w->saved = mode == WRAP_NODE ? ps->ExecProcNode : ps->ExecProcNodeReal;
	if (mode == WRAP_REAL)
		ExecSetExecProcNode(ps, call_real);
	else
		ps->ExecProcNode = wrappers[mode];
}

static void
wrap_query(Execution *query)
{
	query->wraps = MemoryContextAlloc(query->desc->estate->es_query_cxt,
									  query->nnodes * sizeof(Wrap));
	for (int i = 0; i < query->nnodes; i++)
	{
		if (is_chosen(query->nodes[i]))
			wrap_node(query, query->nodes[i]);
	}
}

void
wrap_at_start(Execution *query)
{
	if (!wrap_is_on())
		return;
	current.nqueries++;
	if (wrap_row == 0)
		wrap_query(query);
}

/* A row of this query has been sent. */
void
wrap_at_row(Execution *query)
{
	if (wrap_is_on() && wrap_row > 0 && query->wraps == NULL && ++nrows == wrap_row)
		wrap_query(query);
}

static uint32
digest_of(const Recording *r)
{
	return r->nevents == 0 ? 0 :
		hash_bytes((unsigned char *) r->events, r->nevents * sizeof(int32));
}

void
wrap_at_end(Execution *query)
{
	if (!IsParallelWorker() || query->nwraps == 0)
		return;
	for (int i = 0; i < query->nwraps; i++)
	{
		Counted    *c = &current.counted[query->wraps[i].counted];

		ereport(NOTICE, errmsg("worker: %s %d was called %lld times, %lld rows",
							   tree_name(c->tag), c->node, (long long) c->calls,
							   (long long) c->rows));
	}
	ereport(NOTICE, errmsg("worker: order %08x", digest_of(&current)));
}

/* ---- comparisons -------------------------------------------------------------- */

static void
copy_recording(Recording *to, const Recording *from)
{
	Size		size = Max(from->nevents, 1) * sizeof(int32);
	int32	   *events = MemoryContextAlloc(TopMemoryContext, size);

	if (to->events != NULL)
		pfree(to->events);
	*to = *from;
	to->events = events;
	to->room = size / sizeof(int32);
	if (from->nevents > 0)
		memcpy(events, from->events, from->nevents * sizeof(int32));
}

Datum
la_company_keep(PG_FUNCTION_ARGS)
{
	copy_recording(&reference, &current);
	PG_RETURN_VOID();
}

/* Calls of the statements since la_company_reset(). */
Datum
la_company_calls(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(ncalls);
}

/* "Index Scan 3: 300 calls, 299 rows" and so on, and a digest of their order */
Datum
la_company_counts(PG_FUNCTION_ARGS)
{
	StringInfoData s;

	initStringInfo(&s);
	for (int i = 0; i < current.ncounted; i++)
	{
		Counted    *c = &current.counted[i];

		appendStringInfo(&s, "%d/%s %d: %lld calls, %lld rows\n", c->query,
						 tree_name(c->tag), c->node, (long long) c->calls,
						 (long long) c->rows);
	}
	appendStringInfo(&s, "order %08x", digest_of(&current));
	PG_RETURN_TEXT_P(cstring_to_text(s.data));
}

static void
describe_event(StringInfo s, const Recording *r, int n)
{
	static const char *const kinds[] = {"call of", "row of", "end of"};
	Counted		c;

	if (n >= r->nevents)
	{
		appendStringInfoString(s, "nothing");
		return;
	}
	c = r->counted[r->events[n] >> 2];
	appendStringInfo(s, "%s %s %d", kinds[r->events[n] & 3], tree_name(c.tag), c.node);
}

static void
compare_counts(StringInfo s)
{
	if (current.ncounted != reference.ncounted)
		appendStringInfo(s, "%d nodes instead of %d; ", current.ncounted,
						 reference.ncounted);
	for (int i = 0; i < Min(current.ncounted, reference.ncounted); i++)
	{
		Counted    *c = &current.counted[i];
		Counted    *r = &reference.counted[i];

		if (c->query != r->query || c->node != r->node || c->tag != r->tag)
			appendStringInfo(s, "%s %d instead of %s %d; ", tree_name(c->tag),
							 c->node, tree_name(r->tag), r->node);
		else if (c->calls != r->calls || c->rows != r->rows)
			appendStringInfo(s, "%s %d: %lld calls and %lld rows instead of %lld and %lld; ",
							 tree_name(c->tag), c->node, (long long) c->calls,
							 (long long) c->rows, (long long) r->calls, (long long) r->rows);
	}
}

/*
 * What is first different from what was kept, or NULL.
 */
Datum
la_company_difference(PG_FUNCTION_ARGS)
{
	StringInfoData s;

	initStringInfo(&s);
	compare_counts(&s);
	for (int i = 0; i < Max(current.nevents, reference.nevents); i++)
	{
		if (i < current.nevents && i < reference.nevents &&
			current.events[i] == reference.events[i])
			continue;
		appendStringInfo(&s, "event %d is ", i);
		describe_event(&s, &current, i);
		appendStringInfoString(&s, " instead of ");
		describe_event(&s, &reference, i);
		break;
	}
	if (s.len == 0)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(s.data));
}

void
wrap_define_settings(void)
{
	DefineCustomEnumVariable("la_company.wrap", "", NULL, &mode, WRAP_OFF,
							 wrap_options, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("la_company.wrapped", "", NULL, &wrapped,
							   "all", PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("la_company.wrap_row", "", NULL, &wrap_row,
							0, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("la_company.unwrap_call", "", NULL, &unwrap_call,
							0, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
}
