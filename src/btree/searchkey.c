/*
 * searchkey.c
 *	  A search key, and how it is compared with the tuples of a stock btree index.
 *
 * A key has values for the first columns of the index.  If it has all of them, it may have a
 * heap TID, too: then it is the place of one entry, and no longer that of all entries that
 * equal it.  Columns are compared up to the first one that differs:
 *
 *		tuple   | header | nulls? | a, fixed | b, varlena | c |
 *		                            ^ offset known          ^ found by one pass
 *
 * A pivot tuple may lack its last columns and its heap TID, which are minus infinity then
 * (nbtree's README, "Notes about suffix truncation").  Nulls equal each other, as in nbtree's
 * order.  A heap TID equals a posting list if it is in the range of its TIDs.
 *
 * Of the techniques in descent.c's header, ITERATE and TYPED are implemented here.  TRUNCATE
 * is the caller's, who says which columns are known to be equal and learns how many are.
 *
 * Invariants
 *	- Results are those of the operator class's comparison function, which is called itself
 *	  wherever it could disagree (a value is compressed, or its collation is not C).
 *	- Comparison raises no error that nbtree's for the same key would not raise.
 *	- No byte is read that lies behind the tuple.  An attribute that does not fit into it is not
 *	  compared, and the key is marked as damaged (btree.h).  What is in an attribute is left to the
 *	  comparison function.
 *
 * src/btree/searchkey.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "btree/btree.h"

/* The server's assertions and macros take it for a tuple of an inner page. */
const IndexTupleData la_no_entry = {
	.t_tid = {{InvalidBlockNumber >> 16, InvalidBlockNumber & 0xffff}, 0},
	.t_info = sizeof(IndexTupleData) | INDEX_ALT_TID_MASK
};

/* How values can be compared with the same result as by this function. */
static LaCompareKind
kind_of(Oid function, Oid collation, int16 length)
{
	switch (function)
	{
		case F_BTINT2CMP:
		case F_BTINT24CMP:
		case F_BTINT28CMP:
		case F_BTINT4CMP:
		case F_BTINT42CMP:
		case F_BTINT48CMP:
		case F_BTINT8CMP:
		case F_BTINT82CMP:
		case F_BTINT84CMP:
		case F_DATE_CMP:
		case F_TIME_CMP:
		case F_TIMESTAMP_CMP:
		case F_TIMESTAMPTZ_CMP:
			return length == 2 ? LA_COMPARE_INT16 :
				length == 4 ? LA_COMPARE_INT32 :
				length == 8 ? LA_COMPARE_INT64 : LA_COMPARE_FUNCTION;

		case F_BTOIDCMP:
			return LA_COMPARE_OID;

		case F_UUID_CMP:
			return LA_COMPARE_UUID;

		case F_BYTEACMP:
			return LA_COMPARE_BYTES;

		case F_BTTEXTCMP:
			/* whether it is C is known once it is open */
			return la_collation_is_silent(collation) && la_collation_is_c(collation) ?
				LA_COMPARE_BYTES : LA_COMPARE_FUNCTION;

		default:
			return LA_COMPARE_FUNCTION;
	}
}

/* A key without columns, for an index.  Comparison functions use the given context. */
void
la_searchkey_init(LaSearchKey *k, Relation index, MemoryContext context)
{
	TupleDesc	desc = RelationGetDescr(index);
	bool		allequalimage;
	int			offset = 0;

	memset(k, 0, sizeof(*k));
	k->context = context;
	k->index = index;
	_bt_metaversion(index, &k->heapkeyspace, &allequalimage);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		LaSearchKeyColumn *c = &k->columns[i];

		c->length = att->attlen;
		c->byval = att->attbyval;
		c->align = att->attalign;
		c->desc = (index->rd_indoption[i] & INDOPTION_DESC) != 0;
		c->nulls_first = (index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;

		/* a varlena may have a header of one byte and then is not aligned */
		if (offset >= 0 &&
			(att->attlen != -1 ||
			 offset == (int) att_align_nominal(offset, att->attalign)))
			c->offset = offset = att_align_nominal(offset, att->attalign);
		else
			c->offset = offset = -1;
		if (offset >= 0)
			offset = att->attlen > 0 ? offset + att->attlen : -1;
	}
}

