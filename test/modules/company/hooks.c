/*
 * hooks.c
 *	  The executor's hooks, as extensions of many kinds use them.
 *
 *	la_company.instrument	options that are added to each query's instrumentation, as
 *							pg_stat_statements and auto_explain do
 *	la_company.replace_dest	gives each query another receiver, which passes rows on
 *	la_company.nested		a statement that is executed from within hooks of each
 *							query ...
 *	la_company.nested_in	... start, run, row (from the receiver), or finish
 *	la_company.fail_depth	ExecutorRun raises an error in queries of this depth
 *
 * A hook calls the one that was there before, so it depends on the order of loading
 * whether pg_lookahead's comes first.
 *
 * test/modules/company/hooks.c
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/instrument.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "company.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(la_company_reset);
PG_FUNCTION_INFO_V1(la_company_complaint);

enum
{
	IN_NONE, IN_START, IN_RUN, IN_ROW, IN_FINISH
};

static const struct config_enum_entry nested_options[] = {
	{"none", IN_NONE, false},
	{"start", IN_START, false},
	{"run", IN_RUN, false},
	{"row", IN_ROW, false},
	{"finish", IN_FINISH, false},
	{NULL, 0, false}
};

static int	instrument = 0;
static bool replace_dest = false;
static char *nested = NULL;
static int	nested_in = IN_NONE;
static int	fail_depth = 0;

static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ExecutorFinish_hook_type prev_ExecutorFinish = NULL;
static ExecutorEnd_hook_type prev_ExecutorEnd = NULL;

static Execution *queries = NULL;
Execution  *running = NULL;
static int	depth = 0;
static bool in_nested = false;
static char *complaint = NULL;	/* the first one since la_company_reset() */

void		_PG_init(void);

void
complain(const char *format,...)
{
	char text[	1024];
	va_list		args;

	if (complaint != NULL)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complaint = MemoryContextStrdup(TopMemoryContext, text);
	if (IsParallelWorker())
		ereport(NOTICE, errmsg("worker: %s", text));
}

Datum
la_company_reset(PG_FUNCTION_ARGS)
{
	if (complaint != NULL)
		pfree(complaint);
	complaint = NULL;
	wrap_forget();
	tree_forget();
	PG_RETURN_VOID();
}

Datum
la_company_complaint(PG_FUNCTION_ARGS)
{
	if (complaint == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(complaint));
}

/* ---- queries ------------------------------------------------------------- */

static void
forget_query(void *arg)
{
	Execution **p = &queries;

	while (*p != NULL && *p != (Execution *) arg)
		p = &(*p)->next;
	if (*p != NULL)
		*p = (*p)->next;
}

static pg_noinline Execution *
find_query(QueryDesc *desc)
{
	Execution  *query = queries;

	while (query != NULL && query->desc != desc)
		query = query->next;
	return query;
}

static Execution *
add_query(QueryDesc *desc)
{
	MemoryContext context = desc->estate->es_query_cxt;
	Execution  *query = MemoryContextAllocZero(context, sizeof(Execution));

	query->desc = desc;
	query->callback.func = forget_query;
	query->callback.arg = query;
	MemoryContextRegisterResetCallback(context, &query->callback);
	query->next = queries;
	queries = query;
	return query;
}

/* Not for what a hook executes because of such a statement. */
static void
execute_nested(int place)
{
	if (nested_in != place || in_nested || nested == NULL || nested[0] == '\0')
		return;
	in_nested = true;
	PG_TRY();
	{
		int			result;

		SPI_connect();
		result = SPI_execute(nested, false, 0);
		if (result < 0)
			elog(ERROR, "nested statement: %s", SPI_result_code_string(result));
		SPI_finish();
	}
	PG_FINALLY();
	{
		in_nested = false;
	}
	PG_END_TRY();
}

/* ---- a receiver that passes rows on ---------------------------------------- */

typedef struct Receiver
{
	DestReceiver pub;
	DestReceiver *real;
	Execution  *query;
} Receiver;

static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	Receiver   *r = (Receiver *) self;
	bool		more = r->real->receiveSlot(slot, r->real);

	wrap_at_row(r->query);
	execute_nested(IN_ROW);
	return more;
}

