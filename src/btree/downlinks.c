/*
 * downlinks.c
 *	  The leaf pages that a scan of a stock btree index will come to.
 *
 * A leaf page names its siblings only, so whoever follows these links learns of one page after it
 * has waited for the one before.  The parents of the leaf pages (level 1) name some hundreds of
 * them each, and are cached where the index has been descended:
 *
 *		level 1		| .. | 17 | 203 | 4 | 90 | .. | ---> right sibling | 12 | ..
 *						   |	|	  |	   |
 *		leaf			  17 -> 203 -> 4 -> 90 -> ..
 *						   ^	|<- delivered ->|
 *						   the scan
 *
 *	SEEK	The scan has come to a leaf page.  If that is one of the pages copied from level 1,
 *			those before it are forgotten.  Otherwise the first entry on the page is the key of a
 *			descent to its parent, and the block numbers of the children behind it, in the scan's
 *			direction, are copied.
 *	NEXT	The next of them is delivered.  When they are used up, the parent's sibling is read;
 *			that was started when a quarter of a page's children was left.  It is one page of some
 *			hundreds, and waiting for it delays only what is far ahead.
 *	RANGE	Children that lie surely behind the end of the scan are not delivered.  Separators are
 *			compared with the keys that end the scan in its direction, which nbtree has marked
 *			(SK_BT_REQFWD, SK_BT_REQBKWD): equal values for the first columns, and then perhaps one
 *			bound.  An array (from 17 on; before, each of its elements is a scan) counts by its
 *			last element, as a bound, and a skip array by the bound that it has.  Row comparisons
 *			do not count.
 *
 *			forward:	child >= its separator, which is behind the keys: not needed
 *			backward:	child < the separator to its right, which is before them: not needed
 *
 * All of it is a hint.  A page that is split has a new sibling whose downlink was not copied, one
 * that is deleted is still delivered, and where a page of level 1 has changed its place nothing is
 * known until the next SEEK.
 *
 * Invariants
 *	- Nothing is pinned or locked between calls, and pages are share-locked one at a time, or as
 *	  nbtree's own descent does.
 *	- Only comparison functions in C are called, which call no others.
 *	- No predicate locks are taken, and none are needed, since no entry is returned.
 *
 * src/btree/downlinks.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/relscan.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "attach/descriptors.h"
#include "base/compat.h"
#include "base/compat_btree.h"
#include "btree/btree.h"
#include "btree/btree_int.h"
#include "window/window.h"

#define MOST_CHILDREN	MaxIndexTuplesPerPage	/* of one page */
#define MAX_MOVES		16		/* to the right, or along level 1 over pages
								 * that are being deleted */

struct LaDownlinks
{
	IndexScanDesc scan;
	Relation	index;
	BlockNumber index_size;		/* see la_issue_exists() */
	MemoryContext context;		/* of all this */
	MemoryContext range_context;	/* of what the range's functions keep */

	bool		unusable;		/* the index cannot be searched here */
	LaSearchKey place;			/* of an entry: all key columns, and the TID */
	LaSearchKey range;			/* RANGE: no columns if the end is not known */
	bool		range_known;	/* it has been made */
	bool		range_strict;	/* what equals it is behind it */

	ScanDirection dir;
	BlockNumber leaf;			/* where the scan is, or InvalidBlockNumber */
	BlockNumber parent;			/* page of level 1 copied last */
	BlockNumber sibling;		/* the one to be copied next, if any */
	bool		sibling_started;	/* its read was started */

	/* copied: those before "here" are behind the scan */
	int			here;
	int			delivered;
	int			count;
	BlockNumber blocks[2 * MOST_CHILDREN];
};

Size
la_downlinks_size(void)
{
	return sizeof(LaDownlinks) + 2 * ALLOCSET_SMALL_INITSIZE;
}

