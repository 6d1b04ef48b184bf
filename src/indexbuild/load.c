/*
 * load.c
 *	  Writing a btree from tuples that come in order.
 *
 *		tuples --> pending --> leaf page --------> finished: written, and its
 *				   (equal		 | one page of	   downlink put on the page above
 *				   ones are		 v each level			^
 *				   merged)	   page above ------------------'
 *							   ...
 *
 * A page of each level is open.  A tuple is put at its end, and if the page is full, the
 * last tuple moves to a new page, and what separates it from the one before becomes
 * the old page's high key:
 *
 *		 old page: [     | a | b | c ]	   full		 [ high key | a | b ]
 *					  ^ kept for the high key		   |
 *		 new page:						 ==>		 [     | c | next ]
 *
 * Behaviours
 *	A. The file is, byte for byte, what btbuild() would have written for the same tuples
 *	   (leaving aside LSNs, and the checksums that depend on them).  That includes what is
 *	   left over between line pointers and tuples.
 *	B. A page is full if the next tuple does not fit (a leaf keeps room for a row address
 *	   in its high key), or if it has two tuples and more and less than what the fill factor
 *	   leaves is free; a posting list that would be truncated away in the high key counts
 *	   as free for that.
 *	C. Equal tuples are merged to posting lists of at most a tenth of a page where
 *	   stock does: not in unique indexes, nor where equal keys may differ in their bytes,
 *	   or do, nor with deduplicate_items = off.
 *	D. A page gets its block number when it is begun, before the level above, if that is new.
 *	   A page that stays the last of its level has no high key: its line pointers slide.
 *	E. Separators are made by the server (_bt_truncate), and so is the complaint about tuples
 *	   that are too large.
 *
 * Invariants
 *	- The order of the tuples, and whether two are equal, is the caller's word.  Equal
 *	  tuples come by row address.  Tuples have no posting list, and an aligned size.
 *	- No memory is allocated for a tuple, only for levels and, for a moment, high keys.
 *	  All is in one memory context below the current one of the begin.
 *	- Nothing is left after an error but a new file, which goes with the transaction.
 *
 * src/indexbuild/load.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "indexbuild/load.h"
#include "indexbuild/pages.h"

#define REPORT_EVERY	1024	/* tuples; a power of two */

/* Bytes of the largest posting list: a page's tenth with its line pointer. */
#define MAX_POSTING \
	(MAXALIGN_DOWN(BLCKSZ * 10 / 100) - sizeof(ItemIdData))

/* Room for any tuple. */
typedef union AnyTuple
{
	IndexTupleData tuple;
	char		bytes[MAXALIGN(INDEX_SIZE_MASK)];
	double		align_double;
	int64		align_int64;
} AnyTuple;

/* A level of the tree: the page that is open there. */
typedef struct Level
{
	struct Level *above;		/* NULL: the page is the level's only one */
	Page		page;
	BlockNumber block;
	uint32		height;			/* 0: leaf pages */
	OffsetNumber last;			/* offset of the last tuple, or P_HIKEY */
	int			last_posting;	/* bytes of its posting list */
	int			keep_free;		/* bytes, as the fill factor tells */
	AnyTuple	low;			/* what the page above gets for this one */
} Level;

struct LaLoad
{
	Relation	heap;
	Relation	index;
	MemoryContext context;
	MemoryContext moment;		/* reset with each page */
	LaPages    *pages;
	BTScanInsert key;			/* to compare by; has no values */
	bool		merge;			/* equal tuples? */
	int64		tuples;
	BlockNumber next_block;
	Level	   *leaf;			/* NULL: no tuple yet */

	/*
	 * The tuple that the next one may be merged with.  Of more than one, row
	 * addresses lie behind the first one's key, and its own is set by and by.
	 */
	int			npending;
	Size		pending_size;	/* of header and key */
	AnyTuple	pending;
};

