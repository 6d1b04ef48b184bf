/*
 * bounds.h
 *	  Does what a page says of itself lie within it?
 *
 * A page that is looked at ahead of the server may be damaged, and the server may never come to
 * it.  So nothing is followed that could lead out of it.
 *
 * src/base/bounds.h
 */
#ifndef LA_BOUNDS_H
#define LA_BOUNDS_H

#include "storage/bufpage.h"

#include "base/compat.h"

/* Does a line pointer lead to so many bytes at least, before `end` of the page? */
static inline bool
la_item_fits(ItemId item, Size least, Size end)
{
	Size		begin = ItemIdGetOffset(item);

	return begin >= SizeOfPageHeaderData && begin == MAXALIGN(begin) &&
		ItemIdGetLength(item) >= least && begin + ItemIdGetLength(item) <= end;
}

/* Does a varlena that is not stored out of line lie before `end`? */
static inline bool
la_varlena_fits(const char *value, const char *end)
{
	Size		room = end - value;

	if (value >= end || VARATT_IS_EXTERNAL(value))
		return false;
	if (VARATT_IS_SHORT(value))
		return VARSIZE_SHORT(value) <= room;
	return room >= VARHDRSZ && VARSIZE_4B(value) >= VARHDRSZ &&
		VARSIZE_4B(value) <= room &&
		(!VARATT_IS_COMPRESSED(value) || VARSIZE_4B(value) >= VARHDRSZ_COMPRESSED);
}

#endif							/* LA_BOUNDS_H */
