/*
 * ginpage.c
 *	  Pages of a GIN index, which may be damaged.
 *
 * Pages are looked at that the server may not come to, because it fails before.  So nothing is
 * taken for granted that could lead out of a page.  The caller has the page locked.
 *
 * src/gin/ginpage.c
 */
#include "postgres.h"

#include "gin/gin.h"

#define MAX_CHILDREN	((int) (GinDataPageMaxDataSize / sizeof(PostingItem)))

/*
 * Does it have the layout of a page of a GIN index, with tuples that lie within it?  Of a damaged
 * one the special space could be anywhere.
 */
bool
la_ginpage_is_sound(Page page)
{
	const PageHeaderData *header = (const PageHeaderData *) page;

	if (PageIsNew(page) || PageGetPageSize(page) != BLCKSZ ||
		header->pd_special != BLCKSZ - MAXALIGN(sizeof(GinPageOpaqueData)) ||
		header->pd_lower < SizeOfPageHeaderData || header->pd_lower > header->pd_special)
		return false;
	if (GinPageIsData(page))
		return true;
	for (OffsetNumber i = FirstOffsetNumber; i <= PageGetMaxOffsetNumber(page); i++)
	{
		ItemId		item = PageGetItemId(page, i);

		if (!ItemIdIsNormal(item) ||
			!la_item_fits(item, sizeof(IndexTupleData), header->pd_special) ||
			IndexTupleSize((IndexTuple) ((char *) page + ItemIdGetOffset(item))) >
			ItemIdGetLength(item))
			return false;
	}
	return true;
}

/* The number of children that an inner page of a posting tree lists, or 0 if it is none. */
int
la_ginpage_count_children(Page page)
{
	if (!la_ginpage_is_sound(page) || GinPageIsDeleted(page) || !GinPageIsData(page) ||
		GinPageIsLeaf(page))
		return 0;
	return Min(GinPageGetOpaque(page)->maxoff, MAX_CHILDREN);
}

/*
 * The child, of an inner page of a posting tree, that holds the address; if that is invalid, the
 * leftmost.  The last one holds all that are greater.
 */
BlockNumber
la_ginpage_child_of(Page page, ItemPointer tid)
{
	int			low = FirstOffsetNumber;
	int			high = la_ginpage_count_children(page);

	if (high == 0)
		return InvalidBlockNumber;
	while (low < high && ItemPointerIsValid(tid))
	{
		int			middle = (low + high) / 2;

		if (ginCompareItemPointers(&GinDataPageGetPostingItem(page, middle)->key,
								   tid) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return PostingItemGetBlockNumber(GinDataPageGetPostingItem(page, low));
}