/* An empty page, with a line pointer for the high key. */
static Page
new_page(LaLoad *load, uint32 height)
{
	Page		page = la_pages_take(load->pages);
	BTPageOpaque opaque;

	_bt_pageinit(page, BLCKSZ);
	opaque = BTPageGetOpaque(page);
	opaque->btpo_prev = opaque->btpo_next = P_NONE;
	opaque->btpo_level = height;
	opaque->btpo_flags = height == 0 ? BTP_LEAF : 0;
	opaque->btpo_cycleid = 0;
	((PageHeader) page)->pd_lower += sizeof(ItemIdData);
	return page;
}

static Level *
new_level(LaLoad *load, uint32 height)
{
	Level	   *level = MemoryContextAllocZero(load->context, sizeof(Level));

	level->page = new_page(load, height);
	level->block = load->next_block++;
	level->height = height;
	level->last = P_HIKEY;
	level->keep_free = height == 0 ? BTGetTargetPageFreeSpace(load->index) :
		BLCKSZ * (100 - BTREE_NONLEAF_FILLFACTOR) / 100;

	/* nothing is below the first page */
	level->low.tuple.t_info = sizeof(IndexTupleData);
	BTreeTupleSetNAtts(&level->low.tuple, 0, false);
	return level;
}

/* A tuple becomes the page's last one.  That it fits has been seen to. */
static inline void
append(Page page, OffsetNumber offset, const IndexTupleData *tuple, Size size)
{
	PageHeader	header = (PageHeader) page;
	int			upper = header->pd_upper - (int) size;

	Assert(size == MAXALIGN(size));
	Assert(offset == OffsetNumberNext(PageGetMaxOffsetNumber(page)));
	if (unlikely(upper < (int) (header->pd_lower + sizeof(ItemIdData))))
		elog(ERROR, "failed to add item to the index page");

	ItemIdSetNormal(PageGetItemId(page, offset), upper, size);
	memcpy((char *) page + upper, tuple, size);
	header->pd_lower += sizeof(ItemIdData);
	header->pd_upper = upper;
}

/* The same for a tuple of which an upper page needs the downlink only. */
static void
append_downlink(Page page, OffsetNumber offset, const IndexTupleData *tuple)
{
	IndexTupleData bare = *tuple;

	bare.t_info = sizeof(IndexTupleData);
	BTreeTupleSetNAtts(&bare, 0, false);
	append(page, offset, &bare, sizeof(IndexTupleData));
}

/* The first item of a leaf page, its high key, is what must be kept of it. */
static void
truncate_high_key(LaLoad *load, Page page, OffsetNumber last)
{
	IndexTuple	left = (IndexTuple) PageGetItem(page, PageGetItemId(page, last));
	IndexTuple	right = (IndexTuple) PageGetItem(page,
												 PageGetItemId(page, P_HIKEY));
	MemoryContext before = MemoryContextSwitchTo(load->moment);
	IndexTuple	high = _bt_truncate(load->index, left, right, load->key);

	/* the high key is the tuple that was added last: no other one moves */
	if (!PageIndexTupleOverwrite(page, P_HIKEY, (void *) high,
								 IndexTupleSize(high)))
		elog(ERROR, "failed to add high key to the index page");
	MemoryContextSwitchTo(before);
	MemoryContextReset(load->moment);
}

static void put(LaLoad *load, Level *level, const IndexTupleData *tuple,
				int posting);

/* The level above learns of the open page. */
static void
put_downlink(LaLoad *load, Level *level)
{
	BTreeTupleSetDownLink(&level->low.tuple, level->block);
	put(load, level->above, &level->low.tuple, 0);
}

/*
 * The open page of a level is finished, and a new one begins with its last tuple.
 */
