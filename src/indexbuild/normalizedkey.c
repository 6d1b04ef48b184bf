/*
 * normalizedkey.c
 *	  Rows of an index as strings of bytes that memcmp orders as the index does.
 *
 * A normalized key (Graefe, "Implementing Sorting in Database Systems", 2006) consists of the codes
 * of the index's key columns, without INCLUDE columns, one after the other:
 *
 *		(a int4, b text desc, c text)	 a: 4 bytes | b, inverted ... FF | c ... 00
 *
 * Guarantees, which follow from those of each column's codes (encode.c)
 *	ORDER		memcmp of two keys over the length of the shorter one decides as nbtree's
 *				comparison of the rows does: by the comparison function of each column's
 *				operator class, and by DESC and NULLS FIRST of the index.
 *	NO PREFIX	No key is a proper prefix of another one.  So a TID can be appended that decides
 *				between equal rows.
 *	EQUALITY	Two keys are the same bytes if and only if all columns compare as equal, null
 *				being equal to null.  The rows need not be the same: 1.0 and 1.00.
 *
 * Which columns have codes
 *	What decides is the function that nbtree calls, support function 1 of the operator class,
 *	and not the type.  It must be one of core's whose order is reproduced here, for the type
 *	that it was made for, and in an operator family of core, since sorting uses the family's
 *	other support functions, too.  Text and its kin must be compared by bytes: the collation is
 *	C, or the operator class ignores collations.  For other collations, neither strxfrm() of
 *	libc nor sort keys of ICU agree with comparison in all cases.
 *	An enum must not have a label with an odd OID, since only the others compare by OID
 *	(enum_cmp()).  Such a label can be added later, and a concurrent build then see a row with
 *	it: that value has no code.
 *
 * Dictionaries
 *	Other columns can be coded by a dictionary of the values that have occurred so far
 *	(dictionary.c), if there are few of them.  The pairs of values that are compared for that are
 *	not those that a sort compares.  So the comparison must have no effect but its result: it
 *	must be a function of core's that cannot fail (is_trusted()).
 *
 * src/indexbuild/normalizedkey.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/transam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#include "base/base.h"
#include "base/compat.h"
#include "indexbuild/indexbuild_int.h"

typedef struct Column
{
	LaEncoder	encoder;
	LaDictionary *dictionary;	/* for LA_ENCODE_DICTIONARY, else NULL */
} Column;

struct LaNormalizedKey
{
	int			ncolumns;
	bool		has_dictionary; /* for one of them at least */
	bool		may_fail;		/* a row may have no key */
	Column		columns[FLEXIBLE_ARRAY_MEMBER];
};

/* The comparison functions whose order is reproduced. */
typedef struct Comparison
{
	Oid			function;
	Oid			type;			/* the operator class must be for this type */
	LaEncoding	encoding;
	bool		collated;		/* the order depends on the collation */
} Comparison;

