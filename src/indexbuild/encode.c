/*
 * encode.c
 *	  One column of a normalized key: values as codes that memcmp orders.
 *
 * What follows describes the codes of an ascending column.  In a descending one each byte is
 * inverted (`flip`).
 *
 * Invariants, for the codes of one column
 *	- Codes compare as the values do by the operator class's function.
 *	- Values have the same code if and only if they are equal by it.
 *	- No code is a proper prefix of another one.  So the order of keys is that of their first
 *	  codes that differ, whatever follows, and inverting all bytes inverts the order.
 *	- Null is greater than all values (null_high) or less than all of them: greater unless
 *	  it comes first, and the reverse if descending.
 *
 * No byte in front says whether a value is null, which would make all keys longer.  Instead null
 * has a code that hardly any value has, and a value that has it gets one more byte, as null does:
 *
 *					null is greatest			null is least
 *		fixed		FF FF FF FF | 01	null	00 00 00 00 | 00
 *					FF FF FF FF | 00	value	00 00 00 00 | 01
 *		bytes		FF | 01				null	00 | 00
 *					FF | 00 | ... 00	value	00 | 01			(of no bytes)
 *		others		FF					null	00
 *
 * Fixed length
 *	Integers: the most significant byte first, the sign inverted.  Floating point: all
 *	bits inverted if negative, else the sign; -0 is 0, and all NaNs are one that is positive
 *	and hence above infinity.  Intervals: days, of which a month has 30, rounded down, and
 *	microseconds, 40 bits each, so that intervals of one span have one code.  Times with time
 *	zone: the time in UTC, then the zone.
 *
 * Bytes (text compared by bytes, bytea)
 *	The bytes, then 00.  Among them 00 becomes 01 01, and 01 becomes 01 02, so that all that
 *	continues is greater than the end.  Text hardly ever has these two, and is copied by
 *	words.  A bit string: its bytes, then how many bits of the last one it has.
 *
 * Numeric
 *	One byte for the sign and the weight of the first digit (to the base 10000), if that is from
 *	-59 to 60; otherwise four more for the weight.  Then two bytes for each digit up to the last
 *	that is not 0: twice the digit, and 1 if there are more.  All inverted if negative.
 *
 *		02 -inf | 05 ... 7E negative | 80 zero | 81 ... FA positive | FD inf | FE NaN
 *
 * Inet, cidr
 *	The family, the network with zeros after it, the number of its bits, and the address,
 *	if it has bits that the network does not have.
 *
 * src/indexbuild/encode.c
 */
#include "postgres.h"

#include <math.h>
#include <sys/socket.h>

#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "storage/itemptr.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/timestamp.h"
#include "utils/varbit.h"

#include "indexbuild/indexbuild_int.h"

#define BYTE_END		0x00
#define BYTE_ESCAPE		0x01

/* First bytes of numerics. */
#define NUMERIC_CODE_NEGATIVE_INFINITY	0x02
#define NUMERIC_CODE_ZERO				0x80
#define NUMERIC_CODE_LOW				0x81
#define NUMERIC_CODE_FIRST				0x82
#define NUMERIC_CODE_HIGH				0xFA
#define NUMERIC_CODE_INFINITY			0xFD
#define NUMERIC_CODE_NAN				0xFE
#define NUMERIC_WEIGHT_FIRST			(-59)

/* How a numeric is stored: the bits of its first word. */
#define NUMERIC_FORMAT(h)		((h) & 0xC000)
#define NUMERIC_FORMAT_LONG_NEGATIVE	0x4000
#define NUMERIC_FORMAT_SHORT			0x8000
#define NUMERIC_FORMAT_SPECIAL			0xC000
#define NUMERIC_SPECIAL_BITS	0xF000
#define NUMERIC_SPECIAL_NAN		0xC000
#define NUMERIC_SPECIAL_INFINITY	0xD000
#define NUMERIC_SHORT_NEGATIVE	0x2000
#define NUMERIC_SHORT_WEIGHT(h) ((int) ((h) & 0x3F) - (int) ((h) & 0x40))

/* The length of the code of a type of fixed length, else 0. */
static int
fixed_length(LaEncoding encoding)
{
	switch (encoding)
	{
		case LA_ENCODE_BOOL:
		case LA_ENCODE_CHAR:
			return 1;
		case LA_ENCODE_INT16:
			return 2;
		case LA_ENCODE_INT32:
		case LA_ENCODE_UINT32:
		case LA_ENCODE_ENUM:
		case LA_ENCODE_FLOAT4:
			return 4;
		case LA_ENCODE_MACADDR:
		case LA_ENCODE_TID:
			return 6;
		case LA_ENCODE_INT64:
		case LA_ENCODE_UINT64:
		case LA_ENCODE_FLOAT8:
		case LA_ENCODE_MACADDR8:
			return 8;
		case LA_ENCODE_INTERVAL:
			return 10;
		case LA_ENCODE_TIMETZ:
		case LA_ENCODE_DICTIONARY:
			return 12;
		case LA_ENCODE_UUID:
			return 16;
		default:
			return 0;
	}
}

