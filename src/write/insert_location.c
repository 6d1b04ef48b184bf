/*
 * insert_location.c
 *	  The place of a new entry in a stock btree index.
 *
 *		copies of inner pages        last leaf, or the rightmost one
 *		        |  no locks, no pins                |
 *		        v                                   v
 *		leaf, locked to write:  first entry < key <= high key?  -- yes --> place
 *		        |                                   |
 *		        `--- no: from the root, as nbtree --'
 *
 * The key has all columns of the index.  With a row address as well, which then is
 * nothing but one more column, there is one place where the entry can be.  Without it the
 * search leads to the first leaf page where an equal entry could be: as long as that page
 * is locked nobody else can insert an equal one (who wants to comes by here), and if there
 * is none, it is the place of the new one.
 *
 * A leaf may be tried on a guess, since it tells by itself whether it is the right one: all
 * that could be on a live leaf is greater than what is left of it and not greater than its
 * high key; so a key greater than its first entry, or than nothing if it is the leftmost
 * leaf, and not greater than its high key is its own.  The binary search tells the former
 * without one more comparison: the position is not the first.  Where it is, the search
 * begins anew from the root.  (nbtree does so for the rightmost leaf, for its fast path.)
 * Guesses are made by
 *	COPIES		Inner pages are copied, and the copies searched instead.  An old copy leads
 *				to a leaf that has split since, from where links lead to the right, or
 *				to whatever the page is used for by now, which then is not the key's.
 *				In both cases the copy that led there is given up.  Pages are copied when
 *				they have been used some times; their memory is limited as that of a scan is
 *				(base/budget.c), and pages without a copy are searched as ever.
 *	AGAIN		Entries often come in order: if the last two were put on one leaf, that is
 *				tried first.  The search on it begins at the last position and goes
 *				from there in doubling steps, while positions are near each other.
 *	RIGHTMOST	The leaf that nbtree remembers for its own fast path.
 *
 * Invariants
 *	- Pages that are not copies are locked: inner ones shared, leaves exclusively, and never
 *	  two at once.
 *	- Where writers have something to do (an unfinished split), or the page is full, or
 *	  something equals the key, there is no place, and nothing is left locked, pinned or
 *	  changed.
 *	- Comparison raises no error that a comparison by nbtree for the same key would not
 *	  raise.
 *
 * src/write/insert_location.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "common/hashfn.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "base/budget.h"
#include "base/compat.h"
#include "base/guc.h"
#include "write/insert_location.h"
#include "btree/search.h"
#include "window/issue.h"

#define MAX_COPIES		256		/* a power of two */
#define USED_ENOUGH		4		/* times before a page is copied */
#define MAX_MOVES		4		/* to the right, after a guess */
#define NEAR_POSITIONS	16
#define GUESSES			64		/* after which to look at what was wrong */
#define MAX_WRONG		16		/* of them */
#define GUESSES_PAUSE	512		/* searches without copies if it was more */

/* Behaviour COPIES: of one inner page. */
typedef struct Copy
{
	BlockNumber block;			/* that the slot belongs to */
	int			used;			/* while there was no copy */
	bool		valid;
	Page		page;			/* memory for it, once taken */
} Copy;

struct LaInsertLocation
{
	LaSearchKey key;
	Relation	heap;

	Copy		copies[MAX_COPIES]; /* by hash value of the block number */
	LaBudget	budget;			/* of the memory for them */
	MemoryContextCallback callback;
	int			guesses;		/* since the counters were looked at */
	int			wrong;
	int			pause;			/* so many searches without copies */

	/* behaviours AGAIN and RIGHTMOST: the leaf of the last entry */
	BlockNumber leaf;
	bool		again;			/* ... and of the one before */
	OffsetNumber position;		/* behind the last entry */
	bool		near;			/* to that of the one before */
};

static void
on_memory(void *arg)
{
	la_budget_end(&((LaInsertLocation *) arg)->budget);
}

