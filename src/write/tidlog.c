/*
 * tidlog.c
 *	  The rows that an UPDATE or DELETE has come to, in their order.
 *
 * The triggers of foreign keys are called for these rows after the last one, in the same order.
 * So their addresses are noted when the plan returns them, as many as scan_memory has room for; a
 * row behind that is not known ahead.
 *
 * src/write/tidlog.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "base/budget.h"
#include "base/guc.h"
#include "write/tidlog.h"

#define FIRST_ENTRIES	256

typedef struct Entry
{
	ItemPointerData tid;
	Oid			table;
} Entry;

struct LaTidLog
{
	ModifyTableState *mt;
	MemoryContext context;
	LaBudget	budget;
	MemoryContextCallback callback;
	int64		length;
	int64		allocated;
	bool		full;
	Entry	   *entries;
};

static void
release_budget(void *arg)
{
	la_budget_end(&((LaTidLog *) arg)->budget);
}

LaTidLog *
la_tidlog_create(ModifyTableState *mt)
{
	MemoryContext context = mt->ps.state->es_query_cxt;
	LaTidLog   *log = MemoryContextAllocZero(context, sizeof(LaTidLog));

	log->mt = mt;
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
	Size		bytes = more * sizeof(Entry);

	if (log->length < log->allocated)
		return true;
	log->full = !la_budget_has(&log->budget, bytes);
	if (log->full)
		return false;
	la_budget_take(&log->budget, bytes);
	log->allocated += more;
	log->entries = log->entries == NULL ?
		MemoryContextAllocHuge(log->context, log->allocated * sizeof(Entry)) :
		repalloc_huge(log->entries, log->allocated * sizeof(Entry));
	return true;
}

/* The plan returns a row. */
void
la_tidlog_note(LaTidLog *log, TupleTableSlot *row)
{
	ModifyTableState *mt = log->mt;
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
	if (relation == NULL || !AttributeNumberIsValid(relation->ri_RowIdAttNo) || !make_room(log))
		return;
	value = slot_getattr(row, relation->ri_RowIdAttNo, &isnull);
	if (isnull)
		return;
	log->entries[log->length].tid = *(ItemPointer) DatumGetPointer(value);
	log->entries[log->length++].table = RelationGetRelid(relation->ri_RelationDesc);
}

int64
la_tidlog_length(const LaTidLog *log)
{
	return log->length;
}

/* The row's address, if it is one of this table; else NULL. */
const ItemPointerData *
la_tidlog_get(const LaTidLog *log, int64 n, Oid table)
{
	return log->entries[n].table == table ? &log->entries[n].tid : NULL;
}

/* The number of the entry with this address, among the `most` from there on; -1: none. */
int64
la_tidlog_find(const LaTidLog *log, int64 from, int64 most, const ItemPointerData *tid)
{
	for (int64 n = from; n < Min(log->length, from + most); n++)
	{
		if (ItemPointerEquals(&log->entries[n].tid, unconstify(ItemPointerData *, tid)))
			return n;
	}
	return -1;
}
