/*
 * statements.h
 *	  What is known of a statement as a whole, and what look-ahead has done in it.
 *
 * src/base/statements.h
 */
#ifndef LA_STATEMENTS_H
#define LA_STATEMENTS_H

#include "executor/execdesc.h"

#include "base/counters.h"

/* A statement.  What other files find out about it, they keep here. */
typedef struct LaStatement
{
	EState	   *estate;			/* NULL: a utility statement */
	PlanState  *top;			/* its topmost node, if a room is interested
								 * in one; else NULL */
	struct LaNodeDemands *demands;	/* attach/demand.c; NULL until asked for */
	bool		without_effects;	/* attach/runahead.c, "State" */
	bool		without_effects_known;
	struct LaTidLog *cascade_log;	/* write/foreign_key.c: rows that actions
									 * have changed, or NULL */
	int			cascade_seen;	/* so many ResultRelInfos of estate */
	struct LaStatementStats *stats; /* NULL: none are kept */
	MemoryContextCallback callback;
	struct LaStatement *next;	/* an older one */
} LaStatement;

/* How the executor runs a statement (attach/statement.c); all is zero if that is not known. */
typedef struct LaRun
{
	uint64		number;			/* of the call of ExecutorRun(), never used
								 * again */
	bool		to_end;			/* this call of ExecutorRun() returns all rows */
	bool		rows_stay;		/* no row leaves the server before it returns */
	bool		no_code;		/* the receiver calls no function that a user
								 * can define */
	bool		may_fail;		/* the receiver may refuse a row */
} LaRun;

/* A statement is run: how, and what to add at the end.  It is on the stack of who runs it. */
typedef struct LaStatementRun
{
	LaStatement *statement;		/* NULL: one without a record */
	struct LaStatementRun *outer;
	LaRun		how;
	int			depth;			/* la_statement_depth before */
	int64		blocks_read;
	double		read_seconds;
} LaStatementRun;

/* How many statements are in progress in this one: 0 while a top-level statement runs. */
extern int	la_statement_depth;

extern void la_statements_init(void);
extern void la_statements_begin(QueryDesc *queryDesc);
extern LaStatement *la_statements_newest(void);
extern LaStatement *la_statements_find(const EState *estate);
extern LaStatement *la_statements_get(EState *estate);
extern const LaRun *la_statements_run(const EState *estate);
extern struct LaStatementStats *la_statements_stats(const EState *estate);
extern void la_statements_add(struct LaStatementStats *statement, Oid heaprelid, Oid indexrelid,
							  const LaCounters *counters);
extern void la_statements_add_reason(struct LaStatementStats *statement, const char *reason);
extern void la_statements_enter_run(LaStatementRun *run, const QueryDesc *queryDesc);
extern void la_statements_enter_utility(LaStatementRun *run, const PlannedStmt *pstmt);
extern void la_statements_leave_run(LaStatementRun *run);
extern void la_statements_end_utility(const LaStatementRun *run, const char *query);
extern void la_statements_before_end(void);
extern void la_statements_log(const char *query);

#endif							/* LA_STATEMENTS_H */
