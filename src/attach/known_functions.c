/*
 * known_functions.c
 *	  Functions of the server of which more is known than pg_proc says.
 *
 * The source of each function listed here has been read, in all supported versions.  Running
 * out of memory, interrupts and damaged data do not count as errors: they do not depend on
 * the order of evaluation.
 *
 * src/attach/known_functions.c
 */
#include "postgres.h"

#include "utils/fmgroids.h"

#include "attach/known_functions.h"

/*
 * The start of the transaction or the statement, and what is fixed for the whole session.
 * Not what depends on a setting, such as the time zone: set_config() may change it in the
 * middle of a statement.
 */
bool
la_function_is_fixed(Oid function)
{
	switch (function)
	{
		case F_NOW:
		case F_TRANSACTION_TIMESTAMP:
		case F_STATEMENT_TIMESTAMP:
		case F_CURRENT_DATABASE:
		case F_PG_BACKEND_PID:
		case F_PG_POSTMASTER_START_TIME:
		case F_VERSION:
			return true;
		default:
			return false;
	}
}

/* Comparisons, and other functions in filters and join clauses. */
static bool
scalar_is_errorfree(Oid function)
{
	switch (function)
	{
		case F_NUMERIC_EQ:
		case F_NUMERIC_NE:
		case F_NUMERIC_LT:
		case F_NUMERIC_LE:
		case F_NUMERIC_GT:
		case F_NUMERIC_GE:
		case F_NUMERIC_CMP:
		case F_ENUM_EQ:
		case F_ENUM_NE:
		case F_JSONB_OBJECT_FIELD:
		case F_JSONB_OBJECT_FIELD_TEXT:
		case F_JSONB_ARRAY_ELEMENT:
		case F_JSONB_ARRAY_ELEMENT_TEXT:
		case F_JSONB_CONTAINS:
		case F_JSONB_CONTAINED:
		case F_JSONB_EXISTS:
		case F_LENGTH_TEXT:
		case F_OCTET_LENGTH_TEXT:
		case F_TEXT_BPCHAR:
		case F_TEXTCAT:
		case F_GENERATE_SERIES_INT4_INT4:
		case F_GENERATE_SERIES_INT8_INT8:
		case F_UNNEST_ANYARRAY:
			return true;
		default:
			return false;
	}
}

/* Transition and final functions of aggregates, whose counts do not overflow. */
static bool
transition_is_errorfree(Oid function)
{
	switch (function)
	{
		case F_INT8INC:
		case F_INT8INC_ANY:
		case F_INT2_SUM:
		case F_INT4_SUM:
		case F_INT2LARGER:
		case F_INT2SMALLER:
		case F_INT4LARGER:
		case F_INT4SMALLER:
		case F_INT8LARGER:
		case F_INT8SMALLER:
		case F_NUMERIC_LARGER:
		case F_NUMERIC_SMALLER:
		case F_DATE_LARGER:
		case F_DATE_SMALLER:
		case F_TIMESTAMP_LARGER:
		case F_TIMESTAMP_SMALLER:
		case F_TIMESTAMPTZ_LARGER:
		case F_TIMESTAMPTZ_SMALLER:
		case F_ARRAY_AGG_TRANSFN:
		case F_ARRAY_AGG_FINALFN:
		case F_BOOLAND_STATEFUNC:
		case F_BOOLOR_STATEFUNC:
			return true;
		default:
			return false;
	}
}

bool
la_function_is_errorfree(Oid function)
{
	return scalar_is_errorfree(function) || transition_is_errorfree(function);
}

bool
la_function_is_like(Oid function)
{
	switch (function)
	{
		case F_TEXTLIKE:
		case F_TEXTNLIKE:
		case F_BPCHARLIKE:
		case F_BPCHARNLIKE:
			return true;
		default:
			return false;
	}
}

/* Integer division fails for a divisor of zero, and may overflow for one of -1. */
bool
la_function_divides(Oid function)
{
	switch (function)
	{
		case F_INT2DIV:
		case F_INT24DIV:
		case F_INT28DIV:
		case F_INT4DIV:
		case F_INT42DIV:
		case F_INT48DIV:
		case F_INT8DIV:
		case F_INT82DIV:
		case F_INT84DIV:
		case F_INT2MOD:
		case F_INT4MOD:
		case F_INT8MOD:
		case F_MOD_INT2_INT2:
		case F_MOD_INT4_INT4:
		case F_MOD_INT8_INT8:
			return true;
		default:
			return false;
	}
}
