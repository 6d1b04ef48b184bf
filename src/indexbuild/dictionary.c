/*
 * dictionary.c
 *	  An order-preserving dictionary of a column's values.
 *
 * It is for columns whose order no string of bytes reproduces: text in the collations of libc and
 * ICU, arrays, ranges.  If they have few different values, each value gets a number that is
 * compared in its place.  The column's comparison function is called once per new value and step of
 * a binary search, not once per row and step of a sort.
 *
 * The set of values is not complete before the last row, and keys that have been written to a file
 * cannot be changed.  So a value gets its code when it first occurs, halfway between those of its
 * neighbours (order maintenance by labels: Dietz, "Maintaining Order in a Linked List", 1982):
 *
 *		... 'Bath' 7.5 ............ 'Leeds' 8.5 ............ 'York' 9.5 ...
 *		             'Derby' 8.0
 *
 * A code has 32 bits before its point and 64 after it.  A value below the first or above the last
 * one is a whole number away, so that values in order, as in a sorted table, do not halve what is
 * left each time.  Values in random order halve it as often as a random search tree is deep: some
 * 50 times for 300,000 of them.
 *
 *		bytes --- hash table ---> Value (bytes, code)
 *		                            ^
 *		[ segment ] [ segment ] ... of pointers, in order: binary search for new values
 *
 * Invariants
 *	- Codes compare as their values, and are never changed.
 *	- A value whose bytes have occurred is found by them.  Values that differ, but compare as
 *	  equal, have one code.
 *	- When there are too many values, or they take too much memory, or two neighbours have no
 *	  code between them, the dictionary has overflowed, and returns no code any more.
 *
 * src/indexbuild/dictionary.c
 */
#include "postgres.h"

#include <math.h>

#include "access/nbtree.h"
#include "common/hashfn.h"
#include "utils/memutils.h"

#include "indexbuild/indexbuild_int.h"

/* The first value's code, and the fraction of all codes that are not between two others. */
#define FIRST			(UINT64CONST(1) << 31)
#define HALF			(UINT64CONST(1) << 63)

#define SEGMENT_SIZE		512 /* pointers, at most */

/* A sample of fewer rows is no evidence. */
#define MIN_SAMPLE		500

/* Rows for each value, at least: a new value costs as much as sorting some rows. */
#define ROWS_PER_VALUE	16
#define FEW_VALUES		1024

/* The key of the hash table. */
typedef struct Bytes
{
	const char *start;
	uint32		length;
} Bytes;

typedef struct Value
{
	LaDictionaryCode code;
	Datum		datum;			/* as the comparison function takes it */
	Bytes		bytes;			/* of the datum */
} Value;

typedef struct Slot
{
	Bytes		bytes;
	Value	   *value;
	uint32		hash;
	char		status;
} Slot;

#define SH_PREFIX values
#define SH_ELEMENT_TYPE Slot
#define SH_KEY_TYPE Bytes
#define SH_KEY bytes
#define SH_HASH_KEY(table, key) \
	hash_bytes((const unsigned char *) (key).start, (key).length)
#define SH_EQUAL(table, a, b) \
	((a).length == (b).length && memcmp((a).start, (b).start, (a).length) == 0)
#define SH_STORE_HASH
#define SH_GET_HASH(table, slot) (slot)->hash
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef struct Segment
{
	int			count;
	Value	   *values[SEGMENT_SIZE];
} Segment;

struct LaDictionary
{
	MemoryContext context;
	Size		limit;			/* bytes */
	double		max_values;
	double		nvalues;
	double		nrows;			/* that were not null */
	bool		overflowed;

	/* the column */
	int16		length;
	bool		byval;
	Oid			collation;
	FmgrInfo	compare;

	values_hash *hash;
	Value	   *last;			/* that was looked up last */

	/* all values, in order */
	int			nsegments;
	int			max_segments;
	Segment   **segments;
};

