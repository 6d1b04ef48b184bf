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
 * COPY of a table calls no planner and no executor.  Its table must not be looked up by name before
 * the server does so: a name may be without a table, or have another one by then, the user may have
 * no right to look, and a look-up may call object_access_hook.  What the server calls first, when
 * it has opened and locked the table and found that the user may do this to it, is the hook for
 * checks of privileges:
 *
 *		before() --> name looked up, table locked --> privileges checked
 *															| ExecutorCheckPerms_hook
 *															v
 *												copy() of each room, in a turn --> rows --> after()
 *
 * copy() is called once for each statement.  It opens what the server may open later or not at
 * all, so it neither fails nor waits (attempt.c).  It is never called where COPY has a query, or
 * fails before.
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

#include "executor/executor.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "base/base.h"
#include "base/compat.h"

#define MAX_REGISTERED 8

static struct
{
	la_utility_before before;	/* NULL where there is none */
	la_utility_copy copy;
	la_utility_after after;
}			registered[MAX_REGISTERED];
static int	nregistered = 0;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;
static ExecutorCheckPerms_hook_type prev_ExecutorCheckPerms = NULL;

/* A utility statement that is running. */
typedef struct Running
{
	const CopyStmt *copy;		/* whose table has not been opened yet, or
								 * NULL */
	Oid			table;			/* ... that has been, for begin_copy() */
	bool		wanted[MAX_REGISTERED]; /* after() is to be called */
} Running;

static Running *running = NULL;

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
call_next(PlannedStmt *pstmt, const char *query, bool read_only, ProcessUtilityContext context,
		  ParamListInfo params, QueryEnvironment *environment, DestReceiver *receiver,
		  QueryCompletion *completion)
{
	if (prev_ProcessUtility)
		prev_ProcessUtility(pstmt, query, read_only, context, params, environment, receiver,
							completion);
	else
		standard_ProcessUtility(pstmt, query, read_only, context, params, environment, receiver,
								completion);
}

static void
utility_ProcessUtility(PlannedStmt *pstmt, const char *query, bool read_only,
					   ProcessUtilityContext context, ParamListInfo params,
					   QueryEnvironment *environment, DestReceiver *receiver,
					   QueryCompletion *completion)
{
	Running		this = {.copy = NULL};
	Running    *outer = running;
	LaStatementRun in_statistics;

	for (int i = 0; i < nregistered; i++)
		this.wanted[i] = registered[i].before != NULL && registered[i].before(pstmt->utilityStmt);
	if (IsA(pstmt->utilityStmt, CopyStmt))
		this.copy = (const CopyStmt *) pstmt->utilityStmt;
	la_statements_enter_utility(&in_statistics, pstmt);
	la_statement_depth += has_nested_queries(pstmt->utilityStmt);
	running = &this;
	PG_TRY();
	{
		call_next(pstmt, query, read_only, context, params, environment, receiver, completion);
	}
	PG_FINALLY();
	{
		running = outer;
		la_statements_leave_run(&in_statistics);
	}
	PG_END_TRY();
	for (int i = 0; i < nregistered; i++)
	{
		if (this.wanted[i])
			registered[i].after();
	}
	la_statements_end_utility(&in_statistics, query);
}

/* ---- COPY of a table ----------------------------------------------------------- */

/* Is it the table of this COPY whose privileges have been checked?  A function may have a query. */
static bool
is_of_copy(const CopyStmt *copy, List *range_table)
{
	const RangeTblEntry *rte = list_length(range_table) == 1 ? linitial(range_table) : NULL;
	char	   *name;

	if (copy->relation == NULL || rte == NULL || rte->rtekind != RTE_RELATION ||
		rte->rellockmode != (copy->is_from ? RowExclusiveLock : AccessShareLock))
		return false;
	name = get_rel_name(rte->relid);
	return name != NULL && strcmp(name, copy->relation->relname) == 0;
}

/* The table is open, and locked. */
static void
begin_copy(void *arg)
{
	Running    *r = arg;
	Relation	table = RelationIdGetRelation(r->table);
	bool		wanted;

	if (table == NULL)
		return;
	for (int i = 0; i < nregistered; i++)
	{
		if (registered[i].copy == NULL)
			continue;
		wanted = r->wanted[i];
		r->wanted[i] = true;	/* also if it fails */
		r->wanted[i] = registered[i].copy(r->copy, table) || wanted;
	}
	RelationClose(table);
}

static bool
utility_ExecutorCheckPerms(LA_CHECK_PERMS_ARGS)
{
	Running    *r = running;
	ErrorData  *error;

	if (prev_ExecutorCheckPerms && !prev_ExecutorCheckPerms(LA_CHECK_PERMS_PASS))
		return false;
	if (r != NULL && r->copy != NULL && is_of_copy(r->copy, rangeTable))
	{
		r->table = linitial_node(RangeTblEntry, rangeTable)->relid;
		if (!la_attempt_open(begin_copy, r, &error) && error != NULL)
			FreeErrorData(error);
		r->copy = NULL;
	}
	return true;
}

static void
add(la_utility_before before, la_utility_copy copy, la_utility_after after)
{
	if (nregistered >= MAX_REGISTERED)
		elog(ERROR, "too many functions registered for utility statements");
	registered[nregistered].before = before;
	registered[nregistered].copy = copy;
	registered[nregistered].after = after;
	nregistered++;
}

void
la_utility_register(la_utility_before before, la_utility_after after)
{
	add(before, NULL, after);
}

void
la_utility_register_copy(la_utility_copy copy, la_utility_after after)
{
	add(NULL, copy, after);
}

void
la_utility_init(void)
{
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = utility_ProcessUtility;
	prev_ExecutorCheckPerms = ExecutorCheckPerms_hook;
	ExecutorCheckPerms_hook = utility_ExecutorCheckPerms;
}
