/*
 * load.c
 *	  Loading a btree from index tuples in order.
 *
 *		tuples --> pending --> leaf page --------> finished: written, and its
 *				   (equal		 | one open			downlink added to the level above
 *				   tuples		 v page per level		^
 *				   merged)	   level above -------------'
 *							   ...
 *
 * Each level has one open page.  Tuples are added at its end.  If it is full, its last tuple moves
 * to a new page, and what separates that from the tuple before becomes the old page's high key:
 *
 *		 old page: [     | a | b | c ]	   full		 [ high key | a | b ]
 *					  ^ high key's			==>
 *						line pointer
 *		 new page:								 [     | c | next ]
 *
 * Behaviours
 *	IDENTICAL	The file is byte for byte what btbuild() would have written for the same tuples,
 *				including the bytes between line pointers and tuples, and except LSNs and the
 *				checksums that depend on them.
 *	FULL		A page is full if the next tuple does not fit (on a leaf page, with room for a
 *				heap TID in the high key), or if it has at least two tuples, and free space
 *				below the fillfactor reserve.  A posting list that truncation would remove from
 *				the high key counts as free space for that.
 *	POSTING		Equal tuples are merged into posting lists of at most a tenth of a page where
 *				the server does that: not in unique indexes, not where equal keys can differ,
 *				or do differ, in their bytes, and not with deduplicate_items = off.
 *	NUMBERING	A page gets its block number when it is begun, before the level above it, if that is
 *				new.  The last page of a level has no high key: its line pointers are moved down.
 *
 * Separators are formed by _bt_truncate(), and _bt_check_third_page() reports tuples that are too
 * large.
 *
 * Invariants
 *	- The caller vouches for the order of the tuples, and for which of them are equal; these
 *	  come in the order of their heap TIDs.  Tuples have no posting list and an aligned size.
 *	- Memory is allocated for levels and, until they are on the page, for high keys, not for
 *	  tuples; all of it in one context below the one that is current at the beginning.
 *	- An error leaves nothing behind but a new file, which is dropped with the transaction.
 *
 * src/indexbuild/load.c
 */
#include "postgres.h"

#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"

#include "indexbuild/indexbuild_int.h"

#define REPORT_EVERY	1024	/* tuples; a power of two */

/* The largest tuple with a posting list: with its line pointer, a tenth of a page. */
#define MAX_POSTING \
	(MAXALIGN_DOWN(BLCKSZ * 10 / 100) - sizeof(ItemIdData))

/* Space for any tuple. */
typedef union TupleBuffer
{
	IndexTupleData tuple;
	char		bytes[MAXALIGN(INDEX_SIZE_MASK)];
	double		align_double;
	int64		align_int64;
} TupleBuffer;

/* A level of the tree, and its open page. */
typedef struct Level
{
	struct Level *above;		/* NULL: the page is the level's only one */
	Page		page;
	BlockNumber block;
	uint32		height;			/* 0: leaf pages */
	OffsetNumber last;			/* offset of the last tuple, or P_HIKEY */
	int			last_posting;	/* bytes of its posting list */
	int			reserve;		/* free space that the fillfactor asks for */
	TupleBuffer low_key;		/* becomes the page's downlink */
} Level;

struct LaLoad
{
	Relation	heap;
	Relation	index;
	MemoryContext context;
	MemoryContext scratch;		/* reset with each page */
	LaPageWriter *writer;
	BTScanInsert key;			/* without values, for _bt_truncate() */
	bool		merge;			/* behaviour POSTING is possible */
	int64		tuples;
	BlockNumber next_block;
	Level	   *leaf;			/* NULL: no tuple yet */

	/*
	 * The tuple that the next one may be merged with.  If tuples have been
	 * merged, their heap TIDs follow the key of the first one, whose t_tid is
	 * set when the posting list is formed.
	 */
	int			npending;
	Size		pending_size;	/* of header and key */
	TupleBuffer pending;
};