/* The scan is one of the index; it need not have begun yet. */
LaDownlinks *
la_downlinks_create(Relation index, IndexScanDesc scan, MemoryContext context)
{
	MemoryContext own = AllocSetContextCreate(context, "pg_lookahead downlinks",
											  ALLOCSET_SMALL_SIZES);
	LaDownlinks *d = MemoryContextAllocZero(own, sizeof(LaDownlinks));

	d->scan = scan;
	d->index = index;
	d->index_size = InvalidBlockNumber;
	d->context = own;
	d->range_context = AllocSetContextCreate(own, "pg_lookahead range", ALLOCSET_SMALL_SIZES);
	la_searchkey_init(&d->place, index, own);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (!la_searchkey_add_column(&d->place, InvalidOid, index->rd_indcollation[i]) ||
			!la_searchkey_may_be_early(&d->place, i))
			d->unusable = true;
	}
	la_downlinks_restart(d);
	return d;
}

void
la_downlinks_free(LaDownlinks *d)
{
	MemoryContextDelete(d->context);
}

/* The position is not known any more, and the scan may have other keys. */
void
la_downlinks_restart(LaDownlinks *d)
{
	d->leaf = d->sibling = InvalidBlockNumber;
	d->here = d->delivered = d->count = 0;
	d->range_known = false;
}

/* ---- RANGE ---------------------------------------------------------------- */

/*
 * An array key stands for its values up to the last one in the scan's direction, and a skip array
 * for those up to a bound.  Returns that key, or NULL if there is none, and sets the value.
 */
static ScanKey
end_of_array(LaDownlinks *d, ScanKey key, Datum *value)
{
	BTScanOpaque so = la_btree_scan(d->scan);
	bool		forward = ScanDirectionIsForward(d->dir);

	for (int i = 0; i < so->numArrayKeys; i++)
	{
		BTArrayKeyInfo *array = &so->arrayKeys[i];

		if (&so->keyData[array->scan_key] != key)
			continue;
		if (array->num_elems > 0)
			*value = array->elem_values[forward ? array->num_elems - 1 : 0];
		else
		{
			key = la_bt_skip_array_end(array, forward);
			*value = key ? key->sk_argument : (Datum) 0;
		}
		return key;
	}
	return NULL;
}

/*
 * Add a key of the scan to the range.  Returns false if no other key can follow it; the range is
 * then the one so far, with or without this key.
 */
static bool
add_to_range(LaDownlinks *d, ScanKey key)
{
	LaSearchKey *range = &d->range;
	int			column = range->ncolumns;
	Datum		value = key->sk_argument;
	bool		array = la_bt_key_is_array(key);

	if (key->sk_attno != column + 1)
		return false;
	if (array)
		key = end_of_array(d, key, &value);
	if (key == NULL || (key->sk_flags & SK_ROW_HEADER) != 0 ||
		!la_searchkey_add_column(range, key->sk_subtype, d->index->rd_indcollation[column]))
		return false;
	if (!la_searchkey_may_be_early(range, column))
	{
		range->ncolumns--;
		return false;
	}
	if ((key->sk_flags & SK_ISNULL) != 0)
		la_searchkey_set_null(range, column);
	else
		la_searchkey_set(range, column, value);
	d->range_strict = key->sk_strategy == BTLessStrategyNumber ||
		key->sk_strategy == BTGreaterStrategyNumber;
	return key->sk_strategy == BTEqualStrategyNumber && !array;
}

/* Make the range from the keys of the scan, which has begun. */
static void
make_range(LaDownlinks *d)
{
	BTScanOpaque so = la_btree_scan(d->scan);
	int			required = ScanDirectionIsForward(d->dir) ? SK_BT_REQFWD : SK_BT_REQBKWD;

	MemoryContextReset(d->range_context);
	la_searchkey_init(&d->range, d->index, d->range_context);
	d->range_strict = false;
	for (int i = 0; i < so->numberOfKeys; i++)
	{
		if ((so->keyData[i].sk_flags & required) != 0 && !add_to_range(d, &so->keyData[i]))
			break;
	}
	/* before 17, the next element of an array changes the keys */
	d->range_known = so->numArrayKeys == 0;
}

