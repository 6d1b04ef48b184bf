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
 *	ENTRIES	All entries descend together, level by level: when a page of a level is read, those
 *		of the max_distance entries after it have been advised.  These are the pages that
 *		gingetbitmap() reads next, of all entries whatever they contain, and finds in shared
 *		buffers then.  Not advised are what follows the first page of a partial match (a prefix),
 *		and entries that the access method adds (a search for all rows).
 *	COMPARE	The searches call the entries' comparison function, as gingetbitmap() is about to do
 *		with the same values.  If that could be noticed (attach/effects.c), they are not made: a
 *		comparison of rows, arrays or ranges calls those of their elements.
 *	CACHED	Where the previous scan of the index has read nothing, the entries are not searched
 *		for ahead, as that would be in vain.  (The counter tells; see also window/history.c.)
 *	LOCKS	One page is locked at a time, in share mode, as by a search.  Nothing is locked
 *		otherwise when extractQuery is called.
 *	SCOPE	fn_addr is exchanged where it is what fmgr_info() gives, and put back where it is
 *		still ours, also after an error.  A scan that runs within a function of the operator
 *		class has its own GinState, and finds ours on a stack.  A function that has copied its
 *		FmgrInfo, and calls the copy, reaches the operator class's.
 *
 * src/bitmap/gin.c
 */
#include "postgres.h"

#include "access/gin_private.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "attach/attach.h"
#include "attach/descriptors.h"
#include "bitmap/bitmap_int.h"
#include "window/window.h"

#define MAX_SEARCHES	128
#define MAX_STEPS		64		/* pages on the way of one search */

/* An entry that is being searched for. */
typedef struct Search
{
	OffsetNumber attnum;
	GinNullCategory category;
	bool		partial;
	Datum		key;
	BlockNumber block;			/* the next page, or InvalidBlockNumber */
	bool		in_postings;	/* it belongs to the posting tree */
} Search;

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
	Search	   *searches;		/* MAX_SEARCHES, or NULL until first needed */
} LaGin;

static LaGin *running = NULL;

bool
la_gin_is_stock(const IndexAmRoutine *am)
{
	return am->amgetbitmap == gingetbitmap;
}

/* ---- ENTRIES -------------------------------------------------------------- */

/* On an entry page: the page after it, or InvalidBlockNumber. */
static BlockNumber
next_in_entries(LaGin *gin, Search *s, Buffer buffer)
{
	GinScanOpaque so = la_gin_scan(gin->bs->scan);
	Page		page = BufferGetPage(buffer);
	GinBtreeStack stack = {.blkno = s->block,.buffer = buffer,.predictNumber = 1};
	GinBtreeData btree;

	ginPrepareEntryScan(&btree, s->attnum, s->key, s->category, &so->ginstate);
	if (s->block != GIN_ROOT_BLKNO && btree.isMoveRight(&btree, page))
		return GinPageGetOpaque(page)->rightlink;
	if (!GinPageIsLeaf(page))
		return btree.findChildPage(&btree, &stack);
	if (!s->partial && btree.findItem(&btree, &stack))
	{
		IndexTuple	entry = (IndexTuple) PageGetItem(page, PageGetItemId(page, stack.off));

		if (GinIsPostingTree(entry))
		{
			s->in_postings = true;
			return GinGetPostingTree(entry);
		}
	}
	return InvalidBlockNumber;
}

/* Read the page that a search has come to. */
static void
step(LaGin *gin, Search *s)
{
	Buffer		buffer = la_evidence_read(gin->bs, s->block);
	Page		page = BufferGetPage(buffer);
	BlockNumber next = InvalidBlockNumber;

	LockBuffer(buffer, GIN_SHARE);
	if (!la_postings_is_gin(page) || GinPageIsDeleted(page) || GinPageIsList(page) ||
		GinPageIsData(page) != s->in_postings)
		;						/* never expected: left to the access method */
	else if (!s->in_postings)
		next = next_in_entries(gin, s, buffer);
	else if (!GinPageIsLeaf(page))
		next = la_postings_first_child(page);
	UnlockReleaseBuffer(buffer);
	s->block = next;
}

/* Has one of the searches from this one on, and before that one, come to the same page? */
static bool
is_shared(const LaGin *gin, int from, int search)
{
	for (int i = from; i < search; i++)
	{
		if (gin->searches[i].block == gin->searches[search].block)
			return true;
	}
	return false;
}

/*
 * The page of a search is about to be read.  Advise those of the max_distance searches after it
 * from *next on, which is the first one that has not been looked at.
 */
static void
advise_after(LaGin *gin, int current, int *next)
{
	int			end = Min(gin->nsearches, current + 1 + gin->bs->config.max_distance);

	for (*next = Max(*next, current + 1); *next < end; (*next)++)
	{
		if (gin->searches[*next].block != InvalidBlockNumber &&
			!is_shared(gin, current, *next))
			la_evidence_advise(gin->bs, gin->searches[*next].block);
	}
	la_counters_note_distance(&gin->bs->counters, *next - current - 1);
}

/* Read the pages that all searches have come to.  Returns false if no search goes on. */
static bool
search_level(LaGin *gin)
{
	int			next = 0;
	bool		more = false;

	for (int i = 0; i < gin->nsearches; i++)
	{
		Search	   *s = &gin->searches[i];

		if (s->block == InvalidBlockNumber)
			continue;

		if (la_evidence_arms(gin->bs))
			advise_after(gin, i, &next);
		else if (!la_evidence_is_observing(gin->bs))
			return false;
		if (!la_evidence_may_read())
			return false;
		CHECK_FOR_INTERRUPTS();
		step(gin, s);
		more |= s->block != InvalidBlockNumber;
	}
	return more;
}