/*
 * Add a column to the key, with values of type subtype (InvalidOid: the operator class's
 * own).  Returns false if the index has no such column, or no such comparison function.
 */
bool
la_searchkey_add_column(LaSearchKey *k, Oid subtype, Oid collation)
{
	Relation	index = k->index;
	int			i = k->ncolumns;
	LaSearchKeyColumn *c = &k->columns[i];
	Oid			type;

	if (i >= IndexRelationGetNumberOfKeyAttributes(index))
		return false;
	type = index->rd_opcintype[i];
	if (subtype == InvalidOid || subtype == type)
		fmgr_info_copy(&c->function,
					   index_getprocinfo(index, i + 1, BTORDER_PROC),
					   k->context);
	else
	{
		Oid			proc = get_opfamily_proc(index->rd_opfamily[i], type,
											 subtype, BTORDER_PROC);

		if (!OidIsValid(proc))
			return false;
		fmgr_info_cxt(proc, &c->function, k->context);
	}
	c->collation = collation;
	c->kind = kind_of(c->function.fn_oid, collation, c->length);
	k->ncolumns++;
	return true;
}

/* Is the function one for arrays, ranges or records, which calls those of their elements? */
static bool
compares_by_others(const LaSearchKey *k, int column)
{
	Oid			input = k->index->rd_opcintype[column];

	return get_typtype(input) == TYPTYPE_PSEUDO && input != ANYENUMOID;
}

/* May a column be compared with entries that nbtree would not have compared? */
bool
la_searchkey_may_be_early(const LaSearchKey *k, int column)
{
	return !compares_by_others(k, column) &&
		la_gate_refuses_comparison(k->columns[column].function.fn_oid,
								   k->index->rd_opcintype[column]) == NULL;
}

/* The function that compares a column, and the type of the index's values. */
Oid
la_searchkey_comparison(const LaSearchKey *k, int column, Oid *type)
{
	*type = TupleDescAttr(RelationGetDescr(k->index), column)->atttypid;
	return k->columns[column].function.fn_oid;
}

/* Use the value's bytes, if it is neither compressed nor stored out of line. */
static void
set_bytes(LaSearchKeyColumn *c, Datum value)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(value);
	bool		usable = !VARATT_IS_EXTERNAL(v) && !VARATT_IS_COMPRESSED(v);

	c->bytes = usable ? VARDATA_ANY(v) : NULL;
	c->nbytes = usable ? VARSIZE_ANY_EXHDR(v) : 0;
}

static int64
integer_value(Oid function, Datum value, int16 length)
{
	/* the right-hand type of the cross-type functions */
	switch (function)
	{
		case F_BTINT42CMP:
		case F_BTINT82CMP:
			return DatumGetInt16(value);
		case F_BTINT24CMP:
		case F_BTINT84CMP:
			return DatumGetInt32(value);
		case F_BTINT28CMP:
		case F_BTINT48CMP:
			return DatumGetInt64(value);
		default:
			return length == 2 ? DatumGetInt16(value) :
				length == 4 ? DatumGetInt32(value) : DatumGetInt64(value);
	}
}

/*
 * Set the value of a column, which is not stored out of line.  It is not copied, and must stay
 * until the search is over.
 */