static const Comparison comparisons[] = {
	{F_BTBOOLCMP, BOOLOID, LA_ENCODE_BOOL, false},
	{F_BTCHARCMP, CHAROID, LA_ENCODE_CHAR, false},
	{F_BTINT2CMP, INT2OID, LA_ENCODE_INT16, false},
	{F_BTINT4CMP, INT4OID, LA_ENCODE_INT32, false},
	{F_BTINT8CMP, INT8OID, LA_ENCODE_INT64, false},
	{F_BTOIDCMP, OIDOID, LA_ENCODE_UINT32, false},
	{F_DATE_CMP, DATEOID, LA_ENCODE_INT32, false},
	{F_TIME_CMP, TIMEOID, LA_ENCODE_INT64, false},
	{F_TIMESTAMP_CMP, TIMESTAMPOID, LA_ENCODE_INT64, false},
	{F_TIMESTAMPTZ_CMP, TIMESTAMPTZOID, LA_ENCODE_INT64, false},
	{F_TIMETZ_CMP, TIMETZOID, LA_ENCODE_TIMETZ, false},
	{F_INTERVAL_CMP, INTERVALOID, LA_ENCODE_INTERVAL, false},
	{F_CASH_CMP, MONEYOID, LA_ENCODE_INT64, false},
	{F_XID8CMP, XID8OID, LA_ENCODE_UINT64, false},
	{F_PG_LSN_CMP, PG_LSNOID, LA_ENCODE_UINT64, false},
	{F_ENUM_CMP, ANYENUMOID, LA_ENCODE_ENUM, false},
	{F_BTFLOAT4CMP, FLOAT4OID, LA_ENCODE_FLOAT4, false},
	{F_BTFLOAT8CMP, FLOAT8OID, LA_ENCODE_FLOAT8, false},
	{F_UUID_CMP, UUIDOID, LA_ENCODE_UUID, false},
	{F_MACADDR_CMP, MACADDROID, LA_ENCODE_MACADDR, false},
	{F_MACADDR8_CMP, MACADDR8OID, LA_ENCODE_MACADDR8, false},
	{F_BTTIDCMP, TIDOID, LA_ENCODE_TID, false},
	{F_BTNAMECMP, NAMEOID, LA_ENCODE_NAME, true},
	{F_BTTEXTCMP, TEXTOID, LA_ENCODE_BYTES, true},
	{F_BTTEXT_PATTERN_CMP, TEXTOID, LA_ENCODE_BYTES, false},
	{F_BYTEACMP, BYTEAOID, LA_ENCODE_BYTES, false},
	{F_BPCHARCMP, BPCHAROID, LA_ENCODE_BLANK_PADDED, true},
	{F_BTBPCHAR_PATTERN_CMP, BPCHAROID, LA_ENCODE_BLANK_PADDED, false},
	{F_BITCMP, BITOID, LA_ENCODE_BITS, false},
	{F_VARBITCMP, VARBITOID, LA_ENCODE_BITS, false},
	{F_NUMERIC_CMP, NUMERICOID, LA_ENCODE_NUMERIC, false},
	{F_NETWORK_CMP, INETOID, LA_ENCODE_INET, false},
	{F_BTOIDVECTORCMP, OIDVECTOROID, LA_ENCODE_OIDVECTOR, false},
};

static const Comparison *
comparison_of(Oid function, Oid type)
{
	for (int i = 0; i < (int) lengthof(comparisons); i++)
	{
		if (comparisons[i].function == function && comparisons[i].type == type)
			return &comparisons[i];
	}
	return NULL;
}

/* Do all labels of the enum compare by their OIDs? */
static bool
enum_is_even(Oid type)
{
	CatCList   *labels = SearchSysCacheList1(ENUMTYPOIDNAME, ObjectIdGetDatum(type));
	bool		even = true;

	for (int i = 0; i < labels->n_members; i++)
	{
		HeapTuple	label = &labels->members[i]->tuple;

		if (((Form_pg_enum) GETSTRUCT(label))->oid % 2 != 0)
			even = false;
	}
	ReleaseSysCacheList(labels);
	return even;
}

/* Set up a column's encoder.  Returns NULL, or why there is none without a dictionary. */
static const char *
init_encoder(LaEncoder *e, Relation index, int column)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), column);
	Oid			function = index_getprocid(index, column + 1, BTORDER_PROC);
	Oid			collation = index->rd_indcollation[column];
	const Comparison *c;

	if (index->rd_opfamily[column] >= FirstNormalObjectId)
		return psprintf("no exact sort key for type %s in an operator family that is not built in",
						format_type_be(att->atttypid));
	c = comparison_of(function, index->rd_opcintype[column]);
	if (c == NULL)
		return psprintf("no exact sort key for type %s", format_type_be(att->atttypid));
	if (c->collated && !OidIsValid(collation))
		return "no collation";
	if (c->collated && !la_collation_is_c(collation))
		return psprintf("no exact sort key for collation \"%s\"",
						get_collation_name(collation));
	if (c->encoding == LA_ENCODE_ENUM && !enum_is_even(getBaseType(att->atttypid)))
		return psprintf("enum %s has labels that do not compare by their OIDs",
						format_type_be(att->atttypid));
	la_encode_init(e, c->encoding, index->rd_indoption[column]);
	return NULL;
}

static bool is_trusted(Oid function, Oid type);

