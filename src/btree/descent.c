/*
 * descent.c
 *	  Finding the leaf page and the entries of a key in a stock btree index.
 *
 *		root            |  low  ...  separator  ...  high |   compare, and remember
 *		  |                                               |   how many leading
 *		inner pages     |  ...                            |   columns are equal
 *		  |
 *		leaf   --> its block number, to start its read       la_descent_find_leaf()
 *		leaf, read --> position of the first entry >= key    la_descent_search_leaf()
 *		position --> TIDs of the entries that equal the key  la_descent_matches()
 *
 * RANGE: the key's last column may be a bound instead, at which the matches of a scan begin in its
 * direction.  They share the columns before it with the key, and may have an end:
 *
 *		forward:	| equal, > bound | ... ... ... | equal, < end |
 *		backward:	| equal, > end | ... ... ... | equal, < bound |		from right to left
 *
 * The key has values for the first columns of the index; null is one in the key of an entry that
 * is to be inserted only.  The search goes to the first entry that equals all of them, or behind
 * the last one (la_descent_search_behind()).  So a pivot tuple that equals the key in all
 * columns that it has is less than the key if the key has values for all of these and the
 * heap TID was truncated away; otherwise the search goes left of it.  (nbtree's README,
 * "Notes about suffix truncation".)
 *
 * Techniques, from "Iterating on IndexTuple attributes and nbtree page-level dynamic prefix
 * truncation" (van de Meent, pgsql-hackers, 2021)
 *	ITERATE		(searchkey.c)  The attributes of a tuple are found in one pass, or without one
 *				where all columns before have a fixed width and are not null.
 *	TRUNCATE	(btree.h)  Columns that both bounds of a binary search share with the key are
 *				not compared.
 *	TYPED		(searchkey.c)  Integers, also of different types, OIDs, dates, times and
 *				timestamps, UUIDs, bytea and text of collation C are compared without fmgr;
 *				other types, and compressed values, by the operator class's function.
 *	SAME_LEAF	Keys often come in the order of the index.  The separators around the last
 *				downlink followed are kept, and a key between them needs no inner page.  The
 *				leaf cannot be the wrong one: its keys move only to the right, where they are
 *				followed, and then the leaf is forgotten; and no page is recycled while the
 *				snapshot is held under which it was linked.  After SAME_LEAF_MISSES misses in a
 *				row this is tried every SAME_LEAF_PAUSE keys only.  On the same leaf, the search
 *				begins at the last position and proceeds from it in doubling steps, as long as
 *				successive positions are near each other.
 *
 * The middles of both halves are not prefetched into the CPU's cache while a tuple is compared: the
 * CPU speculates and fetches one of them itself.  Nor is the comparison with the separator on the
 * parent page, which a page's high key equals in most cases, used for the high key: that saves
 * less than 1%.
 *
 * Invariants
 *	- Pages are share-locked.  A page that is being deleted, or whose high key is less than the
 *	  key, leads to its right sibling.  A search ends without a result at a page that is not a
 *	  btree page, where a tuple is damaged (btree.h), and where pages are linked in a circle:
 *	  these are errors only where the server comes to them.
 *	- Nothing is pinned or locked between calls except the leaf: the caller pins it for
 *	  la_descent_search_leaf(), which leaves it locked for la_descent_matches().
 *	- No predicate locks are taken: this is not for SERIALIZABLE transactions.
 *
 * src/btree/descent.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "base/compat_btree.h"
#include "btree/btree.h"
#include "window/window.h"

#define NO_MATCHES			(INDEX_MAX_KEYS + 1)	/* as nequal: more than
													 * there are */
#define SAME_LEAF_MISSES	16
#define SAME_LEAF_PAUSE		256
#define NEAR_POSITIONS		16
#define SEPARATOR_BYTES		256 /* longer ones are not kept */
#define MAX_MOVES			16	/* to the right, on the leaf level */
#define MAX_INNER_MOVES		64	/* ... and on the inner levels, all together */

typedef struct Separator
{
	bool		known;
	bool		infinite;		/* there is none on that side */
	char		tuple[SEPARATOR_BYTES] pg_attribute_aligned(MAXIMUM_ALIGNOF);
} Separator;

