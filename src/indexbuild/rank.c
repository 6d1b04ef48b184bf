/*
 * rank.c
 *	  Numbers for the values of a column, in the order of the column's values.
 *
 * For columns whose order no string of bytes reproduces: text in the collations of
 * libc and ICU, arrays, ranges.  If there are few different
 * values, each one can have a number instead that is compared in its place.  Only
 * the column's comparison function orders the values, and it is called once per new
 * value and step of a binary search, not once per row and step of a sort.
 *
 * Which values there are is not known before the last row, and rows that have been
 * written to a file cannot change any more.  So a value gets its number when it
 * comes first, in the middle between those of its neighbours; numbers are wide
 * enough for that (order maintenance by labels: Dietz, "Maintaining Order in a
 * Linked List", 1982).
 *
 *		... 'Bath' 7.5 ............ 'Leeds' 8.5 ............ 'York' 9.5 ...
 *		             'Derby' 8.0
 *
 * A number has 32 bits before its point and 64 behind it.  A new value before the
 * first or behind the last one is a whole number away, so that values in order, as in a
 * table that is sorted, do not halve what is left each time.  Values at random halve it
 * as often as a random search tree is deep: some 50 times for 300,000 of them.
 *
 *		bytes --- hash table ---> Value (bytes, number)
 *		                            ^
 *		[ span ] [ span ] ... of pointers, in order: binary search for new values
 *
 * Behaviours
 *	A	Values that are the same bytes are found by their bytes.  Values that differ
 *		but compare as equal have one number.
 *	B	No number is left between two neighbours, there are too many values, or
 *		they take too much memory: the column is given up (false).
 *
 * Invariants
 *	I1	A number stays as it is.
 *	I2	Of two values the lesser one has the lesser number.
 *
 * src/indexbuild/rank.c
 */
#include "postgres.h"

#include <math.h>

#include "access/nbtree.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "indexbuild/rank.h"

/* of the first value, and the fraction of all that are not in the middle of others */
#define FIRST			(UINT64CONST(1) << 31)
#define HALF			(UINT64CONST(1) << 63)

/* pointers in a span, at most */
#define SPAN_SIZE	512

/* fewer rows tell nothing */
#define MIN_SAMPLE	500

/* Rows for each value, at least: a new value costs as much as sorting some rows. */
#define ROWS_PER_VALUE	16
#define FEW_VALUES	1024

/* what the hash table looks for */
typedef struct Bytes
{
	const char *start;
	uint32		length;
} Bytes;

typedef struct Value
{
	LaRank		number;
	Datum		datum;			/* as the comparison function takes it */
	Bytes		bytes;			/* of it */
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

typedef struct Span
{
	int			count;
	Value	   *values[SPAN_SIZE];
} Span;

struct LaRanks
{
	MemoryContext context;
	Size		limit;			/* bytes */
	double		max_values;
	double		nvalues;
	double		nrows;			/* that were not null */
	bool		given_up;

	/* the column */
	int16		length;
	bool		byval;
	Oid			collation;
	FmgrInfo	compare;

	values_hash *hash;
	Value	   *last;			/* the value of the row before */

	/* all values, in order */
	int			nspans;
	int			max_spans;
	Span	  **spans;
};

/*
 * For an index's column; of a table of that many rows.
 */
LaRanks *
la_ranks_create(Relation index, int column, Size memory, double rows)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), column);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_lookahead ranks",
												  ALLOCSET_DEFAULT_SIZES);
	LaRanks    *ranks = MemoryContextAllocZero(context, sizeof(LaRanks));

	ranks->context = context;
	ranks->limit = memory;
	ranks->max_values = Max(FEW_VALUES, rows / ROWS_PER_VALUE);
	ranks->length = att->attlen;
	ranks->byval = att->attbyval;
	ranks->collation = index->rd_indcollation[column];
	fmgr_info_copy(&ranks->compare,
				   index_getprocinfo(index, column + 1, BTORDER_PROC), context);
	ranks->hash = values_create(context, 256, NULL);
	ranks->max_spans = 8;
	ranks->spans = MemoryContextAlloc(context, ranks->max_spans * sizeof(Span *));
	ranks->spans[0] = MemoryContextAllocZero(context, sizeof(Span));
	ranks->nspans = 1;
	return ranks;
}

