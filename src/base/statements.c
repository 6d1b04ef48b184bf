/*
 * statements.c
 *	  What is known of a statement as a whole, and what look-ahead has done in it.
 *
 * There is a record for each statement with a node that a room is interested in, or whose figures
 * are wanted.  It lives as long as the statement's EState.  Figures are collected here, and kept in
 * stattable.c:
 *
 *		ExecutorStart: la_statements_begin()		a record in the query's memory context
 *			nodes end: la_statements_add()			... collects their counters
 *			ExecutorRun: enter_run, leave_run		... and the blocks that were read
 *		the query's memory is freed					--> entry of the table, if there is anything to
 *														keep
 *
 * The record's callback is the first one of its memory context, so it is called after those of the
 * nodes, also after an error.  An execution in which no block was read, no node looked ahead and
 * none was refused leaves no trace: so cached point queries take no lock.
 *
 * A statement is identified as in pg_stat_statements: by user, database, query identifier, and
 * whether a client has sent it (toplevel).  Without an identifier (compute_query_id) it has no
 * figures.
 *
 * Parallel workers.  The server gives them the identifier of the session's top-level statement,
 * which may have called the parallel one.  So a process that runs a parallel statement publishes
 * its key, of which there can be one at a time, in a slot by process number; two processes may
 * share a slot, and then the figures of the first one's workers are lost.  A worker that has added
 * figures says so in the slot, since its leader, which counts the execution, may have none itself.
 *
 * Statements within statements.  Those of functions, triggers, cascades and utility statements have
 * records of their own, and what they do counts for each statement around them as well, as the
 * blocks that they read do.  So no statement seems idle in which something looked ahead.
 *
 *		running:  CALL <-- INSERT (ExecutorRun) <-- trigger's query: a node of it ends
 *					^		  ^								  |
 *					+---------+------ "within" ---------------+---> its own sums
 *
 * Not around it are a FETCH and a CLOSE, which run and end the query of a cursor.
 *
 * Utility statements have no EState that a library can see.  What looks ahead in one without a
 * query, such as COPY FROM, is that of the innermost one.  A record ends when the statement
 * returns.  After an error it ends with the memory context in which the statement was started,
 * whose other callbacks, registered later, are called before.  It is kept only if something
 * looked ahead or was refused in it, except of COPY FROM.
 *
 * Time saved.  window/saving.c estimates it for each read; sums are kept here.
 *
 * src/base/statements.c
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/instrument.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/proc.h"

#include "base/base.h"
#include "base/base_int.h"
#include "base/compat.h"

#define LEADER_SLOTS 256
#define MOST_LOOKED 16			/* statements */

typedef struct LaStatementStats
{
	LaStatKey	key;
	bool		is_worker;
	bool		is_leader;		/* its key has been published */
	bool		counts_reads;	/* blocks that are read are worth an entry */
	LaStatSums	sums;
	LaStatSums	within;			/* statements in it: counters and reasons */
} LaStatementStats;

int			la_statement_depth = 0;

typedef struct LeaderSlot
{
	slock_t		mutex;
	int			pid;			/* or 0 */
	bool		has_figures;	/* of workers */
	LaStatKey	key;
} LeaderSlot;

typedef struct Leaders
{
	LeaderSlot	slots[LEADER_SLOTS];
} Leaders;

static Leaders *leaders = NULL;

static LaStatement *statements = NULL;	/* newest first */

/* A record of a query, without which one would have to be allocated for most of them. */
typedef struct Record
{
	LaStatement statement;
	LaStatementStats stats;
} Record;

static Record spare;
static bool spare_is_free = true;

/* What is being run: the innermost statement. */
static LaStatementRun *innermost = NULL;

/* Of the statement that has ended last, for la_statements_log(). */
static LaStatSums ended;
static bool has_ended = false;

/* ---- parallel queries --------------------------------------------------------------- */

static LeaderSlot *
slot_of(int pid)
{
	return &leaders->slots[murmurhash32((uint32) pid) % LEADER_SLOTS];
}