/* Is all that lies behind a separator, in the scan's direction, behind its range?  NULL: no. */
static bool
is_behind_range(LaDownlinks *d, IndexTuple separator)
{
	int			equal;
	int			result;

	if (separator == NULL || d->range.ncolumns == 0)
		return false;
	result = la_searchkey_compare(&d->range, separator, 0, &equal);
	return (ScanDirectionIsForward(d->dir) ? result < 0 : result > 0) ||
		(d->range_strict && equal == d->range.ncolumns);
}

/* ---- level 1 -------------------------------------------------------------- */

/* The separator between a child and the one before it in the scan's direction, if it is there. */
static IndexTuple
separator_before(LaDownlinks *d, Page page, OffsetNumber child)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	/* the first one has no separator of its own */
	if (ScanDirectionIsForward(d->dir))
		return child == P_FIRSTDATAKEY(opaque) ? NULL : la_page_tuple(page, child);
	if (child < PageGetMaxOffsetNumber(page))
		return la_page_tuple(page, child + 1);
	return P_RIGHTMOST(opaque) ? NULL : la_page_tuple(page, P_HIKEY);
}

/* Copy the children of a page from this one on, in the scan's direction, and note what follows. */
static void
copy_children(LaDownlinks *d, Page page, OffsetNumber from)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	bool		forward = ScanDirectionIsForward(d->dir);
	int			first = P_FIRSTDATAKEY(opaque);
	int			max = PageGetMaxOffsetNumber(page);
	int			sign = forward ? 1 : -1;
	int			n = forward ? max - from + 1 : from - first + 1;
	int			low = 0;		/* children before it are needed */
	int			high = Max(n, 0);	/* this one and those after it are not */

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (is_behind_range(d, separator_before(d, page, from + sign * middle)))
			high = middle;
		else
			low = middle + 1;
	}
	low = Min(low, (int) lengthof(d->blocks) - d->count);
	for (int i = 0; i < low; i++)
		d->blocks[d->count++] = BTreeTupleGetDownLink(la_page_tuple(page, from + sign * i));

	d->sibling_started = false;
	if (low < n)
		d->sibling = InvalidBlockNumber;
	else if (forward)
		d->sibling = P_RIGHTMOST(opaque) || is_behind_range(d, la_page_tuple(page, P_HIKEY)) ?
			InvalidBlockNumber : opaque->btpo_next;
	else
		d->sibling = P_LEFTMOST(opaque) ? InvalidBlockNumber : opaque->btpo_prev;
}

/* Start the read of the next page of level 1, once few of the copied children are left. */
static void
start_sibling(LaDownlinks *d)
{
	Buffer		recent;

	if (d->sibling == InvalidBlockNumber || d->sibling_started ||
		d->count - d->delivered > MOST_CHILDREN / 4)
		return;
	d->sibling_started = true;
	if (la_issue_exists(d->index, d->sibling, &d->index_size))
		(void) la_issue_block(d->index, d->sibling, &recent);
}

/* Can the page be the sibling of the last one of level 1? */
static bool
is_sibling(const LaDownlinks *d, Page page)
{
	BTPageOpaque opaque;

	if (la_page_is_unusable(page))
		return false;
	opaque = BTPageGetOpaque(page);
	return !P_ISDELETED(opaque) && opaque->btpo_level == 1 &&
		(ScanDirectionIsForward(d->dir) || opaque->btpo_next == d->parent);
}

/*
 * Copy the children of the next page of level 1.  Returns false if there is none, or if it is not
 * what its sibling has linked to: then nothing is known until the scan has come to another page.
 */
