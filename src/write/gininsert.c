/*
 * gininsert.c
 *	  Inserting into GIN indexes: what the server is going to read, read ahead.
 *
 *		aminsert --> la_gininsert() --> gininsert()
 *										  | extractValue(value)   KEYS: of the new row
 *										  |		their pages are read ahead of the first one
 *										  v each key is inserted
 *
 *	KEYS	The keys of a row are known when the operator class's function has extracted them.
 *		gininsert() calls that by the GinState that it keeps for the statement in the IndexInfo.
 *		That GinState is made here, as gininsert() would make it, with our function in place of
 *		the operator class's, which ours calls first.  So nothing is extracted twice.
 *	CACHED	Where nothing was read for the last row (window/history.c), the next one is left to
 *		the server, and nothing is kept for it.
 *	LIST	With fastupdate, keys are appended to a list, and nothing is done.  When the list has
 *		become too long, it is flushed in the order of the index: of what it reads, the kernel's
 *		read-ahead has most (bench/results/gin-18).
 *	LOCKS	Nothing is locked when extractValue is called.
 *
 * Everything here is a hint: the server inserts.
 *
 * src/write/gininsert.c
 */
#include "postgres.h"

#include "access/gin_private.h"
#include "lib/ilist.h"
#include "utils/memutils.h"

#include "attach/attach.h"
#include "base/base.h"
#include "gin/gin.h"
#include "write/write_int.h"

#define TOGETHER		1024	/* keys that descend together */

/* What a statement keeps for an index. */
typedef struct LaGinInsert
{
	GinState	state;			/* first: IndexInfo.ii_AmCache points to it */
	dlist_node	node;			/* in inserts */
	PGFunction	extract[INDEX_MAX_KEYS];	/* of the operator classes */
	LaGinReads	reads;
	LaCounters	counters;
	LaBudget	budget;
	Oid			heaprelid;
	Oid			indexrelid;
	bool		refused;		/* nothing is done ahead */
	MemoryContextCallback callback;

	/* the row that is inserted */
	ItemPointerData tid;
	bool		ahead;			/* its keys are searched for */
} LaGinInsert;

static dlist_head inserts = DLIST_STATIC_INIT(inserts);

/* The last statement that may insert; it is only compared. */
static const EState *watched = NULL;
static MemoryContext watched_context = NULL;

/* ---- KEYS ----------------------------------------------------------------------------- */

static void
search_keys(LaGinInsert *g, OffsetNumber attnum, const Datum *keys, const bool *nulls, int nkeys)
{
	Size		size = Min(nkeys, TOGETHER) * sizeof(LaGinSearch);
	LaGinSearch *searches;
	LaGinSearcher by = {.reads = &g->reads,.state = &g->state};

	if (!la_budget_has(&g->budget, size))
		return;
	searches = palloc(size);
	by.context = AllocSetContextCreate(CurrentMemoryContext, "pg_lookahead keys",
									   ALLOCSET_SMALL_SIZES);
	for (int first = 0; first < nkeys; first += TOGETHER)
	{
		int			n = Min(nkeys - first, TOGETHER);

		for (int i = 0; i < n; i++)
		{
			la_ginsearch_set(&searches[i], attnum, keys[first + i],
							 nulls != NULL && nulls[first + i] ? GIN_CAT_NULL_KEY :
							 GIN_CAT_NORM_KEY);
			searches[i].tid = g->tid;
		}
		la_ginsearch_run(&by, searches, n);
	}
	MemoryContextDelete(by.context);
	pfree(searches);
}

/* ---- in place of the operator class's function ------------------------------------------- */

/* The statement's record to whose GinState this belongs; NULL if it is a copy. */
static LaGinInsert *
insert_of(const FmgrInfo *flinfo, int *column)
{
	dlist_iter	iter;

	dlist_foreach(iter, &inserts)
	{
		LaGinInsert *g = dlist_container(LaGinInsert, node, iter.cur);

		if (flinfo >= g->state.extractValueFn &&
			flinfo < g->state.extractValueFn + INDEX_MAX_KEYS)
		{
			*column = flinfo - g->state.extractValueFn;
			return g;
		}
	}
	return NULL;
}

