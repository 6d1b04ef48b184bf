/*
 * reset.c
 *	  Forgetting what a session keeps for itself.
 *
 * A connection pooler hands a session from one client to the next.  What the session
 * keeps of the statements of the one is not for the other: the figures of the
 * last statement, and what was learnt of indexes.  Rooms register a function that
 * forgets it.  They are called after
 *
 *		DISCARD ALL		what poolers send, and meant to forget everything;
 *		RESET ALL		what they send where DISCARD ALL cannot be used: in a
 *						transaction, or to keep prepared statements.
 *
 * The other forms of DISCARD are about things of the server.
 *
 * src/base/reset.c
 */
#include "postgres.h"

#include "nodes/parsenodes.h"

#include "base/reset.h"
#include "base/utility.h"

#define MAX_REGISTERED 4

static la_reset_function registered[MAX_REGISTERED];
static int	nregistered = 0;

static bool
resets_session(const Node *statement)
{
	if (IsA(statement, DiscardStmt))
		return ((const DiscardStmt *) statement)->target == DISCARD_ALL;
	return IsA(statement, VariableSetStmt) &&
		((const VariableSetStmt *) statement)->kind == VAR_RESET_ALL;
}

static void
reset_session(void)
{
	for (int i = 0; i < nregistered; i++)
		registered[i] ();
}

void
la_reset_register(la_reset_function function)
{
	if (nregistered >= MAX_REGISTERED)
		elog(ERROR, "too many functions registered to forget the state of a session");
	registered[nregistered++] = function;
}

void
la_reset_init(void)
{
	la_utility_register(resets_session, reset_session);
}
