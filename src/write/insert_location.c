/*
 * insert_location.c
 *	  Where a new entry of a stock btree index belongs.
 *
 *		copies of inner pages       last leaf, the rightmost, or what look-ahead has found
 *		        |  no locks, no pins                |
 *		        v                                   v
 *		leaf, exclusively locked:  first entry < key <= high key?  -- yes --> location
 *		        |                                   |
 *		        '--- no: from the root, as nbtree --'
 *
 * The key has all columns of the index.  With a heap TID, which then is one more column, there is
 * one location where the entry can be.  Without it, the search leads to the first leaf page where
 * an equal entry could be.  While that page is locked nobody can insert one, since everybody who
 * wants to has to lock it, too; and if there is none, it is the location of the new entry.
 *
 * Which leaf to try can be guessed, since a leaf shows by itself whether it is the right one: a
 * live leaf has all entries that are greater than what is to its left, and not greater than its
 * high key.  So a key belongs to it that is not greater than its high key, and greater than its
 * first entry (or anything, if the leaf is the leftmost one).  The binary search decides the latter
 * without one more comparison: the position found is not the first one.  If it is, the search
 * begins again at the root.  (nbtree does so on the rightmost leaf, for its fast path.)  Guesses
 * are made by
 *	COPIES		Inner pages are copied, and the copies searched instead.  An outdated copy leads
 *				to a leaf that has split since, from where right links lead to the right one;
 *				or to whatever the page is used for now, to which the key does not belong.  In
 *				both cases the copy that led there is invalidated.  A page is copied when it
 *				has been used some times.  Memory for copies is limited as that of a scan is
 *				(base/budget.c); pages without a copy are searched from the root.
 *	AGAIN		Entries often come in order: if the last two were inserted on one leaf, that is
 *				tried first.  The search on it begins at the last position and proceeds in
 *				doubling steps, while positions are near each other.
 *	RIGHTMOST	The leaf that nbtree remembers for its own fast path.
 *	EXPECTED	The leaf that look-ahead over the rows of the statement has found for this one,
 *				and visited a moment ago (ahead.c).  It may have split since, where entries come
 *				in order even often; so AGAIN and RIGHTMOST come first.
 *
 * Invariants
 *	- Pages that are not copies are locked, inner ones shared, leaves exclusively, one at a time.
 *	- There is no location if there is something that nbtree's insertion takes care of (an
 *	  incomplete split), or the page is full, or an entry equals the key, or a page is damaged
 *	  (btree/btree.h).  Then nothing is left locked, pinned or changed.
 *	- Comparison raises no error that a comparison by nbtree for the same key would not raise.
 *
 * src/write/insert_location.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "common/hashfn.h"
#include "storage/bufmgr.h"

#include "base/base.h"
#include "base/compat.h"
#include "base/compat_btree.h"
#include "btree/btree.h"
#include "window/window.h"
#include "write/write_int.h"

#define MAX_COPIES		256		/* a power of two */
#define USED_ENOUGH		4		/* times before a page is copied */
#define MAX_MOVES		4		/* to the right, after a guess */
#define MAX_DESCENT		128		/* pages, down and to the right */
#define NEAR_POSITIONS	16

/* If more than MAX_WRONG of GUESSES are wrong, the next searches are made without copies. */
#define GUESSES			64
#define MAX_WRONG		16
#define GUESSES_PAUSE	512		/* searches */

/* COPIES: of one inner page. */
typedef struct Copy
{
	BlockNumber block;			/* that the slot belongs to */
	int			used;			/* so many times since there is no copy */
	bool		valid;
	Page		page;			/* memory for it, or NULL */
} Copy;

struct LaInsertLocation
{
	LaSearchKey key;
	Relation	heap;

	Copy		copies[MAX_COPIES]; /* by hash value of the block number */
	LaBudget	budget;			/* of the memory for them */
	MemoryContextCallback callback;
	int			guesses;		/* of the current GUESSES */
	int			wrong;			/* of these */
	int			pause;			/* so many searches without copies */

	/* AGAIN: where the last entry is */
	BlockNumber leaf;
	OffsetNumber position;		/* the one after it */
	bool		again;			/* the entry before it is on the same leaf, */
	bool		near;			/* and at most NEAR_POSITIONS away */
};

static void
release_budget(void *arg)
{
	la_budget_end(&((LaInsertLocation *) arg)->budget);
}

/*
 * Created in the current memory context.  NULL if heap TIDs are not part of the index's order
 * (before version 4 of nbtree), or if there is no comparison function.
 */
