/*
 * build.c
 *	  Building a stock btree index: the order in which things are done.
 *
 *		index_build()
 *		  |	index->rd_indam->ambuild()	-->	la_btbuild()	(build_hooks.c)
 *		  |									  scan	(parallel.c, or here)
 *		  |									  sort	(normalizedkey.c, sort.c, run.c)
 *		  |									  load	(load.c)
 *		  |	statistics, indcheckxmin ... as ever
 *
 * Behaviours
 *	A	The index is stock's, byte for byte: order, posting lists, truncated keys,
 *		free space.
 *	B	What has no exact sort key, and too many values to rank them (rank.c), is built
 *		by stock, and DEBUG1 says why.  That there are too many may come out in the
 *		middle of the scan; then stock begins anew.  The same where long values are
 *		compressed in the index: sort keys are not (sort.c).  If it could be told how
 *		often expressions are evaluated (repeat.c), what may have to begin anew is left
 *		to stock before, and long values are not; nor are unique indexes taken, where
 *		stock may find a duplicate, and end, before it has read all rows.
 *	C	Duplicates in a unique index are found when rows come out in order.  The
 *		error is raised by the server: it is given the two rows to sort.  A concurrent
 *		build leaves an index that is not valid, whose pages depend on when the server has
 *		found a duplicate: there they are looked for before the first page is written (rows
 *		are merged twice if they are in files), and with any the server builds.
 *	D	Rows that are dead, but must be indexed, are no duplicates of anything.
 *	E	Progress is reported, and memory and temporary files are limited, as in
 *		stock's build.
 *	F	System catalogs and exclusion constraints are left to stock.
 *	G	So are empty tables: there is nothing to sort.
 *
 * src/indexbuild/build.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"

#include "base/buildstats.h"
#include "base/compat.h"
#include "base/guc.h"
#include "indexbuild/build.h"
#include "indexbuild/load.h"
#include "indexbuild/parallel.h"
#include "indexbuild/repeat.h"
#include "indexbuild/sample.h"

/* So many of stock's workers are not faster than a serial build by ranks. */
#define MAX_REPLACED_WORKERS	2

/* the part of maintenance_work_mem that the ranks of a column may take */
#define RANKS_SHARE		8
#define MIN_RANKS		((Size) 64 * 1024)

/* ---- scan --------------------------------------------------------------- */

typedef struct RowTaker
{
	LaSort	   *sort;
	double		rows;
} RowTaker;

static void
take_row(Relation index, ItemPointer tid, Datum *values, bool *isnull,
		 bool alive, void *arg)
{
	RowTaker   *state = arg;

	la_sort_put(state->sort, tid, values, isnull, alive);
	state->rows += 1;
}

/*
 * Give the sort all rows of a scan; of the whole table, if there is no scan.
 */
void
la_build_scan(Relation heap, Relation index, IndexInfo *info, LaSort *sort,
			  TableScanDesc scan, bool progress, LaScanned *scanned)
{
	RowTaker	state;

	state.sort = sort;
	state.rows = 0;
	scanned->heap_rows = table_index_build_scan(heap, index, info, true, progress,
												take_row, &state, scan);
	scanned->index_rows = state.rows;
	scanned->broken_hot_chain = info->ii_BrokenHotChain;
	scanned->given_up = la_sort_given_up(sort);
	scanned->long_keys = la_sort_has_long_keys(sort);
}

/* ---- load --------------------------------------------------------------- */

/*
 * Behaviour C: let the server find the duplicate.
 */
static void
report_duplicate(Relation heap, Relation index, IndexInfo *info, IndexTuple a,
				 IndexTuple b)
{
	Tuplesortstate *sort = tuplesort_begin_index_btree(heap, index, true,
													   info->ii_NullsNotDistinct,
													   work_mem, NULL,
													   TUPLESORT_NONE);
	IndexTuple	tuples[2] = {a, b};

	for (int i = 0; i < 2; i++)
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];

		index_deform_tuple(tuples[i], RelationGetDescr(index), values, isnull);
		tuplesort_putindextuplevalues(sort, index, &tuples[i]->t_tid, values,
									  isnull);
	}
	tuplesort_performsort(sort);
	elog(ERROR, "duplicate keys of index \"%s\" differ when they are compared",
		 RelationGetRelationName(index));
}

/*
 * Rows of a unique index, as they come out: no two live ones may be equal.
 */
typedef struct Uniqueness
{
	bool		have;			/* a live row of the current key */
	Size		room;
	IndexTuple	live;
} Uniqueness;

/*
 * Is this row, live itself, equal to the live one before?
 */
