/*
 * descent.c
 *	  Finding the leaf page and the entries of one key in a stock btree index.
 *
 *		root            |  low  ...  separator  ...  high |   compare; remember
 *		  |                                               |   how many leading
 *		inner pages     |  ...                            |   columns are equal
 *		  |
 *		leaf   --> its number (to start its read)            la_descent_find_leaf
 *		leaf, read --> position of the first entry >= key    la_descent_search_leaf
 *		position --> row addresses of the entries = key      la_descent_matches
 *
 * The key consists of values, never null, for the index's first columns, and
 * means: all entries that equal them.  The search goes to the first of them, so
 * a pivot that equals the key in all columns that it has is smaller than the
 * key, if the key has values for all of these and the row address was truncated
 * away; otherwise the search goes left of it.  (nbtree's README, "Notes about
 * suffix truncation".)
 *
 * Ideas, from "Iterating on IndexTuple attributes and nbtree page-level dynamic
 * prefix truncation" (van de Meent, pgsql-hackers, 2021), each an option, so
 * that it can be measured and left out:
 *	ITERATE		The attributes of a tuple are found in one pass; where the columns
 *				before one have a fixed width and are not null, without a pass.
 *				Without it, each is looked for from the first.
 *	TRUNCATE	(search.h)  A binary search knows how many leading columns of the key equal
 *				its lower bound and how many its upper one.  Everything between
 *				them has the smaller of both in common with the key, since tuples
 *				are sorted, and comparison begins behind it.
 *	CARRY		The high key of a page most often is, byte by byte, the separator to
 *				the right of its downlink, with which the key was compared on the
 *				parent page: then it need not be again, and the number of columns that
 *				are equal is that bound's.  The lower bound cannot be carried: the
 *				entries of a page deleted to the left of the child belong to it and
 *				are smaller than the parent's separator.  Pays only where comparing
 *				costs more than copying the separator: not for integers.  Not to
 *				leaves: most often another key is searched for in between.
 *	TYPED		Integers, OIDs, dates, times and timestamps, UUIDs, bytea and text of
 *				collation C are compared here.  All other types, cross-type
 *				comparisons that are not of integers, and compressed values by the
 *				operator class's own function.
 *	SAME_LEAF	Keys often come in the order of the index.  The separators around
 *				the last downlink taken are kept, and a key between them needs no
 *				inner page.  A leaf is never the wrong one for that: its keys can
 *				only move to the right, and are followed there (below), and the leaf
 *				is forgotten; no page is recycled while the snapshot is held under
 *				which it was linked.
 *				After SAME_LEAF_MISSES misses in a row it is tried every
 *				SAME_LEAF_PAUSE keys only.  On the same leaf, the search begins at
 *				the position of the last one and goes from there in doubling steps, as
 *				long as positions are near each other.
 *
 * Tried and left out: fetching the middles of both halves into the CPU's cache while a
 * tuple is compared.  The CPU guesses and fetches one of them anyway (0-2% slower).
 *
 * Invariants
 *	- Pages are locked (shared), and a page that is being deleted, or whose high key is
 *	  smaller than the key, sends us to its right.  Inner pages are checked by nbtree.  A
 *	  leaf that is not a btree page is lost here, and an error only when stock gets
 *	  there.
 *	- Nothing is pinned or locked between calls, but the leaf: its caller pins it for
 *	  la_descent_search_leaf(), which leaves it locked for la_descent_matches().
 *	- No predicate locks are taken: not for SERIALIZABLE transactions.
 *	- Comparison never raises an error that a comparison by nbtree for the same
 *	  key would not raise.
 *
 * src/btree/descent.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "btree/descent.h"
#include "btree/searchkey.h"
#include "btree/search.h"
#include "window/issue.h"

#define SAME_LEAF_MISSES	16
#define SAME_LEAF_PAUSE		256
#define NEAR_POSITIONS		16
#define SEPARATOR_BYTES		256 /* longer ones are not kept */
#define MAX_MOVES			16	/* to the right, on the level of leaves */

typedef struct Separator
{
	bool		known;
	bool		infinite;		/* there is none: everything is beyond it */
	char		tuple[SEPARATOR_BYTES] pg_attribute_aligned(MAXIMUM_ALIGNOF);
} Separator;

struct LaDescent
{
	LaSearchKey key;			/* has the index, and the context of all of it */
	Relation	heap;
	BlockNumber index_size;		/* see la_issue_exists() */
	BlockNumber pending;		/* inner page issued last */

