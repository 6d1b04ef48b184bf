/*
 * known_functions.c
 *	  Functions of the server of which more is known than pg_proc says.
 *
 * The source of each function listed here has been read in all supported versions.  Running
 * out of memory, interrupts and damaged data do not count as errors, since they do not
 * depend on the order of evaluation.
 *
 * src/attach/known_functions.c
 */
#include "postgres.h"

#include "access/transam.h"
#include "utils/fmgroids.h"

#include "attach/known_functions.h"
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
 * transaction ID, or show whether one has been assigned.
 */
static const Oid effects[] = {
	F_TABLE_TO_XML, F_TABLE_TO_XMLSCHEMA, F_TABLE_TO_XML_AND_XMLSCHEMA,
	F_SCHEMA_TO_XML, F_SCHEMA_TO_XMLSCHEMA, F_SCHEMA_TO_XML_AND_XMLSCHEMA,
	F_DATABASE_TO_XML, F_DATABASE_TO_XMLSCHEMA, F_DATABASE_TO_XML_AND_XMLSCHEMA,
	LA_INPUT_TEST_FUNCTIONS
	F_SATISFIES_HASH_PARTITION, F_TXID_CURRENT, F_PG_CURRENT_XACT_ID,
	F_TXID_CURRENT_IF_ASSIGNED, F_PG_CURRENT_XACT_ID_IF_ASSIGNED
};

/* Functions that are declared immutable, and read a setting, or whether recovery is in progress. */
static const Oid settings[] = {
	F_QUOTE_IDENT, F_PG_WALFILE_NAME, F_PG_WALFILE_NAME_OFFSET
};

/* Functions that parse text for text search, or XML, and may raise a notice about it. */
static const Oid notices[] = {
	F_TO_TSVECTOR_TEXT, F_TO_TSVECTOR_REGCONFIG_TEXT, F_TO_TSVECTOR_JSON,
	F_TO_TSVECTOR_REGCONFIG_JSON, F_TO_TSVECTOR_JSONB, F_TO_TSVECTOR_REGCONFIG_JSONB,
	F_JSON_TO_TSVECTOR_JSON_JSONB, F_JSON_TO_TSVECTOR_REGCONFIG_JSON_JSONB,
	F_JSONB_TO_TSVECTOR_JSONB_JSONB, F_JSONB_TO_TSVECTOR_REGCONFIG_JSONB_JSONB,
	F_TO_TSQUERY_TEXT, F_TO_TSQUERY_REGCONFIG_TEXT, F_PLAINTO_TSQUERY_TEXT,
	F_PLAINTO_TSQUERY_REGCONFIG_TEXT, F_PHRASETO_TSQUERY_TEXT,
	F_PHRASETO_TSQUERY_REGCONFIG_TEXT, F_WEBSEARCH_TO_TSQUERY_TEXT,
	F_WEBSEARCH_TO_TSQUERY_REGCONFIG_TEXT, F_TS_LEXIZE,
	F_TS_HEADLINE_TEXT_TSQUERY, F_TS_HEADLINE_TEXT_TSQUERY_TEXT,
	F_TS_HEADLINE_REGCONFIG_TEXT_TSQUERY, F_TS_HEADLINE_REGCONFIG_TEXT_TSQUERY_TEXT,
	F_TS_HEADLINE_JSON_TSQUERY, F_TS_HEADLINE_JSON_TSQUERY_TEXT,
	F_TS_HEADLINE_REGCONFIG_JSON_TSQUERY, F_TS_HEADLINE_REGCONFIG_JSON_TSQUERY_TEXT,
	F_TS_HEADLINE_JSONB_TSQUERY, F_TS_HEADLINE_JSONB_TSQUERY_TEXT,
	F_TS_HEADLINE_REGCONFIG_JSONB_TSQUERY, F_TS_HEADLINE_REGCONFIG_JSONB_TSQUERY_TEXT,
	F_XML, F_XMLEXISTS, F_XPATH_TEXT_XML, F_XPATH_TEXT_XML__TEXT, F_XPATH_EXISTS_TEXT_XML,
	F_XPATH_EXISTS_TEXT_XML__TEXT, F_XML_IS_WELL_FORMED, F_XML_IS_WELL_FORMED_DOCUMENT,
	F_XML_IS_WELL_FORMED_CONTENT, F_TS_MATCH_TT, F_TS_MATCH_TQ, F_TO_REGTYPE, F_TO_REGPROCEDURE,
	F_TO_REGOPERATOR
};

/*
 * Volatile functions whose only effect is that the next call returns another value: of a
 * sequence, or of a generator of random numbers.  Where nothing else draws from the same source
 * in between, it cannot be noticed when they are called, as long as their order is the same.
 * Functions of the clock, such as uuidv7(), are not among them.
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
}			lists[] = {
	[LA_FUNCTION_FIXED] = {fixed, lengthof(fixed)},
	[LA_FUNCTION_EFFECTS] = {effects, lengthof(effects)},
	[LA_FUNCTION_SETTINGS] = {settings, lengthof(settings)},
	[LA_FUNCTION_NOTICES] = {notices, lengthof(notices)},
	[LA_FUNCTION_DRAWS] = {draws, lengthof(draws)},
	[LA_FUNCTION_ERRORFREE] = {errorfree, lengthof(errorfree)},
	[LA_FUNCTION_LIKE] = {like, lengthof(like)},
	[LA_FUNCTION_DIVISION] = {division, lengthof(division)},
};

bool
la_function_is(Oid function, LaKnownFunction kind)
{
	for (int i = 0; i < lists[kind].n; i++)
	{
		if (lists[kind].functions[i] == function)
			return true;
	}
	return false;
}

/* Placeholder until function lists are generated: may this function raise an error? */
bool
la_function_may_raise(Oid function)
{
	switch (function)
	{
		case F_BTOIDVECTORCMP:
		case F_HASHOIDVECTOR:
		case F_HASHOIDVECTOREXTENDED:
		case F_BTRECORDCMP:
		case F_BTARRAYCMP:
		case F_HASH_ARRAY:
		case F_HASH_ARRAY_EXTENDED:
		case F_HASH_RECORD:
		case F_HASH_RECORD_EXTENDED:
		case F_RANGE_CMP:
		case F_HASH_RANGE:
		case F_HASH_RANGE_EXTENDED:
		case F_MULTIRANGE_CMP:
		case F_HASH_MULTIRANGE:
		case F_HASH_MULTIRANGE_EXTENDED:
			return true;
		default:
			return function >= FirstGenbkiObjectId;
	}
}