void
la_searchkey_set(LaSearchKey *k, int column, Datum value)
{
	LaSearchKeyColumn *c = &k->columns[column];

	c->isnull = false;
	c->value = value;
	switch (c->kind)
	{
		case LA_COMPARE_FUNCTION:
			break;
		case LA_COMPARE_INT16:
		case LA_COMPARE_INT32:
		case LA_COMPARE_INT64:
			c->integer = integer_value(c->function.fn_oid, value, c->length);
			break;
		case LA_COMPARE_OID:
			c->integer = DatumGetObjectId(value);
			break;
		case LA_COMPARE_UUID:
			c->bytes = (const char *) DatumGetUUIDP(value)->data;
			break;
		case LA_COMPARE_BYTES:
			set_bytes(c, value);
			break;
	}
}

/* Set a column to null: in the key of an entry, not of a condition. */
void
la_searchkey_set_null(LaSearchKey *k, int column)
{
	k->columns[column].isnull = true;
}

static inline int
compare_integers(int64 a, int64 b)
{
	return (a > b) - (a < b);
}

/* Are the bytes of the value and of the attribute there, neither of them compressed? */
static inline bool
has_bytes(const LaSearchKeyColumn *c, const struct varlena *v)
{
	return c->bytes != NULL && (!VARATT_IS_EXTENDED(v) || VARATT_IS_SHORT(v));
}

static int
compare_bytes(const LaSearchKeyColumn *c, const struct varlena *v)
{
	int			length = VARSIZE_ANY_EXHDR(v);
	int			result = memcmp(c->bytes, VARDATA_ANY(v), Min(c->nbytes, length));

	return result != 0 ? result : compare_integers(c->nbytes, length);
}

/* Compare the key's value with an attribute, in ascending order. */
static inline int
compare_attribute(LaSearchKeyColumn *c, const char *attribute)
{
	int32		result;

	switch (c->kind)
	{
		case LA_COMPARE_INT16:
			return compare_integers(c->integer, *(const int16 *) attribute);
		case LA_COMPARE_INT32:
			return compare_integers(c->integer, *(const int32 *) attribute);
		case LA_COMPARE_INT64:
			return compare_integers(c->integer, *(const int64 *) attribute);
		case LA_COMPARE_OID:
			return compare_integers(c->integer, *(const Oid *) attribute);
		case LA_COMPARE_UUID:
			return memcmp(c->bytes, attribute, UUID_LEN);
		case LA_COMPARE_BYTES:
			if (has_bytes(c, (const struct varlena *) attribute))
				return compare_bytes(c, (const struct varlena *) attribute);
			break;
		case LA_COMPARE_FUNCTION:
			break;
	}
	/* cross-type functions take the index's type first */
	result = DatumGetInt32(FunctionCall2Coll(&c->function, c->collation,
											 fetch_att(attribute, c->byval,
													   c->length),
											 c->value));
	return compare_integers(0, result);
}

/* Does an attribute lie before `end`?  None is stored out of line in an index. */
static inline bool
attribute_fits(const LaSearchKeyColumn *c, const char *attribute, const char *end)
{
	if (c->length > 0)
		return attribute + c->length <= end;
	if (c->length == -1)
		return la_varlena_fits(attribute, end);
	return attribute < end && memchr(attribute, '\0', end - attribute) != NULL;
}

/*
 * The offset of attribute `to`, given that attribute `from` begins at `offset` or, if it has to
 * be aligned, behind it.  nulls is NULL if no attribute is null.  The result is behind `end` if
 * one of the attributes does not fit.
 */
static inline Size
find_attribute(const LaSearchKey *k, const char *data, const char *end, const uint8 *nulls,
			   int from, int to, Size offset)
{
	const LaSearchKeyColumn *c = &k->columns[from];

	for (int i = from; i < to; i++, c++)
	{
		if (nulls != NULL && att_isnull(i, nulls))
			continue;
		offset = att_align_pointer(offset, c->align, c->length, data + offset);
		if (unlikely(!attribute_fits(c, data + offset, end)))
			return end + 1 - data;
		offset = att_addlength_pointer(offset, c->length, data + offset);
	}
	return att_align_pointer(offset, c->align, c->length, data + offset);
}