static bool
is_duplicate(Uniqueness *u, IndexInfo *info, const LaSortedRow *row)
{
	Size		size;

	if (!row->equal)
		u->have = false;
	if (row->dead || (row->has_null && !info->ii_NullsNotDistinct))
		return false;
	if (u->have)
		return true;
	size = IndexTupleSize(row->tuple);
	if (size > u->room)
	{
		if (u->live != NULL)
			pfree(u->live);
		u->room = Max(size, 256);
		u->live = palloc(u->room);
	}
	memcpy(u->live, row->tuple, size);
	u->have = true;
	return false;
}

static bool
next_duplicate(Uniqueness *u, IndexInfo *info, LaSort *sort, LaSortedRow *row)
{
	while (la_sort_next(sort, row))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_duplicate(u, info, row))
			return true;
	}
	return false;
}

/*
 * Are there duplicates?  To be asked before the first page is written.
 */
static bool
has_duplicates(IndexInfo *info, LaSort *sort)
{
	Uniqueness	unique = {0};
	LaSortedRow row;
	bool		found = next_duplicate(&unique, info, sort, &row);

	la_sort_rewind(sort);
	return found;
}

static void
load(Relation heap, Relation index, IndexInfo *info, LaSort *sort)
{
	LaLoad	   *load = la_load_begin(heap, index, info->ii_Unique);
	Uniqueness	unique = {0};
	LaSortedRow row;

	while (la_sort_next(sort, &row))
	{
		if (info->ii_Unique)
		{
			LaSortedRow later;

			if (is_duplicate(&unique, info, &row))
				report_duplicate(heap, index, info, unique.live, row.tuple);
			if (unlikely(!la_load_fits(row.tuple)))
			{
				/* stock sorts before it loads: a duplicate is reported first */
				row.tuple = CopyIndexTuple(row.tuple);
				if (next_duplicate(&unique, info, sort, &later))
					report_duplicate(heap, index, info, unique.live, later.tuple);
			}
		}
		la_load_add(load, row.tuple, row.equal);
	}
	la_load_end(load);
}

/* ---- build -------------------------------------------------------------- */

static void
report_phase(int64 phase)
{
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, phase);
}

/*
 * Microseconds since then, which becomes now.
 */
static int64
lap(instr_time *since)
{
	instr_time	now;
	instr_time	time;

	INSTR_TIME_SET_CURRENT(now);
	time = now;
	INSTR_TIME_SUBTRACT(time, *since);
	*since = now;
	return (int64) INSTR_TIME_GET_MICROSEC(time);
}

static void
report_scanned(const LaScanned *scanned)
{
	const int	parameters[] = {
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_SCAN_BLOCKS_TOTAL,
		PROGRESS_SCAN_BLOCKS_DONE
	};
	const int64 values[] = {(int64) scanned->index_rows, 0, 0};

	pgstat_progress_update_multi_param(3, parameters, values);
}

/*
 * DEBUG1 tells what becomes of each index.
 */
static void
report_built(Relation index)
{
	ereport(DEBUG1,
			(errmsg_internal("pg_lookahead builds index \"%s\"",
							 RelationGetRelationName(index))));
}

static void
say_left(Relation index, const char *why)
{
	ereport(DEBUG1,
			(errmsg_internal("pg_lookahead leaves building index \"%s\" to the server: %s",
							 RelationGetRelationName(index), why)));
}

static void
report_left(Relation index, LaBuildOutcome outcome, const char *why)
{
	la_build_stats_add(outcome, NULL);
	say_left(index, why);
}

static void
end(LaSort *sort, LaParallel *parallel)
{
	la_sort_end(sort);
	if (parallel != NULL)
		la_parallel_end(parallel);
}

/*
 * All rows, by workers if there are any.
 */
static LaSort *
scan(Relation heap, Relation index, IndexInfo *info, LaNormalizedKey *key,
	 bool may_give_up, LaParallel **parallel, LaScanned *scanned)
{
	bool		ranked = la_normkey_is_ranked(key);
	LaSort	   *sort;

	report_phase(PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN);
	*parallel = NULL;
	if (info->ii_ParallelWorkers > 0 && !ranked)
		*parallel = la_parallel_begin(heap, index, info, key, may_give_up);
	if (!ranked)
		report_built(index);
	if (*parallel != NULL)
		sort = la_parallel_scan(*parallel, scanned);
	else
	{
		sort = la_sort_begin(index, key, (Size) maintenance_work_mem * 1024,
							 may_give_up, NULL, 0);
		la_build_scan(heap, index, info, sort, NULL, true, scanned);
	}
	info->ii_BrokenHotChain = scanned->broken_hot_chain;
	if (scanned->long_keys)
		report_left(index, LA_LEFT_LONG_KEYS, "long values are compressed");
	else if (scanned->given_up)
		report_left(index, LA_LEFT_MANY_VALUES,
					ranked ? "too many different values" : "a value has no sort key");
	else if (ranked)
		report_built(index);
	return sort;
}

