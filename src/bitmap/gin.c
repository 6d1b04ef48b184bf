/*
 * gin.c
 *	  Pages of a GIN index that a bitmap index scan is going to read.
 *
 * gingetbitmap() extracts the search entries from the query, finds each of them in the entry tree,
 * one after the other, and then reads the row addresses of the entries in parallel: those of a
 * frequent entry are in a posting tree of their own.
 *
 *		gingetbitmap
 *		  | extractQuery(query)			 once for each condition
 *		  |   after the last one: ENTRIES
 *		  | entry 1: root -> inner pages -> leaf page -> posting tree: root -> first leaf page
 *		  | entry 2: ...
 *		  | rows: next leaf pages of all posting trees, side by side
 *		  |   consistent(entries of a row): POSTINGS (postings.c)
 *		  v
 *
 * Both functions belong to the operator class and are called through the scan's own copies of
 * their FmgrInfos (GinState).  While gingetbitmap() runs, their fn_addr is ours, which calls the
 * operator class's function first and returns its result.  So the entries are known without
 * being extracted twice, and nothing in the index's relcache entry changes.
 *
 *	ENTRIES	All entries descend together (gin/ginsearch.c).  Not advised are what follows the
 *		first page of a partial match (a prefix), and entries that the access method adds (a
 *		search for all rows).
 *	CACHED	Where the previous scan of the index has read nothing, the entries are not searched
 *		for ahead, as that would be in vain.  (The counter tells; see also window/history.c.)
 *	LOCKS	Nothing is locked when extractQuery is called.
 *	SCOPE	fn_addr is exchanged where it is what fmgr_info() gives, and put back where it is
 *		still ours, also after an error.  A scan that runs within a function of the operator
 *		class has its own GinState, and finds ours on a stack.  A function that has copied its
 *		FmgrInfo, and calls the copy, reaches the operator class's.
 *
 * src/bitmap/gin.c
 */
#include "postgres.h"

#include "access/gin_private.h"
#include "utils/memutils.h"

#include "attach/attach.h"
#include "attach/descriptors.h"
#include "bitmap/bitmap_int.h"
#include "gin/gin.h"
#include "window/window.h"

#define MAX_SEARCHES	128

/* A scan.  The functions are what fmgr_info() gives for those of the operator classes. */
typedef struct LaGin
{
	LaBitmapScan *bs;
	struct LaGin *outer;		/* scan within which this one runs */
	LaPostings *postings;
	PGFunction	extract[INDEX_MAX_KEYS];
	PGFunction	consistent[INDEX_MAX_KEYS];
	PGFunction	triconsistent[INDEX_MAX_KEYS];
	MemoryContext searching;	/* for the time of a search */
	bool		refused;		/* COMPARE: never search */
	bool		ahead;			/* search for the entries */
	int			nextracted;		/* conditions, so far */
	int			nsearches;
	LaGinSearch *searches;		/* MAX_SEARCHES, or NULL until first needed */
} LaGin;

static LaGin *running = NULL;

/* ---- ENTRIES -------------------------------------------------------------- */

static void
search_entries(LaGin *gin)
{
	LaGinSearcher by = {
		.reads = &gin->bs->reads,
		.state = &la_gin_scan(gin->bs->scan)->ginstate,
		.context = gin->searching
	};

	if (gin->searching == NULL)
		by.context = gin->searching =
			AllocSetContextCreate(la_memory_context(gin->bs), "pg_lookahead entries",
								  ALLOCSET_SMALL_SIZES);
	la_ginsearch_run(&by, gin->searches, gin->nsearches);
}

/* Take the entries that extractQuery has returned for a condition. */
static void
take_entries(LaGin *gin, OffsetNumber attnum, FunctionCallInfo fcinfo, Datum *keys)
{
	GinScanOpaque so = la_gin_scan(gin->bs->scan);
	int32		nkeys = *(int32 *) PG_GETARG_POINTER(1);
	bool	   *partial = *(bool **) PG_GETARG_POINTER(3);
	bool	   *nulls = *(bool **) PG_GETARG_POINTER(5);

	for (int i = 0; keys != NULL && i < nkeys && gin->nsearches < MAX_SEARCHES; i++)
	{
		LaGinSearch *s = &gin->searches[gin->nsearches++];

		la_ginsearch_set(s, attnum, keys[i],
						 nulls != NULL && nulls[i] ? GIN_CAT_NULL_KEY : GIN_CAT_NORM_KEY);
		s->partial = so->ginstate.canPartialMatch[attnum - 1] && partial != NULL && partial[i];
	}
}

/* Does the condition exclude all rows, so that no page will be read? */
static bool
excludes_all(FunctionCallInfo fcinfo, Datum *keys)
{
	return (keys == NULL || *(int32 *) PG_GETARG_POINTER(1) <= 0) &&
		*(int32 *) PG_GETARG_POINTER(6) == GIN_SEARCH_MODE_DEFAULT;
}

/* ---- functions in place of the operator class's ----------------------------- */

/*
 * The scan to which an FmgrInfo of an array of its GinState belongs, and its index there; NULL if
 * it is a copy of such a one.
 */
static LaGin *
scan_of(FmgrInfo *flinfo, Size array, int *column)
{
	LaGin	   *gin;

	for (gin = running; gin != NULL; gin = gin->outer)
	{
		GinScanOpaque so = la_gin_scan(gin->bs->scan);
		FmgrInfo   *first = (FmgrInfo *) ((char *) &so->ginstate + array);

		if (flinfo >= first && flinfo < first + INDEX_MAX_KEYS)
		{
			*column = flinfo - first;
			return gin;
		}
	}
	return NULL;
}