/* An empty page, with a line pointer for the high key. */
static Page
new_page(LaLoad *load, uint32 height)
{
	Page		page = la_pagewriter_get_page(load->writer);
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
	level->reserve = height == 0 ? BTGetTargetPageFreeSpace(load->index) :
		BLCKSZ * (100 - BTREE_NONLEAF_FILLFACTOR) / 100;

	/* the low key of a level's first page is minus infinity */
	level->low_key.tuple.t_info = sizeof(IndexTupleData);
	BTreeTupleSetNAtts(&level->low_key.tuple, 0, false);
	return level;
}

/* Append a tuple to a page that has space for it. */
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

/* The first tuple of an upper page has no key, only a downlink. */
static void
append_downlink(Page page, OffsetNumber offset, const IndexTupleData *tuple)
{
	IndexTupleData bare = *tuple;

	bare.t_info = sizeof(IndexTupleData);
	BTreeTupleSetNAtts(&bare, 0, false);
	append(page, offset, &bare, sizeof(IndexTupleData));
}

/* Replace the high key of a leaf page, a copy of the next page's first tuple, by a separator. */
static void
truncate_high_key(LaLoad *load, Page page, OffsetNumber last)
{
	IndexTuple	lastleft = (IndexTuple) PageGetItem(page, PageGetItemId(page, last));
	IndexTuple	firstright = (IndexTuple) PageGetItem(page, PageGetItemId(page, P_HIKEY));
	MemoryContext before = MemoryContextSwitchTo(load->scratch);
	IndexTuple	high = _bt_truncate(load->index, lastleft, firstright, load->key);

	/* the high key was added last, so no other tuple moves */
	if (!PageIndexTupleOverwrite(page, P_HIKEY, (void *) high, IndexTupleSize(high)))
		elog(ERROR, "failed to add high key to the index page");
	MemoryContextSwitchTo(before);
	MemoryContextReset(load->scratch);
}

static void add(LaLoad *load, Level *level, const IndexTupleData *tuple, int posting);

/* Add the downlink of a level's open page to the level above. */
static void
add_downlink(LaLoad *load, Level *level)
{
	BTreeTupleSetDownLink(&level->low_key.tuple, level->block);
	add(load, level->above, &level->low_key.tuple, 0);
}

/* Finish the open page of a level, and begin a new one with its last tuple. */
static void
next_page(LaLoad *load, Level *level)
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
	add_downlink(load, level);
	memcpy(&level->low_key, high, IndexTupleSize(high));
	la_pagewriter_write(load->writer, level->block, old);

	level->page = page;
	level->block = block;
	level->last = P_FIRSTKEY;
}

/* Append a tuple to a level.  Its last `posting` bytes are a posting list. */
static void
add(LaLoad *load, Level *level, const IndexTupleData *tuple, int posting)
{
	PageHeader	header = (PageHeader) level->page;
	bool		leaf = level->height == 0;
	int			size = MAXALIGN(IndexTupleSize(tuple));
	int			space = header->pd_upper - header->pd_lower -
		(int) sizeof(ItemIdData);

	if (unlikely(!la_load_fits(tuple)))
		_bt_check_third_page(load->index, load->heap, leaf, level->page,
							 unconstify(IndexTupleData *, tuple));

	if (space < size + (leaf ? (int) MAXALIGN(sizeof(ItemPointerData)) : 0) ||
		(space + level->last_posting < level->reserve &&
		 level->last > P_FIRSTKEY))
		next_page(load, level);

	level->last = OffsetNumberNext(level->last);
	level->last_posting = posting;
	if (leaf || level->last > P_FIRSTKEY)
		append(level->page, level->last, tuple, size);
	else
		append_downlink(level->page, level->last, tuple);
}