	/* behaviour SAME_LEAF: around the last leaf found */
	BlockNumber last_leaf;
	BlockNumber searched_leaf;	/* the last one, and where that led */
	OffsetNumber searched_position;
	bool		searched_near;	/* ... the one before, if on the same leaf */
	Separator	low;
	Separator	high;
	uint32		same_misses;	/* in a row */

	/*
	 * behaviour CARRY: the high key that this page has, if nothing has
	 * changed
	 */
	bool		carries;		/* it pays */
	BlockNumber carried_to;
	int			carried_equal;	/* so many of its columns equal the key */
	Separator	carried;
};

Size
la_descent_size(void)
{
	return sizeof(LaDescent);
}

/*
 * Made in a context of its own below the current one.  The key has no columns at
 * first.
 */
LaDescent *
la_descent_create(Relation index, Relation heap, int options)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_lookahead descent",
												  ALLOCSET_SMALL_SIZES);
	LaDescent  *d = MemoryContextAllocZero(context, sizeof(LaDescent));

	d->index_size = InvalidBlockNumber;
	d->heap = heap;
	d->pending = d->last_leaf = d->carried_to = InvalidBlockNumber;
	d->searched_leaf = InvalidBlockNumber;
	la_key_init(&d->key, index, options, context);
	return d;
}

void
la_descent_free(LaDescent *d)
{
	MemoryContextDelete(d->key.context);
}

/*
 * The key gets one more column, compared with values of type subtype (InvalidOid:
 * the operator class's own).  Returns false if it cannot: there is no such column,
 * or no comparison function.
 */
bool
la_descent_add_column(LaDescent *d, Oid subtype, Oid collation)
{
	if (!la_key_add_column(&d->key, subtype, collation))
		return false;
	d->carries = (d->key.options & LA_DESCENT_CARRY) != 0 &&
		(d->carries || la_key_is_costly(&d->key));
	return true;
}

int
la_descent_columns(const LaDescent *d)
{
	return d->key.ncolumns;
}

/*
 * The function that compares this column, and the type of the index's values.
 */
Oid
la_descent_comparison(const LaDescent *d, int column, Oid *type)
{
	return la_key_comparison(&d->key, column, type);
}

/*
 * The key's value in a column.  It is not copied: it must stay until the search is
 * over.  It must not be stored out of line.
 */
void
la_descent_set(LaDescent *d, int column, Datum value)
{
	la_key_set(&d->key, column, value);
	d->carried_to = InvalidBlockNumber;
}

static void
remember_position(LaDescent *d, BlockNumber leaf, OffsetNumber position)
{
	if (leaf == d->searched_leaf)
		d->searched_near = (d->key.options & LA_DESCENT_SAME_LEAF) != 0 &&
			abs((int) position - (int) d->searched_position) <= NEAR_POSITIONS;
	d->searched_leaf = leaf;
	d->searched_position = position;
}

static void
remember(Separator *s, IndexTuple tuple)
{
	Size		size = tuple == NULL ? 0 : IndexTupleSize(tuple);

	s->infinite = tuple == NULL;
	s->known = size <= SEPARATOR_BYTES;
	if (s->known && tuple != NULL)
		memcpy(s->tuple, tuple, size);
}

/*
 * Behaviour CARRY: the key is not greater than this separator, the one to the right of
 * the child's downlink, and equals so many of its columns.
 */
static void
carry(LaDescent *d, BlockNumber child, IndexTuple separator, int equal)
{
	if (!d->carries || separator == NULL)
		return;
	remember(&d->carried, separator);
	d->carried_to = d->carried.known ? child : InvalidBlockNumber;
	d->carried_equal = equal;
}

/* Is this page's high key the separator? */
static bool
has_carried(const LaDescent *d, BlockNumber block, IndexTuple highkey)
{
	const IndexTupleData *carried = (const IndexTupleData *) d->carried.tuple;

	/* the block number in it is a downlink in the parent page only */
	return d->carried_to == block &&
		carried->t_info == highkey->t_info &&
		carried->t_tid.ip_posid == highkey->t_tid.ip_posid &&
		memcmp(carried + 1, highkey + 1,
			   IndexTupleSize(highkey) - sizeof(IndexTupleData)) == 0;
}

/*
 * Do entries that are not smaller than the key begin on this page?  If not, they
 * do to its right.  *equal: how many columns of its high key equal the
 * key.
 */