/* The null bitmap, or NULL if no attribute is null. */
static inline const uint8 *
null_bitmap(IndexTuple tuple)
{
	return IndexTupleHasNulls(tuple) ?
		(const uint8 *) ((const char *) tuple + sizeof(IndexTupleData)) : NULL;
}

/* Do the attributes that a key may have lie within a tuple that has all of them? */
bool
la_searchkey_fits(const LaSearchKey *k, IndexTuple tuple)
{
	const char *data = (const char *) tuple + IndexInfoFindDataOffset(tuple->t_info);
	const char *end = (const char *) tuple + IndexTupleSize(tuple);
	const uint8 *nulls = null_bitmap(tuple);
	int			last = k->ncolumns - 1;
	Size		offset;

	if (data > end || BTreeTupleGetNAtts(tuple, k->index) <= last)
		return false;
	offset = find_attribute(k, data, end, nulls, 0, last, 0);
	if (nulls != NULL && att_isnull(last, nulls))
		return data + offset <= end;
	return attribute_fits(&k->columns[last], data + offset, end);
}

/* Compare the key's heap TID with that of the tuple, or with those of its posting list. */
static int
compare_tid(ItemPointer tid, IndexTuple tuple)
{
	ItemPointer first = BTreeTupleGetHeapTID(tuple);
	int			result;

	if (first == NULL)
		return 1;
	result = ItemPointerCompare(tid, first);
	if (result > 0 && BTreeTupleIsPosting(tuple) &&
		ItemPointerCompare(tid, BTreeTupleGetMaxHeapTID(tuple)) <= 0)
		return 0;
	return result;
}

/* The tuple is damaged: a result that ends a search. */
static int
damaged(LaSearchKey *k, int n, int *equal)
{
	k->damaged = true;
	*equal = n;
	return 1;
}

/*
 * Compare the key with a tuple, beginning with column `from`: those before are known to be
 * equal.  *equal is set to the number of leading columns that are.  All but the first downlink of
 * an inner page, which is never compared, have columns.
 */
int
la_searchkey_compare(LaSearchKey *k, IndexTuple tuple, int from, int *equal)
{
	int			natts = BTreeTupleGetNAtts(tuple, k->index);
	int			ncompared = Min(natts, k->ncolumns);
	const char *data = (const char *) tuple + IndexInfoFindDataOffset(tuple->t_info);
	const char *end = (const char *) tuple + IndexTupleSize(tuple);
	const uint8 *nulls = null_bitmap(tuple);
	int			known = 0;		/* the attribute that begins at offset */
	Size		offset = 0;

	if (unlikely(natts == 0 || data > end))
		return damaged(k, from, equal);
	for (int i = from; i < ncompared; i++)
	{
		LaSearchKeyColumn *c = &k->columns[i];
		bool		isnull = nulls != NULL && att_isnull(i, nulls);
		int			result;

		if (isnull && c->isnull)
			continue;
		if (isnull || c->isnull)
		{
			*equal = i;
			return isnull == c->nulls_first ? 1 : -1;
		}
		if (nulls == NULL && c->offset >= 0)
			offset = c->offset;
		else
			offset = find_attribute(k, data, end, nulls, known, i, offset);
		if (unlikely(!attribute_fits(c, data + offset, end)))
			return damaged(k, i, equal);
		result = compare_attribute(c, data + offset);
		if (result != 0)
		{
			*equal = i;
			return c->desc ? (result < 0 ? 1 : -1) : (result < 0 ? -1 : 1);
		}
		offset = att_addlength_pointer(offset, c->length, data + offset);
		known = i + 1;
	}

	*equal = ncompared;
	if (k->ncolumns > natts)
		return 1;				/* truncated attributes are minus infinity */
	if (k->tid != NULL)
		return compare_tid(k->tid, tuple);
	if (k->heapkeyspace && k->ncolumns == natts &&
		BTreeTupleGetHeapTID(tuple) == NULL)
		return 1;
	return 0;
}