static void
receive_startup(DestReceiver *self, int operation, TupleDesc desc)
{
	Receiver   *r = (Receiver *) self;

	r->real->rStartup(r->real, operation, desc);
}

static void
receive_shutdown(DestReceiver *self)
{
	Receiver   *r = (Receiver *) self;

	r->real->rShutdown(r->real);
}

static void
receive_destroy(DestReceiver *self)
{
	elog(ERROR, "the receiver is destroyed");
}

/* ---- hooks ------------------------------------------------------------------ */

static void
company_ExecutorStart(QueryDesc *desc, int eflags)
{
	bool		executed = (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0;
	Execution  *query;

	if (executed)
	{
		desc->instrument_options |= instrument;
		plan_before_start(desc);
	}
	if (prev_ExecutorStart)
		prev_ExecutorStart(desc, eflags);
	else
		standard_ExecutorStart(desc, eflags);
	if (!executed || desc->planstate == NULL)
		return;

	query = add_query(desc);
	tree_note(query);
	plan_at_start(query);
	wrap_at_start(query);
	execute_nested(IN_START);
}

static void
call_run(LA_EXECUTOR_RUN_ARGS)
{
	if (depth == fail_depth)
		elog(ERROR, "company fails at depth %d", depth);
	if (prev_ExecutorRun)
		prev_ExecutorRun(LA_EXECUTOR_RUN_PASS);
	else
		standard_ExecutorRun(LA_EXECUTOR_RUN_PASS);
}

static void
company_ExecutorRun(LA_EXECUTOR_RUN_ARGS)
{
	Execution  *outer = running;
	Execution  *query = find_query(queryDesc);
	DestReceiver *dest = queryDesc->dest;
	Receiver	receiver = {
		{receive_row, receive_startup, receive_shutdown, receive_destroy, dest->mydest},
		dest, query
	};

	depth++;
	PG_TRY();
	{
		if (query != NULL)
		{
			query->outer = outer;
			running = query;
			if (replace_dest)
				queryDesc->dest = &receiver.pub;
			tree_check(query);
		}
		execute_nested(IN_RUN);
		call_run(LA_EXECUTOR_RUN_PASS);
		if (query != NULL)
		{
			tree_check(query);
			plan_check(query, "after ExecutorRun");
		}
	}
	PG_FINALLY();
	{
		depth--;
		running = outer;
		queryDesc->dest = dest;
	}
	PG_END_TRY();
}

static void
company_ExecutorFinish(QueryDesc *desc)
{
	Execution  *outer = running;
	Execution  *query = find_query(desc);

	depth++;
	PG_TRY();
	{
		if (query != NULL)
		{
			query->outer = outer;
			running = query;
		}
		execute_nested(IN_FINISH);
		if (prev_ExecutorFinish)
			prev_ExecutorFinish(desc);
		else
			standard_ExecutorFinish(desc);
	}
	PG_FINALLY();
	{
		depth--;
		running = outer;
	}
	PG_END_TRY();
}

static void
company_ExecutorEnd(QueryDesc *desc)
{
	Execution  *query = find_query(desc);

	if (query != NULL)
	{
		tree_check(query);
		plan_check(query, "at its end");
		wrap_at_end(query);
		tree_at_end(query);
	}
	if (prev_ExecutorEnd)
		prev_ExecutorEnd(desc);
	else
		standard_ExecutorEnd(desc);
}

void
_PG_init(void)
{
	DefineCustomIntVariable("la_company.instrument", "", NULL, &instrument,
							0, 0, INSTRUMENT_ALL, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("la_company.replace_dest", "", NULL, &replace_dest,
							 false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("la_company.nested", "", NULL, &nested,
							   "", PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("la_company.nested_in", "", NULL, &nested_in, IN_NONE,
							 nested_options, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("la_company.fail_depth", "", NULL, &fail_depth,
							0, 0, 100, PGC_USERSET, 0, NULL, NULL, NULL);
	wrap_define_settings();
	tree_define_settings();
	plan_define_settings();
	paths_define_settings();

	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = company_ExecutorStart;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = company_ExecutorRun;
	prev_ExecutorFinish = ExecutorFinish_hook;
	ExecutorFinish_hook = company_ExecutorFinish;
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = company_ExecutorEnd;
}
