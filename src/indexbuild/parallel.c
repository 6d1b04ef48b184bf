/*
 * parallel.c
 *	  Scanning the table for an index build with parallel workers.
 *
 * The leader and its workers share one scan of the table, each sorts what it reads
 * in its share of maintenance_work_mem, and each worker leaves its rows as sorted
 * runs in files that are shared.  The leader, whose own rows are still in memory,
 * merges all of them when the last worker is done, and loads the index alone.
 *
 *		worker 0	scan, sort --- la.0.0, la.0.1, ... , list la.0.-1 ---+
 *		worker 1	scan, sort --- la.1.0, ...                        ---+-- merge, load
 *		leader		scan, sort --- in memory, or la.2.0, ...          ---+
 *
 * Stock passes the whole index through files and through a merge by comparison
 * functions; here the merge compares as many bytes as rows differ in (run.c).
 *
 * Behaviours
 *	A	As many workers as stock would ask for; fewer, or none, if there are no
 *		more to be had: then the build is serial.
 *	B	Workers lock, report their activity and count buffers and WAL as stock's.
 *	C	An error in a worker is the leader's error; files go away with the segment
 *		of shared memory.
 *	D	How keys are encoded is the leader's choice.  A worker starts later and may see
 *		another catalog: a new label of an enum.
 *
 * src/indexbuild/parallel.c
 */
#include "postgres.h"

#include <dlfcn.h>

#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#include "base/compat.h"
#include "indexbuild/parallel.h"

#define KEY_SHARED		UINT64CONST(0x1A00000000000001)
#define KEY_QUERY		UINT64CONST(0x1A00000000000002)
#define KEY_WAL			UINT64CONST(0x1A00000000000003)
#define KEY_BUFFERS		UINT64CONST(0x1A00000000000004)
#define KEY_SORT_KEY	UINT64CONST(0x1A00000000000005)

typedef struct Shared
{
	/* set before workers start */
	Oid			heap;
	Oid			index;
	bool		concurrent;
	bool		may_give_up;
	int			participants;	/* asked for, with the leader */
	uint64		query_id;

	ConditionVariable done_cv;
	slock_t		mutex;

	/* under the mutex */
	int			done;
	LaScanned	scanned;

	SharedFileSet files;
	/* the parallel scan's description follows */
} Shared;

#define shared_scan(shared) \
	((ParallelTableScanDesc) ((char *) (shared) + BUFFERALIGN(sizeof(Shared))))

struct LaParallel
{
	ParallelContext *context;
	Snapshot	snapshot;
	Relation	heap;
	Relation	index;
	LaNormalizedKey *key;
	Shared	   *shared;
	WalUsage   *wal;
	BufferUsage *buffers;
};

extern PGDLLEXPORT void la_build_worker(dsm_segment *seg, shm_toc *toc);

/*
 * Where this library was loaded from: a worker has to find it, whatever
 * dynamic_library_path says.
 */
static const char *
library_path(void)
{
	Dl_info		info;

	if (dladdr((void *) la_build_worker, &info) != 0 && info.dli_fname != NULL &&
		info.dli_fname[0] == '/')
		return info.dli_fname;
	return "$libdir/pg_lookahead";
}

/* ---- leader ------------------------------------------------------------- */

static Size
shared_size(LaParallel *p)
{
	return add_size(BUFFERALIGN(sizeof(Shared)),
					table_parallelscan_estimate(p->heap, p->snapshot));
}

static void
ask_for_memory(LaParallel *p)
{
	shm_toc_estimator *estimator = &p->context->estimator;
	int			nworkers = p->context->nworkers;

	shm_toc_estimate_chunk(estimator, shared_size(p));
	shm_toc_estimate_chunk(estimator, mul_size(sizeof(WalUsage), nworkers));
	shm_toc_estimate_chunk(estimator, mul_size(sizeof(BufferUsage), nworkers));
	shm_toc_estimate_chunk(estimator, la_normkey_size(p->key));
	shm_toc_estimate_keys(estimator, 4);
	if (debug_query_string)
	{
		shm_toc_estimate_chunk(estimator, strlen(debug_query_string) + 1);
		shm_toc_estimate_keys(estimator, 1);
	}
}

static void
fill_memory(LaParallel *p, bool concurrent, bool may_give_up)
{
	shm_toc    *toc = p->context->toc;
	int			nworkers = p->context->nworkers;
	Shared	   *shared = shm_toc_allocate(toc, shared_size(p));
	void	   *key;

	memset(shared, 0, sizeof(Shared));
	shared->heap = RelationGetRelid(p->heap);
	shared->index = RelationGetRelid(p->index);
	shared->concurrent = concurrent;
	shared->may_give_up = may_give_up;
	shared->participants = nworkers + 1;
	shared->query_id = pgstat_get_my_query_id();
	ConditionVariableInit(&shared->done_cv);
	SpinLockInit(&shared->mutex);
	SharedFileSetInit(&shared->files, p->context->seg);
	table_parallelscan_initialize(p->heap, shared_scan(shared), p->snapshot);
	shm_toc_insert(toc, KEY_SHARED, shared);
	p->shared = shared;

	p->wal = shm_toc_allocate(toc, mul_size(sizeof(WalUsage), nworkers));
	shm_toc_insert(toc, KEY_WAL, p->wal);
	p->buffers = shm_toc_allocate(toc, mul_size(sizeof(BufferUsage), nworkers));
	shm_toc_insert(toc, KEY_BUFFERS, p->buffers);
	key = shm_toc_allocate(toc, la_normkey_size(p->key));
	memcpy(key, p->key, la_normkey_size(p->key));
	shm_toc_insert(toc, KEY_SORT_KEY, key);
	if (debug_query_string)
	{
		Size		length = strlen(debug_query_string) + 1;
		char	   *query = shm_toc_allocate(toc, length);

		memcpy(query, debug_query_string, length);
		shm_toc_insert(toc, KEY_QUERY, query);
	}
}

