/*
 * graph.c
 *	  Pages that a search in an HNSW graph will need (pgvector).
 *
 * An HNSW search keeps a list of candidates.  It expands the nearest one: for each of its
 * neighbors it reads the element's page and computes the distance to the query, which may make
 * that neighbor a candidate.  A cold search waits for some thousand pages one after the other, and
 * returns its first row when all is done, so looking ahead in the heap alone would not help.
 *
 * Each distance is computed by the operator class's distance function, with the element, on its
 * locked page, as an argument.  While the access method runs, that function is ours:
 *
 *		hnswgettuple
 *			 |	distance(query, element)
 *			 v
 *		graph_distance ---> the operator class's function: the result
 *			 |
 *			 +-> the element's neighbors are copied from its page, and it
 *				 becomes a candidate here as well
 *			 +-> the EXPAND_AHEAD nearest candidates that have not been expanded:
 *				 the pages of all their neighbors are advised
 *
 * A candidate counts as expanded when a distance is computed for one of its neighbors.  The list
 * of candidates is that of the search, rebuilt from the distances.  Where it differs (ties,
 * elements being deleted, another version of the algorithm), only the advice is worse.
 *
 * Evidence: nothing is advised until the search itself has waited for miss_threshold pages, and
 * candidates seen before that are not kept.  Single reads cannot be timed from here: a wait is the
 * time between two distances between which pages were read.
 *
 * Invariants:
 *	- The function is replaced in the relcache entry, from where pgvector calls it, during the call
 *	  of amgettuple only, and restored also after an error.  The result is the original's.
 *	- Pages are read under the lock that the caller holds on the element's page.  Where the
 *	  neighbors lie on another page, that one is read without a lock from a pinned buffer, as a
 *	  hint: to lock a second page could deadlock with an insert.
 *	- Every length and offset is checked against the page.  The layout is that of pgvector's hnsw.h,
 *	  versions 0.5.1 to 0.8; pages that look different are ignored.
 *
 * src/scan/graph.c
 */
#include "postgres.h"

#include "lib/binaryheap.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/fd.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "scan/scan_int.h"

#define DISTANCE_PROC		1
#define PAGE_ID				0xFF90
#define ELEMENT_TYPE		1
#define NEIGHBORS_TYPE		2

#define EXPAND_AHEAD		2	/* candidates whose neighbors are advised */
#define MAX_NEIGHBORS		64	/* of each that are looked at: the last ones */
#define MAX_CANDIDATES		4096
#define RECENT_SLOTS		2048	/* a power of 2 */
#define EF_SEARCH_DEFAULT	40
#define EF_SEARCH_MOST		1000
#define ACTIVE_BYTES \
	((EF_SEARCH_MOST + MAX_CANDIDATES) * sizeof(Datum) + RECENT_SLOTS * sizeof(BlockNumber))

typedef struct Opaque
{
	BlockNumber next;
	uint16		unused;
	uint16		page_id;
} Opaque;

typedef struct Element
{
	uint8		type;
	uint8		level;
	uint8		deleted;
	uint8		version;
	ItemPointerData heap[10];
	ItemPointerData neighbors;
	uint16		unused;
	char		vector[FLEXIBLE_ARRAY_MEMBER];
} Element;

typedef struct Neighbors
{
	uint8		type;
	uint8		version;
	uint16		count;
	ItemPointerData elements[FLEXIBLE_ARRAY_MEMBER];
} Neighbors;

typedef struct Candidate
{
	double		distance;
	ItemPointerData at;			/* where its neighbors are listed */
	int16		n;				/* of them known, or -1 */
	ItemPointerData elements[MAX_NEIGHBORS];
} Candidate;

typedef struct GraphSearch
{
	LaScan	   *ls;

	/* evidence */
	int64		reads;			/* blocks read by this backend, last time */
	double		clock_us;		/* last time; 0: the clock is not looked at */
	int			waits;
	bool		active;

	int			ef;				/* hnsw.ef_search */
	bool		iterative;		/* hnsw.iterative_scan */
	binaryheap *best;			/* distances of the ef nearest elements; NULL
								 * until first active */
	binaryheap *waiting;		/* candidates whose neighbors were not advised */

	/* candidates whose neighbors were advised, not yet expanded */
	int			nahead;
	int			mostahead;		/* 1 ... EXPAND_AHEAD */
	Candidate  *ahead[EXPAND_AHEAD];

	BlockNumber *recent;		/* pages advised or visited */
	MemoryContext context;		/* of the candidates */
	int			ncandidates;	/* that are allocated there */
} GraphSearch;

