/*
 * statements.h
 *	  What look-ahead has done in a statement, for the statistics of statements.
 *
 * src/base/statements.h
 */
#ifndef LA_STATEMENTS_H
#define LA_STATEMENTS_H

#include "executor/execdesc.h"

#include "base/counters.h"

/* A statement is run: what to add at the end of it.  It is on the stack of who runs it. */
typedef struct LaStatementRun
{
	struct LaStatementStats *statement; /* NULL: one without a record */
	struct LaStatementRun *outer;
	int64		blocks_read;
	double		read_seconds;
} LaStatementRun;

/* How many statements are in progress in this one: 0 while a top-level statement runs. */
extern int	la_statement_depth;

extern void la_statements_init(void);
extern void la_statements_begin(QueryDesc *queryDesc);
extern struct LaStatementStats *la_statements_find(const EState *estate);
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