/* The same for a type's default order, by which arrays and rows compare their parts. */
static bool
is_trusted_by_default(Oid type)
{
	TypeCacheEntry *entry = lookup_type_cache(type,
											  TYPECACHE_BTREE_OPFAMILY |
											  TYPECACHE_CMP_PROC);

	return OidIsValid(entry->cmp_proc) &&
		entry->btree_opf < FirstNormalObjectId &&
		is_trusted(entry->cmp_proc, type);
}

static bool
is_trusted_for_range(Oid type)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_RANGE_INFO);

	return entry->rngelemtype != NULL &&
		is_trusted(entry->rng_cmp_proc_finfo.fn_oid, entry->rngelemtype->type_id);
}

static bool
is_trusted_for_row(Oid type)
{
	TupleDesc	desc;
	bool		trusted = true;

	if (type == RECORDOID)
		return false;
	desc = lookup_rowtype_tupdesc(type, -1);
	for (int i = 0; i < desc->natts && trusted; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		trusted = att->attisdropped || is_trusted_by_default(att->atttypid);
	}
	ReleaseTupleDesc(desc);
	return trusted;
}

/*
 * Can values of this type be compared by this function without an error, and without
 * calling code that is not core's?  A comparison of arrays of points, for example, raises an
 * error, and whether the server makes one depends on the columns before.
 */
static bool
is_trusted(Oid function, Oid type)
{
	check_stack_depth();
	type = getBaseType(type);
	switch (function)
	{
		case F_JSONB_CMP:
		case F_TSVECTOR_CMP:
		case F_TSQUERY_CMP:
			return true;
		case F_BTARRAYCMP:
			return OidIsValid(get_element_type(type)) &&
				is_trusted_by_default(get_element_type(type));
		case F_RANGE_CMP:
			return type_is_range(type) && is_trusted_for_range(type);
		case F_MULTIRANGE_CMP:
			return type_is_multirange(type) &&
				is_trusted_for_range(get_multirange_range(type));
		case F_BTRECORDCMP:
			return is_trusted_for_row(type);
	}
	for (int i = 0; i < (int) lengthof(comparisons); i++)
	{
		if (comparisons[i].function == function)
			return true;
	}
	return false;
}

static bool
may_have_dictionary(Relation index, int column)
{
	return index->rd_opfamily[column] < FirstNormalObjectId &&
		is_trusted(index_getprocid(index, column + 1, BTORDER_PROC),
				   TupleDescAttr(RelationGetDescr(index), column)->atttypid);
}

static void
init_dictionary(Column *c, Relation index, int column, const LaDictionaryLimits *limits)
{
	la_encode_init(&c->encoder, LA_ENCODE_DICTIONARY, index->rd_indoption[column]);
	c->dictionary = la_dictionary_create(index, column, limits->memory, limits->rows);
}

/*
 * An encoder for the key columns of an index, in the current memory context; or NULL, and
 * why there is none.  It refers to nothing that belongs to the index.  limits: NULL if
 * there must not be dictionaries.
 */
LaNormalizedKey *
la_normkey_create(Relation index, const LaDictionaryLimits *limits, const char **why)
{
	int			n = IndexRelationGetNumberOfKeyAttributes(index);
	LaNormalizedKey *key;

	if (index->rd_rel->relam != BTREE_AM_OID)
	{
		*why = "not a btree index";
		return NULL;
	}
	key = palloc0(offsetof(LaNormalizedKey, columns) + n * sizeof(Column));
	key->ncolumns = n;
	for (int i = 0; i < n; i++)
	{
		const char *reason = init_encoder(&key->columns[i].encoder, index, i);

		if (reason != NULL && limits != NULL && may_have_dictionary(index, i))
		{
			init_dictionary(&key->columns[i], index, i, limits);
			key->has_dictionary = key->may_fail = true;
		}
		else if (reason != NULL)
		{
			*why = psprintf("column %d (\"%s\"): %s", i + 1,
							NameStr(TupleDescAttr(RelationGetDescr(index), i)->attname),
							reason);
			pfree(key);
			return NULL;
		}
		else if (key->columns[i].encoder.encoding == LA_ENCODE_ENUM)
			key->may_fail = true;
	}
	*why = NULL;
	return key;
}

