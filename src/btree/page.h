/*
 * page.h
 *	  Searching one page of a stock btree index.
 *
 * A binary search knows how many leading columns of the key equal those of its lower bound,
 * and how many equal those of its upper one.  All tuples between the bounds share the smaller
 * number of columns with the key, since tuples are sorted, and comparison begins behind these
 * (option TRUNCATE, searchkey.h):
 *
 *		less than the key | not compared yet | not less
 *					   low ^				  ^ high
 *		 low_equal columns of				   high_equal columns of the
 *		 the tuple before low equal			   tuple at high equal
 *
 * The caller keeps the page locked, or has a copy of it.
 *
 * src/btree/page.h
 */
#ifndef LA_PAGE_H
#define LA_PAGE_H

#include "access/nbtree.h"

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

static inline IndexTuple
la_page_tuple(Page page, OffsetNumber offset)
{
	return (IndexTuple) PageGetItem(page, PageGetItemId(page, offset));
}

/* Is it a page that is being deleted and has no right sibling, or not a btree page at all? */
static inline bool
la_page_is_unusable(Page page)
{
	return PageIsNew(page) ||
		PageGetSpecialSize(page) != MAXALIGN(sizeof(BTPageOpaqueData)) ||
		(P_RIGHTMOST(BTPageGetOpaque(page)) && P_IGNORE(BTPageGetOpaque(page)));
}

/* Compare one tuple between the bounds, and move one of them. */
static inline void
la_page_narrow(LaSearchKey *key, Page page, LaBounds *b, OffsetNumber middle)
{
	bool		truncate = (key->options & LA_SEARCH_TRUNCATE) != 0;
	int			from = truncate ? Min(b->low_equal, b->high_equal) : 0;
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
