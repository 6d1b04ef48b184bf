/*
 * values_rows.c
 *	  The rows to come of VALUES.
 *
 * They are lists of expressions.  Rows of constants are known.  No other expression is evaluated,
 * so a row that has any is the end of what is known, until it has been the scan's current row.
 *
 * src/nestloop/values_rows.c
 */
#include "postgres.h"

#include "executor/executor.h"

#include "base/compat.h"
#include "nestloop/nestloop_int.h"

typedef struct ValuesRows
{
	LaRowsToCome base;
	ValuesScanState *scan;
	LaRowFilter *filter;
	TupleTableSlot *slot;
	int			next;
} ValuesRows;

static void
restart(LaRowsToCome *rows)
{
	ValuesRows *r = (ValuesRows *) rows;

	r->next = r->scan->curr_idx + 1;
}

/* Put a row into the slot.  Returns false if it is not known. */
static bool
take(ValuesRows *r, const List *expressions)
{
	const ListCell *lc;
	int			i = 0;

	ExecClearTuple(r->slot);
	foreach(lc, expressions)
	{
		const Const *value = lfirst(lc);

		if (!IsA(value, Const))
			return false;
		r->slot->tts_values[i] = value->constvalue;
		r->slot->tts_isnull[i++] = value->constisnull;
	}
	ExecStoreVirtualTuple(r->slot);
	return true;
}

static TupleTableSlot *
next(LaRowsToCome *rows)
{
	ValuesRows *r = (ValuesRows *) rows;

	while (r->next < r->scan->array_len)
	{
		if (!take(r, r->scan->exprlists[r->next]))
			break;
		r->next++;
		if (la_rowfilter_passes(r->filter, r->slot))
			return r->slot;
	}
	return NULL;
}

/* In the current memory context, which is the query's. */
LaRowsToCome *
la_valuesrows_create(ValuesScanState *scan, const LaRunAhead *hints)
{
	ValuesRows *r = palloc0(sizeof(ValuesRows));

	r->base.restart = restart;
	r->base.next = next;
	r->scan = scan;
	r->filter = la_rowfilter_create(&scan->ss, hints);
	r->slot = la_alloc_table_slot(&scan->ss.ps.state->es_tupleTable,
								  scan->ss.ss_ScanTupleSlot->tts_tupleDescriptor, &TTSOpsVirtual);
	return &r->base;
}