struct LaDescent
{
	LaSearchKey key;			/* with the index, and the context of all this */
	Relation	heap;
	BlockNumber index_size;		/* see la_issue_exists() */
	BlockNumber pending;		/* the inner page whose read was started last */
	ItemPointerData last_tid;	/* greater than that of any entry */
	bool		backward;		/* matches are wanted from the last one on */
	int			nequal;			/* columns that they share with the key: all,
								 * or RANGE */
	bool		strict;			/* RANGE: what equals the bound is none */
	LaSearchKey *end;			/* RANGE: the last match, or the first behind
								 * it; or NULL */
	bool		end_strict;		/* ... the latter */
	int			most;			/* RANGE: matches; 0: any number */

	/* SAME_LEAF: the leaf found last, and the separators around its downlink */
	BlockNumber last_leaf;
	Separator	low;
	Separator	high;
	uint32		same_misses;	/* in a row */

	/* SAME_LEAF: the leaf searched last, and the position of the key there */
	BlockNumber searched_leaf;
	OffsetNumber searched_position;
	bool		searched_near;	/* the last two positions there were near */
};

Size
la_descent_size(void)
{
	return sizeof(LaDescent);
}

/* RANGE: what an end takes besides. */
Size
la_descent_end_size(void)
{
	return sizeof(LaSearchKey);
}

/*
 * Create a descent, whose key has no columns yet, in a context of its own below the current
 * one.
 */
LaDescent *
la_descent_create(Relation index, Relation heap)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_lookahead descent",
												  ALLOCSET_SMALL_SIZES);
	LaDescent  *d = MemoryContextAllocZero(context, sizeof(LaDescent));

	d->heap = heap;
	d->index_size = d->pending = InvalidBlockNumber;
	d->last_leaf = d->searched_leaf = InvalidBlockNumber;
	ItemPointerSet(&d->last_tid, MaxBlockNumber, MaxOffsetNumber);
	la_searchkey_init(&d->key, index, context);
	return d;
}

void
la_descent_free(LaDescent *d)
{
	MemoryContextDelete(d->key.context);
}

/* Add a column to the key: see la_searchkey_add_column(). */
bool
la_descent_add_column(LaDescent *d, Oid subtype, Oid collation)
{
	if (!la_searchkey_add_column(&d->key, subtype, collation))
		return false;
	d->nequal = d->key.ncolumns;
	return true;
}

/* RANGE: the column that was added last is a bound.  strict: of < or >. */
void
la_descent_set_bound(LaDescent *d, bool strict)
{
	d->nequal--;
	d->strict = strict;
	la_descent_search_behind(d, strict);
}

/*
 * RANGE: there is an end, a bound of the column behind those that are equal.  Its value is set as
 * that of a column behind all that the key has.
 */
bool
la_descent_add_end(LaDescent *d, Oid subtype, Oid collation, bool strict)
{
	LaSearchKey *end = MemoryContextAlloc(d->key.context, sizeof(LaSearchKey));

	*end = d->key;
	end->ncolumns = d->nequal;
	end->tid = NULL;
	if (!la_searchkey_add_column(end, subtype, collation))
	{
		pfree(end);
		return false;
	}
	d->end = end;
	d->end_strict = strict;
	return true;
}

Relation
la_descent_index(const LaDescent *d)
{
	return d->key.index;
}

int
la_descent_columns(const LaDescent *d)
{
	return d->key.ncolumns;
}

/* May all columns be compared with entries that nbtree would not have compared? */
bool
la_descent_may_be_early(const LaDescent *d)
{
	for (int i = 0; i < d->key.ncolumns; i++)
	{
		if (!la_searchkey_may_be_early(&d->key, i))
			return false;
	}
	return true;
}

static inline bool
is_range(const LaDescent *d)
{
	return d->nequal < d->key.ncolumns || d->end != NULL;
}

/* RANGE: does the value behind those of the key's columns stand for the end? */
static inline bool
is_end(const LaDescent *d, int column)
{
	return column == d->key.ncolumns;
}

/* The function that compares a value of the key, and its type. */
Oid
la_descent_comparison(const LaDescent *d, int column, Oid *type)
{
	if (is_end(d, column))
		return la_searchkey_comparison(d->end, d->nequal, type);
	return la_searchkey_comparison(&d->key, column, type);
}

/* Set the key's value in a column: see la_searchkey_set(). */
void
la_descent_set(LaDescent *d, int column, Datum value)
{
	if (is_end(d, column))
	{
		la_searchkey_set(d->end, d->nequal, value);
		return;
	}
	la_searchkey_set(&d->key, column, value);
	if (d->end != NULL && column < d->nequal)
		la_searchkey_set(d->end, column, value);
}

/*
 * Set a column to a value as it may be in a tuple: a compressed one is decompressed in the current
 * memory context.  Returns false if it is stored out of line, and would have to be read.
 */
