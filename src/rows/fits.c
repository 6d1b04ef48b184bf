/*
 * fits.c
 *	  Do the values of a row lie within it?
 *
 * A row whose lengths are damaged leads behind its page, and the server may never come to it.  So
 * whoever looks at values ahead of the server asks first.  What is in a value is left to the
 * functions of its type.
 *
 * src/rows/fits.c
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/tupmacs.h"

#include "base/base.h"
#include "rows/rows.h"

/* Where a varlena ends that begins before `end`; behind that, if it cannot be right. */
static const char *
end_of_varlena(const char *value, const char *end)
{
	if (VARATT_IS_EXTERNAL(value))
		return end - value >= (int) TOAST_POINTER_SIZE && VARTAG_EXTERNAL(value) == VARTAG_ONDISK ?
			value + TOAST_POINTER_SIZE : end + 1;
	return la_varlena_fits(value, end) ? value + VARSIZE_ANY(value) : end + 1;
}

/* Where a value ends that begins before `end`. */
static const char *
end_of_value(int length, const char *value, const char *end)
{
	const char *zero;

	if (length > 0)
		return value + length;
	if (length == -1)
		return end_of_varlena(value, end);
	zero = memchr(value, '\0', end - value);
	return zero != NULL ? zero + 1 : end + 1;
}

/* Do so many values that begin at data lie before `end`?  nulls is NULL if none is null. */
static bool
values_fit(TupleDesc desc, int natts, const char *data, const char *end, const uint8 *nulls)
{
	const char *value = data;

	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (nulls != NULL && att_isnull(i, nulls))
			continue;
		if (value >= end)
			return false;
		value = data + att_align_pointer(value - data, att->attalign, att->attlen, value);
		if (value >= end)
			return false;
		value = end_of_value(att->attlen, value, end);
	}
	return value <= end;
}

/* Of a row whose header is known to lie within it. */
bool
la_fits_row(const HeapTupleData *tuple, TupleDesc desc)
{
	HeapTupleHeader header = tuple->t_data;
	int			natts = HeapTupleHeaderGetNatts(header);
	bool		has_nulls = HeapTupleHasNulls(tuple);

	if (has_nulls && header->t_hoff < SizeofHeapTupleHeader + BITMAPLEN(natts))
		return false;
	return values_fit(desc, Min(natts, desc->natts), (const char *) header + header->t_hoff,
					  (const char *) header + tuple->t_len, has_nulls ? header->t_bits : NULL);
}

/* Of an index entry that has all columns, and lies where its size says. */
bool
la_fits_entry(IndexTuple tuple, TupleDesc desc)
{
	const char *data = (const char *) tuple + IndexInfoFindDataOffset(tuple->t_info);
	const char *end = (const char *) tuple + IndexTupleSize(tuple);

	return data <= end &&
		values_fit(desc, desc->natts, data, end, IndexTupleHasNulls(tuple) ?
				   (const uint8 *) (tuple + 1) : NULL);
}