/* the search that is running, and the function that ours replaces */
static GraphSearch *running = NULL;
static PGFunction original = NULL;

/* ---- Two heaps ----------------------------------------------------------- */

/* The farthest first. */
static int
compare_best(Datum a, Datum b, void *arg)
{
	double		da = DatumGetFloat8(a);
	double		db = DatumGetFloat8(b);

	return da < db ? -1 : da > db;
}

/* The nearest first. */
static int
compare_waiting(Datum a, Datum b, void *arg)
{
	double		da = ((Candidate *) DatumGetPointer(a))->distance;
	double		db = ((Candidate *) DatumGetPointer(b))->distance;

	return da > db ? -1 : da < db;
}

/* Keep this distance, if it is among the ef least so far. */
static bool
add_best(GraphSearch *g, double distance)
{
	if (g->best->bh_size < g->ef)
		binaryheap_add(g->best, Float8GetDatum(distance));
	else if (distance < DatumGetFloat8(binaryheap_first(g->best)))
		binaryheap_replace_first(g->best, Float8GetDatum(distance));
	else
		return false;
	return true;
}

static Candidate *
nearest_waiting(GraphSearch *g)
{
	return (Candidate *) DatumGetPointer(binaryheap_first(g->waiting));
}

static void
free_candidate(GraphSearch *g, Candidate *c)
{
	pfree(c);
	g->ncandidates--;
	la_budget_return(&g->ls->budget, sizeof(Candidate));
}

/* ---- Pages --------------------------------------------------------------- */

/* An item of a page, which may be changing, and its length; NULL if there is none. */
static char *
graph_item(Page page, OffsetNumber offset, Size *length)
{
	volatile PageHeaderData *header = (PageHeader) page;
	const Size	special = BLCKSZ - MAXALIGN(sizeof(Opaque));
	const Size	lower = header->pd_lower;
	ItemIdData	id;
	Size		start;

	if (header->pd_special != special || lower > special ||
		((Opaque *) (page + special))->page_id != PAGE_ID ||
		offset < FirstOffsetNumber ||
		SizeOfPageHeaderData + offset * sizeof(ItemIdData) > lower)
		return NULL;
	/* each value is read once, and checked before it is used */
	id = *(volatile ItemIdData *) PageGetItemId(page, offset);
	start = ItemIdGetOffset(&id);
	*length = ItemIdGetLength(&id);
	if (start < SizeOfPageHeaderData || start + *length > special)
		return NULL;
	return page + start;
}

/* Copy the list of a candidate's neighbors from its page. */
static void
copy_neighbors(Candidate *c, Page page)
{
	Size		length;
	Neighbors  *list = (Neighbors *)
		graph_item(page, ItemPointerGetOffsetNumberNoCheck(&c->at), &length);
	int			listed,
				count;

	c->n = 0;
	if (list == NULL || length < offsetof(Neighbors, elements) || list->type != NEIGHBORS_TYPE)
		return;
	listed = *(volatile uint16 *) &list->count;
	if (offsetof(Neighbors, elements) + listed * sizeof(ItemPointerData) > length)
		return;

	/*
	 * those of the lowest layer, where most of a search takes place, come
	 * last
	 */
	count = Min(listed, MAX_NEIGHBORS);
	memcpy(c->elements, list->elements + (listed - count), count * sizeof(ItemPointerData));
	for (int i = 0; i < count; i++)
	{
		if (ItemPointerIsValid(&c->elements[i]))
			c->elements[c->n++] = c->elements[i];
	}
}

/* Note that a page is advised, or visited.  Was it among the recent ones? */
static bool
note_block(GraphSearch *g, BlockNumber block)
{
	BlockNumber *slot = &g->recent[block % RECENT_SLOTS];
	bool		found = *slot == block;

	*slot = block;
	return found;
}

static void
advise(GraphSearch *g, BlockNumber block)
{
	if (!note_block(g, block))
		(void) la_leafahead_issue_page(&g->ls->leaf, block);
}

/* Advise the pages of a candidate's neighbors, or, if it is not cached, the page of their list. */
static void
advise_neighbors(GraphSearch *g, Candidate *c)
{
	if (c->n < 0)
	{
		BlockNumber block = ItemPointerGetBlockNumberNoCheck(&c->at);
		Buffer		buffer;

		if (!la_issue_is_cached(g->ls->real, block, &buffer))
		{
			advise(g, block);
			return;
		}
		buffer = ReadBuffer(g->ls->real, block);
		copy_neighbors(c, BufferGetPage(buffer));
		ReleaseBuffer(buffer);
	}
	for (int i = 0; i < c->n; i++)
		advise(g, ItemPointerGetBlockNumberNoCheck(&c->elements[i]));
}