bool
la_descent_set_stored(LaDescent *d, int column, Datum value, bool is_varlena)
{
	if (is_varlena && VARATT_IS_EXTERNAL(DatumGetPointer(value)))
		return false;
	if (is_varlena)
		value = PointerGetDatum(PG_DETOAST_DATUM(value));
	la_descent_set(d, column, value);
	return true;
}

/* Set a column to null, in the key of an entry that is to be inserted, or RANGE: for good. */
void
la_descent_set_null(LaDescent *d, int column)
{
	if (is_end(d, column))
		la_searchkey_set_null(d->end, d->nequal);
	else
		la_searchkey_set_null(&d->key, column);
}

/* RANGE: more matches than these are not wanted. */
void
la_descent_set_most(LaDescent *d, int most)
{
	d->most = most;
}

/*
 * Search for the place behind all entries that equal the key, where an entry of a row that is
 * behind all others in the table will be, or for the first one of them.
 */
void
la_descent_search_behind(LaDescent *d, bool behind)
{
	d->key.tid = behind && d->key.heapkeyspace ? &d->last_tid : NULL;
}

/*
 * The key is searched for by a scan that reads the index backward.  Without heap TIDs in its order,
 * the search cannot go behind equal entries: then they are found forward, and those of a range not.
 */
void
la_descent_search_backward(LaDescent *d)
{
	d->backward = d->key.heapkeyspace;
	if (!d->backward && is_range(d))
		d->nequal = NO_MATCHES;
	la_descent_search_behind(d, d->backward && !d->strict);
}

static void
remember_position(LaDescent *d, BlockNumber leaf, OffsetNumber position)
{
	if (leaf == d->searched_leaf)
		d->searched_near = abs((int) position - (int) d->searched_position) <= NEAR_POSITIONS;
	d->searched_leaf = leaf;
	d->searched_position = position;
}

static void
remember(Separator *s, IndexTuple tuple)
{
	Size		size = tuple == NULL ? 0 : IndexTupleSize(tuple);

	s->infinite = tuple == NULL;
	s->known = size <= SEPARATOR_BYTES && tuple != &la_no_entry;
	if (s->known && tuple != NULL)
		memcpy(s->tuple, tuple, size);
}

/*
 * Do the entries that are not less than the key begin on this page, or else to its right?
 * *equal: how many columns of its high key equal the key.
 */
static bool
is_on_page(LaDescent *d, Page page, int *equal)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	*equal = 0;
	if (P_RIGHTMOST(opaque))
		return true;
	if (P_IGNORE(opaque))
		return false;
	return la_searchkey_compare(&d->key, la_page_tuple(page, P_HIKEY), 0, equal) <= 0;
}

/* SAME_LEAF: keep the separators on both sides of a downlink to a leaf. */
static void
remember_separators(LaDescent *d, Page page, OffsetNumber downlink)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	bool		first = downlink == P_FIRSTDATAKEY(opaque);

	/* the lower bound of the first downlink is on pages to the left */
	d->low.known = false;
	if (!first)
		remember(&d->low, la_page_tuple(page, downlink));
	else if (P_LEFTMOST(opaque))
		remember(&d->low, NULL);

	if (downlink < PageGetMaxOffsetNumber(page))
		remember(&d->high, la_page_tuple(page, downlink + 1));
	else
		remember(&d->high, P_RIGHTMOST(opaque) ? NULL : la_page_tuple(page, P_HIKEY));
}

static bool
is_between_separators(LaDescent *d)
{
	int			equal;

	if (d->last_leaf == InvalidBlockNumber || !d->low.known || !d->high.known)
		return false;
	return (d->low.infinite ||
			la_searchkey_compare(&d->key, (IndexTuple) d->low.tuple, 0, &equal) > 0) &&
		(d->high.infinite ||
		 la_searchkey_compare(&d->key, (IndexTuple) d->high.tuple, 0, &equal) <= 0);
}

/* SAME_LEAF: should separators be compared with this key, and kept for the next one? */
static bool
separators_wanted(const LaDescent *d)
{
	return d->same_misses < SAME_LEAF_MISSES || d->same_misses % SAME_LEAF_PAUSE == 0;
}

static bool
is_same_leaf(LaDescent *d)
{
	bool		same;

	d->key.damaged = false;
	same = separators_wanted(d) && is_between_separators(d) && !d->key.damaged;
	d->same_misses = same ? 0 : d->same_misses + 1;
	return same;
}

