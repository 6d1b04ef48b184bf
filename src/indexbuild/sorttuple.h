/*
 * sorttuple.h
 *	  One row of an index that is being built, as it is sorted.
 *
 * It is stored in one piece:
 *
 *		LaSortTuple | normalized key | TID | zeros up to a multiple of 8 | index tuple
 *
 * The TID is six bytes, the most significant first.  No normalized key is a proper prefix
 * of another one (normalizedkey.c), so memcmp over key and TID orders rows as the index
 * does, by columns and then by heap TID; and no two rows of an index are equal.  The zeros
 * let the sort read whole words.
 *
 * src/indexbuild/sorttuple.h
 */
#ifndef LA_SORTTUPLE_H
#define LA_SORTTUPLE_H

#include "access/itup.h"
#include "port/pg_bswap.h"

#define LA_TID_LENGTH	6

/* So many sort tuples before its use, one is fetched into the CPU's cache. */
#define LA_SORTTUPLES_AHEAD	12

/* flags */
#define LA_SORTTUPLE_DEAD	0x01	/* must be indexed, but is not live */
#define LA_SORTTUPLE_NULL	0x02	/* a key column is null */

typedef struct LaSortTuple
{
	uint32		key_length;		/* with the TID */
	uint32		flags;
} LaSortTuple;

#define la_sorttuple_key(t)		((uint8 *) (t) + sizeof(LaSortTuple))
#define la_sorttuple_index_tuple(t) \
	((IndexTuple) (la_sorttuple_key(t) + TYPEALIGN(8, (t)->key_length)))

/* Eight bytes of the key, as a number. */
static inline uint64
la_sorttuple_word(const LaSortTuple *t, uint32 depth)
{
	uint64		word;

	if (depth >= t->key_length)
		return 0;
	memcpy(&word, la_sorttuple_key(t) + depth, sizeof(word));
	return pg_ntoh64(word);
}

/* How many bytes do two keys share, of which the first "from" are known to be shared? */
static inline uint32
la_sorttuple_common_prefix(const uint8 *a, uint32 a_length, const uint8 *b,
						   uint32 b_length, uint32 from)
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

#endif							/* LA_SORTTUPLE_H */
