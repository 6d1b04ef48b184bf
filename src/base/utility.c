/*
 * utility.c
 *	  What is done before and after utility statements: one hook for all rooms.
 *
 *		before() of each --> the next hook, or the server --> after() of those that
 *														|	  asked for it
 *														+---> an error: none
 *
 * Statements nest: what is to be done after one is kept on the stack, so an error leaves
 * nothing behind here.  after() is called without the statement, which may have been freed.
 *
 * What a session keeps of one client's statements (figures of the last one, a history of its
 * own) must not reach the next client to which a connection pooler assigns the session.
 * So the rooms forget it after
 *
 *		DISCARD ALL		which poolers send, and which is meant to forget everything;
 *		RESET ALL		which they send where DISCARD ALL cannot be used: in a transaction,
 *						or to keep prepared statements.
 *
 * The other forms of DISCARD concern only what the server keeps.
 *
 * Queries within a utility statement, as in CREATE TABLE AS, are not toplevel (statements.c), as in
 * pg_stat_statements.
 *
 * src/base/utility.c
 */
#include "postgres.h"

#include "tcop/utility.h"

#include "base/statements.h"
#include "base/utility.h"

#define MAX_REGISTERED 8

static struct
{
	la_utility_before before;
	la_utility_after after;
}			registered[MAX_REGISTERED];
static int	nregistered = 0;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;

/* For registration as "before": does the statement reset the session? */
bool
la_utility_resets_session(const Node *statement)
{
	if (IsA(statement, DiscardStmt))
		return ((const DiscardStmt *) statement)->target == DISCARD_ALL;
	return IsA(statement, VariableSetStmt) &&
		((const VariableSetStmt *) statement)->kind == VAR_RESET_ALL;
}

/* The queries of EXECUTE are sent by a client as much as the statement itself. */
static bool
has_nested_queries(const Node *statement)
{
	return !IsA(statement, ExecuteStmt) && !IsA(statement, PrepareStmt);
}

static void
utility_ProcessUtility(PlannedStmt *pstmt, const char *query, bool read_only,
					   ProcessUtilityContext context, ParamListInfo params,
					   QueryEnvironment *environment, DestReceiver *receiver,
					   QueryCompletion *completion)
{
	bool		wanted[MAX_REGISTERED];
	int			depth = la_statement_depth;
	LaStatementRun run = la_statements_enter_utility(pstmt);

	for (int i = 0; i < nregistered; i++)
		wanted[i] = registered[i].before(pstmt->utilityStmt);
	la_statement_depth += has_nested_queries(pstmt->utilityStmt);
	PG_TRY();
	{
		if (prev_ProcessUtility)
			prev_ProcessUtility(pstmt, query, read_only, context, params,
								environment, receiver, completion);
		else
			standard_ProcessUtility(pstmt, query, read_only, context, params,
									environment, receiver, completion);
	}
	PG_FINALLY();
	{
		la_statement_depth = depth;
	}
	PG_END_TRY();
	for (int i = 0; i < nregistered; i++)
	{
		if (wanted[i])
			registered[i].after();
	}
	la_statements_leave_utility(&run, query);
}

void
la_utility_register(la_utility_before before, la_utility_after after)
{
	if (nregistered >= MAX_REGISTERED)
		elog(ERROR, "too many functions registered for utility statements");
	registered[nregistered].before = before;
	registered[nregistered].after = after;
	nregistered++;
}

void
la_utility_init(void)
{
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = utility_ProcessUtility;
}
