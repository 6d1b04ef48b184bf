/*
 * statement.h
 *	  What is known of a statement as a whole.
 *
 * src/attach/statement.h
 */
#ifndef LA_STATEMENT_H
#define LA_STATEMENT_H

#include "executor/execdesc.h"
#include "nodes/execnodes.h"

#include "attach/attach.h"

typedef struct LaStatement LaStatement;

/* How the executor runs at the moment. */
typedef struct LaRun
{
	const EState *estate;
	bool		to_end;			/* all rows are returned by this call */
	bool		rows_stay;		/* ... to nobody who could tell when they came */
	bool		no_code;		/* ... and no function is called for them */
} LaRun;

extern void la_statement_begin(QueryDesc *queryDesc);
extern PlanState *la_statement_top(const EState *estate);
extern bool *la_statement_calm(const EState *estate, bool **known);
extern LaRun la_statement_enter_run(const QueryDesc *queryDesc, uint64 count);
extern void la_statement_leave_run(LaRun outer);
extern const LaRun *la_statement_run(const EState *estate);
extern bool la_statement_context(PlanState *ps, LaAttachContext *context);

#endif							/* LA_STATEMENT_H */