LaInsertLocation *
la_insertlocation_create(Relation index, Relation heap)
{
	LaInsertLocation *p = palloc0(sizeof(LaInsertLocation));
	bool		ok;

	la_searchkey_init(&p->key, index, CurrentMemoryContext);
	ok = p->key.heapkeyspace;
	for (int i = 0; ok && i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		ok = la_searchkey_add_column(&p->key, InvalidOid, index->rd_indcollation[i]);
	if (!ok)
	{
		pfree(p);
		return NULL;
	}
	p->heap = heap;
	p->leaf = InvalidBlockNumber;
	p->budget.limit = (Size) la_scan_memory * 1024;
	p->callback.func = release_budget;
	p->callback.arg = p;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &p->callback);
	for (int i = 0; i < MAX_COPIES; i++)
		p->copies[i].block = InvalidBlockNumber;
	return p;
}

/* The key, to be set before each la_insertlocation_find(). */
LaSearchKey *
la_insertlocation_key(LaInsertLocation *p)
{
	return &p->key;
}

/* Unlock and unpin a page that is not the location. */
static Buffer
release(LaInsertLocation *p, Buffer buffer)
{
	_bt_relbuf(p->key.index, buffer);
	return InvalidBuffer;
}

/*
 * Is the key greater than the high key of this page, since it has split, or is it being
 * deleted?  Then the location is to its right, and otherwise within bounds.
 */
static inline bool
is_to_the_right(LaInsertLocation *p, Page page, LaBounds *bounds)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	int			result;

	bounds->low = P_FIRSTDATAKEY(opaque);
	bounds->high = PageGetMaxOffsetNumber(page) + 1;
	bounds->low_equal = bounds->high_equal = 0;
	bounds->exact = false;
	if (P_RIGHTMOST(opaque))
		return false;
	if (P_IGNORE(opaque))
		return true;
	result = la_searchkey_compare(&p->key, la_page_tuple(page, P_HIKEY), 0,
								  &bounds->high_equal);
	bounds->exact = result == 0;
	return result > 0;
}

/* Search an inner page for the child that the location is below. */
static inline BlockNumber
child_of(LaInsertLocation *p, Page page, LaBounds *bounds)
{
	OffsetNumber next;

	bounds->low++;				/* the first downlink is minus infinity */
	next = la_page_search(&p->key, page, bounds);
	return BTreeTupleGetDownLink(la_page_tuple(page, next - 1));
}

static inline Copy *
copy_slot(LaInsertLocation *p, BlockNumber block)
{
	return &p->copies[murmurhash32(block) % MAX_COPIES];
}

/* COPIES: this page, which is locked, is used once more. */
static void
copy_page(LaInsertLocation *p, BlockNumber block, Page page)
{
	Copy	   *copy = copy_slot(p, block);
	PageHeader	header = (PageHeader) page;

	if (copy->block != block)
	{
		if (copy->valid)
			return;
		copy->block = block;
		copy->used = 0;
	}
	if (++copy->used < USED_ENOUGH)
		return;
	if (copy->page == NULL)
	{
		if (!la_budget_has(&p->budget, BLCKSZ))
		{
			copy->used = 0;
			return;
		}
		la_budget_take(&p->budget, BLCKSZ);
		copy->page = MemoryContextAlloc(p->key.context, BLCKSZ);
	}
	/* without the hole */
	memcpy(copy->page, page, header->pd_lower);
	memcpy(copy->page + header->pd_upper, page + header->pd_upper, BLCKSZ - header->pd_upper);
	copy->valid = true;
	copy->used = 0;
}

/* It is outdated: copy the page when it is used next. */
static void
invalidate_copy(Copy *copy)
{
	copy->valid = false;
	copy->used = USED_ENOUGH - 1;
}

/*
 * Search from the root for the leaf of the location, as nbtree does, and lock it exclusively.
 * Invalid if there is anything on the way that nbtree's insertion takes care of.
 */