static Datum
extract_query(PG_FUNCTION_ARGS)
{
	int			column;
	LaGin	   *gin = scan_of(fcinfo->flinfo, offsetof(GinState, extractQueryFn), &column);
	Datum		result = gin == NULL ? la_ginsupport_call_original(fcinfo) :
		gin->extract[column] (fcinfo);
	Datum	   *keys = (Datum *) DatumGetPointer(result);

	if (gin == NULL || !gin->ahead || fcinfo->isnull)
		return result;
	if (excludes_all(fcinfo, keys))
		gin->ahead = false;
	else
		take_entries(gin, column + 1, fcinfo, keys);
	if (++gin->nextracted == gin->bs->scan->numberOfKeys && gin->ahead)
		search_entries(gin);
	return result;
}

static Datum
consistent(PG_FUNCTION_ARGS)
{
	int			column;
	LaGin	   *gin = scan_of(fcinfo->flinfo, offsetof(GinState, consistentFn), &column);
	Datum		result = gin == NULL ? la_ginsupport_call_original(fcinfo) :
		gin->consistent[column] (fcinfo);

	if (gin != NULL)
		la_postings_see_row(gin->postings);
	return result;
}

static Datum
triconsistent(PG_FUNCTION_ARGS)
{
	int			column;
	LaGin	   *gin = scan_of(fcinfo->flinfo, offsetof(GinState, triConsistentFn), &column);
	Datum		result = gin == NULL ? la_ginsupport_call_original(fcinfo) :
		gin->triconsistent[column] (fcinfo);

	if (gin != NULL)
		la_postings_see_row(gin->postings);
	return result;
}

/* SCOPE */
static void
begin(LaGin *gin, GinState *state)
{
	for (int i = 0; i < state->origTupdesc->natts; i++)
	{
		la_ginsupport_exchange(&state->extractQueryFn[i], gin->extract[i], extract_query);
		la_ginsupport_exchange(&state->consistentFn[i], gin->consistent[i], consistent);
		la_ginsupport_exchange(&state->triConsistentFn[i], gin->triconsistent[i], triconsistent);
	}
	gin->outer = running;
	running = gin;
}

static void
end(LaGin *gin, GinState *state)
{
	for (int i = 0; i < state->origTupdesc->natts; i++)
	{
		la_ginsupport_exchange(&state->extractQueryFn[i], extract_query, gin->extract[i]);
		la_ginsupport_exchange(&state->consistentFn[i], consistent, gin->consistent[i]);
		la_ginsupport_exchange(&state->triConsistentFn[i], triconsistent, gin->triconsistent[i]);
	}
	running = gin->outer;
}

/* ---- the scan --------------------------------------------------------------- */

/* What the scan needs; NULL if there is no memory for it. */
static LaGin *
create(LaBitmapScan *bs)
{
	Size		size = sizeof(LaGin) + la_postings_size();
	GinState   *state = &la_gin_scan(bs->scan)->ginstate;
	LaGin	   *gin;

	if (!la_budget_has(&bs->budget, size))
		return NULL;
	gin = la_memory_alloc(bs, sizeof(LaGin));
	gin->bs = bs;
	gin->postings = la_postings_create(bs);
	for (int i = 0; i < state->origTupdesc->natts; i++)
	{
		gin->extract[i] = la_ginsupport_original(&state->extractQueryFn[i]);
		gin->consistent[i] = la_ginsupport_original(&state->consistentFn[i]);
		gin->triconsistent[i] = la_ginsupport_original(&state->triConsistentFn[i]);
	}
	return gin;
}

/* May entries be searched for, and is there memory for that? */
static bool
may_search(LaGin *gin)
{
	LaBitmapScan *bs = gin->bs;
	Size		size = MAX_SEARCHES * sizeof(LaGinSearch);

	if (gin->searches == NULL && !gin->refused && la_budget_has(&bs->budget, size))
	{
		gin->refused = !la_ginsearch_is_possible(&la_gin_scan(bs->scan)->ginstate);
		if (!gin->refused)
			gin->searches = la_memory_alloc(bs, size);
	}
	return gin->searches != NULL;
}

/* Call amgetbitmap with our functions in place of the operator class's. */
static int64
getbitmap_around(LaGin *gin, TIDBitmap *tbm)
{
	LaBitmapScan *bs = gin->bs;
	GinState   *state = &la_gin_scan(bs->scan)->ginstate;
	volatile int64 ntids = 0;

	begin(gin, state);
	PG_TRY();
	{
		ntids = bs->real->rd_indam->amgetbitmap(bs->scan, tbm);
	}
	PG_CATCH();
	{
		end(gin, state);
		PG_RE_THROW();
	}
	PG_END_TRY();
	end(gin, state);
	return ntids;
}

/* Call amgetbitmap, with look-ahead where there is evidence. */
int64
la_gin_getbitmap(LaBitmapScan *bs, TIDBitmap *tbm)
{
	int64		reads = la_issue_blocks_read();
	LaGin	   *gin;
	int64		ntids;

	if (bs->gin == NULL && bs->reads.config.advice_works &&
		la_ginreads_is_stock(bs->real->rd_indam))
		bs->gin = create(bs);
	gin = bs->gin;
	if (gin == NULL)
		return bs->real->rd_indam->amgetbitmap(bs->scan, tbm);

	bs->reads.counted = false;
	la_ginreads_begin(&bs->reads);
	gin->ahead = (bs->reads.config.force || !la_history_known_cached(bs->indexrelid)) &&
		may_search(gin);
	gin->nextracted = gin->nsearches = 0;
	la_postings_begin(gin->postings);
	ntids = getbitmap_around(gin, tbm);
	la_ginreads_end(&bs->reads);
	la_history_note_cached(bs->indexrelid, la_issue_blocks_read() == reads);
	return ntids;
}
