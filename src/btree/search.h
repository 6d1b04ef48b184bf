/*
 * search.h
 *	  Searching one page of a stock btree index.
 *
 * A binary search knows how many leading columns of the key equal its lower bound and how
 * many its upper one.  Everything between them has the smaller of both in common with the
 * key, since tuples are sorted, and comparison begins behind it (TRUNCATE, in descent.c):
 *
 *		 smaller than the key | not compared yet |  not smaller
 *		                   low ^                  ^ high
 *		 low_equal columns of                      high_equal columns of the
 *		 the one before low equal                  one at high equal
 *
 * The caller keeps the page locked, or has a copy of it.
 *
 * src/btree/search.h
 */
#ifndef LA_SEARCH_H
#define LA_SEARCH_H

#include "access/nbtree.h"

#include "btree/descent.h"
#include "btree/searchkey.h"

/* How far a search of a page has come. */
typedef struct LaBounds
{
	OffsetNumber low;			/* everything before it is smaller than the
								 * key */
	OffsetNumber high;			/* it and everything behind are not */
	int			low_equal;		/* so many columns of what is before low, */
	int			high_equal;		/* and of what is at high equal the key */
	bool		exact;			/* what is at high equals it in all */
} LaBounds;

static inline IndexTuple
la_page_tuple(Page page, OffsetNumber offset)
{
	return (IndexTuple) PageGetItem(page, PageGetItemId(page, offset));
}

/* A page without a right sibling that is being deleted, or no page of a btree. */
static inline bool
la_page_is_lost(Page page)
{
	return PageIsNew(page) ||
		PageGetSpecialSize(page) != MAXALIGN(sizeof(BTPageOpaqueData)) ||
		(P_RIGHTMOST(BTPageGetOpaque(page)) && P_IGNORE(BTPageGetOpaque(page)));
}

/* Compare one more tuple of the page, between the bounds. */
static inline void
la_search_narrow(LaSearchKey *key, Page page, LaBounds *b, OffsetNumber middle)
{
	bool		truncate = (key->options & LA_DESCENT_TRUNCATE) != 0;
	int			from = truncate ? Min(b->low_equal, b->high_equal) : 0;
	int			equal;
	int			result;

	result = la_key_compare(key, la_page_tuple(page, middle), from, &equal);
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

/*
 * The first tuple of the page between the bounds that is not smaller than the
 * key: both bounds then are there.
 */
static inline OffsetNumber
la_search_page(LaSearchKey *key, Page page, LaBounds *b)
{
	while (b->low < b->high)
		la_search_narrow(key, page, b, b->low + (b->high - b->low) / 2);
	return b->low;
}

/* The bounds around a position near which that tuple is likely to be. */
static inline void
la_search_from(LaSearchKey *key, Page page, LaBounds *b, OffsetNumber position)
{
	OffsetNumber step = 1;

	if (position < b->low || position >= b->high)
		return;
	la_search_narrow(key, page, b, position);
	if (b->high == position)
	{
		for (; b->low + step < b->high; step *= 2)
		{
			OffsetNumber probe = b->high - step;

			la_search_narrow(key, page, b, probe);
			if (b->high != probe)
				return;
		}
	}
	else
	{
		for (; b->low + step < b->high; step *= 2)
		{
			OffsetNumber probe = b->low + step;

			la_search_narrow(key, page, b, probe);
			if (b->high == probe)
				return;
		}
	}
}

#endif							/* LA_SEARCH_H */
