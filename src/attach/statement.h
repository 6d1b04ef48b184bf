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

/* How the executor runs a statement. */
typedef struct LaRun
{
	uint64		statement;		/* its number; 0: none, or not known */
	bool		to_end;			/* all rows are returned by this call */
	bool		rows_stay;		/* ... to nobody who could see when they came */
	bool		no_code;		/* ... and no function is called for them */
} LaRun;

typedef struct LaStatement
{
	uint64		number;			/* never used again, unlike addresses */
	EState	   *estate;
	PlanState  *top;			/* the topmost node */
	struct LaNodeDemands *demands;	/* demand.c; NULL: not made yet */
	bool		calm;			/* runahead.c, "State" */
	bool		calm_known;
	MemoryContextCallback callback;
	struct LaStatement *next;
} LaStatement;

extern void la_statement_begin(QueryDesc *queryDesc);
extern LaStatement *la_statement_of(const EState *estate);
extern LaRun la_statement_enter_run(const QueryDesc *queryDesc, uint64 count);
extern void la_statement_leave_run(LaRun outer);
extern const LaRun *la_statement_run(const EState *estate);

#endif							/* LA_STATEMENT_H */
