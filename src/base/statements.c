/*
 * statements.c
 *	  What look-ahead has done in a statement: collected here, kept in stattable.c.
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
 * whether a client has sent it (toplevel).  Without an identifier (compute_query_id) there is no
 * record.
 *
 * Parallel workers.  The server gives them the identifier of the session's top-level statement,
 * which may have called the parallel one.  So a process that runs a parallel statement publishes
 * its key, of which there can be one at a time, in a slot by process number; two processes may
 * share a slot, and then the figures of the first one's workers are lost.  A worker that has added
 * figures says so in the slot, since its leader, which counts the execution, may have none itself.
 *
 * COPY FROM.  It has no EState that a library can see, so its record is the newest one without.  It
 * ends when the utility statement returns.  After an error it ends with the memory context in which
 * the statement was started, whose other callbacks, registered later, are called before.
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

#include "base/compat.h"
#include "base/guc.h"
#include "base/shmem.h"
#include "base/statements.h"
#include "base/statfile.h"
#include "base/stattable.h"

#define LEADER_SLOTS 256

typedef struct LaStatementStats
{
	const EState *estate;		/* NULL: COPY FROM */
	LaStatKey	key;
	bool		is_worker;
	bool		is_leader;		/* its key has been published */
	LaStatSums	sums;
	MemoryContextCallback callback;
	struct LaStatementStats *next;
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

static LaStatementStats *statements = NULL; /* newest first */

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
is_worth_keeping(const LaStatSums *sums)
{
	return sums->blocks_read > 0 || sums->reasons != 0 || sums->c[LA_SCANS_ACTIVATED] > 0 ||
		sums->c[LA_WAIT_NS] > 0;
}

/* Callback of the query's memory context. */
static void
end_statement(void *arg)
{
	LaStatementStats *s = arg;
	LaStatementStats **p = &statements;

	while (*p != NULL && *p != s)
		p = &(*p)->next;
	if (*p == NULL)
		return;					/* COPY FROM has ended before its memory */
	*p = s->next;

	has_ended = is_worth_keeping(&s->sums);
	if (has_ended)
		ended = s->sums;
	if (s->key.queryid == 0)
		return;
	if (has_ended || (s->is_leader && workers_have_figures(&s->key)))
		la_stattable_add(LA_STAT_STATEMENTS, &s->key, &s->sums);
	if (has_ended && s->is_worker)
		tell_leader(&s->key);
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

/* It ends with the memory context. */
static LaStatementStats *
create_record(MemoryContext context, const EState *estate, int64 queryid)
{
	LaStatementStats *s = MemoryContextAllocZero(context, sizeof(LaStatementStats));

	s->estate = estate;
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
	s->callback.func = end_statement;
	s->callback.arg = s;
	MemoryContextRegisterResetCallback(context, &s->callback);
	s->next = statements;
	statements = s;
	return s;
}

/* A statement is started, and none of its nodes has been offered to a room yet. */
void
la_statements_begin(QueryDesc *queryDesc)
{
	int64		queryid = (int64) queryDesc->plannedstmt->queryId;

	if (is_wanted(queryid))
		create_record(queryDesc->estate->es_query_cxt, queryDesc->estate, queryid);
}

LaStatementStats *
la_statements_find(const EState *estate)
{
	LaStatementStats *s = statements;

	while (s != NULL && s->estate != estate)
		s = s->next;
	return s;
}

static bool
is_open(const LaStatementStats *statement)
{
	const LaStatementStats *s = statements;

	while (s != NULL && s != statement)
		s = s->next;
	return s != NULL;
}

/* A node has ended; after an error in COPY FROM, that may be later than the statement. */
void
la_statements_add(LaStatementStats *statement, Oid heaprelid, Oid indexrelid,
				  const LaCounters *counters)
{
	LaStatSums	sums = {.executions = 1};
	LaStatKey	key = {0};

	if (!is_open(statement))
		statement = NULL;
	for (int i = 0; statement != NULL && i < LA_NUM_SHARED_COUNTERS; i++)
		statement->sums.c[i] += counters->c[i];
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
	if (statement != NULL)
		statement->sums.reasons |= la_stattable_reason(reason);
}

static LaStatementRun
enter(LaStatementStats *statement)
{
	LaStatementRun run = {.statement = statement};

	run.blocks_read = pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read;
	run.read_seconds = la_block_read_seconds(pgBufferUsage);
	return run;
}

/* ExecutorRun() begins.  Returns what to pass to la_statements_leave_run() at its end. */
LaStatementRun
la_statements_enter_run(const QueryDesc *queryDesc)
{
	LaStatementRun run = enter(la_statements_find(queryDesc->estate));

	if (run.statement == NULL)
		return run;
	if (queryDesc->plannedstmt->parallelModeNeeded && !run.statement->is_worker &&
		leaders != NULL)
	{
		publish_leader(&run.statement->key, run.statement->is_leader);
		run.statement->is_leader = true;
	}
	return run;
}

/* What workers read, the server adds to what their leader has read. */
void
la_statements_leave_run(const LaStatementRun *run)
{
	LaStatSums *sums;

	if (run->statement == NULL || run->statement->is_worker)
		return;
	sums = &run->statement->sums;
	sums->blocks_read += pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read -
		run->blocks_read;
	sums->read_ns += (int64) ((la_block_read_seconds(pgBufferUsage) - run->read_seconds) * 1e9);
}

/* A utility statement begins.  Returns what to pass to la_statements_leave_utility() at its end. */
LaStatementRun
la_statements_enter_utility(const PlannedStmt *pstmt)
{
	int64		queryid = (int64) pstmt->queryId;

	if (!IsA(pstmt->utilityStmt, CopyStmt) || !((CopyStmt *) pstmt->utilityStmt)->is_from ||
		!is_wanted(queryid))
		return enter(NULL);
	return enter(create_record(CurrentMemoryContext, NULL, queryid));
}

void
la_statements_leave_utility(const LaStatementRun *run, const char *query)
{
	if (run->statement == NULL)
		return;
	la_statements_leave_run(run);
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
