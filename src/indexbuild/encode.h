/*
 * encode.h
 *	  One column of a normalized key.
 *
 * See encode.c.  The encodings that are short and frequent are here, to be inlined into
 * normalizedkey.c's loop over the columns.
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
	LA_ENCODE_DICTIONARY,		/* any type, by the codes of a dictionary */
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

/* The longest code of fixed length, and the byte that distinguishes it from null. */
#define LA_ENCODE_NULL_SIZE (16 + 1)

typedef struct LaEncoder
{
	LaEncoding	encoding;
	bool		null_high;		/* null is the greatest, not the smallest */
	uint64		flip;			/* all ones if descending, else 0 */
	uint64		extreme;		/* the code that begins like null's: all ones,
								 * or 0 */
	int			null_length;
	uint8		null_code[LA_ENCODE_NULL_SIZE]; /* already inverted by flip */
} LaEncoder;

/* A buffer for codes.  Those that do not fit are counted in `length`, but not written. */
typedef struct LaEncodeBuffer
{
	uint8	   *to;
	int64		space;
	int64		length;
	bool		no_code;		/* a value has none */
} LaEncodeBuffer;

extern void la_encode_init(LaEncoder *e, LaEncoding encoding, int option);
extern void la_encode_fixed(const LaEncoder *e, const uint8 *code, int n, LaEncodeBuffer *o);
extern void la_encode_by_bytes(const LaEncoder *e, const uint8 *bytes, int n,
							   LaEncodeBuffer *o);
extern void la_encode_other(const LaEncoder *e, Datum value, LaEncodeBuffer *o);

static inline void
la_encode_null(const LaEncoder *e, LaEncodeBuffer *o)
{
	if (o->length + e->null_length <= o->space)
		memcpy(o->to + o->length, e->null_code, e->null_length);
	o->length += e->null_length;
}

/* An unsigned integer of n bytes. */
static inline void
la_encode_uint(const LaEncoder *e, uint64 v, int n, LaEncodeBuffer *o)
{
	int			unused = 64 - 8 * n;
	uint64		code = pg_hton64((v ^ e->flip) << unused);

	if (likely(v != e->extreme >> unused && o->length + n <= o->space))
	{
		memcpy(o->to + o->length, &code, n);
		o->length += n;
		return;
	}
	code = pg_hton64(v << unused);
	la_encode_fixed(e, (const uint8 *) &code, n, o);
}

/* 16 bytes as they are. */
static inline void
la_encode_uuid(const LaEncoder *e, const uint8 *bytes, LaEncodeBuffer *o)
{
	uint64		w[2];

	memcpy(w, bytes, 16);
	if (likely(w[0] != e->extreme && o->length + 16 <= o->space))
	{
		w[0] ^= e->flip;
		w[1] ^= e->flip;
		memcpy(o->to + o->length, w, 16);
		o->length += 16;
		return;
	}
	la_encode_fixed(e, bytes, 16, o);
}

/* Is one of these eight bytes 0 or 1, which have to be escaped? */
static inline bool
la_encode_escapes(uint64 w)
{
	const uint64 ones = UINT64CONST(0x0101010101010101);

	return ((w - 2 * ones) & ~w & (0x80 * ones)) != 0;
}

/*
 * A string of bytes, copied by words unless one has to be escaped.  The store of the last word
 * may go seven bytes beyond the end, for which there must be space.
 */
static inline void
la_encode_bytes(const LaEncoder *e, const uint8 *bytes, int n, LaEncodeBuffer *o)
{
#ifndef WORDS_BIGENDIAN
	uint8	   *to = o->to + o->length;
	const uint8 *from = bytes;
	int			rest = n;
	uint64		w,
				flipped;

	if (unlikely(n == 0 || bytes[0] == 0xFF || o->length + n + 8 > o->space))
		goto by_bytes;
	while (rest >= 8)
	{
		memcpy(&w, from, 8);
		if (unlikely(la_encode_escapes(w)))
			goto by_bytes;
		w ^= e->flip;
		memcpy(to, &w, 8);
		from += 8;
		to += 8;
		rest -= 8;
	}

	/* the last bytes in the low part of a word, and zeros, the terminator */
	if (n >= 8)
	{
		/* the eight bytes before (from + rest) are in the value */
		memcpy(&w, from + rest - 8, 8);
		w = rest > 0 ? w >> (8 * (8 - rest)) : 0;
	}
	else if (rest >= 4)
	{
		uint32		low,
					high;

		memcpy(&low, from, 4);
		memcpy(&high, from + rest - 4, 4);
		w = (uint64) low | (uint64) high << (8 * (rest - 4));
	}
	else
	{
		/* one, two or three: the first, the middle one and the last */
		w = (uint64) from[0] |
			(uint64) from[rest >> 1] << (8 * (rest >> 1)) |
			(uint64) from[rest - 1] << (8 * (rest - 1));
	}
	/* the zeros do not count */
	if (unlikely(la_encode_escapes(w | ~UINT64CONST(0) << (8 * rest))))
		goto by_bytes;
	flipped = w ^ e->flip;
	memcpy(to, &flipped, 8);
	o->length += n + 1;
	return;

by_bytes:
#endif
	la_encode_by_bytes(e, bytes, n, o);
}

#endif							/* LA_ENCODE_H */
