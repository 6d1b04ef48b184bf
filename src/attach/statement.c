/*
 * statement.c
 *	  How the executor runs a statement that a room is interested in.
 *
 * That is known of the innermost ExecutorRun() in progress (base/statements.c):
 *
 *		ExecutorRun(outer)		how outer is run
 *			ExecutorRun(inner)	how inner is run; then outer again, also after an error
 *
 * src/attach/statement.c
 */
#include "postgres.h"

#include "tcop/dest.h"

#include "attach/attach.h"
#include "attach/attach_int.h"

/* The statement, if a room is interested in a node of it; else NULL. */
LaStatement *
la_statement_of(const EState *estate)
{
	LaStatement *s = la_statements_find(estate);

	return s != NULL && s->top != NULL ? s : NULL;
}

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
			run->types = &queryDesc->tupDesc;
			break;
	}
}

/* Does the receiver call no function that a user can define?  The catalogs are asked but once. */
bool
la_statement_runs_no_code(const LaRun *run)
{
	LaRun	   *known = unconstify(LaRun *, run);

	if (run->types != NULL)
	{
		known->no_code = types_are_plain(*run->types);
		known->types = NULL;
	}
	return run->no_code;
}

/* ExecutorRun() begins.  la_statements_leave_run() is called at its end, also by an error. */
void
la_statement_enter_run(LaStatementRun *run, const QueryDesc *queryDesc, uint64 count)
{
	static uint64 last_number = 0;
	LaRun		how = {0};

	/* this may fail, and then nobody would leave the run */
	if (count == 0 && la_statement_of(queryDesc->estate) != NULL)
	{
		how.number = ++last_number;
		how.to_end = true;
		examine_destination(&how, queryDesc);
	}
	la_statements_enter_run(run, queryDesc);
	run->how = how;
}
