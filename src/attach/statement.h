/*
 * statement.h
 *	  How the executor runs a statement that a room is interested in.
 *
 * src/attach/statement.h
 */
#ifndef LA_STATEMENT_H
#define LA_STATEMENT_H

#include "base/statements.h"

extern LaStatement *la_statement_of(const EState *estate);
extern void la_statement_enter_run(LaStatementRun *run, const QueryDesc *queryDesc, uint64 count);

#endif							/* LA_STATEMENT_H */