/*
 * Made in the current context.  NULL if the order of the index does not include row
 * addresses, or if there is no comparison function.
 */
LaInsertLocation *
la_insertlocation_create(Relation index, Relation heap)
{
	LaInsertLocation *p = palloc0(sizeof(LaInsertLocation));
	bool		ok;

	la_key_init(&p->key, index, LA_DESCENT_ITERATE | LA_DESCENT_TRUNCATE |
				LA_DESCENT_TYPED, CurrentMemoryContext);
	ok = p->key.heapkeyspace;
	for (int i = 0; ok && i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		ok = la_key_add_column(&p->key, InvalidOid, index->rd_indcollation[i]);
	if (!ok)
	{
		pfree(p);
		return NULL;
	}
	p->heap = heap;
	p->leaf = InvalidBlockNumber;
	p->budget.limit = (Size) la_scan_memory * 1024;
	p->callback.func = on_memory;
	p->callback.arg = p;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &p->callback);
	for (int i = 0; i < MAX_COPIES; i++)
		p->copies[i].block = InvalidBlockNumber;
	return p;
}

LaSearchKey *
la_insertlocation_key(LaInsertLocation *p)
{
	return &p->key;
}

static Buffer
give_up(LaInsertLocation *p, Buffer buffer)
{
	_bt_relbuf(p->key.index, buffer);
	return InvalidBuffer;
}

/*
 * Has this page, which holds the key's place as far as we know, split since?  Then the
 * place is to its right.  bounds: where to search if not.
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
	result = la_key_compare(&p->key, la_page_tuple(page, P_HIKEY), 0,
							&bounds->high_equal);
	bounds->exact = result == 0;
	return result > 0;
}

/* On an inner page, within bounds: the child that the key's place is below of. */
static inline BlockNumber
child_of(LaInsertLocation *p, Page page, LaBounds *bounds)
{
	OffsetNumber next;

	bounds->low++;				/* the first one counts as minus infinity */
	next = la_search_page(&p->key, page, bounds);
	return BTreeTupleGetDownLink(la_page_tuple(page, next - 1));
}

static inline Copy *
copy_slot(LaInsertLocation *p, BlockNumber block)
{
	return &p->copies[murmurhash32(block) % MAX_COPIES];
}

/* Behaviour COPIES: this page is used once more; it is locked. */
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
	/* all but the hole */
	memcpy(copy->page, page, header->pd_lower);
	memcpy(copy->page + header->pd_upper, page + header->pd_upper,
		   BLCKSZ - header->pd_upper);
	copy->valid = true;
	copy->used = 0;
}

/* It is old: the page is to be copied when it is used next. */
static void
forget_copy(Copy *copy)
{
	copy->valid = false;
	copy->used = USED_ENOUGH - 1;
}

/*
 * From the root to the leaf that holds the key's place, as nbtree does, locked to write.
 * Invalid if there is anything on the way that writers take care of.
 */
static Buffer
descend(LaInsertLocation *p, LaBounds *bounds)
{
	Relation	index = p->key.index;
	int			access = BT_READ;
	Buffer		buffer = la_bt_getroot(index, p->heap);

	if (!BufferIsValid(buffer))
		return InvalidBuffer;
	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		BTPageOpaque opaque;
		BlockNumber next;

		if (la_page_is_lost(page) || P_INCOMPLETE_SPLIT(BTPageGetOpaque(page)))
			return give_up(p, buffer);
		opaque = BTPageGetOpaque(page);
		if (P_ISLEAF(opaque) && access == BT_READ)
		{
			/* the root: look again at what it is when it is ours */
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
				return give_up(p, buffer);
			copy_page(p, BufferGetBlockNumber(buffer), page);
			next = child_of(p, page, bounds);
			if (opaque->btpo_level == 1)
				access = BT_WRITE;
		}
		buffer = _bt_relandgetbuf(index, buffer, next, access);
	}
}