static Buffer
descend(LaInsertLocation *p, LaBounds *bounds)
{
	Relation	index = p->key.index;
	int			access = BT_READ;
	Buffer		buffer = la_bt_getroot(index, p->heap);

	if (!BufferIsValid(buffer))
		return InvalidBuffer;
	for (int pages = 0;; pages++)
	{
		Page		page = BufferGetPage(buffer);
		BTPageOpaque opaque;
		BlockNumber next;

		/* damaged pages can be linked in a circle */
		if (pages > MAX_DESCENT || p->key.damaged)
			return release(p, buffer);
		if (la_page_is_unusable(page) || P_INCOMPLETE_SPLIT(BTPageGetOpaque(page)))
			return release(p, buffer);
		opaque = BTPageGetOpaque(page);
		if (P_ISLEAF(opaque) && access == BT_READ)
		{
			/* the root: look again once it is exclusively locked */
			access = BT_WRITE;
			_bt_unlockbuf(index, buffer);
			_bt_lockbuf(index, buffer, access);
			continue;
		}
		if (is_to_the_right(p, page, bounds))
			next = opaque->btpo_next;
		else if (P_ISLEAF(opaque))
			return buffer;
		else
		{
			if (bounds->low >= bounds->high)
				return release(p, buffer);
			copy_page(p, BufferGetBlockNumber(buffer), page);
			next = child_of(p, page, bounds);
			if (opaque->btpo_level == 1)
				access = BT_WRITE;
		}
		/* a damaged downlink; _bt_relandgetbuf() would extend the index */
		if (!BlockNumberIsValid(next))
			return release(p, buffer);
		buffer = _bt_relandgetbuf(index, buffer, next, access);
	}
}

/* Can this page, which is locked, be the leaf of the location, or be left of it? */
static inline bool
is_live_leaf(Page page)
{
	BTPageOpaque opaque;

	if (la_page_is_unusable(page))
		return false;
	opaque = BTPageGetOpaque(page);
	return P_ISLEAF(opaque) && !P_IGNORE(opaque) && !P_INCOMPLETE_SPLIT(opaque);
}

/* AGAIN and RIGHTMOST: the leaf of the location, if the guess was right. */
static Buffer
guess_last(LaInsertLocation *p, LaBounds *bounds)
{
	Relation	index = p->key.index;
	BlockNumber rightmost = RelationGetTargetBlock(index);
	Buffer		buffer;

	if (rightmost == InvalidBlockNumber && !p->again)
		return InvalidBuffer;
	buffer = ReadBuffer(index, rightmost != InvalidBlockNumber ? rightmost : p->leaf);
	if (_bt_conditionallockbuf(index, buffer))
	{
		Page		page = BufferGetPage(buffer);
		int			equal;

		_bt_checkpage(index, buffer);
		/* this guess is often wrong: compare the first entry at once */
		if (is_live_leaf(page) && !is_to_the_right(p, page, bounds) &&
			bounds->low < bounds->high &&
			(P_LEFTMOST(BTPageGetOpaque(page)) ||
			 la_searchkey_compare(&p->key, la_page_tuple(page, bounds->low), 0,
								  &equal) > 0))
			return buffer;
		_bt_relbuf(index, buffer);
	}
	else
		ReleaseBuffer(buffer);

	p->again = false;
	if (rightmost != InvalidBlockNumber)
		RelationSetTargetBlock(index, InvalidBlockNumber);
	return InvalidBuffer;
}

/*
 * Like _bt_getbuf(), but while the lock is taken the CPU fetches what will be read first: the
 * page's header, its special space, and the high key, which in most cases is right before that.
 */
static Buffer
lock_leaf(Relation index, BlockNumber block)
{
	Buffer		buffer = ReadBuffer(index, block);
	Page		page = BufferGetPage(buffer);

	la_prefetch(page);
	la_prefetch(page + BLCKSZ - sizeof(BTPageOpaqueData));
	la_prefetch(page + BLCKSZ - sizeof(BTPageOpaqueData) - 64);
	_bt_lockbuf(index, buffer, BT_WRITE);
	_bt_checkpage(index, buffer);
	return buffer;
}

/* The leaf of the location, if it is this one or near; a copy, if not NULL, has led there. */
static Buffer
lock_from(LaInsertLocation *p, BlockNumber block, Copy *copy, LaBounds *bounds)
{
	Relation	index = p->key.index;
	Buffer		buffer = lock_leaf(index, block);

	for (int moves = 0; moves <= MAX_MOVES; moves++)
	{
		Page		page = BufferGetPage(buffer);

		if (!is_live_leaf(page))
			break;
		if (!is_to_the_right(p, page, bounds))
			return buffer;
		if (copy != NULL)
			invalidate_copy(copy);
		buffer = _bt_relandgetbuf(index, buffer, BTPageGetOpaque(page)->btpo_next, BT_WRITE);
	}
	if (copy != NULL)
		invalidate_copy(copy);
	return release(p, buffer);
}