/* Start the read of a page of the index, if the page exists. */
void
la_descent_issue(LaDescent *d, BlockNumber block)
{
	Buffer		recent;

	/* only the server may raise an error for one that does not */
	if (la_issue_exists(d->key.index, block, &d->index_size))
		(void) la_issue_block(d->key.index, block, &recent);
}

/*
 * Search an inner page for the child that the key's entries begin below.  equal: how many
 * columns of the page's high key equal the key.  InvalidBlockNumber if there is no downlink.
 */
static BlockNumber
find_child(LaDescent *d, Page page, int equal)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);
	OffsetNumber max = PageGetMaxOffsetNumber(page);

	/* the first one counts as minus infinity */
	LaBounds	bounds = {first + 1, max + 1, 0, equal, false};
	OffsetNumber downlink;
	BlockNumber child;

	if (max < first)
		return InvalidBlockNumber;
	downlink = la_page_search(&d->key, page, &bounds) - 1;
	child = BTreeTupleGetDownLink(la_page_tuple(page, downlink));
	if (opaque->btpo_level == 1 && separators_wanted(d))
	{
		remember_separators(d, page, downlink);
		d->last_leaf = child;
	}
	return child;
}

static bool
must_wait_for(LaDescent *d, BlockNumber block)
{
	Buffer		recent;

	return !RelationUsesLocalBuffers(d->key.index) &&
		!la_issue_is_cached(d->key.index, block, &recent);
}

/*
 * Search the inner pages for the leaf on which the key's entries begin.  Unless it may wait,
 * the read of an inner page that is not cached is only started: then the result is PENDING,
 * and the search is to be repeated later.  (The root is waited for in any case.)
 */
