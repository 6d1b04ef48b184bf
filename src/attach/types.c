/*
 * types.c
 *	  What the server's polymorphic functions call for the types that they are given.
 *
 * "Plain" types are those for which they call functions of the server only.  Whether these raise
 * errors depends on the types, too: rows, arrays, ranges and multiranges are compared and hashed by
 * the default functions of their parts, which are looked up when the first value is compared.  A
 * part of a type without such a function, as json, makes that an error, and only if the parts
 * before it are equal.
 *
 * src/attach/types.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "attach/attach.h"
#include "attach/attach_int.h"
#include "base/compat.h"

/*
 * A type that only expressions use may have been dropped by now, by the statement itself, too.  The
 * server goes on, as it has looked up what it needs; nothing is known of the type.
 */
bool
la_type_exists(Oid type)
{
	return get_typtype(type) != '\0';
}

/* Does this hold for the types of all columns? */
static bool
columns_are(Oid type, bool (*what) (Oid type))
{
	TupleDesc	desc = lookup_rowtype_tupdesc_noerror(type, -1, true);
	bool		result = desc != NULL;

	for (int i = 0; result && i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		result = att->attisdropped || what(att->atttypid);
	}
	if (desc != NULL)
		ReleaseTupleDesc(desc);
	return result;
}

/* Do neither the type's input function nor its output function raise notices? */
bool
la_type_is_quiet(Oid type)
{
	Oid			base;
	Oid			element;
	HeapTuple	tuple;
	bool		quiet = false;

	if (!la_type_exists(type))
		return false;
	base = getBaseType(type);
	element = get_element_type(base);
	if (OidIsValid(element))
		return la_type_is_quiet(element);
	if (get_typtype(base) == TYPTYPE_COMPOSITE)
		return columns_are(base, la_type_is_quiet);
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(base));
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_type form = (Form_pg_type) GETSTRUCT(tuple);

		quiet = !la_function_is(form->typinput, LA_FUNCTION_NOTICES) &&
			!la_function_is(form->typoutput, LA_FUNCTION_NOTICES);
		ReleaseSysCache(tuple);
	}
	return quiet;
}

/* The json functions call such a cast, which may be in any language. */
static bool
has_cast_to_json(Oid type)
{
	Oid			function;

	return find_coercion_pathway(JSONOID, type, COERCION_EXPLICIT, &function) ==
		COERCION_PATH_FUNC;
}

/* A user can give any type a default operator class, whose functions are called for parts of it. */
static bool
is_compared_by_server(Oid type)
{
	const TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_EQ_OPR |
													TYPECACHE_CMP_PROC | TYPECACHE_HASH_PROC |
													TYPECACHE_HASH_EXTENDED_PROC);

	return entry->eq_opr < FirstNormalObjectId && entry->cmp_proc < FirstNormalObjectId &&
		entry->hash_proc < FirstNormalObjectId && entry->hash_extended_proc < FirstNormalObjectId;
}

/*
 * Does a polymorphic function call only functions of the server for it?  Of the types that have
 * the server's default operator classes for both btree and hash, beside which nobody can make
 * others, this is known without a look at the catalogs.
 */
bool
la_type_is_plain(Oid type)
{
	Oid			element;

	switch (type)
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
		case TEXTOID:
		case BPCHAROID:
		case NAMEOID:
		case OIDOID:
		case BYTEAOID:
		case UUIDOID:
		case DATEOID:
		case TIMEOID:
		case TIMETZOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case INTERVALOID:
		case INETOID:
		case JSONBOID:
			return true;
		case VARCHAROID:
			return is_compared_by_server(type);
		default:
			break;
	}
	if (!la_type_exists(type))
		return false;
	element = get_element_type(type);

	if (get_typtype(type) != TYPTYPE_PSEUDO && !is_compared_by_server(type))
		return false;
	if (OidIsValid(element))
		return la_type_is_plain(element);
	switch (get_typtype(type))
	{
		case TYPTYPE_ENUM:
			return !has_cast_to_json(type);
		case TYPTYPE_COMPOSITE:
			return columns_are(type, la_type_is_plain);
		case TYPTYPE_BASE:
		case TYPTYPE_RANGE:
		case TYPTYPE_MULTIRANGE:
			return type < FirstNormalObjectId;
		case TYPTYPE_PSEUDO:
			/* of a literal, which the function takes for text */
			return type == UNKNOWNOID;
		default:
			return false;
	}
}