/* COPIES: the leaf to which copies lead, which need not be that of the location. */
static Buffer
guess_by_copies(LaInsertLocation *p, LaBounds *bounds)
{
	Relation	index = p->key.index;
	BTMetaPageData *meta = index->rd_amcache;
	BlockNumber block;
	Copy	   *copy = NULL;

	if (meta == NULL || meta->btm_fastlevel == 0)
		return InvalidBuffer;
	if (p->pause > 0)
	{
		p->pause--;
		return InvalidBuffer;
	}
	block = meta->btm_fastroot;
	for (uint32 level = meta->btm_fastlevel; level > 0; level--)
	{
		Copy	   *parent = copy;

		copy = copy_slot(p, block);
		if (copy->block != block || !copy->valid)
			return InvalidBuffer;
		if (BTPageGetOpaque(copy->page)->btpo_level != level ||
			is_to_the_right(p, copy->page, bounds))
		{
			invalidate_copy(parent != NULL ? parent : copy);
			return InvalidBuffer;
		}
		block = child_of(p, copy->page, bounds);
	}

	return lock_from(p, block, copy, bounds);
}

/* The key's position on the leaf, if the leaf is that of the location. */
static inline OffsetNumber
position_on(LaInsertLocation *p, Buffer leaf, LaBounds *bounds)
{
	Page		page = BufferGetPage(leaf);

	if (BufferGetBlockNumber(leaf) == p->leaf && p->near)
		la_page_narrow_near(&p->key, page, bounds, p->position);
	return la_page_search(&p->key, page, bounds);
}

/* Does the position show that the leaf, a guess, is that of the location? */
static inline bool
is_proven(Page page, OffsetNumber position)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	return position > P_FIRSTDATAKEY(opaque) || P_LEFTMOST(opaque);
}

/* Stop using copies for a while if their guesses are wrong too often. */
static void
count_guess(LaInsertLocation *p, bool good)
{
	p->guesses++;
	p->wrong += !good;
	if (p->guesses < GUESSES)
		return;
	if (p->wrong > MAX_WRONG)
		p->pause = GUESSES_PAUSE;
	p->guesses = p->wrong = 0;
}

static void
remember_location(LaInsertLocation *p, BlockNumber leaf, OffsetNumber position)
{
	p->again = leaf == p->leaf;
	p->near = p->again && abs((int) position - (int) p->position) <= NEAR_POSITIONS;
	p->leaf = leaf;
	p->position = position + 1; /* that of the next entry, if in order */
}

/* A leaf that may be that of the location, and how it was guessed; invalid if there is no guess. */
static Buffer
guess_leaf(LaInsertLocation *p, BlockNumber expected, LaBounds *bounds, bool *by_copies)
{
	Buffer		buffer = guess_last(p, bounds);

	*by_copies = false;
	if (!BufferIsValid(buffer) && expected != InvalidBlockNumber)
		buffer = lock_from(p, expected, NULL, bounds);
	if (!BufferIsValid(buffer))
	{
		*by_copies = true;
		buffer = guess_by_copies(p, bounds);
	}
	return buffer;
}

/*
 * Find the location of a new entry of this size with the key: the leaf, exclusively locked,
 * and the position on it.  Invalid if there is none: see the invariants above.  expected: a leaf
 * to try, or InvalidBlockNumber.
 */
Buffer
la_insertlocation_find(LaInsertLocation *p, BlockNumber expected, Size size,
					   OffsetNumber *position)
{
	LaBounds	bounds;
	bool		guess = true;
	bool		by_copies;
	Buffer		buffer;

	p->key.damaged = false;
	buffer = guess_leaf(p, expected, &bounds, &by_copies);
	for (;;)
	{
		Page		page;
		bool		proven;

		if (!BufferIsValid(buffer))
		{
			guess = false;
			buffer = descend(p, &bounds);
			if (!BufferIsValid(buffer))
				return InvalidBuffer;
		}
		page = BufferGetPage(buffer);
		if (PageGetFreeSpace(page) < size)
			return release(p, buffer);
		*position = position_on(p, buffer, &bounds);
		if (p->key.damaged)
			return release(p, buffer);
		if (!guess)
			break;
		proven = is_proven(page, *position);
		if (by_copies)
			count_guess(p, proven);
		if (proven)
			break;
		buffer = release(p, buffer);
	}
	if (bounds.exact)
		return release(p, buffer);
	remember_location(p, BufferGetBlockNumber(buffer), *position);
	return buffer;
}