/* Could this page, locked, be the key's, or be left of that? */
static inline bool
is_live_leaf(Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	return P_ISLEAF(opaque) && !P_IGNORE(opaque) &&
		!P_INCOMPLETE_SPLIT(opaque);
}

/*
 * Behaviours AGAIN and RIGHTMOST.
 */
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
		/* this guess is often wrong: ask the first entry at once */
		if (is_live_leaf(page) && !is_to_the_right(p, page, bounds) &&
			bounds->low < bounds->high &&
			(P_LEFTMOST(BTPageGetOpaque(page)) ||
			 la_key_compare(&p->key, la_page_tuple(page, bounds->low), 0,
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
 * As _bt_getbuf() does, but that while the lock is taken the CPU fetches what will be
 * looked at first: the page's header, its special space, and the high key, which mostly is
 * right in front of that.
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

/*
 * Behaviour COPIES: the leaf to which copies lead.
 */
static Buffer
guess_by_copies(LaInsertLocation *p, LaBounds *bounds)
{
	Relation	index = p->key.index;
	BTMetaPageData *meta = index->rd_amcache;
	BlockNumber block;
	Copy	   *copy = NULL;
	Buffer		buffer;

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
			forget_copy(parent != NULL ? parent : copy);
			return InvalidBuffer;
		}
		block = child_of(p, copy->page, bounds);
	}

	buffer = lock_leaf(index, block);
	for (int moves = 0; moves <= MAX_MOVES; moves++)
	{
		Page		page = BufferGetPage(buffer);

		if (!is_live_leaf(page))
			break;
		if (!is_to_the_right(p, page, bounds))
			return buffer;
		forget_copy(copy);
		buffer = _bt_relandgetbuf(index, buffer,
								  BTPageGetOpaque(page)->btpo_next, BT_WRITE);
	}
	forget_copy(copy);
	return give_up(p, buffer);
}

/* The position on the leaf, if the leaf is the key's. */
static inline OffsetNumber
position_on(LaInsertLocation *p, Buffer leaf, LaBounds *bounds)
{
	Page		page = BufferGetPage(leaf);

	if (BufferGetBlockNumber(leaf) == p->leaf && p->near)
		la_search_from(&p->key, page, bounds, p->position);
	return la_search_page(&p->key, page, bounds);
}

/* Does what was found tell that the leaf, a guess, is the key's? */
static inline bool
is_proven(Page page, OffsetNumber position)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	return position > P_FIRSTDATAKEY(opaque) || P_LEFTMOST(opaque);
}

/* Are guesses by copies good enough to go on with them? */
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
remember_place(LaInsertLocation *p, BlockNumber leaf, OffsetNumber position)
{
	p->again = leaf == p->leaf;
	p->near = p->again &&
		abs((int) position - (int) p->position) <= NEAR_POSITIONS;
	p->leaf = leaf;
	p->position = position + 1; /* where the next one goes, if in order */
}

/*
 * The place of a new entry of this size with the key: the leaf, locked to write, and the
 * position on it.  Invalid if there is none: see the invariants above.
 */
Buffer
la_insertlocation_find(LaInsertLocation *p, Size size, OffsetNumber *position)
{
	LaBounds	bounds;
	bool		guess = true;
	Buffer		buffer = guess_last(p, &bounds);

	if (!BufferIsValid(buffer))
		buffer = guess_by_copies(p, &bounds);
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
			return give_up(p, buffer);
		*position = position_on(p, buffer, &bounds);
		if (!guess)
			break;
		proven = is_proven(page, *position);
		count_guess(p, proven);
		if (proven)
			break;
		buffer = give_up(p, buffer);
	}
	if (bounds.exact)
		return give_up(p, buffer);
	remember_place(p, BufferGetBlockNumber(buffer), *position);
	return buffer;
}