static bool
is_of_bytes(LaEncoding encoding)
{
	return encoding == LA_ENCODE_NAME || encoding == LA_ENCODE_BYTES ||
		encoding == LA_ENCODE_BLANK_PADDED || encoding == LA_ENCODE_BITS;
}

/* Set up the encoder of a column with this indoption. */
void
la_encode_init(LaEncoder *e, LaEncoding encoding, int option)
{
	int			n = fixed_length(encoding);
	bool		desc = (option & INDOPTION_DESC) != 0;
	bool		nulls_first = (option & INDOPTION_NULLS_FIRST) != 0;

	memset(e, 0, sizeof(*e));
	e->encoding = encoding;
	e->null_high = nulls_first == desc;
	e->flip = desc ? ~UINT64CONST(0) : 0;
	e->extreme = e->null_high ? ~UINT64CONST(0) : 0;

	/* see the table above */
	e->null_length = n > 0 ? n + 1 : is_of_bytes(encoding) ? 2 : 1;
	memset(e->null_code, e->null_high ? 0xFF : 0x00, e->null_length);
	if (e->null_length > 1)
		e->null_code[e->null_length - 1] = e->null_high ? 0x01 : 0x00;
	for (int i = 0; i < e->null_length; i++)
		e->null_code[i] ^= (uint8) e->flip;
}

static inline void
put_byte(const LaEncoder *e, uint8 byte, LaEncodeBuffer *o)
{
	if (o->length < o->space)
		o->to[o->length] = byte ^ (uint8) e->flip;
	o->length++;
}

static void
put(const LaEncoder *e, const uint8 *bytes, int n, LaEncodeBuffer *o)
{
	if (o->length + n <= o->space)
	{
		uint8	   *to = o->to + o->length;

		for (int i = 0; i < n; i++)
			to[i] = bytes[i] ^ (uint8) e->flip;
	}
	o->length += n;
}

/* A code of fixed length, with one more byte if null's begins like it. */
void
la_encode_fixed(const LaEncoder *e, const uint8 *code, int n, LaEncodeBuffer *o)
{
	int			i = 0;

	put(e, code, n, o);
	while (i < n && code[i] == (uint8) e->extreme)
		i++;
	if (i == n)
		put_byte(e, e->null_high ? 0x00 : 0x01, o);
}

/* The same as la_encode_bytes(), byte by byte, with bytes escaped and space checked. */
void
la_encode_by_bytes(const LaEncoder *e, const uint8 *bytes, int n, LaEncodeBuffer *o)
{
	if (n == 0)
	{
		put_byte(e, BYTE_END, o);
		if (!e->null_high)
			put_byte(e, 0x01, o);
		return;
	}
	for (int i = 0; i < n; i++)
	{
		if (unlikely(bytes[i] <= BYTE_ESCAPE))
		{
			put_byte(e, BYTE_ESCAPE, o);
			put_byte(e, bytes[i] + 1, o);
		}
		else
		{
			put_byte(e, bytes[i], o);
			if (i == 0 && bytes[i] == 0xFF && e->null_high)
				put_byte(e, 0x00, o);
		}
	}
	put_byte(e, BYTE_END, o);
}

static void
encode_float4(const LaEncoder *e, float4 f, LaEncodeBuffer *o)
{
	uint32		bits;

	if (unlikely(isnan(f)))
		bits = 0x7FC00000;
	else if (f == 0)
		bits = 0;
	else
		memcpy(&bits, &f, 4);
	la_encode_uint(e, bits & 0x80000000 ? ~bits : bits | 0x80000000, 4, o);
}

static void
encode_float8(const LaEncoder *e, float8 f, LaEncodeBuffer *o)
{
	const uint64 sign = UINT64CONST(0x8000000000000000);
	uint64		bits;

	if (unlikely(isnan(f)))
		bits = UINT64CONST(0x7FF8000000000000);
	else if (f == 0)
		bits = 0;
	else
		memcpy(&bits, &f, 8);
	la_encode_uint(e, bits & sign ? ~bits : bits | sign, 8, o);
}

static void
encode_timetz(const LaEncoder *e, const TimeTzADT *t, LaEncodeBuffer *o)
{
	uint64		time = (uint64) (t->time + t->zone * USECS_PER_SEC);
	uint32		zone = (uint32) t->zone;
	uint8		code[12];

	time = pg_hton64(time ^ UINT64CONST(0x8000000000000000));
	zone = pg_hton32(zone ^ 0x80000000);
	memcpy(code, &time, 8);
	memcpy(code + 8, &zone, 4);
	la_encode_fixed(e, code, 12, o);
}

