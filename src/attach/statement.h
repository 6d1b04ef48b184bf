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
	uint64		statement;		/* its number, or 0 if not known */
	bool		to_end;			/* this call returns all rows, and ... */
	bool		rows_stay;		/* ... their receiver cannot see when */
	bool		no_code;		/* ... calls no functions for them */
} LaRun;

typedef struct LaStatement
{
	uint64		number;			/* never used again, unlike addresses */
	EState	   *estate;
	PlanState  *top;			/* the topmost node */
	struct LaNodeDemands *demands;	/* demand.c; NULL until asked for */
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