LaDescentResult
la_descent_find_leaf(LaDescent *d, bool may_wait, BlockNumber *leaf)
{
	Relation	index = d->key.index;
	LaDescentResult result = LA_DESCENT_NOTHING;
	uint32		level = UINT32_MAX; /* of the page searched last */
	int			moves = 0;
	Buffer		buffer;

	if (is_same_leaf(d))
	{
		*leaf = d->last_leaf;
		return LA_DESCENT_FOUND;
	}
	d->last_leaf = InvalidBlockNumber;
	d->key.damaged = false;

	buffer = la_bt_getroot(index, d->heap);
	if (!BufferIsValid(buffer))
		return LA_DESCENT_NOTHING;
	for (;;)
	{
		Page		page = BufferGetPage(buffer);
		BlockNumber block = BufferGetBlockNumber(buffer);
		BTPageOpaque opaque;
		BlockNumber next;
		bool		found;
		int			equal;

		if (la_page_is_unusable(page))
			break;
		opaque = BTPageGetOpaque(page);
		/* the root can be a leaf, and so can what became of an inner page */
		found = P_ISLEAF(opaque);
		if (found)
			next = block;
		else if (!is_on_page(d, page, &equal))
		{
			next = opaque->btpo_next;
			if (++moves > MAX_INNER_MOVES)
				break;
		}
		else
		{
			if (opaque->btpo_level >= level)
				break;
			level = opaque->btpo_level;
			next = find_child(d, page, equal);
			found = level == 1;
		}
		if (next == InvalidBlockNumber || d->key.damaged)
		{
			d->last_leaf = InvalidBlockNumber;
			break;
		}
		if (found)
		{
			*leaf = next;
			result = LA_DESCENT_FOUND;
			break;
		}
		if (!may_wait && must_wait_for(d, next))
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
	return result;
}

static bool
release_leaf(LaDescent *d, Buffer *leaf)
{
	_bt_relbuf(d->key.index, *leaf);
	*leaf = InvalidBuffer;
	return false;
}

/*
 * Lock *leaf, which is pinned, and find the first entry that is not less than the key.  If the
 * page was split or deleted meanwhile, *leaf becomes the one to its right where such entries
 * are.  Returns false, with *leaf released, if there is none, or if it is too far away.
 */
bool
la_descent_search_leaf(LaDescent *d, Buffer *leaf, OffsetNumber *position)
{
	d->key.damaged = false;
	_bt_lockbuf(d->key.index, *leaf, BT_READ);
	for (int moves = 0;; moves++)
	{
		Page		page = BufferGetPage(*leaf);
		BlockNumber block = BufferGetBlockNumber(*leaf);
		BTPageOpaque opaque;
		int			equal;

		if (la_page_is_unusable(page) || !P_ISLEAF(BTPageGetOpaque(page)) ||
			moves > MAX_MOVES)
			return release_leaf(d, leaf);
		opaque = BTPageGetOpaque(page);
		if (is_on_page(d, page, &equal))
		{
			LaBounds	bounds = {P_FIRSTDATAKEY(opaque),
			PageGetMaxOffsetNumber(page) + 1, 0, equal, false};

			if (block == d->searched_leaf && d->searched_near)
				la_page_narrow_near(&d->key, page, &bounds, d->searched_position);
			*position = la_page_search(&d->key, page, &bounds);
			if (d->key.damaged)
				return release_leaf(d, leaf);
			remember_position(d, block, *position);
			return true;
		}
		d->last_leaf = InvalidBlockNumber;
		*leaf = _bt_relandgetbuf(d->key.index, *leaf, opaque->btpo_next, BT_READ);
	}
}

/* Does an entry share its columns with the key, and does it not lie behind the end? */
static bool
is_match(LaDescent *d, IndexTuple tuple)
{
	int			equal;
	int			result;

	(void) la_searchkey_compare(&d->key, tuple, 0, &equal);
	if (equal < d->nequal)
		return false;
	if (d->end == NULL)
		return true;
	d->end->damaged = false;
	result = la_searchkey_compare(d->end, tuple, 0, &equal);
	d->key.damaged |= d->end->damaged;
	if (result == 0)
		return !d->end_strict;
	return !d->end->damaged && (d->backward ? result < 0 : result > 0);
}

/* Are matches all entries that equal the key, and may they be all that there are? */
static bool
may_be_complete(const LaDescent *d)
{
	return !is_range(d) && !d->key.damaged;
}

static inline bool
is_enough(const LaDescent *d, const LaMatches *matches)
{
	return is_range(d) && d->most > 0 && matches->count >= d->most;
}

/* Add the TIDs of an entry.  Returns false if there is no room for all, or one is damaged. */
static bool
add_matches(LaMatches *m, IndexTuple tuple)
{
	bool		posting = BTreeTupleIsPosting(tuple);
	int			n = posting ? BTreeTupleGetNPosting(tuple) : 1;

	for (int i = 0; i < n; i++)
	{
		ItemPointer tid = posting ? BTreeTupleGetPostingN(tuple, i) : &tuple->t_tid;

		if (m->count >= m->max || !ItemPointerIsValid(tid))
			return false;
		m->tids[m->count++] = *tid;
	}
	return true;
}

/* The same from the last entry to the first.  Those on the page to the left are not seen. */
static void
matches_backward(LaDescent *d, Buffer leaf, OffsetNumber position, bool skip_dead,
				 LaMatches *matches)
{
	Page		page = BufferGetPage(leaf);
	OffsetNumber first = P_FIRSTDATAKEY(BTPageGetOpaque(page));

	while (position > first && !is_enough(d, matches))
	{
		IndexTuple	tuple = la_page_tuple(page, --position);
		int			from = matches->count;

		if (!is_match(d, tuple))
		{
			matches->complete = may_be_complete(d);
			return;
		}
		if (skip_dead && ItemIdIsDead(PageGetItemId(page, position)))
			continue;
		if (!add_matches(matches, tuple))
			return;
		/* a posting list is in the order of the table */
		for (int i = from, j = matches->count - 1; i < j; i++, j--)
		{
			ItemPointerData tid = matches->tids[i];

			matches->tids[i] = matches->tids[j];
			matches->tids[j] = tid;
		}
	}
}

/*
 * Collect the entries that equal the key, or are in its range, from the position that
 * la_descent_search_leaf() has found, on the leaf that it has left locked.  skip_dead: not those
 * that are marked dead, which the access method ignores as well, except on a standby.
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
	if (d->backward)
	{
		matches_backward(d, leaf, position, skip_dead, matches);
		return;
	}
	for (; position <= max && !is_enough(d, matches); position++)
	{
		IndexTuple	tuple = la_page_tuple(page, position);

		if (!is_match(d, tuple))
		{
			matches->complete = may_be_complete(d);
			return;
		}
		if (skip_dead && ItemIdIsDead(PageGetItemId(page, position)))
			continue;
		if (!add_matches(matches, tuple))
			return;
	}
	/* all up to the end of the page: there may be more on the next one */
	if (!P_RIGHTMOST(opaque) &&
		la_searchkey_compare(&d->key, la_page_tuple(page, P_HIKEY), 0, &equal) >= 0)
		return;
	matches->complete = may_be_complete(d);
}