/* ---- The search as seen from its distances ------------------------------- */

/* Begin to look ahead in this search; the first time, allocate what that needs. */
static void
activate(GraphSearch *g)
{
	LaScan	   *ls = g->ls;
	MemoryContext old;

	g->active = true;
	if (g->best != NULL)
		return;
	old = MemoryContextSwitchTo(ls->context);
	g->best = binaryheap_allocate(g->ef, compare_best, NULL);
	g->waiting = binaryheap_allocate(MAX_CANDIDATES, compare_waiting, NULL);
	g->context = AllocSetContextCreate(ls->context, "pg_lookahead graph",
									   ALLOCSET_DEFAULT_SIZES);
	g->recent = palloc(RECENT_SLOTS * sizeof(BlockNumber));
	for (int i = 0; i < RECENT_SLOTS; i++)
		g->recent[i] = InvalidBlockNumber;
	la_budget_take(&ls->budget, ACTIVE_BYTES);
	MemoryContextSwitchTo(old);
}

/*
 * Note whether the search has waited, and activate it if that was often enough.  Returns
 * whether it is active.
 */
static bool
note_evidence(GraphSearch *g)
{
	const LaIoPolicyConfig *config = &g->ls->policy.config;
	int64		reads = la_issue_blocks_read();

	if (g->active)
		return true;
	if (reads != g->reads)
	{
		double		now = la_issue_clock_us();

		/* the first read only starts the clock */
		if (g->clock_us > 0 && now - g->clock_us >= config->min_read_us)
			g->waits++;
		g->reads = reads;
		g->clock_us = now;
	}
	else if (g->clock_us > 0)
		g->clock_us = la_issue_clock_us();
	if (config->force || g->waits >= config->miss_threshold)
	{
		if (g->best == NULL && !la_budget_has(&g->ls->budget, ACTIVE_BYTES))
			return false;
		activate(g);
	}
	return g->active;
}

/* A distance was computed: the candidate that has this element as a neighbor is expanded. */
static void
mark_expanded(GraphSearch *g, ItemPointer element)
{
	for (int a = 0; a < g->nahead; a++)
	{
		for (int i = 0; i < g->ahead[a]->n; i++)
		{
			if (!ItemPointerEquals(&g->ahead[a]->elements[i], element))
				continue;
			free_candidate(g, g->ahead[a]);
			g->ahead[a] = g->ahead[--g->nahead];
			g->mostahead = Min(g->mostahead + 1, EXPAND_AHEAD);
			return;
		}
	}
}

/* The distance of an element, on a page that the caller has locked, was computed. */
static void
see_element(GraphSearch *g, const char *vector, double distance)
{
	Buffer		buffer = (vector - BufferBlocks) / BLCKSZ + 1;
	Page		page = BufferGetPage(buffer);
	Element    *e = (Element *) (vector - offsetof(Element, vector));
	OffsetNumber noffsets = PageGetMaxOffsetNumber(page);
	ItemPointerData tid;
	Candidate  *c;

	if ((char *) e < page + SizeOfPageHeaderData || e->type != ELEMENT_TYPE)
		return;
	ItemPointerSetInvalid(&tid);
	for (OffsetNumber o = FirstOffsetNumber; o <= noffsets; o++)
	{
		Size		length;

		if (graph_item(page, o, &length) == (char *) e)
			ItemPointerSet(&tid, BufferGetBlockNumber(buffer), o);
	}
	if (!ItemPointerIsValid(&tid))
		return;
	(void) note_block(g, ItemPointerGetBlockNumberNoCheck(&tid));
	mark_expanded(g, &tid);

	if (add_best(g, distance) && g->waiting->bh_size < MAX_CANDIDATES &&
		ItemPointerIsValid(&e->neighbors) &&
		la_budget_has(&g->ls->budget, sizeof(Candidate)))
	{
		la_budget_take(&g->ls->budget, sizeof(Candidate));
		g->ncandidates++;
		c = MemoryContextAlloc(g->context, sizeof(Candidate));
		c->distance = distance;
		c->at = e->neighbors;
		c->n = -1;
		if (ItemPointerGetBlockNumberNoCheck(&c->at) == ItemPointerGetBlockNumberNoCheck(&tid))
			copy_neighbors(c, page);
		binaryheap_add(g->waiting, PointerGetDatum(c));
	}
}

