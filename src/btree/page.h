/*
 * page.h
 *	  Searching one page of a stock btree index.
 *
 * A binary search knows how many leading columns of the key equal those of its lower bound,
 * and how many equal those of its upper one.  All tuples between the bounds share the smaller
 * number of columns with the key, since tuples are sorted, and comparison begins behind these
 * (TRUNCATE in descent.c's header):
 *
 *		less than the key | not compared yet | not less
 *					   low ^				  ^ high
 *		 low_equal columns of				   high_equal columns of the
 *		 the tuple before low equal			   tuple at high equal
 *
 * The caller keeps the page locked, or has a copy of it.
 *
 * A page may be damaged, and the server may never come to it, or fail before it does.  So nothing
 * is taken for granted that could lead out of the page: its header is checked once
 * (la_page_is_unusable()), a line pointer and what it points to whenever a tuple is fetched, and
 * a tuple's attributes when they are compared (searchkey.c).  A tuple that cannot be as it is,
 * is replaced by la_no_entry, which has no columns, no downlink and no heap TID; comparing it sets
 * the key's `damaged`, and what was found is then worth nothing.
 *
 * src/btree/page.h
 */
#ifndef LA_PAGE_H
#define LA_PAGE_H

#include "access/nbtree.h"

#include "base/bounds.h"
#include "btree/searchkey.h"

/* The state of a search. */
typedef struct LaBounds
{
	OffsetNumber low;			/* tuples before it are less than the key */
	OffsetNumber high;			/* this tuple and those after it are not */
	int			low_equal;
	int			high_equal;
	bool		exact;			/* the tuple at high equals the key */
} LaBounds;

/* Does a posting list lie within its tuple? */
static inline bool
la_page_holds_posting(IndexTuple tuple)
{
	Size		n = BTreeTupleGetNPosting(tuple);
	Size		offset = BTreeTupleGetPostingOffset(tuple);

	return n > 0 && offset >= sizeof(IndexTupleData) && offset <= IndexTupleSize(tuple) &&
		n * sizeof(ItemPointerData) <= IndexTupleSize(tuple) - offset;
}

/* A tuple of a usable page that has so many. */
static inline IndexTuple
la_page_tuple(Page page, OffsetNumber offset)
{
	ItemId		item = PageGetItemId(page, offset);
	IndexTuple	tuple = (IndexTuple) ((char *) page + ItemIdGetOffset(item));

	if (unlikely(!la_item_fits(item, sizeof(IndexTupleData),
							   BLCKSZ - MAXALIGN(sizeof(BTPageOpaqueData))) ||
				 IndexTupleSize(tuple) > ItemIdGetLength(item) ||
				 IndexTupleSize(tuple) < sizeof(IndexTupleData) ||
				 (BTreeTupleIsPosting(tuple) && !la_page_holds_posting(tuple))))
		return unconstify(IndexTupleData *, &la_no_entry);
	return tuple;
}

/*
 * Is it a page that is being deleted and has no right sibling, or not a btree page at all?  A
 * page that is usable has a high key if it needs one.
 */
static inline bool
la_page_is_unusable(Page page)
{
	const PageHeaderData *header = (const PageHeaderData *) page;
	BTPageOpaque opaque;

	if (PageIsNew(page) || PageGetPageSize(page) != BLCKSZ ||
		header->pd_special != BLCKSZ - MAXALIGN(sizeof(BTPageOpaqueData)) ||
		header->pd_lower < SizeOfPageHeaderData || header->pd_lower > header->pd_upper ||
		header->pd_upper > header->pd_special)
		return true;
	opaque = BTPageGetOpaque(page);
	return P_RIGHTMOST(opaque) ? P_IGNORE(opaque) : PageGetMaxOffsetNumber(page) < P_HIKEY;
}

/* Compare one tuple between the bounds, and move one of them. */
static inline void
la_page_narrow(LaSearchKey *key, Page page, LaBounds *b, OffsetNumber middle)
{
	int			from = Min(b->low_equal, b->high_equal);
	int			equal;
	int			result = la_searchkey_compare(key, la_page_tuple(page, middle), from, &equal);

	if (result > 0)
	{
		b->low = middle + 1;
		b->low_equal = equal;
	}
	else
	{
		b->high = middle;
		b->high_equal = equal;
		b->exact = result == 0;
	}
}

/* The first tuple between the bounds that is not less than the key: both are there then. */
static inline OffsetNumber
la_page_search(LaSearchKey *key, Page page, LaBounds *b)
{
	while (b->low < b->high)
		la_page_narrow(key, page, b, b->low + (b->high - b->low) / 2);
	return b->low;
}

/* Narrow the bounds from a position near which that tuple is likely to be. */
static inline void
la_page_narrow_near(LaSearchKey *key, Page page, LaBounds *b, OffsetNumber position)
{
	bool		down;

	if (position < b->low || position >= b->high)
		return;
	la_page_narrow(key, page, b, position);
	down = b->high == position;
	for (OffsetNumber step = 1; b->low + step < b->high; step *= 2)
	{
		OffsetNumber probe = down ? b->high - step : b->low + step;

		la_page_narrow(key, page, b, probe);
		if ((b->high == probe) != down)
			return;
	}
}

#endif							/* LA_PAGE_H */