static void
turn_page(LaLoad *load, Level *level)
{
	Page		old = level->page;
	Page		page;
	BlockNumber block;
	ItemId		last = PageGetItemId(old, level->last);
	IndexTuple	high = (IndexTuple) PageGetItem(old, last);

	CHECK_FOR_INTERRUPTS();
	if (level->last <= P_FIRSTKEY)
		elog(ERROR, "index page has room for less than two items");

	page = new_page(load, level->height);
	block = load->next_block++;
	if (level->height == 0)
		append(page, P_FIRSTKEY, high, ItemIdGetLength(last));
	else
		append_downlink(page, P_FIRSTKEY, high);

	*PageGetItemId(old, P_HIKEY) = *last;
	ItemIdSetUnused(last);
	((PageHeader) old)->pd_lower -= sizeof(ItemIdData);
	if (level->height == 0)
		truncate_high_key(load, old, OffsetNumberPrev(level->last));
	high = (IndexTuple) PageGetItem(old, PageGetItemId(old, P_HIKEY));

	BTPageGetOpaque(old)->btpo_next = block;
	BTPageGetOpaque(page)->btpo_prev = level->block;

	if (!level->above)
		level->above = new_level(load, level->height + 1);
	put_downlink(load, level);
	memcpy(&level->low, high, IndexTupleSize(high));
	la_pages_write(load->pages, level->block, old);

	level->page = page;
	level->block = block;
	level->last = P_FIRSTKEY;
}

/*
 * A tuple is put behind all others of a level.  The last bytes of it are a posting list.
 */
static void
put(LaLoad *load, Level *level, const IndexTupleData *tuple, int posting)
{
	PageHeader	header = (PageHeader) level->page;
	bool		leaf = level->height == 0;
	int			size = MAXALIGN(IndexTupleSize(tuple));
	int			room = header->pd_upper - header->pd_lower -
		(int) sizeof(ItemIdData);

	if (unlikely(!la_load_fits(tuple)))
		_bt_check_third_page(load->index, load->heap, leaf, level->page,
							 unconstify(IndexTupleData *, tuple));

	if (room < size + (leaf ? (int) MAXALIGN(sizeof(ItemPointerData)) : 0) ||
		(room + level->last_posting < level->keep_free &&
		 level->last > P_FIRSTKEY))
		turn_page(load, level);

	level->last = OffsetNumberNext(level->last);
	level->last_posting = posting;
	if (leaf || level->last > P_FIRSTKEY)
		append(level->page, level->last, tuple, size);
	else
		append_downlink(level->page, level->last, tuple);
}

/* The pending tuple, with whatever was merged with it, goes to its page. */
static void
put_pending(LaLoad *load)
{
	IndexTuple	tuple = &load->pending.tuple;
	Size		end,
				size;

	if (load->npending == 1)
	{
		put(load, load->leaf, tuple, 0);
		return;
	}

	end = load->pending_size + load->npending * sizeof(ItemPointerData);
	size = MAXALIGN(end);
	memset(load->pending.bytes + end, 0, size - end);
	tuple->t_info = (tuple->t_info & ~INDEX_SIZE_MASK) | size;
	BTreeTupleSetPosting(tuple, load->npending, load->pending_size);
	put(load, load->leaf, tuple, size - load->pending_size);
}

static void
start_pending(LaLoad *load, IndexTuple tuple)
{
	load->npending = 1;
	load->pending_size = IndexTupleSize(tuple);
	memcpy(load->pending.bytes, tuple, load->pending_size);
}

/*
 * Is the tuple's key the same bytes as that of the pending one?  Equal keys may differ
 * even where all operator classes say that they do not: bpchar ignores trailing blanks.
 * What differs only in how it is stored (compressed) is for the server to tell.
 */
static inline bool
same_image(LaLoad *load, IndexTuple tuple)
{
	IndexTuple	pending = &load->pending.tuple;

	if (likely(tuple->t_info == pending->t_info &&
			   memcmp((char *) tuple + sizeof(IndexTupleData),
					  load->pending.bytes + sizeof(IndexTupleData),
					  load->pending_size - sizeof(IndexTupleData)) == 0))
		return true;
	return _bt_keep_natts_fast(load->index, pending, tuple) >
		IndexRelationGetNumberOfKeyAttributes(load->index);
}