/* Have the neighbors of the nearest candidates read. */
static void
look_ahead(GraphSearch *g)
{
	/* if a nearer one has come, what was advised may never be needed */
	if (g->nahead > 0 && g->nahead >= g->mostahead && !binaryheap_empty(g->waiting))
	{
		int			farthest = 0;

		for (int a = 1; a < g->nahead; a++)
		{
			if (g->ahead[a]->distance > g->ahead[farthest]->distance)
				farthest = a;
		}
		if (nearest_waiting(g)->distance < g->ahead[farthest]->distance)
		{
			free_candidate(g, g->ahead[farthest]);
			g->ahead[farthest] = g->ahead[--g->nahead];
			g->mostahead = 1;
		}
	}
	/* those whose list of neighbors was not cached */
	for (int a = 0; a < g->nahead; a++)
	{
		if (g->ahead[a]->n < 0)
			advise_neighbors(g, g->ahead[a]);
	}
	while (g->nahead < g->mostahead && !binaryheap_empty(g->waiting))
	{
		Candidate  *c = nearest_waiting(g);

		(void) binaryheap_remove_first(g->waiting);
		g->ahead[g->nahead++] = c;
		advise_neighbors(g, c);
	}
}

static Datum
graph_distance(PG_FUNCTION_ARGS)
{
	Datum		result = original(fcinfo);
	GraphSearch *g = running;
	const char *vector;

	if (g == NULL || PG_NARGS() < 2 || !note_evidence(g))
		return result;
	vector = (const char *) PG_GETARG_POINTER(1);
	if (vector >= BufferBlocks && vector < BufferBlocks + (Size) NBuffers * BLCKSZ)
	{
		see_element(g, vector, DatumGetFloat8(result));
		look_ahead(g);
	}
	return result;
}

/* Another search begins. */
static void
restart(GraphSearch *g)
{
	if (g->active)
	{
		MemoryContextReset(g->context);
		la_budget_return(&g->ls->budget, g->ncandidates * sizeof(Candidate));
		g->ncandidates = 0;
		binaryheap_reset(g->best);
		binaryheap_reset(g->waiting);
	}
	g->nahead = 0;
	g->reads = la_issue_blocks_read();
	g->clock_us = 0;
	g->waits = 0;
	g->active = false;
	g->mostahead = 1;
}

/* Call amgettuple, and see the distances that it computes. */
static bool
graph_gettuple(LaScan *ls, ScanDirection dir)
{
	GraphSearch *g = ls->watch.state;
	FmgrInfo   *distance = index_getprocinfo(ls->real, 1, DISTANCE_PROC);
	GraphSearch *outer = running;
	PGFunction	outer_original = original;
	bool		found;

	if (distance->fn_addr == graph_distance)
		return ls->real->rd_indam->amgettuple(ls->scan, dir);
	restart(g);
	running = g;
	original = distance->fn_addr;
	distance->fn_addr = graph_distance;
	PG_TRY();
	{
		found = ls->real->rd_indam->amgettuple(ls->scan, dir);
	}
	PG_FINALLY();
	{
		distance->fn_addr = original;
		running = outer;
		original = outer_original;
	}
	PG_END_TRY();
	return found;
}

/*
 * An iterative scan searches again when its rows are used up.  That is expensive, and stock does
 * it only if more rows are wanted.  The first search returns ef_search rows at least, unless
 * elements are being deleted.
 */
static bool
graph_may_run_ahead(LaScan *ls)
{
	const GraphSearch *g = ls->watch.state;

	return !g->iterative || ls->nrows < g->ef;
}

static const LaScanOps graph_ops = {
	.gettuple = graph_gettuple,
	.may_run_ahead = graph_may_run_ahead
};

/* Watch the scan's searches, if reads of the index can be started ahead. */
void
la_graph_watch(LaScan *ls)
{
	const char *ef = GetConfigOption("hnsw.ef_search", true, false);
	const char *iterative = GetConfigOption("hnsw.iterative_scan", true, false);
	GraphSearch *g;

	if (!ls->policy.config.advice_works || la_direct_io() || RelationUsesLocalBuffers(ls->real))
		return;
	g = MemoryContextAllocZero(ls->context, sizeof(GraphSearch));
	g->ls = ls;
	g->iterative = iterative != NULL && strcmp(iterative, "off") != 0;
	g->ef = ef ? Min(Max(atoi(ef), 1), EF_SEARCH_MOST) : EF_SEARCH_DEFAULT;
	ls->watch.ops = &graph_ops;
	ls->watch.state = g;
}