static bool
is_published(const LeaderSlot *slot, int pid, const LaStatKey *key)
{
	return slot->pid == pid && memcmp(&slot->key, key, sizeof(LaStatKey)) == 0;
}

/* A process that may start workers runs this statement; again: it goes on with it. */
static void
publish_leader(const LaStatKey *key, bool again)
{
	LeaderSlot *slot = slot_of(MyProcPid);

	SpinLockAcquire(&slot->mutex);
	if (!again || !is_published(slot, MyProcPid, key))
		slot->has_figures = false;
	slot->pid = MyProcPid;
	slot->key = *key;
	SpinLockRelease(&slot->mutex);
}

/* This worker has added figures to those of its leader's statement. */
static void
tell_leader(const LaStatKey *key)
{
	PGPROC	   *leader = MyProc == NULL ? NULL : MyProc->lockGroupLeader;
	int			pid = leader == NULL ? 0 : leader->pid;
	LeaderSlot *slot = slot_of(pid);

	SpinLockAcquire(&slot->mutex);
	if (pid != 0 && is_published(slot, pid, key))
		slot->has_figures = true;
	SpinLockRelease(&slot->mutex);
}

/* Have workers of this statement, which has ended, added figures? */
static bool
workers_have_figures(const LaStatKey *key)
{
	LeaderSlot *slot = slot_of(MyProcPid);
	bool		result;

	SpinLockAcquire(&slot->mutex);
	result = is_published(slot, MyProcPid, key) && slot->has_figures;
	SpinLockRelease(&slot->mutex);
	return result;
}

/* What the leader of this worker runs.  Returns false if that is not known any more. */
static bool
find_leader(LaStatKey *key)
{
	PGPROC	   *leader = MyProc->lockGroupLeader;
	int			pid = leader == NULL ? 0 : leader->pid;
	LeaderSlot *slot = slot_of(pid);
	bool		found;

	SpinLockAcquire(&slot->mutex);
	found = pid != 0 && slot->pid == pid;
	if (found)
		*key = slot->key;
	SpinLockRelease(&slot->mutex);
	return found;
}

static void
init_leaders(void *area)
{
	Leaders    *l = area;

	for (int i = 0; i < LEADER_SLOTS; i++)
	{
		SpinLockInit(&l->slots[i].mutex);
		l->slots[i].pid = 0;
		l->slots[i].has_figures = false;
	}
}

void
la_statements_init(void)
{
	la_shmem_register("pg_lookahead leaders", sizeof(Leaders), init_leaders,
					  (void **) &leaders);
	la_stattable_init();
	la_statfile_init();
}

/* ---- a statement's record ------------------------------------------------------- */

static bool
is_worth_keeping(const LaStatementStats *s, const LaStatSums *sums)
{
	return (s->counts_reads && (sums->blocks_read > 0 || sums->c[LA_WAIT_NS] > 0)) ||
		sums->reasons != 0 || sums->c[LA_SCANS_ACTIVATED] > 0;
}

/* With what statements in it have done. */
static LaStatSums
total(const LaStatementStats *s)
{
	LaStatSums	sums = s->sums;

	sums.reasons |= s->within.reasons;
	for (int i = 0; i < LA_NUM_SHARED_COUNTERS; i++)
		sums.c[i] += s->within.c[i];
	return sums;
}

/* Something happened in this statement, or NULL: tell those around it. */
static void
tell_around(const LaStatementStats *statement, const int64 *counters, uint64 reasons)
{
	for (LaStatementRun *run = innermost; run != NULL; run = run->outer)
	{
		LaStatementStats *around = run->statement == NULL ? NULL : run->statement->stats;

		if (around == NULL || around == statement)
			continue;
		around->within.reasons |= reasons;
		for (int i = 0; counters != NULL && i < LA_NUM_SHARED_COUNTERS; i++)
			around->within.c[i] += counters[i];
	}
}