static bool
is_on_page(LaDescent *d, Page page, BlockNumber block, int *equal)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	*equal = 0;
	if (P_RIGHTMOST(opaque))
		return true;
	if (P_IGNORE(opaque))
		return false;
	if (has_carried(d, block, la_page_tuple(page, P_HIKEY)))
	{
		*equal = d->carried_equal;
		return true;
	}
	return la_key_compare(&d->key, la_page_tuple(page, P_HIKEY), 0, equal) <= 0;
}

/* The separator to the right of a downlink; NULL if there is none. */
static IndexTuple
right_separator(Page page, OffsetNumber downlink)
{
	if (downlink < PageGetMaxOffsetNumber(page))
		return la_page_tuple(page, downlink + 1);
	return P_RIGHTMOST(BTPageGetOpaque(page)) ? NULL :
		la_page_tuple(page, P_HIKEY);
}

/*
 * Behaviour SAME_LEAF: keep the separators on both sides of a downlink to a leaf.
 */
static void
remember_separators(LaDescent *d, Page page, OffsetNumber downlink)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	bool		first = downlink == P_FIRSTDATAKEY(opaque);

	/* what is left of the first downlink is told by pages left of this one */
	d->low.known = false;
	if (!first)
		remember(&d->low, la_page_tuple(page, downlink));
	else if (P_LEFTMOST(opaque))
		remember(&d->low, NULL);

	remember(&d->high, right_separator(page, downlink));
}

static bool
is_between_separators(LaDescent *d)
{
	int			equal;

	if (d->last_leaf == InvalidBlockNumber || !d->low.known || !d->high.known)
		return false;
	return (d->low.infinite ||
			la_key_compare(&d->key, (IndexTuple) d->low.tuple, 0, &equal) > 0) &&
		(d->high.infinite ||
		 la_key_compare(&d->key, (IndexTuple) d->high.tuple, 0, &equal) <= 0);
}

/* Are separators looked at for this key, or kept for the next one? */
static bool
separators_wanted(const LaDescent *d)
{
	return (d->key.options & LA_DESCENT_SAME_LEAF) != 0 &&
		(d->same_misses < SAME_LEAF_MISSES ||
		 d->same_misses % SAME_LEAF_PAUSE == 0);
}

static bool
is_same_leaf(LaDescent *d)
{
	if (separators_wanted(d) && is_between_separators(d))
	{
		d->same_misses = 0;
		return true;
	}
	d->same_misses++;
	return false;
}

/*
 * Start the read of a page of the index.
 */
void
la_descent_issue(LaDescent *d, BlockNumber block)
{
	Buffer		recent;

	/* reading what is not there is an error, and stock's to raise */
	if (la_issue_exists(d->key.index, block, &d->index_size))
		(void) la_issue_block(d->key.index, block, &recent);
}

/*
 * Search the inner pages for the key.  Unless it may wait, an inner page that is not
 * cached is only issued: then the answer is PENDING, and the search is to be
 * made again later.  (The root is waited for in any case.)
 */
LaDescentResult
la_descent_find_leaf(LaDescent *d, bool may_wait, BlockNumber *leaf)
{
	Relation	index = d->key.index;
	Buffer		buffer;
	Buffer		recent;

	if (is_same_leaf(d))
	{
		*leaf = d->last_leaf;
		return LA_DESCENT_FOUND;
	}
	d->last_leaf = InvalidBlockNumber;

	buffer = la_bt_getroot(index, d->heap);
	if (!BufferIsValid(buffer))
		return LA_DESCENT_NOTHING;
	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		BTPageOpaque opaque;
		BlockNumber next;
		int			equal;

		if (la_page_is_lost(page))
			break;
		opaque = BTPageGetOpaque(page);
		if (P_ISLEAF(opaque))
		{
			/* the root, or what became of an inner page */
			*leaf = BufferGetBlockNumber(buffer);
			_bt_relbuf(index, buffer);
			return LA_DESCENT_FOUND;
		}
		if (!is_on_page(d, page, BufferGetBlockNumber(buffer), &equal))
			next = opaque->btpo_next;
		else
		{
			OffsetNumber first = P_FIRSTDATAKEY(opaque);
			OffsetNumber max = PageGetMaxOffsetNumber(page);
			OffsetNumber downlink;
			LaBounds	bounds;

			if (max < first)
				break;
			/* the first one counts as minus infinity */
			bounds.low = first + 1;
			bounds.high = max + 1;
			bounds.low_equal = 0;
			bounds.high_equal = equal;
			bounds.exact = false;
			downlink = la_search_page(&d->key, page, &bounds) - 1;
			next = BTreeTupleGetDownLink(la_page_tuple(page, downlink));
			if (opaque->btpo_level > 1)
				carry(d, next, right_separator(page, downlink),
					  bounds.high_equal);
			if (opaque->btpo_level == 1)
			{
				*leaf = next;
				if (separators_wanted(d))
				{
					remember_separators(d, page, downlink);
					d->last_leaf = next;
				}
				_bt_relbuf(index, buffer);
				return LA_DESCENT_FOUND;
			}
		}
		if (!may_wait && !RelationUsesLocalBuffers(index) &&
			!la_issue_is_cached(index, next, &recent))
		{
			_bt_relbuf(index, buffer);
			if (next != d->pending)
				la_descent_issue(d, next);
			d->pending = next;
			return LA_DESCENT_PENDING;
		}
		buffer = _bt_relandgetbuf(index, buffer, next, BT_READ);
	}
	_bt_relbuf(index, buffer);
	return LA_DESCENT_NOTHING;
}

