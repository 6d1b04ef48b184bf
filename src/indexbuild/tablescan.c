/*
 * tablescan.c
 *	  The table's scan of an index build, with parallel workers or without.
 *
 * Without workers, the rows of table_index_build_scan() are put into one sort that has all of
 * maintenance_work_mem.  With workers, leader and workers share one scan of the table.  Each sorts
 * what it reads in its share of maintenance_work_mem, and each worker leaves its rows in files
 * that are shared.  When the last worker is done, the leader merges them with its own rows, and
 * loads the index alone:
 *
 *		worker 0	scan, sort --- runs la.0.*			---+
 *		worker 1	scan, sort --- la.1.*				---+-- merge, load
 *		leader		scan, sort --- la.2.*, and memory	---+
 *
 * The server passes the whole index through files, and through a merge by comparison functions.
 *
 * Behaviours
 *	WORKERS		As many as the server would ask for; fewer, or none, if no more can be had.
 *				They lock, report their activity and count buffers and WAL as the server's do.
 *	ERRORS		An error in a worker becomes the leader's.  Files are deleted with the segment
 *				of shared memory.
 *	ENCODING	The leader chooses how keys are encoded.  A worker starts later, and may see a
 *				change of the catalogs: a new label of an enum.
 *
 * src/indexbuild/tablescan.c
 */
#include "postgres.h"

#include <dlfcn.h>

#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#include "base/compat.h"
#include "indexbuild/indexbuild_int.h"

#define KEY_SHARED			UINT64CONST(0x1A00000000000001)
#define KEY_QUERY			UINT64CONST(0x1A00000000000002)
#define KEY_WAL				UINT64CONST(0x1A00000000000003)
#define KEY_BUFFERS			UINT64CONST(0x1A00000000000004)
#define KEY_NORMALIZED_KEY	UINT64CONST(0x1A00000000000005)

typedef struct Shared
{
	/* set before workers start */
	Oid			heap;
	Oid			index;
	bool		concurrent;
	bool		may_restart;
	int			participants;	/* asked for, with the leader */
	uint64		query_id;
	SharedFileSet files;

	/* protected by the mutex */
	int			done;			/* participants */
	LaTableScanResult result;	/* of these */
	slock_t		mutex;
	ConditionVariable done_cv;

	/* followed by the parallel scan's description */
} Shared;

#define shared_scan(shared) \
	((ParallelTableScanDesc) ((char *) (shared) + BUFFERALIGN(sizeof(Shared))))

struct LaTableScan
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	LaNormalizedKey *key;
	bool		may_restart;

	/* with workers, or else NULL */
	ParallelContext *context;
	Snapshot	snapshot;
	Shared	   *shared;
	WalUsage   *wal;
	BufferUsage *buffers;
};

extern PGDLLEXPORT void la_tablescan_worker(dsm_segment *seg, shm_toc *toc);

/* ---- one process -------------------------------------------------------- */

typedef struct BuildState
{
	LaSort	   *sort;
	double		tuples;
} BuildState;

static void
build_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			   bool alive, void *arg)
{
	BuildState *state = arg;

	la_sort_put(state->sort, tid, values, isnull, alive);
	state->tuples += 1;
}

/* Put all rows of a scan into the sort; those of the whole table if scan is NULL. */
static void
scan_table(Relation heap, Relation index, IndexInfo *info, TableScanDesc scan,
		   bool progress, LaSort *sort, LaTableScanResult *result)
{
	BuildState	state = {sort, 0};

	result->heap_tuples = table_index_build_scan(heap, index, info, true, progress,
												 build_callback, &state, scan);
	result->index_tuples = state.tuples;
	result->broken_hot_chain = info->ii_BrokenHotChain;
	result->outcome = la_sort_outcome(sort);
}

/* The same for this process's share of a parallel scan. */
static void
scan_share(Relation heap, Relation index, Shared *shared, bool progress, LaSort *sort,
		   LaTableScanResult *result)
{
	TableScanDesc scan = la_table_beginscan_parallel(heap, shared_scan(shared));

	/*
	 * Each share has an IndexInfo of its own, as in the server.  The caller's
	 * may have constant expressions that are not folded yet: to evaluate them
	 * here would call functions once more.
	 */
	IndexInfo  *info = BuildIndexInfo(index);

	info->ii_Concurrent = shared->concurrent;
	scan_table(heap, index, info, scan, progress, sort, result);
}