static Datum
extract_value(PG_FUNCTION_ARGS)
{
	int			column;
	LaGinInsert *g = insert_of(fcinfo->flinfo, &column);
	Datum		result;
	const Datum *keys;
	const bool *nulls;
	int32		nkeys;

	if (g == NULL)
		return la_ginsupport_call_original(fcinfo);
	result = g->extract[column] (fcinfo);
	keys = (const Datum *) DatumGetPointer(result);
	nkeys = *(int32 *) PG_GETARG_POINTER(1);
	nulls = *(bool **) PG_GETARG_POINTER(2);
	if (fcinfo->isnull || keys == NULL || nkeys <= 0)
		return result;
	if (g->ahead)
		search_keys(g, column + 1, keys, nulls, nkeys);
	return result;
}

/* ---- a statement's record ------------------------------------------------------------------ */

/* Callback of the IndexInfo's memory context. */
static void
on_end(void *arg)
{
	LaGinInsert *g = arg;

	dlist_delete(&g->node);
	la_budget_end(&g->budget);
	la_stats_publish(LA_KIND_INDEX_INSERT, g->heaprelid, g->indexrelid, &g->counters);
}

static LaGinInsert *
create(Relation index, IndexInfo *info)
{
	MemoryContext old = MemoryContextSwitchTo(info->ii_Context);
	LaGinInsert *g = palloc0(sizeof(LaGinInsert));

	initGinState(&g->state, index);
	MemoryContextSwitchTo(old);
	for (int i = 0; i < g->state.origTupdesc->natts; i++)
	{
		FmgrInfo   *flinfo = &g->state.extractValueFn[i];

		g->extract[i] = la_ginsupport_original(flinfo);
		la_ginsupport_exchange(flinfo, g->extract[i], extract_value);
	}
	g->heaprelid = index->rd_index->indrelid;
	g->indexrelid = RelationGetRelid(index);
	g->budget.limit = (Size) la_scan_memory * 1024;
	la_ginreads_init(&g->reads, index, &g->counters);
	/* a statement may have one row: what earlier ones have found is enough */
	g->reads.calls = 1;
	la_stats_open(&g->counters, info->ii_Context == watched_context ? watched : NULL);
	g->counters.c[LA_SCANS_ATTACHED] = 1;
	g->refused = !g->reads.config.advice_works || !la_ginsearch_is_possible(&g->state);
	dlist_push_head(&inserts, &g->node);
	g->callback.func = on_end;
	g->callback.arg = g;
	MemoryContextRegisterResetCallback(info->ii_Context, &g->callback);
	return g;
}

/* What the statement keeps for the index. */
static LaGinInsert *
record_of(Relation index, IndexInfo *info)
{
	dlist_iter	iter;

	dlist_foreach(iter, &inserts)
	{
		LaGinInsert *g = dlist_container(LaGinInsert, node, iter.cur);

		if (&g->state == info->ii_AmCache)
			return g;
	}
	return info->ii_AmCache = create(index, info);
}

/* Rows are written by this statement. */
void
la_gininsert_watch(const EState *estate)
{
	watched = estate;
	watched_context = estate->es_query_cxt;
}

/* A row with this address is about to be inserted.  NULL if there is nothing to be done ahead. */
static LaGinInsert *
begin_row(Relation index, IndexInfo *info, ItemPointer tid)
{
	LaGinInsert *g;

	if ((la_history_known_cached(RelationGetRelid(index)) && !la_force) ||
		!la_ginreads_may_read() || RelationUsesLocalBuffers(index) || la_direct_io())
		return NULL;
	g = record_of(index, info);
	if (g->refused)
		return NULL;
	g->ahead = true;
	g->tid = *tid;
	la_ginreads_begin(&g->reads);
	return g;
}

/* Its keys go to the index at once. */
static bool
insert_at_once(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			   IndexUniqueCheck unique, bool unchanged, IndexInfo *info)
{
	int64		reads = la_issue_blocks_read();
	LaGinInsert *g = begin_row(index, info, tid);
	bool		result = gininsert(index, values, isnull, tid, heap, unique, unchanged, info);

	if (g != NULL)
	{
		la_ginreads_end(&g->reads);
		g->ahead = false;
	}
	la_history_note_cached(RelationGetRelid(index), la_issue_blocks_read() == reads);
	return result;
}

/* In place of gininsert(). */
bool
la_gininsert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			 IndexUniqueCheck unique, bool unchanged, IndexInfo *info)
{
	if (!la_enable || !la_enable_write || info == NULL)
		la_interpose_restore(index);
	else if (!GinGetUseFastUpdate(index))
		return insert_at_once(index, values, isnull, tid, heap, unique, unchanged, info);
	return gininsert(index, values, isnull, tid, heap, unique, unchanged, info);
}