/* Its workers have looked ahead, and have added that to its own figures only. */
static void
tell_of_workers(const LaStatementStats *statement)
{
	int64		counters[LA_NUM_SHARED_COUNTERS] = {[LA_SCANS_ACTIVATED] = 1};

	if (total(statement).c[LA_SCANS_ACTIVATED] == 0)
		tell_around(statement, counters, 0);
}

static void
keep_stats(const LaStatementStats *s)
{
	LaStatSums	sums = total(s);
	bool		worth_keeping = is_worth_keeping(s, &sums);
	bool		has_workers;

	/* what is within has been logged */
	has_ended = is_worth_keeping(s, &s->sums);
	if (has_ended)
		ended = s->sums;
	if (s->key.queryid == 0)
		return;
	has_workers = s->is_leader && workers_have_figures(&s->key);
	if (has_workers)
		tell_of_workers(s);
	if (worth_keeping || has_workers)
		la_stattable_add(LA_STAT_STATEMENTS, &s->key, &sums);
	if (worth_keeping && s->is_worker)
		tell_leader(&s->key);
}

/* Callback of the query's memory context. */
static void
end_statement(void *arg)
{
	LaStatement *s = arg;
	LaStatement **p = &statements;

	while (*p != NULL && *p != s)
		p = &(*p)->next;
	if (*p == NULL)
		return;					/* a utility statement ends before its memory */
	*p = s->next;
	for (LaStatementRun *run = innermost; run != NULL; run = run->outer)
	{
		if (run->statement == s)
			run->statement = NULL;
	}
	if (s->stats != NULL)
		keep_stats(s->stats);
	if (s == &spare.statement)
		spare_is_free = true;
}

/*
 * A record, which ends with the memory context.  A utility statement's is in that, as its callback
 * stays there when the statement has ended.
 */
static LaStatement *
create_record(MemoryContext context, EState *estate, bool with_stats)
{
	Record	   *record = &spare;
	LaStatement *s;

	if (estate != NULL && spare_is_free)
		spare_is_free = false;
	else
		record = MemoryContextAlloc(context, with_stats ? sizeof(Record) : sizeof(LaStatement));
	s = &record->statement;
	memset(s, 0, sizeof(LaStatement));
	if (with_stats)
		memset(&record->stats, 0, sizeof(LaStatementStats));
	s->estate = estate;
	s->stats = with_stats ? &record->stats : NULL;
	s->callback.func = end_statement;
	s->callback.arg = s;
	MemoryContextRegisterResetCallback(context, &s->callback);
	s->next = statements;
	statements = s;
	return s;
}

/* Is anything to be kept, or logged, of a statement with this identifier? */
static bool
is_wanted(int64 queryid)
{
	/*
	 * without track_activities, the server does not tell workers the
	 * identifier
	 */
	bool		is_identified = (queryid != 0 || IsParallelWorker()) &&
		la_stattable_exists(LA_STAT_STATEMENTS);

	return is_identified || la_log_min_saved >= 0;
}

static LaStatement *
create_with_stats(MemoryContext context, EState *estate, int64 queryid)
{
	LaStatement *statement = create_record(context, estate, true);
	LaStatementStats *s = statement->stats;

	s->counts_reads = true;
	s->is_worker = IsParallelWorker();
	if (!s->is_worker)
	{
		s->key.dbid = MyDatabaseId;
		s->key.userid = GetUserId();
		s->key.queryid = queryid;
		s->key.toplevel = la_statement_depth == 0;
		s->sums.executions = 1;
	}
	else if (leaders == NULL || !find_leader(&s->key))
		s->key.queryid = 0;
	return statement;
}

/* A statement is started, and none of its nodes has been offered to a room yet. */
void
la_statements_begin(QueryDesc *queryDesc)
{
	int64		queryid = (int64) queryDesc->plannedstmt->queryId;

	if (is_wanted(queryid))
		(void) create_with_stats(queryDesc->estate->es_query_cxt, queryDesc->estate, queryid);
}

/* The first one of all records; the others are behind it. */
LaStatement *
la_statements_newest(void)
{
	return statements;
}

/* Or NULL. */
LaStatement *
la_statements_find(const EState *estate)
{
	LaStatement *s = statements;

	while (s != NULL && s->estate != estate)
		s = s->next;
	return s;
}