/* Is it a row, or made of rows? */
bool
la_type_has_rows(Oid type)
{
	Oid			base;
	Oid			element;

	if (!la_type_exists(type))
		return true;
	base = getBaseType(type);
	element = get_element_type(base);
	switch (get_typtype(base))
	{
		case TYPTYPE_COMPOSITE:
			return true;
		case TYPTYPE_RANGE:
			return la_type_has_rows(get_range_subtype(base));
		case TYPTYPE_MULTIRANGE:
			return la_type_has_rows(get_multirange_range(base));
		default:
			return OidIsValid(element) && la_type_has_rows(element);
	}
}

/* ---- comparisons ------------------------------------------------------------ */

/* What a polymorphic support function wants of the types that values are made of. */
typedef enum Want
{
	WANT_EQUALITY,
	WANT_ORDER,
	WANT_HASH
} Want;

static Want
want_of(Oid function)
{
	switch (function)
	{
		case F_ARRAY_EQ:
		case F_ARRAY_NE:
		case F_RECORD_EQ:
		case F_RECORD_NE:
			return WANT_EQUALITY;
		case F_HASH_ARRAY:
		case F_HASH_ARRAY_EXTENDED:
		case F_HASH_RECORD:
		case F_HASH_RECORD_EXTENDED:
		case F_HASH_RANGE:
		case F_HASH_RANGE_EXTENDED:
		case F_HASH_MULTIRANGE:
		case F_HASH_MULTIRANGE_EXTENDED:
			return WANT_HASH;
		default:
			return WANT_ORDER;
	}
}

/* The function by which values of a type are compared or hashed as parts of others. */
static Oid
function_of_parts(Oid type, Want want)
{
	switch (want)
	{
		case WANT_EQUALITY:
			return get_opcode(lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr);
		case WANT_HASH:
			return lookup_type_cache(type, TYPECACHE_HASH_PROC)->hash_proc;
		default:
			return lookup_type_cache(type, TYPECACHE_CMP_PROC)->cmp_proc;
	}
}

static bool parts_may_fail(Oid type, Want want);

static bool
row_may_fail(Oid type, Want want)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_noerror(type, -1, true);
	bool		result = desc == NULL;

	for (int i = 0; !result && i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		result = !att->attisdropped &&
			(parts_may_fail(att->atttypid, want) || !la_collation_is_silent(att->attcollation));
	}
	if (desc != NULL)
		ReleaseTupleDesc(desc);
	return result;
}

/* May it raise an error to compare or hash values of this type, by its default function? */
static bool
parts_may_fail(Oid type, Want want)
{
	Oid			base = getBaseType(type);
	Oid			element = get_element_type(base);
	Oid			function;

	if (OidIsValid(element))
		return parts_may_fail(element, want);
	switch (get_typtype(base))
	{
		case TYPTYPE_COMPOSITE:
			return row_may_fail(base, want);
		case TYPTYPE_MULTIRANGE:
			return parts_may_fail(get_multirange_range(base), want);
		case TYPTYPE_RANGE:
			/* bounds are compared for each purpose, and hashed besides */
			return parts_may_fail(get_range_subtype(base), WANT_ORDER) ||
				(want == WANT_HASH && parts_may_fail(get_range_subtype(base), want));
		case TYPTYPE_ENUM:
			return false;
		case TYPTYPE_BASE:
			function = function_of_parts(base, want);
			return !OidIsValid(function) || la_function_may_raise(function);
		default:
			return true;
	}
}

/* May a polymorphic support function raise an error for values of this type? */
bool
la_type_comparison_may_fail(Oid type, Oid function)
{
	return !la_type_exists(type) || parts_may_fail(type, want_of(function));
}