/* For an index's column, of a table with about so many rows. */
LaDictionary *
la_dictionary_create(Relation index, int column, Size memory, double rows)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), column);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_lookahead dictionary",
												  ALLOCSET_DEFAULT_SIZES);
	LaDictionary *d = MemoryContextAllocZero(context, sizeof(LaDictionary));

	d->context = context;
	d->limit = memory;
	d->max_values = Max(FEW_VALUES, rows / ROWS_PER_VALUE);
	d->length = att->attlen;
	d->byval = att->attbyval;
	d->collation = index->rd_indcollation[column];
	fmgr_info_copy(&d->compare,
				   index_getprocinfo(index, column + 1, BTORDER_PROC), context);
	d->hash = values_create(context, 256, NULL);
	d->max_segments = 8;
	d->segments = MemoryContextAlloc(context, d->max_segments * sizeof(Segment *));
	d->segments[0] = MemoryContextAllocZero(context, sizeof(Segment));
	d->nsegments = 1;
	return d;
}

/*
 * After a sample of rows: does the column seem to have few enough values?  n rows of D values
 * that are equally frequent have about D * (1 - exp(-n / D)) of them, which grows with D.  So
 * the limit is exceeded if the sample has more values than that for D = limit; it has fewer
 * where some values are more frequent.  One value more is no evidence.
 */
bool
la_dictionary_is_worthwhile(const LaDictionary *d)
{
	if (d->overflowed)
		return false;
	if (d->nrows < MIN_SAMPLE)
		return true;
	return d->nvalues - 0.5 <= d->max_values * -expm1(-d->nrows / d->max_values);
}

static inline int
compare(LaDictionary *d, Datum a, Datum b)
{
	return DatumGetInt32(FunctionCall2Coll(&d->compare, d->collation, a, b));
}