/* A share is done. */
static void
add_result(Shared *shared, const LaTableScanResult *result)
{
	LaTableScanResult *sum = &shared->result;

	SpinLockAcquire(&shared->mutex);
	shared->done++;
	sum->heap_tuples += result->heap_tuples;
	sum->index_tuples += result->index_tuples;
	sum->broken_hot_chain |= result->broken_hot_chain;
	sum->outcome = Max(sum->outcome, result->outcome);
	SpinLockRelease(&shared->mutex);
	ConditionVariableSignal(&shared->done_cv);
}

/* ---- leader ------------------------------------------------------------- */

/* Where this library was loaded from: workers must find it, whatever dynamic_library_path is. */
static const char *
library_path(void)
{
	Dl_info		info;

	if (dladdr((void *) la_tablescan_worker, &info) != 0 && info.dli_fname != NULL &&
		info.dli_fname[0] == '/')
		return info.dli_fname;
	return "$libdir/pg_lookahead";
}

static Size
shared_size(LaTableScan *s)
{
	return add_size(BUFFERALIGN(sizeof(Shared)),
					table_parallelscan_estimate(s->heap, s->snapshot));
}

static void
estimate_memory(LaTableScan *s)
{
	shm_toc_estimator *estimator = &s->context->estimator;
	int			nworkers = s->context->nworkers;

	shm_toc_estimate_chunk(estimator, shared_size(s));
	shm_toc_estimate_chunk(estimator, mul_size(sizeof(WalUsage), nworkers));
	shm_toc_estimate_chunk(estimator, mul_size(sizeof(BufferUsage), nworkers));
	shm_toc_estimate_chunk(estimator, la_normkey_size(s->key));
	shm_toc_estimate_keys(estimator, 4);
	if (debug_query_string)
	{
		shm_toc_estimate_chunk(estimator, strlen(debug_query_string) + 1);
		shm_toc_estimate_keys(estimator, 1);
	}
}

static void *
allocate(shm_toc *toc, uint64 key, Size size)
{
	void	   *memory = shm_toc_allocate(toc, size);

	shm_toc_insert(toc, key, memory);
	return memory;
}

static void
fill_memory(LaTableScan *s)
{
	shm_toc    *toc = s->context->toc;
	int			nworkers = s->context->nworkers;
	Shared	   *shared = allocate(toc, KEY_SHARED, shared_size(s));

	memset(shared, 0, sizeof(Shared));
	shared->heap = RelationGetRelid(s->heap);
	shared->index = RelationGetRelid(s->index);
	shared->concurrent = s->info->ii_Concurrent;
	shared->may_restart = s->may_restart;
	shared->participants = nworkers + 1;
	shared->query_id = pgstat_get_my_query_id();
	ConditionVariableInit(&shared->done_cv);
	SpinLockInit(&shared->mutex);
	SharedFileSetInit(&shared->files, s->context->seg);
	table_parallelscan_initialize(s->heap, shared_scan(shared), s->snapshot);
	s->shared = shared;

	s->wal = allocate(toc, KEY_WAL, mul_size(sizeof(WalUsage), nworkers));
	s->buffers = allocate(toc, KEY_BUFFERS, mul_size(sizeof(BufferUsage), nworkers));
	memcpy(allocate(toc, KEY_NORMALIZED_KEY, la_normkey_size(s->key)), s->key,
		   la_normkey_size(s->key));
	if (debug_query_string)
		strcpy(allocate(toc, KEY_QUERY, strlen(debug_query_string) + 1),
			   debug_query_string);
}

static void
leave_parallel_mode(LaTableScan *s)
{
	if (IsMVCCSnapshot(s->snapshot))
		UnregisterSnapshot(s->snapshot);
	DestroyParallelContext(s->context);
	ExitParallelMode();
	s->context = NULL;
}

static void
stop_workers(LaTableScan *s)
{
	WaitForParallelWorkersToFinish(s->context);
	for (int i = 0; i < s->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&s->buffers[i], &s->wal[i]);
	leave_parallel_mode(s);
}

