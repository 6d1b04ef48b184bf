/*
 * btree.h
 *	  What the room btree/ offers to others.
 *
 * src/btree/btree.h
 */
#ifndef LA_BTREE_H
#define LA_BTREE_H

#include "access/genam.h"
#include "access/itup.h"
#include "access/nbtree.h"
#include "fmgr.h"
#include "storage/buf.h"
#include "storage/itemptr.h"
#include "storage/off.h"
#include "utils/rel.h"

#include "base/base.h"
#include "window/leaf_policy.h"
#include "window/window.h"

/* ---- descent: finding the leaf page and the entries of a key in a stock btree index ---- */

/*
 * For rooms that know a key before the access method is asked for it.
 */

typedef struct LaDescent LaDescent;

/* The result of a search of the inner pages. */
typedef enum LaDescentResult
{
	LA_DESCENT_FOUND,
	LA_DESCENT_PENDING,			/* an inner page is not cached */
	LA_DESCENT_NOTHING			/* the index is empty, or is being changed */
} LaDescentResult;

/* The entries on a leaf page that equal the key, or are in its range. */
typedef struct LaMatches
{
	ItemPointerData *tids;		/* allocated by the caller: max of them */
	int			max;
	int			count;
	bool		complete;		/* there are no others, on no page */
} LaMatches;

extern LaDescent *la_descent_create(Relation index, Relation heap);
extern Size la_descent_size(void);
extern Size la_descent_end_size(void);
extern void la_descent_free(LaDescent *d);
extern bool la_descent_add_column(LaDescent *d, Oid subtype, Oid collation);
extern void la_descent_set_bound(LaDescent *d, bool strict);
extern bool la_descent_add_end(LaDescent *d, Oid subtype, Oid collation, bool strict);
extern Relation la_descent_index(const LaDescent *d);
extern int	la_descent_columns(const LaDescent *d);
extern bool la_descent_may_be_early(const LaDescent *d);
extern Oid	la_descent_comparison(const LaDescent *d, int column, Oid *type);
extern void la_descent_set(LaDescent *d, int column, Datum value);
extern bool la_descent_set_stored(LaDescent *d, int column, Datum value, bool is_varlena);
extern void la_descent_set_null(LaDescent *d, int column);
extern void la_descent_set_most(LaDescent *d, int most);
extern void la_descent_search_behind(LaDescent *d, bool behind);
extern void la_descent_search_backward(LaDescent *d);
extern void la_descent_issue(LaDescent *d, BlockNumber block);
extern LaDescentResult la_descent_find_leaf(LaDescent *d, bool may_wait,
											BlockNumber *leaf);
extern bool la_descent_search_leaf(LaDescent *d, Buffer *leaf,
								   OffsetNumber *position);
extern void la_descent_matches(LaDescent *d, Buffer leaf, OffsetNumber position,
							   bool skip_dead, LaMatches *matches);

/* ---- leafahead ---- */

/*
 * One for each scan, within the room's own record of it.  See leafahead.c.
 */

typedef struct LaLeafAhead
{
	Relation	index;
	IndexScanDesc scan;
	MemoryContext context;		/* of the ring; lives as long as the scan */
	LaBudget   *budget;
	LaCounters *counters;
	const LaIoPolicy *of_heap;	/* SHARE: heap blocks of the same scan, or
								 * NULL */
	bool		is_counted;		/* activation and distance are counted here */

	LaLeafPolicy policy;
	LaShare		share;
	LaSaving	saving;
	BlockNumber index_size;		/* see la_issue_exists() */
	int			nstarted;		/* OTHERS: pages not visited yet */
	struct LaLeafRing *ring;	/* NULL: not yet */

	/* the step in progress */
	BlockNumber previous;		/* page that it leaves, or InvalidBlockNumber */
	int64		reads;			/* blocks read when it began */
	double		start;			/* its time */
} LaLeafAhead;

/* Has nbtree found nothing on its page that ends the scan in this direction? */
static inline bool
la_leafahead_has_more(BTScanOpaque so, ScanDirection dir)
{
	return ScanDirectionIsForward(dir) ? so->currPos.moreRight : so->currPos.moreLeft;
}

extern void la_leafahead_init(LaLeafAhead *la, Relation index, IndexScanDesc scan,
							  MemoryContext context, LaBudget *budget, LaCounters *counters);