static bool
copy_sibling(LaDownlinks *d)
{
	bool		forward = ScanDirectionIsForward(d->dir);

	d->count -= d->here;
	d->delivered -= d->here;
	memmove(d->blocks, d->blocks + d->here, d->count * sizeof(BlockNumber));
	d->here = 0;
	if (d->count > MOST_CHILDREN)
		return false;

	for (int moves = 0; d->sibling != InvalidBlockNumber && moves < MAX_MOVES; moves++)
	{
		BlockNumber block = d->sibling;
		Buffer		buffer;
		Page		page;
		BTPageOpaque opaque;

		d->sibling = InvalidBlockNumber;
		if (!la_issue_exists(d->index, block, &d->index_size))
			return false;
		buffer = ReadBuffer(d->index, block);
		_bt_lockbuf(d->index, buffer, BT_READ);
		page = BufferGetPage(buffer);
		if (!is_sibling(d, page))
		{
			_bt_relbuf(d->index, buffer);
			return false;
		}
		opaque = BTPageGetOpaque(page);
		d->parent = block;
		if (P_IGNORE(opaque))
			d->sibling = forward ? opaque->btpo_next :
				P_LEFTMOST(opaque) ? InvalidBlockNumber : opaque->btpo_prev;
		else
			copy_children(d, page, forward ? P_FIRSTDATAKEY(opaque) :
						  PageGetMaxOffsetNumber(page));
		_bt_relbuf(d->index, buffer);
		if (d->delivered < d->count)
			return true;
	}
	return false;
}

/* ---- SEEK ----------------------------------------------------------------- */

/* A copy of the first entry on a leaf page, or NULL if it has none, or if that is damaged. */
static IndexTuple
copy_first_entry(LaDownlinks *d, BlockNumber leaf)
{
	Buffer		buffer = ReadBuffer(d->index, leaf);
	IndexTuple	tuple = NULL;
	Page		page;

	_bt_lockbuf(d->index, buffer, BT_READ);
	page = BufferGetPage(buffer);
	if (!la_page_is_unusable(page) && P_ISLEAF(BTPageGetOpaque(page)) &&
		!P_IGNORE(BTPageGetOpaque(page)) &&
		P_FIRSTDATAKEY(BTPageGetOpaque(page)) <= PageGetMaxOffsetNumber(page))
	{
		IndexTuple	first = la_page_tuple(page, P_FIRSTDATAKEY(BTPageGetOpaque(page)));

		if (la_searchkey_fits(&d->place, first))
		{
			MemoryContext old = MemoryContextSwitchTo(d->context);

			tuple = CopyIndexTuple(first);
			MemoryContextSwitchTo(old);
		}
	}
	_bt_relbuf(d->index, buffer);
	return tuple;
}

static void
set_place(LaDownlinks *d, IndexTuple tuple)
{
	for (int i = 0; i < d->place.ncolumns; i++)
	{
		bool		isnull;
		Datum		value = index_getattr(tuple, i + 1, RelationGetDescr(d->index), &isnull);

		if (isnull)
			la_searchkey_set_null(&d->place, i);
		else
			la_searchkey_set(&d->place, i, value);
	}
	d->place.tid = d->place.heapkeyspace ? BTreeTupleGetHeapTID(tuple) : NULL;
}

/* Does the place lie on a page of the inner levels, and not to its right? */
static bool
is_on_page(LaDownlinks *d, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	int			equal;

	if (P_RIGHTMOST(opaque))
		return true;
	return !P_IGNORE(opaque) &&
		la_searchkey_compare(&d->place, la_page_tuple(page, P_HIKEY), 0, &equal) <= 0;
}

/*
 * Descend to the page of level 1 that the place lies below.  Returns it locked, with the downlink
 * that leads there, or InvalidBuffer if there is none.
 */
