/*
 * sqlrow.h
 *	  The rows that an SQL function returns, put together column by column.
 *
 * src/base/sqlrow.h
 */
#ifndef LA_SQLROW_H
#define LA_SQLROW_H

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "base/counters.h"

#define LA_SQLROW_COLUMNS 40

typedef struct LaSqlRow
{
	ReturnSetInfo *result;		/* of a function that returns a set */
	int			n;
	Datum		values[LA_SQLROW_COLUMNS];
	bool		nulls[LA_SQLROW_COLUMNS];
} LaSqlRow;

static inline void
la_sqlrow_put_unless(LaSqlRow *row, bool null, Datum value)
{
	Assert(row->n < LA_SQLROW_COLUMNS);
	row->nulls[row->n] = null;
	row->values[row->n++] = value;
}

static inline void
la_sqlrow_put(LaSqlRow *row, Datum value)
{
	la_sqlrow_put_unless(row, false, value);
}

static inline void
la_sqlrow_put_count(LaSqlRow *row, int64 count)
{
	la_sqlrow_put(row, Int64GetDatum(count));
}

/* 0 is null. */
static inline void
la_sqlrow_put_oid(LaSqlRow *row, Oid oid)
{
	la_sqlrow_put_unless(row, !OidIsValid(oid), ObjectIdGetDatum(oid));
}

static inline void
la_sqlrow_put_text(LaSqlRow *row, const char *text)
{
	la_sqlrow_put_unless(row, text == NULL, text == NULL ? (Datum) 0 : CStringGetTextDatum(text));
}

/* 0 is null. */
static inline void
la_sqlrow_put_time(LaSqlRow *row, TimestampTz time)
{
	la_sqlrow_put_unless(row, time == 0, TimestampTzGetDatum(time));
}

static inline void
la_sqlrow_put_milliseconds(LaSqlRow *row, int64 ns)
{
	la_sqlrow_put(row, Float8GetDatum((double) ns / LA_NS_IN_MS));
}

/* The function returns a set, of no row so far. */
static inline void
la_sqlrow_begin(LaSqlRow *row, FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	row->result = (ReturnSetInfo *) fcinfo->resultinfo;
	row->n = 0;
}

/* The row is complete; the next one begins. */
static inline void
la_sqlrow_end(LaSqlRow *row)
{
	Assert(row->n == row->result->setDesc->natts);
	tuplestore_putvalues(row->result->setResult, row->result->setDesc, row->values, row->nulls);
	row->n = 0;
}

/* The result of a function that returns one row.  Columns that were not put are null. */
static inline Datum
la_sqlrow_datum(LaSqlRow *row, FunctionCallInfo fcinfo)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	Assert(row->n <= desc->natts && desc->natts <= LA_SQLROW_COLUMNS);
	while (row->n < desc->natts)
		la_sqlrow_put_unless(row, true, (Datum) 0);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), row->values, row->nulls));
}

#endif							/* LA_SQLROW_H */
