/*
 * ginsearch.c
 *	  Entries of a GIN index that are going to be looked for, all of them at once.
 *
 * The access method finds them one after the other:
 *
 *		entry 1: root -> inner pages -> leaf page -> posting tree: root -> inner pages -> leaf page
 *		entry 2: ...
 *
 * Here all of them descend together, level by level.  When a page of a level is read, the
 * max_distance ones after it have been advised.  These are the pages that the access method
 * reads next, of all entries whatever they contain, and finds in shared buffers then.
 *
 *	POSTINGS	Of a posting tree, the page that holds an address: where a row is inserted, its
 *		own; else the first one.
 *	COMPARE	The searches call the entries' comparison function, as the access method is about to
 *		do with the same values.  la_ginsearch_is_possible() says whether that cannot be noticed
 *		(attach/effects.c): a comparison of rows, arrays or ranges calls those of their elements.
 *	EVIDENCE	A search ends when reads have turned out not to be waits (ginreads.c).
 *	LOCKS	One page is locked at a time, in share mode, as by a search.  The caller holds none.
 *	SORTED	Entries that come in the order of the index share pages with their neighbours: such a
 *		page is read once for all of them.
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
#define SHARED			64		/* searches among which a page is advised once */
#define RUN				3

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

/* Read the page that so many searches have come to. */
static void
step(const LaGinSearcher *by, LaGinSearch *searches, int n)
{
	Buffer		buffer = la_ginreads_read(by->reads, searches->block);
	Page		page = BufferGetPage(buffer);
	bool		expected;

	LockBuffer(buffer, GIN_SHARE);
	/* else left to the access method */
	expected = la_ginpage_is_sound(page) && !GinPageIsDeleted(page) && !GinPageIsList(page) &&
		GinPageIsData(page) == searches->in_postings;
	for (LaGinSearch *s = searches; s < searches + n; s++)
	{
		if (!expected || (s->in_postings && GinPageIsLeaf(page)))
			s->block = InvalidBlockNumber;
		else if (s->in_postings)
			s->block = la_ginpage_child_of(page, &s->tid);
		else
			s->block = next_in_entries(by, s, buffer);
	}
	UnlockReleaseBuffer(buffer);
}

/* How far pages of a level have been advised. */
typedef struct Ahead
{
	int			next;			/* search to be looked at next */
	int			pages;			/* of searches before it */
	BlockNumber last;
	int			run;			/* pages next to each other, up to the last
								 * one */
} Ahead;

/* Has one of the searches just before this one come to the same page? */
static bool
is_shared(const LaGinSearch *searches, int from, int search)
{
	for (int i = search - 1; i >= Max(from, search - SHARED); i--)
	{
		if (searches[i].block == searches[search].block)
			return true;
	}
	return false;
}

/*
 * The page of a search is about to be read.  Advise max_distance pages of those behind it, but for
 * what continues a run: that is left to the kernel's read-ahead.
 */
static void
advise_after(const LaGinSearcher *by, const LaGinSearch *searches, int n, int current, Ahead *a)
{
	if (a->next <= current)
	{
		a->next = current + 1;
		a->pages = 0;
	}
	for (; a->next < n && a->pages < by->reads->config.max_distance; a->next++)
	{
		BlockNumber block = searches[a->next].block;

		if (block == InvalidBlockNumber || is_shared(searches, current, a->next))
			continue;
		a->run = block == a->last + 1 ? a->run + 1 : 0;
		a->last = block;
		a->pages++;
		if (a->run < RUN)
			la_ginreads_advise(by->reads, block);
	}
	la_counters_note_distance(by->reads->counters, a->pages);
}

/* Read the pages that all searches have come to.  Returns false if no search goes on. */
static bool
search_level(const LaGinSearcher *by, LaGinSearch *searches, int n)
{
	Ahead		ahead = {.last = InvalidBlockNumber};
	bool		more = false;
	int			end;

	for (int i = 0; i < n; i = end)
	{
		BlockNumber block = searches[i].block;

		for (end = i + 1; end < n && searches[end].block == block;)
			end++;
		if (block == InvalidBlockNumber)
			continue;

		if (la_ginreads_arms(by->reads))
			advise_after(by, searches, n, i, &ahead);
		else if (!la_ginreads_is_observing(by->reads))
			return false;
		if (!la_ginreads_may_read())
			return false;
		CHECK_FOR_INTERRUPTS();
		step(by, &searches[i], end - i);
		ahead.pages = Max(ahead.pages - 1, 0);
		for (int k = i; k < end; k++)
			more |= searches[k].block != InvalidBlockNumber;
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