/* The tuple's row address is added to the pending ones, if the list has room. */
static bool
add_pending(LaLoad *load, IndexTuple tuple)
{
	char	   *end = load->pending.bytes + load->pending_size;

	if (MAXALIGN(load->pending_size +
				 (load->npending + 1) * sizeof(ItemPointerData)) > MAX_POSTING)
		return false;

	if (load->npending == 1)
		memcpy(end, &load->pending.tuple.t_tid, sizeof(ItemPointerData));
	memcpy(end + load->npending * sizeof(ItemPointerData), &tuple->t_tid,
		   sizeof(ItemPointerData));
	load->npending++;
	return true;
}

/*
 * A btree is to be loaded.  The index's file is new and empty.  In a build that checks
 * uniqueness nothing is merged; a unique index is not always built like that (VACUUM
 * FULL, CLUSTER).
 */
LaLoad *
la_load_begin(Relation heap, Relation index, bool unique)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_lookahead btree load",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext before = MemoryContextSwitchTo(context);
	LaLoad	   *load = palloc0(sizeof(LaLoad));

	load->heap = heap;
	load->index = index;
	load->context = context;
	load->moment = AllocSetContextCreate(context, "pg_lookahead high key",
										 ALLOCSET_DEFAULT_SIZES);
	load->key = _bt_mkscankey(index, NULL);
	load->key->allequalimage = _bt_allequalimage(index, true);
	load->merge = load->key->allequalimage && !unique &&
		BTGetDeduplicateItems(index);
	load->pages = la_pages_begin(index);
	load->next_block = BTREE_METAPAGE + 1;
	MemoryContextSwitchTo(before);
	return load;
}

/*
 * The next tuple, which the caller may change afterwards.  equal: the columns of its key
 * are those of the tuple before, nulls included.
 */
void
la_load_add(LaLoad *load, IndexTuple tuple, bool equal)
{
	Assert(IndexTupleSize(tuple) == MAXALIGN(IndexTupleSize(tuple)));
	Assert(!BTreeTupleIsPivot(tuple) && !BTreeTupleIsPosting(tuple));

	if (unlikely(!load->leaf))
	{
		load->leaf = new_level(load, 0);
		equal = false;
	}

	if (!load->merge)
		put(load, load->leaf, tuple, 0);
	else if (!equal || !same_image(load, tuple) || !add_pending(load, tuple))
	{
		if (load->npending > 0)
			put_pending(load);
		start_pending(load, tuple);
	}

	load->tuples++;
	if ((load->tuples & (REPORT_EVERY - 1)) == 0)
	{
		CHECK_FOR_INTERRUPTS();
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
									 load->tuples);
	}
}

/* The open pages are the last ones of their levels: they are finished, bottom up. */
static void
finish_levels(LaLoad *load, BlockNumber *root, uint32 *height)
{
	*root = P_NONE;
	*height = 0;
	for (Level *level = load->leaf; level; level = level->above)
	{
		ItemId		items = PageGetItemId(level->page, P_HIKEY);

		if (level->above)
			put_downlink(load, level);
		else
		{
			BTPageGetOpaque(level->page)->btpo_flags |= BTP_ROOT;
			*root = level->block;
			*height = level->height;
		}

		memmove(items, items + 1,
				(level->last - P_HIKEY) * sizeof(ItemIdData));
		((PageHeader) level->page)->pd_lower -= sizeof(ItemIdData);
		la_pages_write(load->pages, level->block, level->page);
		level->page = NULL;
	}
}

/*
 * There are no more tuples.  The index is complete, and load is freed.
 */
void
la_load_end(LaLoad *load)
{
	MemoryContext before = MemoryContextSwitchTo(load->context);
	BlockNumber root;
	uint32		height;
	Page		page;

	if (load->npending > 0)
		put_pending(load);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, load->tuples);

	finish_levels(load, &root, &height);
	page = la_pages_take(load->pages);
	_bt_initmetapage(page, root, height, load->key->allequalimage);
	la_pages_write(load->pages, BTREE_METAPAGE, page);
	la_pages_end(load->pages);

	MemoryContextSwitchTo(before);
	MemoryContextDelete(load->context);
}