/*
 * After a sample of rows: does it look as if there were not too many values?  n rows of D
 * values, each as likely as the other, have about D * (1 - exp(-n / D)) of them, which grows
 * with D; so there are more than the limit if more have come than of so many.  Where
 * some values are more frequent, fewer come.  One of them more tells nothing.
 */
bool
la_ranks_are_worthwhile(const LaRanks *ranks)
{
	double		most = ranks->max_values;

	if (ranks->given_up)
		return false;
	if (ranks->nrows < MIN_SAMPLE)
		return true;
	return ranks->nvalues - 0.5 <= most * -expm1(-ranks->nrows / most);
}

static bool
give_up(LaRanks *ranks)
{
	ranks->given_up = true;
	return false;
}

static inline int
compare(LaRanks *ranks, Datum a, Datum b)
{
	return DatumGetInt32(FunctionCall2Coll(&ranks->compare, ranks->collation, a, b));
}

/*
 * Where the value is or belongs: the span, and the position in it.  True if it is
 * there.
 */
static bool
search(LaRanks *ranks, Datum value, int *span, int *position)
{
	int			low = 0;
	int			high = ranks->nspans - 1;
	Span	   *b;

	/* the last span whose first value is not greater */
	while (low < high)
	{
		int			mid = (low + high + 1) / 2;

		if (compare(ranks, ranks->spans[mid]->values[0]->datum, value) <= 0)
			low = mid;
		else
			high = mid - 1;
	}
	*span = low;

	b = ranks->spans[low];
	low = 0;
	high = b->count;
	while (low < high)
	{
		int			mid = (low + high) / 2;
		int			cmp = compare(ranks, b->values[mid]->datum, value);

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

static inline LaRank
middle(LaRank a, LaRank b)
{
	uint64		fraction = b.fraction - a.fraction;
	uint32		whole = b.whole - a.whole - (b.fraction < a.fraction);
	LaRank		result;

	fraction = (fraction >> 1) | ((uint64) (whole & 1) << 63);
	result.fraction = a.fraction + fraction;
	result.whole = a.whole + (whole >> 1) + (result.fraction < fraction);
	return result;
}

/*
 * A number for a value between its neighbours; false if there is none.
 */
static bool
choose_number(LaRanks *ranks, int span, int position, LaRank *number)
{
	Span	   *b = ranks->spans[span];
	Value	   *before = NULL;
	Value	   *after = NULL;

	if (position > 0)
		before = b->values[position - 1];
	else if (span > 0)
		before = ranks->spans[span - 1]->values[ranks->spans[span - 1]->count - 1];
	if (position < b->count)
		after = b->values[position];
	else if (span + 1 < ranks->nspans)
		after = ranks->spans[span + 1]->values[0];

	if (before != NULL && after != NULL)
	{
		*number = middle(before->number, after->number);
		return number->whole != before->number.whole ||
			number->fraction != before->number.fraction;
	}
	number->whole = FIRST;
	number->fraction = HALF;
	if (before != NULL)
	{
		number->whole = before->number.whole + 1;
		return before->number.whole < PG_UINT32_MAX;
	}
	if (after != NULL)
	{
		number->whole = after->number.whole - 1;
		return after->number.whole > 0;
	}
	return true;
}

static void
insert(LaRanks *ranks, int span, int position, Value *value)
{
	Span	   *b = ranks->spans[span];

	if (b->count == SPAN_SIZE)
	{
		/* values in order fill spans, others split them */
		int			keep = position == SPAN_SIZE ? SPAN_SIZE : SPAN_SIZE / 2;
		Span	   *next = MemoryContextAlloc(ranks->context, sizeof(Span));

		if (ranks->nspans == ranks->max_spans)
		{
			ranks->max_spans *= 2;
			ranks->spans = repalloc(ranks->spans,
									ranks->max_spans * sizeof(Span *));
		}
		memmove(&ranks->spans[span + 2], &ranks->spans[span + 1],
				(ranks->nspans - span - 1) * sizeof(Span *));
		ranks->spans[span + 1] = next;
		ranks->nspans++;
		next->count = SPAN_SIZE - keep;
		memcpy(next->values, &b->values[keep], next->count * sizeof(Value *));
		b->count = keep;
		if (position > keep || keep == SPAN_SIZE)
		{
			position -= keep;
			b = next;
		}
	}
	memmove(&b->values[position + 1], &b->values[position],
			(b->count - position) * sizeof(Value *));
	b->values[position] = value;
	b->count++;
}

/*
 * A value whose bytes are new: it may be equal to one that is there.
 */
static Value *
add_value(LaRanks *ranks, Datum datum, Bytes bytes)
{
	LaRank		number;
	int			span;
	int			position;
	bool		found = search(ranks, datum, &span, &position);
	Value	   *value;

	if (found)
		number = ranks->spans[span]->values[position]->number;
	else if (!choose_number(ranks, span, position, &number))
		return NULL;

	value = MemoryContextAlloc(ranks->context, sizeof(Value));
	value->number = number;
	value->bytes.length = bytes.length;
	if (ranks->byval)
	{
		value->datum = datum;
		value->bytes.start = (char *) &value->datum;
	}
	else
	{
		Size		header = ranks->length == -1 ? VARHDRSZ : 0;
		char	   *copy = MemoryContextAlloc(ranks->context,
											  header + bytes.length);

		if (header > 0)
			SET_VARSIZE(copy, header + bytes.length);
		memcpy(copy + header, bytes.start, bytes.length);
		value->datum = PointerGetDatum(copy);
		value->bytes.start = copy + header;
	}
	if (!found)
		insert(ranks, span, position, value);
	ranks->nvalues++;
	return value;
}

/*
 * The value's number; false if there is none, and will be none any more.
 */
bool
la_ranks_find(LaRanks *ranks, Datum datum, LaRank *rank)
{
	Bytes		bytes;
	Value	   *last = ranks->last;
	Slot	   *slot;
	bool		found;

	if (ranks->given_up)
		return false;
	ranks->nrows++;
	if (ranks->byval)
	{
		bytes.start = (char *) &datum;
		bytes.length = sizeof(Datum);
	}
	else if (ranks->length == -1)
	{
		struct varlena *v = PG_DETOAST_DATUM_PACKED(datum);

		datum = PointerGetDatum(v);
		bytes.start = VARDATA_ANY(v);
		bytes.length = VARSIZE_ANY_EXHDR(v);
	}
	else
	{
		bytes.start = DatumGetPointer(datum);
		bytes.length = ranks->length > 0 ? (uint32) ranks->length :
			(uint32) strlen(DatumGetCString(datum)) + 1;
	}

	if (last != NULL && last->bytes.length == bytes.length &&
		memcmp(last->bytes.start, bytes.start, bytes.length) == 0)
	{
		*rank = last->number;
		return true;
	}
	slot = values_lookup(ranks->hash, bytes);
	if (slot == NULL)
	{
		Value	   *value;

		if (ranks->nvalues >= ranks->max_values ||
			MemoryContextMemAllocated(ranks->context, true) > ranks->limit)
			return give_up(ranks);
		value = add_value(ranks, datum, bytes);
		if (value == NULL)
			return give_up(ranks);
		slot = values_insert(ranks->hash, value->bytes, &found);
		slot->value = value;
	}
	ranks->last = slot->value;
	*rank = slot->value->number;
	return true;
}
