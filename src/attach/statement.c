/*
 * statement.c
 *	  What is known of a statement as a whole.
 *
 * There is a record for each statement with a node that a room is interested in.  It lives
 * as long as the statement's EState.  Other files keep in it what they find out about the
 * statement when they are first asked: demand.c what is wanted of its nodes, and runahead.c
 * whether nothing in the statement has effects.
 *
 * How a statement is run is known for the innermost ExecutorRun() in progress:
 *
 *		ExecutorRun(outer)		current_run = outer
 *			ExecutorRun(inner)	current_run = inner;	then outer again
 *			ExecutorRun(inner)	fails:					unknown, until outer returns
 *
 * src/attach/statement.c
 */
#include "postgres.h"

#include "tcop/dest.h"

#include "attach/statement.h"
#include "attach/types.h"

/* Newest first. */
static LaStatement *statements = NULL;
static uint64 last_number = 0;

/* After an error in an inner statement, still its own until the outer one returns. */
static LaRun current_run = {0};

static void
forget(void *arg)
{
	LaStatement **p = &statements;

	while (*p != NULL && *p != (LaStatement *) arg)
		p = &(*p)->next;
	if (*p != NULL)
		*p = (*p)->next;
}

/* Called when a statement has been started that a room is interested in. */
void
la_statement_begin(QueryDesc *queryDesc)
{
	EState	   *estate = queryDesc->estate;
	LaStatement *s = MemoryContextAllocZero(estate->es_query_cxt, sizeof(LaStatement));

	s->number = ++last_number;
	s->estate = estate;
	s->top = queryDesc->planstate;
	s->callback.func = forget;
	s->callback.arg = s;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, &s->callback);
	s->next = statements;
	statements = s;
}

LaStatement *
la_statement_of(const EState *estate)
{
	LaStatement *s = statements;

	while (s != NULL && s->estate != estate)
		s = s->next;
	return s;
}

/* ---- how it is run ---------------------------------------------------------- */

static bool
types_are_plain(const TupleDesc desc)
{
	for (int i = 0; desc != NULL && i < desc->natts; i++)
	{
		if (!la_type_is_plain(TupleDescAttr(desc, i)->atttypid))
			return false;
	}
	return true;
}

/*
 * Can the receiver see when rows arrive, does it call functions of their types, and may it raise
 * errors of its own?
 *
 *		none				nobody takes rows
 *		SPI, tuplestore		rows are copied.  What a procedural language makes of them comes
 *							after the last one, and it asks for a number of rows where it
 *							wants to see them come
 *		SQL function		likewise
 *		new table, or a materialized view's	a row may be too big for its page, and the
 *							table's access method may refuse it for reasons of its own
 *		tuple queue			another process goes on with the rows
 *		client, COPY, EXPLAIN	rows are written, by output functions
 *
 * A receiver that is another extension's says that it is none of these, or says nothing.
 */
static void
examine_destination(LaRun *run, const QueryDesc *queryDesc)
{
	switch (queryDesc->dest->mydest)
	{
		case DestNone:
			run->rows_stay = run->no_code = queryDesc->dest == None_Receiver;
			break;
		case DestSPI:
		case DestTuplestore:
		case DestSQLFunction:
			run->rows_stay = true;
			run->no_code = true;
			break;
		case DestIntoRel:
		case DestTransientRel:
			run->rows_stay = true;
			run->no_code = true;
			run->may_fail = true;
			break;
		case DestTupleQueue:
			run->no_code = true;
			break;
		default:
			run->no_code = types_are_plain(queryDesc->tupDesc);
			break;
	}
}

/*
 * Called when ExecutorRun() begins.  Returns what to pass to la_statement_leave_run() at its
 * end, which an error skips.
 */
LaRun
la_statement_enter_run(const QueryDesc *queryDesc, uint64 count)
{
	LaRun		outer = current_run;
	LaStatement *s = count == 0 ? la_statement_of(queryDesc->estate) : NULL;
	static uint64 last_number = 0;

	memset(&current_run, 0, sizeof(current_run));
	if (s != NULL)
	{
		current_run.statement = s->number;
		current_run.number = ++last_number;
		current_run.to_end = true;
		examine_destination(&current_run, queryDesc);
	}
	return outer;
}

void
la_statement_leave_run(LaRun outer)
{
	current_run = outer;
}

/*
 * How this statement is run.  All is false unless it is the innermost one in progress, and
 * run to its end.
 */
const LaRun *
la_statement_run(const EState *estate)
{
	static const LaRun unknown = {0};
	const LaStatement *s = la_statement_of(estate);

	return s != NULL && s->number == current_run.statement ? &current_run : &unknown;
}
