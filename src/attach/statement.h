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
	uint64		number;			/* of the call of ExecutorRun(), never used
								 * again; 0 likewise */
	bool		to_end;			/* this call of ExecutorRun() returns all rows */
	bool		rows_stay;		/* no row leaves the server before it returns */
	bool		no_code;		/* the receiver calls no function that a user
								 * can define */
	bool		may_fail;		/* the receiver may refuse a row */
} LaRun;

typedef struct LaStatement
{
	uint64		number;			/* never used again, unlike addresses */
	EState	   *estate;
	PlanState  *top;			/* the topmost node */
	struct LaNodeDemands *demands;	/* demand.c; NULL until asked for */
	bool		without_effects;	/* runahead.c, "State" */
	bool		without_effects_known;
	MemoryContextCallback callback;
	struct LaStatement *next;
} LaStatement;

extern void la_statement_begin(QueryDesc *queryDesc);
extern LaStatement *la_statement_of(const EState *estate);
extern LaRun la_statement_enter_run(const QueryDesc *queryDesc, uint64 count);
extern void la_statement_leave_run(LaRun outer);
extern const LaRun *la_statement_run(const EState *estate);

#endif							/* LA_STATEMENT_H */