static void
search_entries(LaGin *gin)
{
	MemoryContext old;
	int			levels = 0;

	if (gin->searching == NULL)
		gin->searching = AllocSetContextCreate(la_memory_context(gin->bs), "pg_lookahead entries",
											   ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(gin->searching);
	while (levels < MAX_STEPS && search_level(gin))
		levels++;
	MemoryContextSwitchTo(old);
	MemoryContextReset(gin->searching);
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
		Search	   *s = &gin->searches[gin->nsearches++];

		s->attnum = attnum;
		s->category = nulls != NULL && nulls[i] ? GIN_CAT_NULL_KEY : GIN_CAT_NORM_KEY;
		s->partial = so->ginstate.canPartialMatch[attnum - 1] && partial != NULL && partial[i];
		s->key = keys[i];
		s->block = GIN_ROOT_BLKNO;
		s->in_postings = false;
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

/* The operator class's function for a copy of our FmgrInfo. */
static Datum
call_original(FunctionCallInfo fcinfo)
{
	FmgrInfo	original;

	fmgr_info(fcinfo->flinfo->fn_oid, &original);
	return original.fn_addr(fcinfo);
}

static Datum
extract_query(PG_FUNCTION_ARGS)
{
	int			column;
	LaGin	   *gin = scan_of(fcinfo->flinfo, offsetof(GinState, extractQueryFn), &column);
	Datum		result = gin == NULL ? call_original(fcinfo) : gin->extract[column] (fcinfo);
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
	Datum		result = gin == NULL ? call_original(fcinfo) : gin->consistent[column] (fcinfo);

	if (gin != NULL)
		la_postings_see_row(gin->postings);
	return result;
}

static Datum
triconsistent(PG_FUNCTION_ARGS)
{
	int			column;
	LaGin	   *gin = scan_of(fcinfo->flinfo, offsetof(GinState, triConsistentFn), &column);
	Datum		result = gin == NULL ? call_original(fcinfo) : gin->triconsistent[column] (fcinfo);

	if (gin != NULL)
		la_postings_see_row(gin->postings);
	return result;
}

/* SCOPE */
static void
exchange(FmgrInfo *flinfo, PGFunction from, PGFunction to)
{
	if (OidIsValid(flinfo->fn_oid) && flinfo->fn_addr == from)
		flinfo->fn_addr = to;
}

static void
begin(LaGin *gin, GinState *state)
{
	for (int i = 0; i < state->origTupdesc->natts; i++)
	{
		exchange(&state->extractQueryFn[i], gin->extract[i], extract_query);
		exchange(&state->consistentFn[i], gin->consistent[i], consistent);
		exchange(&state->triConsistentFn[i], gin->triconsistent[i], triconsistent);
	}
	gin->outer = running;
	running = gin;
}

static void
end(LaGin *gin, GinState *state)
{
	for (int i = 0; i < state->origTupdesc->natts; i++)
	{
		exchange(&state->extractQueryFn[i], extract_query, gin->extract[i]);
		exchange(&state->consistentFn[i], consistent, gin->consistent[i]);
		exchange(&state->triConsistentFn[i], triconsistent, gin->triconsistent[i]);
	}
	running = gin->outer;
}

/* ---- the scan --------------------------------------------------------------- */

/* COMPARE */
static bool
is_comparable(const GinState *state)
{
	LaEffects	effects = {0};

	for (int i = 0; i < state->origTupdesc->natts; i++)
	{
		Oid			type = TupleDescAttr(state->origTupdesc, i)->atttypid;

		la_effects_of_support(&effects, state->compareFn[i].fn_oid, 1, &type);
		la_effects_of_collation(&effects, state->supportCollation[i]);
	}
	return effects.flags == 0;
}

static PGFunction
original_of(const FmgrInfo *flinfo)
{
	FmgrInfo	original;

	if (!OidIsValid(flinfo->fn_oid))
		return NULL;
	fmgr_info(flinfo->fn_oid, &original);
	return original.fn_addr;
}

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
		gin->extract[i] = original_of(&state->extractQueryFn[i]);
		gin->consistent[i] = original_of(&state->consistentFn[i]);
		gin->triconsistent[i] = original_of(&state->triConsistentFn[i]);
	}
	return gin;
}

/* May entries be searched for, and is there memory for that? */
static bool
may_search(LaGin *gin)
{
	LaBitmapScan *bs = gin->bs;
	Size		size = MAX_SEARCHES * sizeof(Search);

	if (gin->searches == NULL && !gin->refused && la_budget_has(&bs->budget, size))
	{
		gin->refused = !is_comparable(&la_gin_scan(bs->scan)->ginstate);
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

	if (bs->gin == NULL && bs->config.advice_works && la_gin_is_stock(bs->real->rd_indam))
		bs->gin = create(bs);
	gin = bs->gin;
	if (gin == NULL)
		return bs->real->rd_indam->amgetbitmap(bs->scan, tbm);

	la_evidence_begin(bs);
	gin->ahead = (bs->config.force || !la_history_known_cached(bs->indexrelid)) &&
		may_search(gin);
	gin->nextracted = gin->nsearches = 0;
	la_postings_begin(gin->postings);
	ntids = getbitmap_around(gin, tbm);
	la_evidence_end(bs);
	la_history_note_cached(bs->indexrelid, la_issue_blocks_read() == reads);
	return ntids;
}