/*
 * NULL if it turned out that the server has to do it.
 */
static IndexBuildResult *
build(Relation heap, Relation index, IndexInfo *info, LaNormalizedKey *key,
	  bool may_give_up)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	LaParallel *parallel;
	LaSort	   *sort;
	LaScanned	scanned;
	LaBuildFigures figures = {0};
	instr_time	since;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));

	INSTR_TIME_SET_CURRENT(since);
	sort = scan(heap, index, info, key, may_give_up, &parallel, &scanned);
	if (scanned.given_up)
	{
		end(sort, parallel);
		return NULL;
	}
	report_scanned(&scanned);
	figures.scan_time = lap(&since);

	report_phase(PROGRESS_BTREE_PHASE_PERFORMSORT_1);
	la_sort_perform(sort);
	if (info->ii_Unique && info->ii_Concurrent && has_duplicates(info, sort))
	{
		end(sort, parallel);
		say_left(index, "there are duplicates");
		return NULL;
	}
	figures.sort_time = lap(&since);

	report_phase(PROGRESS_BTREE_PHASE_LEAF_LOAD);
	load(heap, index, info, sort);
	figures.load_time = lap(&since);

	figures.parallel = parallel != NULL;
	figures.spilled = la_sort_spilled(sort);
	figures.rows = (int64) scanned.index_rows;
	la_build_stats_add(LA_OUTCOME_BUILT, &figures);
	end(sort, parallel);

	result->heap_tuples = scanned.heap_rows;
	result->index_tuples = scanned.index_rows;
	return result;
}

/*
 * The sort key, or NULL if the build is left to the server.
 */
static LaNormalizedKey *
choose_key(Relation heap, Relation index, IndexInfo *info, bool may_repeat)
{
	const char *why;
	LaNormalizedKey *key = la_normkey_create(index, NULL, &why);
	LaRanking	ranking;

	if (key != NULL &&
		(may_repeat || (!info->ii_Unique && !la_normkey_may_give_up(key))))
		return key;
	if (!may_repeat)
	{
		report_left(index, LA_LEFT_EXPRESSIONS,
					"functions might be called more often");
		return NULL;
	}

	/*
	 * Ranks are known to one process only.  It is faster than a few of
	 * stock's that call comparison functions, but not faster than any number
	 * of them.
	 */
	if (info->ii_ParallelWorkers > MAX_REPLACED_WORKERS)
	{
		report_left(index, LA_LEFT_PARALLEL, why);
		return NULL;
	}
	ranking.memory = (Size) maintenance_work_mem * 1024 / RANKS_SHARE;
	if (ranking.memory < MIN_RANKS)
	{
		report_left(index, LA_LEFT_MANY_VALUES, why);
		return NULL;
	}
	ranking.rows = la_estimate_rows(heap);
	key = la_normkey_create(index, &ranking, &why);
	if (key == NULL)
		report_left(index, LA_LEFT_COMPARISON, why);
	else if (!la_sample_is_worthwhile(heap, info, key))
	{
		key = NULL;
		report_left(index, LA_LEFT_MANY_VALUES, "too many different values");
	}
	return key;
}

/*
 * Behaviours F and G.
 */
static bool
is_wanted(Relation heap, IndexInfo *info)
{
	return la_enable && la_enable_index_build && info->ii_ExclusionOps == NULL &&
		RelationGetNumberOfBlocks(heap) > 0;
}

/*
 * In place of btbuild().
 */
IndexBuildResult *
la_btbuild(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = NULL;

	if (is_wanted(heap, info))
	{
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
													  "pg_lookahead index build",
													  ALLOCSET_DEFAULT_SIZES);
		MemoryContext old = MemoryContextSwitchTo(context);
		bool		may_repeat = la_may_repeat(info);
		LaNormalizedKey *key = choose_key(heap, index, info, may_repeat);
		IndexBuildResult *built = NULL;

		if (key != NULL)
			built = build(heap, index, info, key, may_repeat);
		MemoryContextSwitchTo(old);
		if (built != NULL)
		{
			result = palloc(sizeof(IndexBuildResult));
			*result = *built;
		}
		MemoryContextDelete(context);
	}
	if (result == NULL)
		result = btbuild(heap, index, info);
	return result;
}