/*
 * *leaf is pinned, and not locked: lock it, and find the first entry that is not
 * smaller than the key.  Where the page was split or deleted, *leaf becomes the one
 * on its right, which holds such entries.  Returns false, with *leaf released,
 * if that leads nowhere, or further than it is worth.
 */
bool
la_descent_search_leaf(LaDescent *d, Buffer *leaf, OffsetNumber *position)
{
	_bt_lockbuf(d->key.index, *leaf, BT_READ);
	for (int moves = 0;; moves++)
	{
		Page		page = BufferGetPage(*leaf);
		BTPageOpaque opaque;
		int			equal;

		if (la_page_is_lost(page) || !P_ISLEAF(BTPageGetOpaque(page)) ||
			moves > MAX_MOVES)
		{
			_bt_relbuf(d->key.index, *leaf);
			*leaf = InvalidBuffer;
			return false;
		}
		opaque = BTPageGetOpaque(page);
		if (is_on_page(d, page, BufferGetBlockNumber(*leaf), &equal))
		{
			LaBounds	bounds = {P_FIRSTDATAKEY(opaque),
			PageGetMaxOffsetNumber(page) + 1, 0, equal, false};

			if (BufferGetBlockNumber(*leaf) == d->searched_leaf &&
				d->searched_near)
				la_search_from(&d->key, page, &bounds, d->searched_position);
			*position = la_search_page(&d->key, page, &bounds);
			remember_position(d, BufferGetBlockNumber(*leaf), *position);
			return true;
		}
		d->last_leaf = InvalidBlockNumber;
		*leaf = _bt_relandgetbuf(d->key.index, *leaf, opaque->btpo_next, BT_READ);
	}
}

static bool
add_match(LaMatches *m, ItemPointer tid)
{
	if (m->count >= m->max)
		return false;
	m->tids[m->count++] = *tid;
	return true;
}

static bool
add_matches(LaMatches *m, IndexTuple tuple)
{
	if (!BTreeTupleIsPosting(tuple))
		return add_match(m, &tuple->t_tid);
	for (int i = 0; i < BTreeTupleGetNPosting(tuple); i++)
	{
		if (!add_match(m, BTreeTupleGetPostingN(tuple, i)))
			return false;
	}
	return true;
}

/*
 * The entries that equal the key, from the position that la_descent_search_leaf()
 * found, on the leaf that it left locked.  Entries marked dead are left out
 * if wanted: the access method does so, too, but not on a standby.
 */
void
la_descent_matches(LaDescent *d, Buffer leaf, OffsetNumber position,
				   bool skip_dead, LaMatches *matches)
{
	Page		page = BufferGetPage(leaf);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber max = PageGetMaxOffsetNumber(page);
	int			equal;

	matches->count = 0;
	matches->complete = false;
	for (; position <= max; position++)
	{
		IndexTuple	tuple = la_page_tuple(page, position);

		if (la_key_compare(&d->key, tuple, 0, &equal) != 0)
		{
			matches->complete = true;
			return;
		}
		if (skip_dead && ItemIdIsDead(PageGetItemId(page, position)))
			continue;
		if (!add_matches(matches, tuple))
			return;
	}
	/* up to the end of the page: on the next one there may be more */
	matches->complete = P_RIGHTMOST(opaque) ||
		la_key_compare(&d->key, la_page_tuple(page, P_HIKEY), 0, &equal) < 0;
}
