/*
 * tidlog.c
 *	  Rows that have been written, in their order.
 *
 * The triggers of foreign keys are called for rows in the order in which these were written: after
 * the last row of a statement, or, if the constraint is deferred, when the transaction ends.  So
 * the rows' addresses are noted when they are written, as many as scan_memory has room for; a row
 * behind that is not known ahead.
 *
 *		written by				is noted when
 *		UPDATE, DELETE			the plan returns the row: its old version
 *		INSERT					the plan is asked for the next row: the slot has the address
 *		COPY FROM				it begins: one entry for all rows, one behind the other
 *
 * src/write/tidlog.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "base/base.h"
#include "write/write_int.h"

#define FIRST_ENTRIES	256

struct LaTidLog
{
	MemoryContext context;
	LaBudget	budget;
	MemoryContextCallback callback;
	int64		length;
	int64		allocated;
	bool		full;
	LaTidEntry *entries;
};

static void
release_budget(void *arg)
{
	la_budget_end(&((LaTidLog *) arg)->budget);
}

/* context: in which it lives */
LaTidLog *
la_tidlog_create(MemoryContext context)
{
	LaTidLog   *log = MemoryContextAllocZero(context, sizeof(LaTidLog));

	log->context = context;
	log->budget.limit = (Size) la_scan_memory * 1024;
	log->callback.func = release_budget;
	log->callback.arg = log;
	MemoryContextRegisterResetCallback(context, &log->callback);
	return log;
}

/* Is there room for one more entry? */
static bool
make_room(LaTidLog *log)
{
	int64		more = Max(log->allocated, FIRST_ENTRIES);
	Size		bytes = more * sizeof(LaTidEntry);

	if (log->full || log->length < log->allocated)
		return !log->full;
	log->full = !la_budget_has(&log->budget, bytes);
	if (log->full)
		return false;
	la_budget_take(&log->budget, bytes);
	log->allocated += more;
	log->entries = log->entries == NULL ?
		MemoryContextAllocHuge(log->context, log->allocated * sizeof(LaTidEntry)) :
		repalloc_huge(log->entries, log->allocated * sizeof(LaTidEntry));
	return true;
}

/* Returns the entry's number, or -1 if there is no room. */
int64
la_tidlog_add(LaTidLog *log, Oid table, LaTidKind kind, const ItemPointerData *tid)
{
	if (!make_room(log))
		return -1;
	log->entries[log->length] = (LaTidEntry)
	{
		*tid, kind, table
	};
	return log->length++;
}

/* The rows of this entry are elsewhere. */
void
la_tidlog_move(LaTidLog *log, int64 n, const ItemPointerData *tid)
{
	log->entries[n].tid = *tid;
}

/* The plan of an UPDATE or DELETE returns a row. */
void
la_tidlog_note(LaTidLog *log, ModifyTableState *mt, TupleTableSlot *row)
{
	ResultRelInfo *relation = mt->resultRelInfo;
	bool		isnull;
	Datum		value;

	if (log->full)
		return;
	if (AttributeNumberIsValid(mt->mt_resultOidAttno))
	{
		value = slot_getattr(row, mt->mt_resultOidAttno, &isnull);
		relation = isnull ? NULL :
			ExecLookupResultRelByOid(mt, DatumGetObjectId(value), true, false);
	}
	if (relation == NULL || !AttributeNumberIsValid(relation->ri_RowIdAttNo))
		return;
	value = slot_getattr(row, relation->ri_RowIdAttNo, &isnull);
	if (!isnull)
		(void) la_tidlog_add(log, RelationGetRelid(relation->ri_RelationDesc),
							 mt->operation == CMD_DELETE ? LA_TID_DELETED : LA_TID_UPDATED,
							 (ItemPointer) DatumGetPointer(value));
}

/*
 * An INSERT asks its plan for the next row.  row: the last one that it got.  It has the address of
 * the table's row, unless that was formed in another slot.
 */
void
la_tidlog_note_inserted(LaTidLog *log, ModifyTableState *mt, TupleTableSlot *row)
{
	const TupleTableSlot *formed = mt->resultRelInfo->ri_newTupleSlot;

	if (formed != NULL && ItemPointerIsValid(&formed->tts_tid))
		row = unconstify(TupleTableSlot *, formed);
	if (!TTS_EMPTY(row) && OidIsValid(row->tts_tableOid) && ItemPointerIsValid(&row->tts_tid))
		(void) la_tidlog_add(log, row->tts_tableOid, LA_TID_INSERTED, &row->tts_tid);
}

int64
la_tidlog_length(const LaTidLog *log)
{
	return log->length;
}

const LaTidEntry *
la_tidlog_get(const LaTidLog *log, int64 n)
{
	return &log->entries[n];
}

/* The number of the entry of this row, among the `most` from there on; -1: none. */
int64
la_tidlog_find(const LaTidLog *log, int64 from, int64 most, Oid table,
			   const ItemPointerData *tid)
{
	for (int64 n = from; n < Min(log->length, from + most); n++)
	{
		if (log->entries[n].table == table &&
			ItemPointerEquals(&log->entries[n].tid, unconstify(ItemPointerData *, tid)))
			return n;
	}
	return -1;
}
