/*
 * known_functions.c
 *	  Functions of the server of which more is known than pg_proc says.
 *
 * Functions that raise notices, or read state though they are declared immutable, support functions
 * that raise errors, and stable ones that hold nothing then, are found by dev/functions in the
 * server's sources (function_lists.h).  A function of the server that these sources do not have
 * counts as one with effects.  What follows here is known by reading: of functions that it would
 * not be right to judge by what they call, the source of each has been read in all supported
 * versions.  Running out of memory, interrupts and damaged data do not count as errors, since they
 * do not depend on the order of evaluation.
 *
 * src/attach/known_functions.c
 */
#include "postgres.h"

#include "access/transam.h"
#include "utils/fmgroids.h"

#include "attach/attach_int.h"
#include "attach/function_lists.h"
#include "base/compat.h"

/*
 * Functions of what is fixed for the transaction or the session.  statement_timestamp() is
 * not among them, as each FETCH from a cursor sets it anew; nor are functions of a setting,
 * such as the time zone, because set_config() may change it within a statement.
 */
static const Oid fixed[] = {
	F_NOW, F_TRANSACTION_TIMESTAMP,
	F_CURRENT_DATABASE, F_PG_BACKEND_PID, F_PG_POSTMASTER_START_TIME, F_VERSION
};

/*
 * Functions that are not declared volatile, and run code that their arguments name (a
 * query over a view, the input function of a type, a hash function), or assign a
 * transaction ID, or show whether one has been assigned, or how many multixacts, which row locks
 * of the statement's own assign.
 */
static const Oid effects[] = {
	F_TABLE_TO_XML, F_TABLE_TO_XMLSCHEMA, F_TABLE_TO_XML_AND_XMLSCHEMA,
	F_SCHEMA_TO_XML, F_SCHEMA_TO_XMLSCHEMA, F_SCHEMA_TO_XML_AND_XMLSCHEMA,
	F_DATABASE_TO_XML, F_DATABASE_TO_XMLSCHEMA, F_DATABASE_TO_XML_AND_XMLSCHEMA,
	LA_INPUT_TEST_FUNCTIONS
	F_SATISFIES_HASH_PARTITION, F_TXID_CURRENT, F_PG_CURRENT_XACT_ID,
	F_MXID_AGE, F_TXID_CURRENT_IF_ASSIGNED, F_PG_CURRENT_XACT_ID_IF_ASSIGNED
};

/*
 * Volatile functions whose only effect is that the next call returns another value: of a
 * sequence, or of a generator of random numbers.  Where nothing else draws from the same source
 * in between, it cannot be noticed when they are called, as long as their order is the same.
 * uuidv7() is one of them: it returns ascending values, whose time lies within the statement.
 * clock_timestamp() is not, since the time of the call is all that it is for, nor is uuidv7() of an
 * interval, which is added in the session's time zone.
 */
static const Oid draws[] = {
	F_NEXTVAL, F_GEN_RANDOM_UUID, LA_RANDOM_FUNCTIONS
};

static const Oid errorfree[] = {
	/* comparisons, and other functions in filters and join clauses */
	F_NUMERIC_EQ, F_NUMERIC_NE, F_NUMERIC_LT, F_NUMERIC_LE, F_NUMERIC_GT, F_NUMERIC_GE,
	F_NUMERIC_CMP, F_ENUM_EQ, F_ENUM_NE,
	F_JSONB_OBJECT_FIELD, F_JSONB_OBJECT_FIELD_TEXT, F_JSONB_ARRAY_ELEMENT,
	F_JSONB_ARRAY_ELEMENT_TEXT, F_JSONB_CONTAINS, F_JSONB_CONTAINED, F_JSONB_EXISTS,
	F_LENGTH_TEXT, F_OCTET_LENGTH_TEXT, F_TEXT_BPCHAR, F_TEXTCAT,
	F_GENERATE_SERIES_INT4_INT4, F_GENERATE_SERIES_INT8_INT8, F_UNNEST_ANYARRAY,

	/* transition and final functions of aggregates; counts do not overflow */
	F_INT8INC, F_INT8INC_ANY, F_INT2_SUM, F_INT4_SUM,
	F_INT2LARGER, F_INT2SMALLER, F_INT4LARGER, F_INT4SMALLER, F_INT8LARGER, F_INT8SMALLER,
	F_NUMERIC_LARGER, F_NUMERIC_SMALLER, F_DATE_LARGER, F_DATE_SMALLER,
	F_TIMESTAMP_LARGER, F_TIMESTAMP_SMALLER, F_TIMESTAMPTZ_LARGER, F_TIMESTAMPTZ_SMALLER,
	F_ARRAY_AGG_TRANSFN, F_ARRAY_AGG_FINALFN, F_BOOLAND_STATEFUNC, F_BOOLOR_STATEFUNC
};

