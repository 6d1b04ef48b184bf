/*
 * build.c
 *	  Building a stock btree index: the steps in their order.
 *
 *		index_build()
 *		  |	index->rd_indam->ambuild()	-->	la_btbuild()	(build_hooks.c)
 *		  |									  scan	(tablescan.c)
 *		  |									  sort	(sort.c)
 *		  |									  load	(load.c)
 *		  |	statistics, indcheckxmin ... as ever
 *
 * Behaviours
 *	IDENTICAL	The index is the server's, byte for byte: order, posting lists, truncated keys,
 *				free space.
 *	DECLINE		The server builds the index if a column has neither a normalized key nor few
 *				enough values for a dictionary (dictionary.c), and DEBUG1 says why.  It also
 *				builds indexes of exclusion constraints, empty tables and system catalogs.
 *	RESTART		Too many values, or keys that are too long (sort.c), may be found in the middle
 *				of the scan.  Then the server builds the index from the start, and evaluates its
 *				expressions once more.  Where functions could reveal that (repeat.c), a build
 *				that may have to restart is declined, and one with long keys continues.  Unique
 *				indexes are declined there, too: the server may find a duplicate, and raise its
 *				error, before it has evaluated all rows.
 *	DUPLICATES	Duplicates in a unique index are found when rows are returned in order, and the
 *				server reports them: it sorts the two rows once more.  A concurrent build that
 *				fails leaves an invalid index, whose pages depend on when the server has found
 *				the duplicate.  So its rows are searched for duplicates before the first page is
 *				written, and if there are any, the server builds the index.  Dead rows that
 *				must be indexed are no duplicates of anything.
 *	PROGRESS	Progress is reported, and memory and temporary files are limited, as in the
 *				server's build.
 *
 * src/indexbuild/build.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/tableam.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "indexbuild/indexbuild_int.h"

/* With more workers, the server's build is faster than one with dictionaries. */
#define MAX_REPLACED_WORKERS	2

/* The part of maintenance_work_mem that the dictionary of a column may take. */
#define DICTIONARY_SHARE	8
#define MIN_DICTIONARY		((Size) 64 * 1024)

/* ---- load --------------------------------------------------------------- */

/* Behaviour DUPLICATES: let the server report these two rows. */
static void
report_duplicate(Relation heap, Relation index, IndexInfo *info, IndexTuple a, IndexTuple b)
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
		tuplesort_putindextuplevalues(sort, index, &tuples[i]->t_tid, values, isnull);
	}
	tuplesort_performsort(sort);
	elog(ERROR, "duplicate keys of index \"%s\" differ when they are compared",
		 RelationGetRelationName(index));
}

/* What is kept of a unique index's rows while they are read in order. */
typedef struct UniqueCheck
{
	bool		has_live;		/* a live row has the current key */
	IndexTuple	live;			/* a copy of it */
	Size		space;			/* allocated for the copy */
} UniqueCheck;

/* Is this row live, and equal to a live one before it? */
static bool
is_duplicate(UniqueCheck *u, IndexInfo *info, const LaSortedRow *row)
{
	Size		size;

	if (!row->equal)
		u->has_live = false;
	if (row->dead || (row->has_null && !info->ii_NullsNotDistinct))
		return false;
	if (u->has_live)
		return true;
	size = IndexTupleSize(row->tuple);
	if (size > u->space)
	{
		if (u->live != NULL)
			pfree(u->live);
		u->space = Max(size, 256);
		u->live = palloc(u->space);
	}
	memcpy(u->live, row->tuple, size);
	u->has_live = true;
	return false;
}

static bool
next_duplicate(UniqueCheck *u, IndexInfo *info, LaSort *sort, LaSortedRow *row)
{
	while (la_sort_next(sort, row))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_duplicate(u, info, row))
			return true;
	}
	return false;
}

/* Are there duplicates?  Reads all rows of the sort, and rewinds it. */
static bool
has_duplicates(IndexInfo *info, LaSort *sort)
{
	UniqueCheck unique = {0};
	LaSortedRow row;
	bool		found = next_duplicate(&unique, info, sort, &row);

	la_sort_rewind(sort);
	return found;
}

