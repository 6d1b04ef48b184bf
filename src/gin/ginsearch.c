/*
 * ginsearch.c
 *	  Entries of a GIN index that are going to be looked for, all of them at once.
 *
 * The access method finds them one after the other:
 *
 *		entry 1: root -> inner pages -> leaf page -> posting tree: root -> inner pages -> leaf page
 *		entry 2: ...
 *
 * Here all of them descend together, level by level.  When a page of a level is read, those of the
 * max_distance entries after it have been advised.  These are the pages that the access method
 * reads next, of all entries whatever they contain, and finds in shared buffers then.
 *
 *	POSTINGS	Of a posting tree, the page that holds an address: where a row is inserted, its
 *		own; else the first one.
 *	COMPARE	The searches call the entries' comparison function, as the access method is about to
 *		do with the same values.  la_ginsearch_is_possible() says whether that cannot be noticed
 *		(attach/effects.c): a comparison of rows, arrays or ranges calls those of their elements.
 *	EVIDENCE	A search ends when reads have turned out not to be waits (ginreads.c).
 *	LOCKS	One page is locked at a time, in share mode, as by a search.  The caller holds none.
 *	SORTED	Entries that come in the order of the index share pages with their neighbours.
 *		Whatever their order is, a page is advised once for the entries within max_distance.
 *
 * src/gin/ginsearch.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "attach/attach.h"
#include "gin/gin.h"

#define MAX_STEPS		64		/* pages on the way of one search */

/* COMPARE: may entries of such an index be searched for early? */
bool
la_ginsearch_is_possible(const GinState *state)
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

/* A search that begins at the root. */
void
la_ginsearch_set(LaGinSearch *s, OffsetNumber attnum, Datum key, GinNullCategory category)
{
	s->key = key;
	s->block = GIN_ROOT_BLKNO;
	s->attnum = attnum;
	s->category = category;
	s->partial = s->in_postings = false;
	ItemPointerSetInvalid(&s->tid);
}

/* On an entry page: the page after it, or InvalidBlockNumber. */
static BlockNumber
next_in_entries(const LaGinSearcher *by, LaGinSearch *s, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	GinBtreeStack stack = {.blkno = s->block,.buffer = buffer,.predictNumber = 1};
	GinBtreeData btree;

	ginPrepareEntryScan(&btree, s->attnum, s->key, s->category, by->state);
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
step(const LaGinSearcher *by, LaGinSearch *s)
{
	Buffer		buffer = la_ginreads_read(by->reads, s->block);
	Page		page = BufferGetPage(buffer);
	BlockNumber next = InvalidBlockNumber;

	LockBuffer(buffer, GIN_SHARE);
	if (!la_ginpage_is_sound(page) || GinPageIsDeleted(page) || GinPageIsList(page) ||
		GinPageIsData(page) != s->in_postings)
		;						/* never expected: left to the access method */
	else if (!s->in_postings)
		next = next_in_entries(by, s, buffer);
	else if (!GinPageIsLeaf(page))
		next = la_ginpage_child_of(page, &s->tid);
	UnlockReleaseBuffer(buffer);
	s->block = next;
}

/* Has one of the searches from this one on, and before that one, come to the same page? */
static bool
is_shared(const LaGinSearch *searches, int from, int search)
{
	for (int i = search - 1; i >= from; i--)
	{
		if (searches[i].block == searches[search].block)
			return true;
	}
	return false;
}

/*
 * The page of a search is about to be read.  Advise those of the max_distance searches after it
 * from *next on, which is the first one that has not been looked at.
 */
static void
advise_after(const LaGinSearcher *by, const LaGinSearch *searches, int n, int current, int *next)
{
	int			end = Min(n, current + 1 + by->reads->config.max_distance);

	for (*next = Max(*next, current + 1); *next < end; (*next)++)
	{
		if (searches[*next].block != InvalidBlockNumber && !is_shared(searches, current, *next))
			la_ginreads_advise(by->reads, searches[*next].block);
	}
	la_counters_note_distance(by->reads->counters, *next - current - 1);
}

/* Read the pages that all searches have come to.  Returns false if no search goes on. */
static bool
search_level(const LaGinSearcher *by, LaGinSearch *searches, int n)
{
	int			next = 0;
	bool		more = false;

	for (int i = 0; i < n; i++)
	{
		LaGinSearch *s = &searches[i];

		if (s->block == InvalidBlockNumber)
			continue;

		if (la_ginreads_arms(by->reads))
			advise_after(by, searches, n, i, &next);
		else if (!la_ginreads_is_observing(by->reads))
			return false;
		if (!la_ginreads_may_read())
			return false;
		CHECK_FOR_INTERRUPTS();
		step(by, s);
		more |= s->block != InvalidBlockNumber;
	}
	return more;
}

/* Search for all of them. */
void
la_ginsearch_run(const LaGinSearcher *by, LaGinSearch *searches, int n)
{
	MemoryContext old = MemoryContextSwitchTo(by->context);

	for (int levels = 0; levels < MAX_STEPS && search_level(by, searches, n); levels++)
		;
	MemoryContextSwitchTo(old);
	MemoryContextReset(by->context);
}