/* Behaviour WORKERS. */
static void
start_workers(LaTableScan *s)
{
	EnterParallelMode();
	s->context = CreateParallelContext(library_path(), "la_tablescan_worker",
									   s->info->ii_ParallelWorkers);
	/* as in a serial build: all rows, or those that a snapshot sees */
	s->snapshot = s->info->ii_Concurrent ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	estimate_memory(s);
	InitializeParallelDSM(s->context);
	if (s->context->seg == NULL)
	{
		leave_parallel_mode(s);
		return;
	}
	fill_memory(s);
	LaunchParallelWorkers(s->context);
	if (s->context->nworkers_launched == 0)
		stop_workers(s);
}

/*
 * Get ready to scan the table, and start workers if the build has any.  The key must live as long
 * as the scan.  Dictionaries are not shared, so a key with one has no workers.  may_restart: see
 * la_sort_begin().
 */
LaTableScan *
la_tablescan_begin(Relation heap, Relation index, IndexInfo *info, LaNormalizedKey *key,
				   bool may_restart)
{
	LaTableScan *s = palloc0(sizeof(LaTableScan));

	s->heap = heap;
	s->index = index;
	s->info = info;
	s->key = key;
	s->may_restart = may_restart;
	if (info->ii_ParallelWorkers > 0 && !la_normkey_has_dictionary(key))
		start_workers(s);
	return s;
}

bool
la_tablescan_has_workers(const LaTableScan *s)
{
	return s->context != NULL;
}

/* Scan the table with workers: the leader's share, and the runs of the others. */
static LaSort *
sort_with_workers(LaTableScan *s, Size memory, LaTableScanResult *result)
{
	Shared	   *shared = s->shared;
	int			participants = s->context->nworkers_launched + 1;
	LaSort	   *sort = la_sort_begin(s->index, s->key, memory / participants,
									 s->may_restart, &shared->files,
									 s->context->nworkers);

	scan_share(s->heap, s->index, shared, true, sort, result);
	add_result(shared, result);

	/* raises an error if a worker could not start and will never be done */
	WaitForParallelWorkersToAttach(s->context);
	for (;;)
	{
		bool		all_done;

		SpinLockAcquire(&shared->mutex);
		all_done = shared->done == participants;
		*result = shared->result;
		SpinLockRelease(&shared->mutex);
		if (all_done)
			break;
		ConditionVariableSleep(&shared->done_cv, WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
	}
	ConditionVariableCancelSleep();
	s->info->ii_BrokenHotChain = result->broken_hot_chain;
	for (int i = 0; i < s->context->nworkers_launched; i++)
		la_sort_import(sort, i);
	return sort;
}

/*
 * Scan the table, and return a sort that has all rows.  It must end before the scan does,
 * whose shared segment has its files.
 */
LaSort *
la_tablescan_sort(LaTableScan *s, LaTableScanResult *result)
{
	Size		memory = (Size) maintenance_work_mem * 1024;
	LaSort	   *sort;

	if (s->context != NULL)
		return sort_with_workers(s, memory, result);
	sort = la_sort_begin(s->index, s->key, memory, s->may_restart, NULL, 0);
	scan_table(s->heap, s->index, s->info, NULL, true, sort, result);
	return sort;
}

void
la_tablescan_end(LaTableScan *s)
{
	if (s->context != NULL)
		stop_workers(s);
	pfree(s);
}

/* ---- workers ------------------------------------------------------------ */

void
la_tablescan_worker(dsm_segment *seg, shm_toc *toc)
{
	Shared	   *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	LOCKMODE	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	Relation	heap;
	Relation	index;
	LaSort	   *sort;
	LaTableScanResult result;
	BufferUsage *buffers;
	WalUsage   *wal;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	pgstat_report_query_id(shared->query_id, false);

	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);
	SharedFileSetAttach(&shared->files, seg);
	InstrStartParallelQuery();

	sort = la_sort_begin(index, shm_toc_lookup(toc, KEY_NORMALIZED_KEY, false),
						 (Size) maintenance_work_mem * 1024 / shared->participants,
						 shared->may_restart, &shared->files, ParallelWorkerNumber);
	scan_share(heap, index, shared, false, sort, &result);
	la_sort_export(sort);
	la_sort_end(sort);
	add_result(shared, &result);

	buffers = shm_toc_lookup(toc, KEY_BUFFERS, false);
	wal = shm_toc_lookup(toc, KEY_WAL, false);
	InstrEndParallelQuery(&buffers[ParallelWorkerNumber], &wal[ParallelWorkerNumber]);
	index_close(index, index_lock);
	table_close(heap, heap_lock);
}