/*
 * The days are within 2^37 in any case.  Infinite intervals, since 17, have the extremes of
 * all three fields and so need no case of their own.
 */
static void
encode_interval(const LaEncoder *e, const Interval *v, LaEncodeBuffer *o)
{
	int64		days = v->time / USECS_PER_DAY;
	int64		rest = v->time % USECS_PER_DAY;
	uint64		w;
	uint8		code[10];

	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		days--;
	}
	days += v->month * INT64CONST(30) + v->day;
	w = pg_hton64((uint64) (days + (INT64CONST(1) << 39)) << 24);
	memcpy(code, &w, 5);
	w = pg_hton64((uint64) rest << 24);
	memcpy(code + 5, &w, 5);
	la_encode_fixed(e, code, 10, o);
}

static void
encode_tid(const LaEncoder *e, ItemPointer tid, LaEncodeBuffer *o)
{
	uint32		block = pg_hton32(ItemPointerGetBlockNumberNoCheck(tid));
	uint16		offset = pg_hton16(ItemPointerGetOffsetNumberNoCheck(tid));
	uint8		code[6];

	memcpy(code, &block, 4);
	memcpy(code + 4, &offset, 2);
	la_encode_fixed(e, code, 6, o);
}

static int
length_without_blanks(const uint8 *bytes, int n)
{
	while (n > 0 && bytes[n - 1] == ' ')
		n--;
	return n;
}

/* After the varlena header: the number of bits, and the bytes. */
static void
encode_bits(const LaEncoder *e, const uint8 *data, int n, LaEncodeBuffer *o)
{
	int32		bits;

	memcpy(&bits, data, VARBITHDRSZ);
	n -= VARBITHDRSZ;
	la_encode_bytes(e, data + VARBITHDRSZ, n, o);
	put_byte(e, (uint8) (n == 0 ? 0 : bits - (n - 1) * BITS_PER_BYTE), o);
}

static inline uint16
word_at(const uint8 *data)
{
	uint16		w;

	memcpy(&w, data, 2);
	return w;
}

/* A finite number.  If it is negative, all bytes are inverted once more. */
static void
encode_digits(const LaEncoder *e, bool negative, int weight,
			  const uint8 *digits, int n, LaEncodeBuffer *o)
{
	LaEncoder	inverse;

	/* stored numerics have no such zeros, but the comparison ignores them */
	while (n > 0 && word_at(digits) == 0)
	{
		digits += 2;
		n--;
		weight--;
	}
	while (n > 0 && word_at(digits + 2 * (n - 1)) == 0)
		n--;
	if (n == 0)
	{
		put_byte(e, NUMERIC_CODE_ZERO, o);
		return;
	}

	if (negative)
	{
		inverse = *e;
		inverse.flip = ~e->flip;
		e = &inverse;
	}
	if (likely(weight >= NUMERIC_WEIGHT_FIRST &&
			   weight - NUMERIC_WEIGHT_FIRST < NUMERIC_CODE_HIGH - NUMERIC_CODE_FIRST))
		put_byte(e, (uint8) (NUMERIC_CODE_FIRST + weight - NUMERIC_WEIGHT_FIRST), o);
	else
	{
		uint32		big = pg_hton32((uint32) weight ^ 0x80000000);

		put_byte(e, weight < 0 ? NUMERIC_CODE_LOW : NUMERIC_CODE_HIGH, o);
		put(e, (const uint8 *) &big, 4, o);
	}
	for (int i = 0; i < n; i++)
	{
		uint16		code = (uint16) (word_at(digits + 2 * i) << 1 | (i < n - 1));

		put_byte(e, code >> 8, o);
		put_byte(e, code & 0xFF, o);
	}
}

static void
encode_numeric(const LaEncoder *e, const uint8 *data, int n, LaEncodeBuffer *o)
{
	uint16		header = word_at(data);

	switch (NUMERIC_FORMAT(header))
	{
		case NUMERIC_FORMAT_SPECIAL:
			header &= NUMERIC_SPECIAL_BITS;
			put_byte(e, header == NUMERIC_SPECIAL_NAN ? NUMERIC_CODE_NAN :
					 header == NUMERIC_SPECIAL_INFINITY ? NUMERIC_CODE_INFINITY :
					 NUMERIC_CODE_NEGATIVE_INFINITY, o);
			break;
		case NUMERIC_FORMAT_SHORT:
			encode_digits(e, (header & NUMERIC_SHORT_NEGATIVE) != 0,
						  NUMERIC_SHORT_WEIGHT(header), data + 2, (n - 2) / 2, o);
			break;
		default:
			encode_digits(e, NUMERIC_FORMAT(header) == NUMERIC_FORMAT_LONG_NEGATIVE,
						  (int16) word_at(data + 2), data + 4, (n - 4) / 2, o);
			break;
	}
}