/* Add the pending tuple, with its posting list if it has one, to the leaf page. */
static void
finish_pending(LaLoad *load)
{
	IndexTuple	tuple = &load->pending.tuple;
	Size		end,
				size;

	if (load->npending == 1)
	{
		add(load, load->leaf, tuple, 0);
		return;
	}

	end = load->pending_size + load->npending * sizeof(ItemPointerData);
	size = MAXALIGN(end);
	memset(load->pending.bytes + end, 0, size - end);
	tuple->t_info = (tuple->t_info & ~INDEX_SIZE_MASK) | size;
	BTreeTupleSetPosting(tuple, load->npending, load->pending_size);
	add(load, load->leaf, tuple, size - load->pending_size);
}

/*
 * Is the tuple's key the same bytes as that of the pending one?  Equal keys can differ even
 * where all operator classes say that equal means the same image: bpchar ignores trailing
 * blanks.  The server decides whether values differ only in how they are stored.
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

/* Add the tuple's heap TID to the pending ones, if the posting list has room for it. */
static bool
merge_pending(LaLoad *load, IndexTuple tuple)
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
 * Begin to load an index, whose file is new and empty.  unique: the build checks uniqueness,
 * which not every build of a unique index does (VACUUM FULL, CLUSTER).
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
	load->scratch = AllocSetContextCreate(context, "pg_lookahead high key",
										  ALLOCSET_DEFAULT_SIZES);
	load->key = _bt_mkscankey(index, NULL);
	load->key->allequalimage = _bt_allequalimage(index, true);
	load->merge = load->key->allequalimage && !unique &&
		BTGetDeduplicateItems(index);
	load->writer = la_pagewriter_begin(index);
	load->next_block = BTREE_METAPAGE + 1;
	MemoryContextSwitchTo(before);
	return load;
}

/*
 * Add the next tuple, which is copied.  equal: its key columns equal those of the tuple
 * before, null being equal to null.
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
		add(load, load->leaf, tuple, 0);
	else if (!equal || !same_image(load, tuple) || !merge_pending(load, tuple))
	{
		if (load->npending > 0)
			finish_pending(load);
		load->npending = 1;
		load->pending_size = IndexTupleSize(tuple);
		memcpy(load->pending.bytes, tuple, load->pending_size);
	}

	load->tuples++;
	if ((load->tuples & (REPORT_EVERY - 1)) == 0)
	{
		CHECK_FOR_INTERRUPTS();
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, load->tuples);
	}
}

/* Finish the open page of each level, which is its last one, from the leaf level up. */
static void
finish_levels(LaLoad *load, BlockNumber *root, uint32 *height)
{
	*root = P_NONE;
	*height = 0;
	for (Level *level = load->leaf; level; level = level->above)
	{
		ItemId		items = PageGetItemId(level->page, P_HIKEY);

		if (level->above)
			add_downlink(load, level);
		else
		{
			BTPageGetOpaque(level->page)->btpo_flags |= BTP_ROOT;
			*root = level->block;
			*height = level->height;
		}

		memmove(items, items + 1, (level->last - P_HIKEY) * sizeof(ItemIdData));
		((PageHeader) level->page)->pd_lower -= sizeof(ItemIdData);
		la_pagewriter_write(load->writer, level->block, level->page);
		level->page = NULL;
	}
}

/* There are no more tuples: complete the index, and free `load`. */
void
la_load_end(LaLoad *load)
{
	MemoryContext before = MemoryContextSwitchTo(load->context);
	BlockNumber root;
	uint32		height;
	Page		page;

	if (load->npending > 0)
		finish_pending(load);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, load->tuples);

	finish_levels(load, &root, &height);
	page = la_pagewriter_get_page(load->writer);
	_bt_initmetapage(page, root, height, load->key->allequalimage);
	la_pagewriter_write(load->writer, BTREE_METAPAGE, page);
	la_pagewriter_end(load->writer);

	MemoryContextSwitchTo(before);
	MemoryContextDelete(load->context);
}