static void
release(LaParallel *p)
{
	if (IsMVCCSnapshot(p->snapshot))
		UnregisterSnapshot(p->snapshot);
	DestroyParallelContext(p->context);
	ExitParallelMode();
	pfree(p);
}

/*
 * Start the workers; NULL if there are none to be had.  The key, which has no ranks, must
 * live as long.
 */
LaParallel *
la_parallel_begin(Relation heap, Relation index, const IndexInfo *info,
				  LaNormalizedKey *key, bool may_give_up)
{
	LaParallel *p = palloc0(sizeof(LaParallel));

	p->heap = heap;
	p->index = index;
	p->key = key;

	EnterParallelMode();
	p->context = CreateParallelContext(library_path(), "la_build_worker",
									   info->ii_ParallelWorkers);
	/* as in a serial build: all rows, or those that a snapshot sees */
	p->snapshot = info->ii_Concurrent ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	ask_for_memory(p);
	InitializeParallelDSM(p->context);
	if (p->context->seg == NULL)
	{
		release(p);
		return NULL;
	}
	fill_memory(p, info->ii_Concurrent, may_give_up);
	LaunchParallelWorkers(p->context);
	if (p->context->nworkers_launched == 0)
	{
		la_parallel_end(p);
		return NULL;
	}
	return p;
}

int
la_parallel_workers(const LaParallel *p)
{
	return p->context->nworkers_launched;
}

static void
add_scanned(Shared *shared, const LaScanned *scanned)
{
	SpinLockAcquire(&shared->mutex);
	shared->done++;
	shared->scanned.heap_rows += scanned->heap_rows;
	shared->scanned.index_rows += scanned->index_rows;
	shared->scanned.broken_hot_chain |= scanned->broken_hot_chain;
	shared->scanned.given_up |= scanned->given_up;
	shared->scanned.long_keys |= scanned->long_keys;
	SpinLockRelease(&shared->mutex);
	ConditionVariableSignal(&shared->done_cv);
}

/*
 * The leader's share, and then a sort that has everybody's rows.
 */
LaSort *
la_parallel_scan(LaParallel *p, LaScanned *scanned)
{
	Shared	   *shared = p->shared;
	int			participants = p->context->nworkers_launched + 1;
	Size		memory = (Size) maintenance_work_mem * 1024 / participants;
	LaSort	   *sort = la_sort_begin(p->index, p->key, memory, shared->may_give_up,
									 &shared->files, p->context->nworkers);
	TableScanDesc scan = la_table_beginscan_parallel(p->heap, shared_scan(shared));
	IndexInfo  *info;

	/*
	 * As stock's leader has it for its share.  The one that the build was
	 * called with may have constant expressions that are not folded yet: to
	 * evaluate them once more would call functions once more.
	 */
	info = BuildIndexInfo(p->index);
	info->ii_Concurrent = shared->concurrent;
	la_build_scan(p->heap, p->index, info, sort, scan, true, scanned);
	add_scanned(shared, scanned);

	/* workers that could not start must not be waited for for ever */
	WaitForParallelWorkersToAttach(p->context);
	for (;;)
	{
		bool		all_done;

		SpinLockAcquire(&shared->mutex);
		all_done = shared->done == participants;
		*scanned = shared->scanned;
		SpinLockRelease(&shared->mutex);
		if (all_done)
			break;
		ConditionVariableSleep(&shared->done_cv,
							   WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
	}
	ConditionVariableCancelSleep();
	for (int i = 0; i < p->context->nworkers_launched; i++)
		la_sort_import(sort, i);
	return sort;
}

/*
 * After the sort has ended: its files are the shared segment's.
 */
void
la_parallel_end(LaParallel *p)
{
	WaitForParallelWorkersToFinish(p->context);
	for (int i = 0; i < p->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&p->buffers[i], &p->wal[i]);
	release(p);
}

/* ---- workers ------------------------------------------------------------ */

void
la_build_worker(dsm_segment *seg, shm_toc *toc)
{
	Shared	   *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	LOCKMODE	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	LaSort	   *sort;
	LaScanned	scanned;
	BufferUsage *buffers;
	WalUsage   *wal;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	pgstat_report_query_id(shared->query_id, false);

	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);
	SharedFileSetAttach(&shared->files, seg);
	InstrStartParallelQuery();

	info = BuildIndexInfo(index);
	info->ii_Concurrent = shared->concurrent;
	sort = la_sort_begin(index, shm_toc_lookup(toc, KEY_SORT_KEY, false),
						 (Size) maintenance_work_mem * 1024 / shared->participants,
						 shared->may_give_up, &shared->files, ParallelWorkerNumber);
	la_build_scan(heap, index, info, sort,
				  la_table_beginscan_parallel(heap, shared_scan(shared)), false,
				  &scanned);
	la_sort_export(sort);
	la_sort_end(sort);
	add_scanned(shared, &scanned);

	buffers = shm_toc_lookup(toc, KEY_BUFFERS, false);
	wal = shm_toc_lookup(toc, KEY_WAL, false);
	InstrEndParallelQuery(&buffers[ParallelWorkerNumber],
						  &wal[ParallelWorkerNumber]);
	index_close(index, index_lock);
	table_close(heap, heap_lock);
}