static void
encode_inet(const LaEncoder *e, const inet_struct *v, LaEncodeBuffer *o)
{
	int			size = v->family == PGSQL_AF_INET ? 4 : 16;
	int			bits = Min(v->bits, size * BITS_PER_BYTE);
	uint8		code[2 + 16];

	code[0] = v->family;
	memset(code + 1, 0, size);
	memcpy(code + 1, v->ipaddr, (bits + 7) / 8);
	if (bits % 8 != 0)
		code[1 + bits / 8] &= (uint8) (0xFF << (8 - bits % 8));
	code[1 + size] = (uint8) bits;
	put(e, code, size + 2, o);
	if (bits < size * BITS_PER_BYTE)
		put(e, v->ipaddr, size, o);
}

static void
encode_oidvector(const LaEncoder *e, const oidvector *v, LaEncodeBuffer *o)
{
	uint32		big = pg_hton32((uint32) v->dim1 ^ 0x80000000);

	put(e, (const uint8 *) &big, 4, o);
	for (int i = 0; i < v->dim1; i++)
	{
		big = pg_hton32(v->values[i]);
		put(e, (const uint8 *) &big, 4, o);
	}
}

static void
encode_varlena(const LaEncoder *e, struct varlena *v, LaEncodeBuffer *o)
{
	const uint8 *data = (const uint8 *) VARDATA_ANY(v);
	int			n = VARSIZE_ANY_EXHDR(v);

	switch (e->encoding)
	{
		case LA_ENCODE_BYTES:
			la_encode_bytes(e, data, n, o);
			break;
		case LA_ENCODE_BLANK_PADDED:
			la_encode_bytes(e, data, length_without_blanks(data, n), o);
			break;
		case LA_ENCODE_BITS:
			encode_bits(e, data, n, o);
			break;
		case LA_ENCODE_NUMERIC:
			encode_numeric(e, data, n, o);
			break;
		case LA_ENCODE_INET:
			/* of bytes only, so it needs no alignment */
			encode_inet(e, (const inet_struct *) data, o);
			break;
		case LA_ENCODE_OIDVECTOR:
			/* never compressed, so it has no short header */
			encode_oidvector(e, (const oidvector *) v, o);
			break;
		default:
			elog(ERROR, "unexpected encoding %d", (int) e->encoding);
	}
}

/* A value of an encoding that normalizedkey.c's loop does not handle. */
void
la_encode_other(const LaEncoder *e, Datum value, LaEncodeBuffer *o)
{
	uint8		byte;

	switch (e->encoding)
	{
		case LA_ENCODE_BOOL:
			/* 00 and FF are the codes of null */
			byte = DatumGetBool(value) ? 2 : 1;
			la_encode_fixed(e, &byte, 1, o);
			break;
		case LA_ENCODE_CHAR:
			byte = (uint8) DatumGetChar(value);
			la_encode_fixed(e, &byte, 1, o);
			break;
		case LA_ENCODE_FLOAT4:
			encode_float4(e, DatumGetFloat4(value), o);
			break;
		case LA_ENCODE_FLOAT8:
			encode_float8(e, DatumGetFloat8(value), o);
			break;
		case LA_ENCODE_ENUM:
			/* a label added meanwhile, which does not compare by its OID */
			if (DatumGetObjectId(value) % 2 != 0)
				o->no_code = true;
			la_encode_uint(e, DatumGetObjectId(value), 4, o);
			break;
		case LA_ENCODE_MACADDR:
			la_encode_fixed(e, (const uint8 *) DatumGetPointer(value), 6, o);
			break;
		case LA_ENCODE_MACADDR8:
			la_encode_fixed(e, (const uint8 *) DatumGetPointer(value), 8, o);
			break;
		case LA_ENCODE_TID:
			encode_tid(e, (ItemPointer) DatumGetPointer(value), o);
			break;
		case LA_ENCODE_TIMETZ:
			encode_timetz(e, DatumGetTimeTzADTP(value), o);
			break;
		case LA_ENCODE_INTERVAL:
			encode_interval(e, DatumGetIntervalP(value), o);
			break;
		case LA_ENCODE_NAME:
			/* shorter than NAMEDATALEN in an index's own tuples */
			la_encode_bytes(e, (const uint8 *) DatumGetCString(value),
							strnlen(DatumGetCString(value), NAMEDATALEN), o);
			break;
		default:
			{
				struct varlena *v = (struct varlena *) DatumGetPointer(value);
				struct varlena *plain = pg_detoast_datum_packed(v);

				encode_varlena(e, plain, o);
				if (plain != v)
					pfree(plain);
				break;
			}
	}
}