bool
la_normkey_has_dictionary(const LaNormalizedKey *key)
{
	return key->has_dictionary;
}

bool
la_normkey_may_fail(const LaNormalizedKey *key)
{
	return key->may_fail;
}

/* After a sample of rows: do columns with a dictionary have few enough values? */
bool
la_normkey_is_worthwhile(const LaNormalizedKey *key)
{
	for (int i = 0; i < key->ncolumns; i++)
	{
		if (key->columns[i].dictionary != NULL &&
			!la_dictionary_is_worthwhile(key->columns[i].dictionary))
			return false;
	}
	return true;
}

/* The size of an encoder without dictionaries, which another process may copy and use. */
Size
la_normkey_size(const LaNormalizedKey *key)
{
	return offsetof(LaNormalizedKey, columns) + key->ncolumns * sizeof(Column);
}

static void
encode_dictionary_code(const LaEncoder *e, const LaDictionaryCode *number,
					   LaEncodeBuffer *o)
{
	uint32		whole = pg_hton32(number->whole);
	uint64		fraction = pg_hton64(number->fraction);
	uint8		code[sizeof(whole) + sizeof(fraction)];

	memcpy(code, &whole, sizeof(whole));
	memcpy(code + sizeof(whole), &fraction, sizeof(fraction));
	la_encode_fixed(e, code, sizeof(code), o);
}

/* Neither compressed nor stored out of line. */
static inline bool
is_plain(Datum value)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(value);

	return !VARATT_IS_COMPRESSED(v) && !VARATT_IS_EXTERNAL(v);
}

/*
 * Write the key of a row to `to`, and return its length.  If that is more than there is
 * space for, only the length is returned (at most PG_INT32_MAX), and what is at `to` is
 * undefined.  LA_NORMKEY_NONE: a value has no code, or a dictionary has overflowed.
 * Detoasted values and what comparison functions allocate are left in the current context.
 */
int
la_normkey_encode(LaNormalizedKey *key, const Datum *values, const bool *isnull,
				  uint8 *to, int space, bool *has_null)
{
	LaEncodeBuffer o = {to, space, 0, false};

	*has_null = false;
	for (int i = 0; i < key->ncolumns; i++)
	{
		const LaEncoder *e = &key->columns[i].encoder;
		Datum		value = values[i];
		LaDictionaryCode code;

		if (unlikely(isnull[i]))
		{
			*has_null = true;
			la_encode_null(e, &o);
			continue;
		}
		switch (e->encoding)
		{
			case LA_ENCODE_INT16:
				la_encode_uint(e, (uint16) DatumGetInt16(value) ^ 0x8000, 2, &o);
				break;
			case LA_ENCODE_INT32:
				la_encode_uint(e, (uint32) DatumGetInt32(value) ^ 0x80000000, 4, &o);
				break;
			case LA_ENCODE_INT64:
				la_encode_uint(e, (uint64) DatumGetInt64(value) ^
							   UINT64CONST(0x8000000000000000), 8, &o);
				break;
			case LA_ENCODE_UINT32:
				la_encode_uint(e, DatumGetUInt32(value), 4, &o);
				break;
			case LA_ENCODE_UINT64:
				la_encode_uint(e, (uint64) DatumGetInt64(value), 8, &o);
				break;
			case LA_ENCODE_UUID:
				la_encode_uuid(e, DatumGetUUIDP(value)->data, &o);
				break;
			case LA_ENCODE_DICTIONARY:
				if (!la_dictionary_find(key->columns[i].dictionary, value, &code))
					return LA_NORMKEY_NONE;
				encode_dictionary_code(e, &code, &o);
				break;
			case LA_ENCODE_BYTES:
				if (likely(is_plain(value)))
					la_encode_bytes(e, (uint8 *) VARDATA_ANY(DatumGetPointer(value)),
									VARSIZE_ANY_EXHDR(DatumGetPointer(value)), &o);
				else
					la_encode_other(e, value, &o);
				break;
			default:
				la_encode_other(e, value, &o);
				break;
		}
	}
	if (unlikely(o.no_code))
		return LA_NORMKEY_NONE;
	return (int) Min(o.length, PG_INT32_MAX);
}
