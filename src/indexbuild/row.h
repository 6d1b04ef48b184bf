/*
 * row.h
 *	  One row of an index that is being built, in memory.
 *
 * The room's own.  A row is stored in one piece:
 *
 *		LaRow | key, TID, zeros up to a multiple of 8 | index tuple
 *
 * The key is that of normalizedkey.c, with the row's TID (six bytes, most significant
 * first) behind it.  No sort key is the beginning of another one, so memcmp over
 * the two decides as the index does: by columns, then by TID; and no two rows of
 * an index are equal.  The zeros let the sort read whole words.
 *
 * src/indexbuild/row.h
 */
#ifndef LA_ROW_H
#define LA_ROW_H

#include "access/itup.h"

#define LA_TID_LENGTH	6

/* how many rows ahead they are fetched into the CPU's cache */
#define LA_ROWS_AHEAD	12

/* flags */
#define LA_ROW_DEAD		0x01	/* to be indexed, but not live */
#define LA_ROW_NULL		0x02	/* a column of the key is null */

typedef struct LaRow
{
	uint32		key_length;		/* with the TID */
	uint32		flags;
} LaRow;

#define la_row_key(row)		((uint8 *) (row) + sizeof(LaRow))
#define la_row_tuple(row) \
	((IndexTuple) ((char *) (row) + sizeof(LaRow) + TYPEALIGN(8, (row)->key_length)))

/*
 * How many bytes have two keys in common, of which the first "from" are known to be?
 */
static inline uint32
la_common_prefix(const uint8 *a, uint32 a_length, const uint8 *b, uint32 b_length,
				 uint32 from)
{
	uint32		end = Min(a_length, b_length);

	while (from + sizeof(uint64) <= end)
	{
		uint64		x;
		uint64		y;

		memcpy(&x, a + from, sizeof(x));
		memcpy(&y, b + from, sizeof(y));
		if (x != y)
			break;
		from += sizeof(uint64);
	}
	while (from < end && a[from] == b[from])
		from++;
	return from;
}

#endif							/* LA_ROW_H */