static Buffer
find_parent(LaDownlinks *d, OffsetNumber *downlink)
{
	Buffer		buffer = la_bt_getroot(d->index, d->scan->heapRelation);
	uint32		level = UINT32_MAX; /* of the page searched last */

	if (!BufferIsValid(buffer))
		return InvalidBuffer;
	d->place.damaged = false;
	for (int moves = 0; moves <= MAX_MOVES;)
	{
		Page		page = BufferGetPage(buffer);
		BTPageOpaque opaque;
		BlockNumber next;

		if (la_page_is_unusable(page))
			break;
		opaque = BTPageGetOpaque(page);
		if (P_ISLEAF(opaque))
			break;
		if (!is_on_page(d, page))
		{
			next = opaque->btpo_next;
			moves++;
		}
		else
		{
			OffsetNumber first = P_FIRSTDATAKEY(opaque);
			OffsetNumber max = PageGetMaxOffsetNumber(page);

			/* the first one counts as minus infinity */
			LaBounds	bounds = {first + 1, max + 1, 0, 0, false};

			if (max < first || opaque->btpo_level >= level)
				break;
			level = opaque->btpo_level;
			*downlink = la_page_search(&d->place, page, &bounds) - 1;
			next = BTreeTupleGetDownLink(la_page_tuple(page, *downlink));
			if (level == 1 && !d->place.damaged)
				return buffer;
		}
		if (next == InvalidBlockNumber || d->place.damaged)
			break;
		buffer = _bt_relandgetbuf(d->index, buffer, next, BT_READ);
	}
	_bt_relbuf(d->index, buffer);
	return InvalidBuffer;
}

/*
 * Without TIDs in its keys (built before 12), an index does not tell entries that are equal apart,
 * and the place is the first of them.  Returns false if the leaf is not on the page.
 */
static bool
find_downlink(Page page, BlockNumber leaf, OffsetNumber *downlink)
{
	for (; *downlink <= PageGetMaxOffsetNumber(page); (*downlink)++)
	{
		if (BTreeTupleGetDownLink(la_page_tuple(page, *downlink)) == leaf)
			return true;
	}
	return false;
}

/* Copy from level 1 what follows the leaf page. */
static bool
descend(LaDownlinks *d, BlockNumber leaf)
{
	IndexTuple	tuple = d->unusable ? NULL : copy_first_entry(d, leaf);
	OffsetNumber downlink;
	Buffer		buffer;
	Page		page;
	bool		found;

	if (tuple == NULL)
		return false;
	set_place(d, tuple);
	if (!d->range_known)
		make_range(d);
	buffer = find_parent(d, &downlink);
	pfree(tuple);
	if (!BufferIsValid(buffer))
		return false;

	page = BufferGetPage(buffer);
	found = d->place.heapkeyspace || find_downlink(page, leaf, &downlink);
	if (found)
	{
		bool		forward = ScanDirectionIsForward(d->dir);

		/* the leaf's own downlink may not be there yet, after a split */
		bool		itself = BTreeTupleGetDownLink(la_page_tuple(page, downlink)) == leaf;

		d->parent = BufferGetBlockNumber(buffer);
		copy_children(d, page, forward ? downlink + 1 : itself ? downlink - 1 : downlink);
	}
	_bt_relbuf(d->index, buffer);
	return found;
}

/*
 * The scan has come to this leaf page, and reads it in this direction.  Returns false if what
 * follows is not known.
 */
bool
la_downlinks_seek(LaDownlinks *d, BlockNumber leaf, ScanDirection dir)
{
	if (d->leaf != InvalidBlockNumber && d->dir == dir)
	{
		if (d->leaf == leaf)
			return true;
		for (int i = d->here; i < d->count; i++)
		{
			if (d->blocks[i] != leaf)
				continue;
			d->leaf = leaf;
			d->here = i + 1;
			d->delivered = Max(d->delivered, d->here);
			return true;
		}
	}
	if (d->dir != dir)
		la_downlinks_restart(d);
	d->dir = dir;
	d->leaf = d->sibling = InvalidBlockNumber;
	d->here = d->delivered = d->count = 0;
	if (!descend(d, leaf))
		return false;
	d->leaf = leaf;
	return true;
}

/* The leaf page after those delivered since the last SEEK that was not expected, if it is known. */
BlockNumber
la_downlinks_next(LaDownlinks *d)
{
	BlockNumber block;

	if (d->delivered == d->count && !copy_sibling(d))
		return InvalidBlockNumber;
	block = d->blocks[d->delivered++];
	start_sibling(d);
	return block;
}