extern bool la_leafahead_issue_page(LaLeafAhead *la, BlockNumber page);
extern int	la_leafahead_limit(LaLeafAhead *la);
extern void la_leafahead_issue(LaLeafAhead *la, ScanDirection dir, int64 rows_wanted);
extern void la_leafahead_begin(LaLeafAhead *la, ScanDirection dir, int64 rows_wanted,
							   int64 reads);
extern void la_leafahead_begin_step(LaLeafAhead *la);
extern void la_leafahead_end_step(LaLeafAhead *la, bool found, ScanDirection dir,
								  int64 rows_wanted);
extern void la_leafahead_rescan(LaLeafAhead *la, bool ended_early);
extern void la_leafahead_free(LaLeafAhead *la);

/* ---- searchkey ---- */

/* How a column is compared. */
typedef enum LaCompareKind
{
	LA_COMPARE_FUNCTION,
	LA_COMPARE_INT16,
	LA_COMPARE_INT32,
	LA_COMPARE_INT64,
	LA_COMPARE_OID,
	LA_COMPARE_UUID,
	LA_COMPARE_BYTES			/* varlena, by memcmp and length */
} LaCompareKind;

typedef struct LaSearchKeyColumn
{
	/* of the index's column */
	int16		length;
	bool		byval;
	char		align;
	int			offset;			/* in the tuple's data if no column before it
								 * is null, or -1 */

	/* of the key */
	LaCompareKind kind;
	bool		desc;
	bool		nulls_first;
	Oid			collation;
	FmgrInfo	function;
	bool		isnull;
	Datum		value;
	int64		integer;		/* the value, if it is an integer */
	const char *bytes;			/* the same for a UUID or for bytes */
	int			nbytes;
} LaSearchKeyColumn;

typedef struct LaSearchKey
{
	MemoryContext context;		/* of what comparison functions allocate */
	Relation	index;
	bool		heapkeyspace;
	int			ncolumns;		/* of the key */
	ItemPointer tid;			/* the heap TID behind them, or NULL */
	bool		damaged;		/* it was compared with a tuple that is
								 * damaged */
	LaSearchKeyColumn columns[INDEX_MAX_KEYS];
} LaSearchKey;

/* What takes the place of a damaged tuple: a pivot tuple without columns. */
extern const IndexTupleData la_no_entry;

extern void la_searchkey_init(LaSearchKey *k, Relation index, MemoryContext context);
extern bool la_searchkey_add_column(LaSearchKey *k, Oid subtype, Oid collation);
extern bool la_searchkey_may_be_early(const LaSearchKey *k, int column);
extern Oid	la_searchkey_comparison(const LaSearchKey *k, int column, Oid *type);
extern void la_searchkey_set(LaSearchKey *k, int column, Datum value);
extern void la_searchkey_set_null(LaSearchKey *k, int column);
extern bool la_searchkey_fits(const LaSearchKey *k, IndexTuple tuple);
extern int	la_searchkey_compare(LaSearchKey *k, IndexTuple tuple, int from, int *equal);

/* ---- page: searching one page of a stock btree index ---- */

/*
 * A binary search knows how many leading columns of the key equal those of its lower bound,
 * and how many equal those of its upper one.  All tuples between the bounds share the smaller
 * number of columns with the key, since tuples are sorted, and comparison begins behind these
 * (TRUNCATE in descent.c's header):
 *
 * 	less than the key | not compared yet | not less
 * 				   low ^				  ^ high
 * 	 low_equal columns of				   high_equal columns of the
 * 	 the tuple before low equal			   tuple at high equal
 *
 * The caller keeps the page locked, or has a copy of it.
 *
 * A page may be damaged, and the server may never come to it, or fail before it does.  So nothing
 * is taken for granted that could lead out of the page: its header is checked once
 * (la_page_is_unusable()), a line pointer and what it points to whenever a tuple is fetched, and
 * a tuple's attributes when they are compared (searchkey.c).  A tuple that cannot be as it is,
 * is replaced by la_no_entry, which has no columns, no downlink and no heap TID; comparing it sets
 * the key's `damaged`, and what was found is then worth nothing.
 */

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

#endif							/* LA_BTREE_H */
