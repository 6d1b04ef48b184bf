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

#include "attach/effects.h"
#include "attach/statement.h"

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
		if (!la_effects_type_is_plain(TupleDescAttr(desc, i)->atttypid))
			return false;
	}
	return true;
}

/* Can the receiver see when rows arrive, and does it call functions of their types? */
static void
examine_destination(LaRun *run, const QueryDesc *queryDesc)
{
	switch (queryDesc->dest->mydest)
	{
		case DestNone:
		case DestSPI:
		case DestTuplestore:
		case DestIntoRel:
		case DestTransientRel:
		case DestSQLFunction:
			run->rows_stay = true;
			run->no_code = true;
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

	memset(&current_run, 0, sizeof(current_run));
	if (s != NULL)
	{
		current_run.statement = s->number;
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