/* The same, with a new one if there is none. */
LaStatement *
la_statements_get(EState *estate)
{
	LaStatement *s = la_statements_find(estate);

	return s != NULL ? s : create_record(estate->es_query_cxt, estate, false);
}

/* A room is interested in a statement that is to be run.  Its record is the newest, if any. */
void
la_statements_set_top(QueryDesc *queryDesc)
{
	EState	   *estate = queryDesc->estate;
	LaStatement *s = statements;

	if (s == NULL || s->estate != estate)
		s = create_record(estate->es_query_cxt, estate, false);
	s->top = queryDesc->planstate;
}

/*
 * Has this statement ended?  That is not known, and denied, where many are open, as in a
 * transaction with thousands of cursors.
 */
bool
la_statements_has_ended(const EState *estate)
{
	const LaStatement *s = statements;

	for (int i = 0; s != NULL && s->estate != estate; i++)
	{
		if (i >= MOST_LOOKED)
			return false;
		s = s->next;
	}
	return s == NULL;
}

/* How this statement is run.  All is zero unless it is the innermost one in progress. */
const LaRun *
la_statements_run(const EState *estate)
{
	static const LaRun unknown = {0};

	return innermost != NULL && innermost->statement != NULL &&
		innermost->statement->estate == estate ? &innermost->how : &unknown;
}

/* The innermost utility statement, if it is one that has a record. */
static LaStatement *
find_utility(void)
{
	for (const LaStatementRun *run = innermost; run != NULL; run = run->outer)
	{
		if (run->statement != NULL && run->statement->estate == NULL)
			return run->statement;
	}
	return NULL;
}

/* Figures of a statement, or NULL.  estate: NULL for what a utility statement does. */
LaStatementStats *
la_statements_stats(const EState *estate)
{
	LaStatement *s = estate == NULL ? find_utility() : la_statements_find(estate);

	return s == NULL ? NULL : s->stats;
}

static bool
is_open(const LaStatementStats *stats)
{
	const LaStatement *s = statements;

	while (s != NULL && s->stats != stats)
		s = s->next;
	return s != NULL;
}

/* A node has ended; after an error in a utility statement, that may be later than the statement. */
void
la_statements_add(LaStatementStats *statement, Oid heaprelid, Oid indexrelid,
				  const LaCounters *counters)
{
	LaStatSums	sums = {.executions = 1};
	LaStatKey	key = {0};

	if (statement != NULL && !is_open(statement))
		statement = NULL;
	for (int i = 0; statement != NULL && i < LA_NUM_SHARED_COUNTERS; i++)
		statement->sums.c[i] += counters->c[i];
	tell_around(statement, counters->c, 0);
	if (counters->c[LA_SCANS_ACTIVATED] == 0 || !OidIsValid(heaprelid))
		return;
	key.dbid = MyDatabaseId;
	key.heaprelid = heaprelid;
	key.indexrelid = indexrelid;
	memcpy(sums.c, counters->c, sizeof(sums.c));
	la_stattable_add(LA_STAT_INDEXES, &key, &sums);
}

void
la_statements_add_reason(LaStatementStats *statement, const char *reason)
{
	uint64		bit;

	if (statement == NULL && innermost == NULL)
		return;
	bit = la_stattable_reason(reason);
	if (statement != NULL)
		statement->sums.reasons |= bit;
	tell_around(statement, NULL, bit);
}

static void
enter(LaStatementRun *run, LaStatement *statement)
{
	run->statement = statement;
	run->outer = innermost;
	run->depth = la_statement_depth;
	memset(&run->how, 0, sizeof(run->how));
	innermost = run;
	run->blocks_read = pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read;
	run->read_seconds = la_block_read_seconds(pgBufferUsage);
}

