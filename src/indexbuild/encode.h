/*
 * encode.h
 *	  One column of a sort key.
 *
 * See encode.c.  What is called for each row and is short is here, to be inlined
 * into normalizedkey.c's loop.
 *
 * src/indexbuild/encode.h
 */
#ifndef LA_ENCODE_H
#define LA_ENCODE_H

#include "port/pg_bswap.h"

typedef enum LaEncoding
{
	/* of a fixed length, passed by value where its type is */
	LA_ENCODE_BOOL,
	LA_ENCODE_CHAR,
	LA_ENCODE_INT16,
	LA_ENCODE_INT32,
	LA_ENCODE_INT64,
	LA_ENCODE_UINT32,
	LA_ENCODE_UINT64,
	LA_ENCODE_RANK,				/* any type, by numbers for its values */
	LA_ENCODE_ENUM,
	LA_ENCODE_FLOAT4,
	LA_ENCODE_FLOAT8,
	/* of a fixed length, passed by reference */
	LA_ENCODE_UUID,
	LA_ENCODE_MACADDR,
	LA_ENCODE_MACADDR8,
	LA_ENCODE_TID,
	LA_ENCODE_TIMETZ,
	LA_ENCODE_INTERVAL,
	/* of any length */
	LA_ENCODE_NAME,
	LA_ENCODE_BYTES,
	LA_ENCODE_BLANK_PADDED,
	LA_ENCODE_BITS,
	LA_ENCODE_NUMERIC,
	LA_ENCODE_INET,
	LA_ENCODE_OIDVECTOR
} LaEncoding;

/* of a rank: its whole number and its fraction */
#define LA_RANK_LENGTH	(4 + 8)

/* the longest code of fixed length, and the byte that tells it from null */
#define LA_ENCODE_NULL_ROOM (16 + 1)

typedef struct LaEncoder
{
	LaEncoding	encoding;
	bool		null_high;		/* null is the greatest, not the smallest */
	uint64		flip;			/* all ones if descending, else 0 */
	uint64		extreme;		/* the code that null shares: all ones, or 0 */
	int			null_length;
	uint8		null_code[LA_ENCODE_NULL_ROOM]; /* flipped already */
} LaEncoder;

/*
 * Where a code goes.  Codes that do not fit into `room` are counted in `length`, but
 * not written.
 */
typedef struct LaEncodeTo
{
	uint8	   *to;
	int64		room;
	int64		length;
	bool		given_up;		/* a value has no code */
} LaEncodeTo;

extern void la_encode_init(LaEncoder *e, LaEncoding encoding, bool desc,
						   bool nulls_first);
extern void la_encode_fixed(const LaEncoder *e, const uint8 *code, int n,
							LaEncodeTo *o);
extern void la_encode_bytes_slowly(const LaEncoder *e, const uint8 *bytes,
								   int n, LaEncodeTo *o);
extern void la_encode_other(const LaEncoder *e, Datum value, LaEncodeTo *o);

/* Null. */
static inline void
la_encode_null(const LaEncoder *e, LaEncodeTo *o)
{
	if (o->length + e->null_length <= o->room)
		memcpy(o->to + o->length, e->null_code, e->null_length);
	o->length += e->null_length;
}

/* Unsigned integers of 16, 32 and 64 bits. */
static inline void
la_encode_uint16(const LaEncoder *e, uint16 v, LaEncodeTo *o)
{
	uint16		big = pg_hton16(v ^ (uint16) e->flip);

	if (likely(v != (uint16) e->extreme && o->length + 2 <= o->room))
	{
		memcpy(o->to + o->length, &big, 2);
		o->length += 2;
		return;
	}
	big = pg_hton16(v);
	la_encode_fixed(e, (const uint8 *) &big, 2, o);
}

static inline void
la_encode_uint32(const LaEncoder *e, uint32 v, LaEncodeTo *o)
{
	uint32		big = pg_hton32(v ^ (uint32) e->flip);

	if (likely(v != (uint32) e->extreme && o->length + 4 <= o->room))
	{
		memcpy(o->to + o->length, &big, 4);
		o->length += 4;
		return;
	}
	big = pg_hton32(v);
	la_encode_fixed(e, (const uint8 *) &big, 4, o);
}

static inline void
la_encode_uint64(const LaEncoder *e, uint64 v, LaEncodeTo *o)
{
	uint64		big = pg_hton64(v ^ e->flip);

	if (likely(v != e->extreme && o->length + 8 <= o->room))
	{
		memcpy(o->to + o->length, &big, 8);
		o->length += 8;
		return;
	}
	big = pg_hton64(v);
	la_encode_fixed(e, (const uint8 *) &big, 8, o);
}

/* 16 bytes as they are. */
static inline void
la_encode_uuid(const LaEncoder *e, const uint8 *bytes, LaEncodeTo *o)
{
	uint64		w[2];

	memcpy(w, bytes, 16);
	if (likely(w[0] != e->extreme && o->length + 16 <= o->room))
	{
		w[0] ^= e->flip;
		w[1] ^= e->flip;
		memcpy(o->to + o->length, w, 16);
		o->length += 16;
		return;
	}
	la_encode_fixed(e, bytes, 16, o);
}

/* Is one of these eight bytes 0 or 1? */
static inline bool
la_encode_escapes(uint64 w)
{
	const uint64 ones = UINT64CONST(0x0101010101010101);

	return ((w - 2 * ones) & ~w & (0x80 * ones)) != 0;
}

/*
 * Bytes, words at a time while none has to be escaped.  A store of the last word
 * may go seven bytes beyond the end, hence the room that is asked for.
 */
static inline void
la_encode_bytes(const LaEncoder *e, const uint8 *bytes, int n, LaEncodeTo *o)
{
#ifndef WORDS_BIGENDIAN
	uint8	   *to = o->to + o->length;
	const uint8 *from = bytes;
	int			left = n;
	uint64		w,
				flipped;

	if (unlikely(n == 0 || bytes[0] == 0xFF ||
				 o->length + n + 8 > o->room))
		goto slowly;
	while (left >= 8)
	{
		memcpy(&w, from, 8);
		if (unlikely(la_encode_escapes(w)))
			goto slowly;
		w ^= e->flip;
		memcpy(to, &w, 8);
		from += 8;
		to += 8;
		left -= 8;
	}

	/* the rest in the low bytes of a word, and zeros: the end */
	if (n >= 8)
	{
		/* (from + left) - 8 is in the value */
		memcpy(&w, from + left - 8, 8);
		w = left > 0 ? w >> (8 * (8 - left)) : 0;
	}
	else if (left >= 4)
	{
		uint32		low,
					high;

		memcpy(&low, from, 4);
		memcpy(&high, from + left - 4, 4);
		w = (uint64) low | (uint64) high << (8 * (left - 4));
	}
	else
	{
		/* one, two or three: the first, the middle one and the last */
		w = (uint64) from[0] |
			(uint64) from[left >> 1] << (8 * (left >> 1)) |
			(uint64) from[left - 1] << (8 * (left - 1));
	}
	/* without the zeros */
	if (unlikely(la_encode_escapes(w | ~UINT64CONST(0) << (8 * left))))
		goto slowly;
	flipped = w ^ e->flip;
	memcpy(to, &flipped, 8);
	o->length += n + 1;
	return;

slowly:
#endif
	la_encode_bytes_slowly(e, bytes, n, o);
}

#endif							/* LA_ENCODE_H */