static const Oid like[] = {F_TEXTLIKE, F_TEXTNLIKE, F_BPCHARLIKE, F_BPCHARNLIKE};

static const Oid division[] = {
	F_INT2DIV, F_INT24DIV, F_INT28DIV, F_INT4DIV, F_INT42DIV, F_INT48DIV,
	F_INT8DIV, F_INT82DIV, F_INT84DIV, F_INT2MOD, F_INT4MOD, F_INT8MOD,
	F_MOD_INT2_INT2, F_MOD_INT4_INT4, F_MOD_INT8_INT8
};

static const struct
{
	const Oid  *functions;
	int			n;
	const Oid  *made;			/* sorted; see dev/functions */
	int			nmade;
}			lists[] = {
	[LA_FUNCTION_FIXED] = {.functions = fixed,.n = lengthof(fixed)},
	[LA_FUNCTION_EFFECTS] = {.functions = effects,.n = lengthof(effects)},
	[LA_FUNCTION_STATE] = {.made = made_state,.nmade = lengthof(made_state)},
	[LA_FUNCTION_SETTINGS] = {.made = made_settings,.nmade = lengthof(made_settings)},
	[LA_FUNCTION_NOTICES] = {.made = made_notices,.nmade = lengthof(made_notices)},
	[LA_FUNCTION_DRAWS] = {.functions = draws,.n = lengthof(draws)},
	[LA_FUNCTION_ERRORFREE] = {.functions = errorfree,.n = lengthof(errorfree)},
	[LA_FUNCTION_LIKE] = {.functions = like,.n = lengthof(like)},
	[LA_FUNCTION_DIVISION] = {.functions = division,.n = lengthof(division)},
};

static int
compare(const void *a, const void *b)
{
	Oid			first = *(const Oid *) a;
	Oid			second = *(const Oid *) b;

	return first < second ? -1 : first > second ? 1 : 0;
}

static bool
is_listed(Oid function, const Oid *list, int n)
{
	return n > 0 && bsearch(&function, list, n, sizeof(Oid), compare) != NULL;
}

/* Do the sources that the lists were made from have this function of the server? */
static bool
is_examined(Oid function)
{
	int			low = 0;
	int			high = lengthof(made_known);

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (function > made_known[middle][1])
			low = middle + 1;
		else
			high = middle;
	}
	return low < (int) lengthof(made_known) && function >= made_known[low][0];
}

bool
la_function_is(Oid function, LaKnownFunction kind)
{
	for (int i = 0; i < lists[kind].n; i++)
	{
		if (lists[kind].functions[i] == function)
			return true;
	}
	if (kind == LA_FUNCTION_EFFECTS)
		return function < FirstGenbkiObjectId && !is_examined(function);
	return is_listed(function, lists[kind].made, lists[kind].nmade);
}

/* May a support function of an access method raise an error? */
bool
la_function_may_raise(Oid function)
{
	return function >= FirstGenbkiObjectId || !is_examined(function) ||
		is_listed(function, made_raises, lengthof(made_raises));
}