static void
load(Relation heap, Relation index, IndexInfo *info, LaSort *sort)
{
	LaLoad	   *load = la_load_begin(heap, index, info->ii_Unique);
	UniqueCheck unique = {0};
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
				/* the server sorts first, so it reports duplicates first */
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

/* Microseconds since *since, which becomes now. */
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
report_scanned(double index_tuples)
{
	const int	parameters[] = {
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_SCAN_BLOCKS_TOTAL,
		PROGRESS_SCAN_BLOCKS_DONE
	};
	const int64 values[] = {(int64) index_tuples, 0, 0};

	pgstat_progress_update_multi_param(3, parameters, values);
}

/* DEBUG1 says what becomes of each index. */
static void
log_built(Relation index)
{
	ereport(DEBUG1,
			(errmsg_internal("pg_lookahead builds index \"%s\"",
							 RelationGetRelationName(index))));
}

static void
log_declined(Relation index, const char *why)
{
	ereport(DEBUG1,
			(errmsg_internal("pg_lookahead leaves building index \"%s\" to the server: %s",
							 RelationGetRelationName(index), why)));
}

static void
decline(Relation index, LaBuildOutcome outcome, const char *why)
{
	la_build_stats_add(outcome, NULL);
	log_declined(index, why);
}

static void
end(LaSort *sort, LaTableScan *scan)
{
	la_sort_end(sort);
	la_tablescan_end(scan);
}

/* Scan the table.  Its result may be that the server has to build the index. */
static LaSort *
scan_table(Relation index, LaTableScan *scan, bool has_dictionary, LaTableScanResult *result)
{
	LaSort	   *sort;

	if (!has_dictionary)
		log_built(index);
	sort = la_tablescan_sort(scan, result);
	if (result->outcome == LA_SORT_LONG_KEYS)
		decline(index, LA_LEFT_LONG_KEYS, "long values are compressed");
	else if (result->outcome == LA_SORT_NO_KEY)
		decline(index, LA_LEFT_MANY_VALUES,
				has_dictionary ? "too many different values" : "a value has no sort key");
	else if (has_dictionary)
		log_built(index);
	return sort;
}

/* Build the index.  Returns NULL if it turned out that the server has to do it. */
static IndexBuildResult *
build(Relation heap, Relation index, IndexInfo *info, LaNormalizedKey *key, bool may_restart)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	LaTableScan *scan;
	LaTableScanResult scanned;
	LaSort	   *sort;
	LaBuildFigures figures = {0};
	instr_time	since;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));

	INSTR_TIME_SET_CURRENT(since);
	report_phase(PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN);
	scan = la_tablescan_begin(heap, index, info, key, may_restart);
	sort = scan_table(index, scan, la_normkey_has_dictionary(key), &scanned);
	if (scanned.outcome != LA_SORT_COMPLETE)
	{
		end(sort, scan);
		return NULL;
	}
	report_scanned(scanned.index_tuples);
	figures.scan_time = lap(&since);

	report_phase(PROGRESS_BTREE_PHASE_PERFORMSORT_1);
	la_sort_perform(sort);
	if (info->ii_Unique && info->ii_Concurrent && has_duplicates(info, sort))
	{
		end(sort, scan);
		log_declined(index, "there are duplicates");
		return NULL;
	}
	figures.sort_time = lap(&since);

	report_phase(PROGRESS_BTREE_PHASE_LEAF_LOAD);
	load(heap, index, info, sort);
	figures.load_time = lap(&since);

	figures.parallel = la_tablescan_has_workers(scan);
	figures.spilled = la_sort_has_spilled(sort);
	figures.rows = (int64) scanned.index_tuples;
	la_build_stats_add(LA_OUTCOME_BUILT, &figures);
	end(sort, scan);

	result->heap_tuples = scanned.heap_tuples;
	result->index_tuples = scanned.index_tuples;
	return result;
}

/* The normalized key, or NULL if the build is declined. */
static LaNormalizedKey *
choose_key(Relation heap, Relation index, IndexInfo *info, bool may_restart)
{
	const char *why;
	LaNormalizedKey *key = la_normkey_create(index, NULL, &why);
	LaDictionaryLimits limits;
	BlockNumber pages;
	double		visible;

	if (key != NULL && (may_restart || (!info->ii_Unique && !la_normkey_may_fail(key))))
		return key;
	if (!may_restart)
	{
		decline(index, LA_LEFT_EXPRESSIONS, "functions might be called more often");
		return NULL;
	}

	/* a dictionary is not shared, so such a build has no workers */
	if (info->ii_ParallelWorkers > MAX_REPLACED_WORKERS)
	{
		decline(index, LA_LEFT_PARALLEL, why);
		return NULL;
	}
	limits.memory = (Size) maintenance_work_mem * 1024 / DICTIONARY_SHARE;
	if (limits.memory < MIN_DICTIONARY)
	{
		decline(index, LA_LEFT_MANY_VALUES, why);
		return NULL;
	}
	table_relation_estimate_size(heap, NULL, &pages, &limits.rows, &visible);
	key = la_normkey_create(index, &limits, &why);
	if (key == NULL)
		decline(index, LA_LEFT_COMPARISON, why);
	else if (!la_sample_is_worthwhile(heap, info, key))
	{
		key = NULL;
		decline(index, LA_LEFT_MANY_VALUES, "too many different values");
	}
	return key;
}

/* In place of btbuild(). */
IndexBuildResult *
la_btbuild(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = NULL;

	if (la_enable && la_enable_index_build && info->ii_ExclusionOps == NULL &&
		la_gate_is_heap(heap) &&
		RelationGetNumberOfBlocks(heap) > 0)
	{
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
													  "pg_lookahead index build",
													  ALLOCSET_DEFAULT_SIZES);
		MemoryContext old = MemoryContextSwitchTo(context);
		bool		may_restart = la_repeat_is_safe(info);
		LaNormalizedKey *key = choose_key(heap, index, info, may_restart);
		IndexBuildResult *built = NULL;

		if (key != NULL)
			built = build(heap, index, info, key, may_restart);
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