/* ExecutorRun() begins.  la_statements_leave_run() is called at its end, also by an error. */
void
la_statements_enter_run(LaStatementRun *run, const QueryDesc *queryDesc)
{
	LaStatement *statement = la_statements_find(queryDesc->estate);
	LaStatementStats *s = statement == NULL ? NULL : statement->stats;

	enter(run, statement);
	la_statement_depth++;
	if (s != NULL && queryDesc->plannedstmt->parallelModeNeeded && !s->is_worker &&
		leaders != NULL)
	{
		publish_leader(&s->key, s->is_leader);
		s->is_leader = true;
	}
}

/* What workers read, the server adds to what their leader has read. */
void
la_statements_leave_run(LaStatementRun *run)
{
	LaStatementStats *s = run->statement == NULL ? NULL : run->statement->stats;
	LaStatSums *sums;

	innermost = run->outer;
	la_statement_depth = run->depth;
	if (s == NULL || s->is_worker)
		return;
	sums = &s->sums;
	sums->blocks_read += pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read -
		run->blocks_read;
	sums->read_ns += (int64) ((la_block_read_seconds(pgBufferUsage) - run->read_seconds) * 1e9);
}

/* Has it figures of its own?  Those of EXECUTE are its query's, those of a cursor DECLARE's. */
static bool
is_counted(const Node *utility)
{
	switch (nodeTag(utility))
	{
		case T_ExecuteStmt:
		case T_PrepareStmt:
		case T_FetchStmt:
		case T_ClosePortalStmt:
		case T_TransactionStmt:
			return false;
		default:
			return true;
	}
}

/* A utility statement begins.  la_statements_leave_run() is called at its end, also by an error. */
void
la_statements_enter_utility(LaStatementRun *run, const PlannedStmt *pstmt)
{
	const Node *utility = pstmt->utilityStmt;
	int64		queryid = (int64) pstmt->queryId;
	LaStatement *s = NULL;

	if (is_counted(utility) && is_wanted(queryid))
	{
		s = create_with_stats(CurrentMemoryContext, NULL, queryid);
		s->stats->counts_reads = IsA(utility, CopyStmt) && ((const CopyStmt *) utility)->is_from;
	}
	enter(run, s);
}

/* It has succeeded, and been left. */
void
la_statements_end_utility(const LaStatementRun *run, const char *query)
{
	if (run->statement == NULL)
		return;
	la_statements_before_end();
	end_statement(run->statement);
	la_statements_log(query);
}

/* The memory of a statement is about to be freed: forget what an earlier one has left. */
void
la_statements_before_end(void)
{
	has_ended = false;
}

/* The memory of a statement has been freed: log what was saved, if it is enough. */
void
la_statements_log(const char *query)
{
	const int64 *c = ended.c;
	bool		enough = has_ended && la_log_min_saved >= 0 && !IsParallelWorker() &&
		c[LA_SCANS_ACTIVATED] > 0 &&
		(la_log_min_saved == 0 ||
		 (double) c[LA_SAVED_NS] >= la_log_min_saved * LA_NS_IN_MS);

	has_ended = false;
	if (!enough)
		return;
	ereport(LOG,
			(errmsg("look-ahead saved %.3f ms (error bound %.3f ms), waited %.3f ms",
					(double) c[LA_SAVED_NS] / LA_NS_IN_MS,
					(double) c[LA_SAVED_ERROR_NS] / LA_NS_IN_MS,
					(double) c[LA_WAIT_NS] / LA_NS_IN_MS),
			 errdetail("Blocks: " INT64_FORMAT " foreseen, " INT64_FORMAT " issued, "
					   INT64_FORMAT " on time, " INT64_FORMAT " late, " INT64_FORMAT
					   " wasted, " INT64_FORMAT " cached.  Index pages issued: "
					   INT64_FORMAT ".  Query text: %s",
					   c[LA_BLOCKS_FORESEEN], c[LA_BLOCKS_ISSUED], c[LA_BLOCKS_ON_TIME],
					   c[LA_BLOCKS_LATE], c[LA_BLOCKS_WASTED], c[LA_BLOCKS_CACHED],
					   c[LA_LEAF_PAGES_ISSUED], query ? query : ""),
			 errhidestmt(true)));
}