/* Find the value, or where it belongs, and return whether it is there. */
static bool
search(LaDictionary *d, Datum value, int *segment, int *position)
{
	int			low = 0;
	int			high = d->nsegments - 1;
	Segment    *seg;

	/* the last segment whose first value is not greater */
	while (low < high)
	{
		int			mid = (low + high + 1) / 2;

		if (compare(d, d->segments[mid]->values[0]->datum, value) <= 0)
			low = mid;
		else
			high = mid - 1;
	}
	*segment = low;

	seg = d->segments[low];
	low = 0;
	high = seg->count;
	while (low < high)
	{
		int			mid = (low + high) / 2;
		int			cmp = compare(d, seg->values[mid]->datum, value);

		if (cmp == 0)
		{
			*position = mid;
			return true;
		}
		if (cmp < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*position = low;
	return false;
}

static inline LaDictionaryCode
middle(LaDictionaryCode a, LaDictionaryCode b)
{
	uint64		fraction = b.fraction - a.fraction;
	uint32		whole = b.whole - a.whole - (b.fraction < a.fraction);
	LaDictionaryCode result;

	fraction = (fraction >> 1) | ((uint64) (whole & 1) << 63);
	result.fraction = a.fraction + fraction;
	result.whole = a.whole + (whole >> 1) + (result.fraction < fraction);
	return result;
}

/* Choose a code for a new value at that position.  Returns false if none is left. */
static bool
choose_code(LaDictionary *d, int segment, int position, LaDictionaryCode *code)
{
	Segment    *seg = d->segments[segment];
	Value	   *before = NULL;
	Value	   *after = NULL;

	if (position > 0)
		before = seg->values[position - 1];
	else if (segment > 0)
		before = d->segments[segment - 1]->values[d->segments[segment - 1]->count - 1];
	if (position < seg->count)
		after = seg->values[position];
	else if (segment + 1 < d->nsegments)
		after = d->segments[segment + 1]->values[0];

	if (before != NULL && after != NULL)
	{
		*code = middle(before->code, after->code);
		return code->whole != before->code.whole ||
			code->fraction != before->code.fraction;
	}
	code->whole = FIRST;
	code->fraction = HALF;
	if (before != NULL)
	{
		code->whole = before->code.whole + 1;
		return before->code.whole < PG_UINT32_MAX;
	}
	if (after != NULL)
	{
		code->whole = after->code.whole - 1;
		return after->code.whole > 0;
	}
	return true;
}

static void
insert(LaDictionary *d, int segment, int position, Value *value)
{
	Segment    *seg = d->segments[segment];

	if (seg->count == SEGMENT_SIZE)
	{
		/* values in order fill segments, others split them */
		int			keep = position == SEGMENT_SIZE ? SEGMENT_SIZE : SEGMENT_SIZE / 2;
		Segment    *next = MemoryContextAlloc(d->context, sizeof(Segment));

		if (d->nsegments == d->max_segments)
		{
			d->max_segments *= 2;
			d->segments = repalloc(d->segments, d->max_segments * sizeof(Segment *));
		}
		memmove(&d->segments[segment + 2], &d->segments[segment + 1],
				(d->nsegments - segment - 1) * sizeof(Segment *));
		d->segments[segment + 1] = next;
		d->nsegments++;
		next->count = SEGMENT_SIZE - keep;
		memcpy(next->values, &seg->values[keep], next->count * sizeof(Value *));
		seg->count = keep;
		if (position > keep || keep == SEGMENT_SIZE)
		{
			position -= keep;
			seg = next;
		}
	}
	memmove(&seg->values[position + 1], &seg->values[position],
			(seg->count - position) * sizeof(Value *));
	seg->values[position] = value;
	seg->count++;
}

/* A copy of the value, without a code yet. */
static Value *
copy_value(LaDictionary *d, Datum datum, Bytes bytes)
{
	Value	   *value = MemoryContextAlloc(d->context, sizeof(Value));

	value->bytes.length = bytes.length;
	if (d->byval)
	{
		value->datum = datum;
		value->bytes.start = (char *) &value->datum;
	}
	else
	{
		Size		header = d->length == -1 ? VARHDRSZ : 0;
		char	   *copy = MemoryContextAlloc(d->context, header + bytes.length);

		if (header > 0)
			SET_VARSIZE(copy, header + bytes.length);
		memcpy(copy + header, bytes.start, bytes.length);
		value->datum = PointerGetDatum(copy);
		value->bytes.start = copy + header;
	}
	return value;
}

/*
 * Add a value whose bytes are new; it may still equal one that is there.  Returns NULL if
 * the dictionary overflows.
 */
static Value *
add_value(LaDictionary *d, Datum datum, Bytes bytes)
{
	LaDictionaryCode code;
	int			segment;
	int			position;
	bool		found;
	Value	   *value;

	if (d->nvalues >= d->max_values ||
		MemoryContextMemAllocated(d->context, true) > d->limit)
		return NULL;
	found = search(d, datum, &segment, &position);
	if (found)
		code = d->segments[segment]->values[position]->code;
	else if (!choose_code(d, segment, position, &code))
		return NULL;
	value = copy_value(d, datum, bytes);
	value->code = code;
	if (!found)
		insert(d, segment, position, value);
	d->nvalues++;
	return value;
}

/* The code of a value, which is added if it is new; false if the dictionary has overflowed. */
bool
la_dictionary_find(LaDictionary *d, Datum datum, LaDictionaryCode *code)
{
	Bytes		bytes;
	Value	   *last = d->last;
	Slot	   *slot;
	bool		found;

	if (d->overflowed)
		return false;
	d->nrows++;
	if (d->byval)
	{
		bytes.start = (char *) &datum;
		bytes.length = sizeof(Datum);
	}
	else if (d->length == -1)
	{
		struct varlena *v = PG_DETOAST_DATUM_PACKED(datum);

		datum = PointerGetDatum(v);
		bytes.start = VARDATA_ANY(v);
		bytes.length = VARSIZE_ANY_EXHDR(v);
	}
	else
	{
		bytes.start = DatumGetPointer(datum);
		bytes.length = d->length > 0 ? (uint32) d->length :
			(uint32) strlen(DatumGetCString(datum)) + 1;
	}

	if (last != NULL && last->bytes.length == bytes.length &&
		memcmp(last->bytes.start, bytes.start, bytes.length) == 0)
	{
		*code = last->code;
		return true;
	}
	slot = values_lookup(d->hash, bytes);
	if (slot == NULL)
	{
		Value	   *value = add_value(d, datum, bytes);

		if (value == NULL)
		{
			d->overflowed = true;
			return false;
		}
		slot = values_insert(d->hash, value->bytes, &found);
		slot->value = value;
	}
	d->last = slot->value;
	*code = slot->value->code;
	return true;
}
