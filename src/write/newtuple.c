/*
 * newtuple.c
 *	  The tuple that a write will make of a row of its plan, and the table that it is for.
 *
 *	INSERT	A row of the plan has the table's columns.  A row for a partitioned table is routed
 *		(route.c), and may have to be converted to the partition's order of columns.
 *	UPDATE	A row of the plan has the new values of the columns that are set, the address of the
 *		old tuple and, where there are several tables, which one it is in.  The other columns
 *		are in the old tuple, which the plan has just read; if it is not cached any more, the
 *		new one is not known.
 *
 * An UPDATE that changes no indexed column needs no index if the new tuple fits on the page of
 * the old one (heap-only tuples).  Whether it does is guessed from the page's free space, without
 * a lock.
 *
 * Invariant: no buffer is pinned between calls.
 *
 * src/write/newtuple.c
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/tupconvert.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "window/issue.h"
#include "write/newtuple.h"
#include "write/route.h"

/* A table of the statement, of which something can be known if target is not NULL. */
typedef struct Table
{
	ResultRelInfo *relation;
	LaTarget   *target;
	TupleConversionMap *from_root;	/* of a partition, or NULL */
	TupleTableSlot *converted;

	/* UPDATE */
	List	   *columns;		/* that are set, in the order of the plan's
								 * row */
	Bitmapset  *set_indexed;	/* those that are part of an index */
	TupleTableSlot *fetched;	/* the old tuple, with a pin */
	TupleTableSlot *old;		/* ... its copy */
	TupleTableSlot *new;
	bool		has_room;		/* for another version, on the old one's page */
} Table;

struct LaNewTuples
{
	ModifyTableState *mt;
	LaAhead    *ahead;
	MemoryContext context;
	LaRoute    *route;			/* INSERT into a partitioned table */
	int			ntables;
	int			allocated;
	Table	  **tables;
	TupleTableSlot *formed;		/* the plan's row whose tuple was formed last */
	TupleTableSlot *result;
};

static bool
is_update(const LaNewTuples *nt)
{
	return nt->mt->operation == CMD_UPDATE;
}

LaNewTuples *
la_newtuples_create(ModifyTableState *mt, LaAhead *ahead)
{
	LaNewTuples *nt = palloc0(sizeof(LaNewTuples));
	Relation	root = mt->rootResultRelInfo->ri_RelationDesc;

	nt->mt = mt;
	nt->ahead = ahead;
	nt->context = CurrentMemoryContext;
	nt->allocated = 8;
	nt->tables = palloc(nt->allocated * sizeof(Table *));
	if (mt->operation == CMD_INSERT && root->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		nt->route = la_route_create(root, mt->ps.state);
	return nt;
}

static TupleTableSlot *
make_slot(LaNewTuples *nt, Relation table, const TupleTableSlotOps *ops)
{
	return la_alloc_table_slot(&nt->mt->ps.state->es_tupleTable, RelationGetDescr(table), ops);
}

static void
init_update(LaNewTuples *nt, Table *t)
{
	Relation	table = t->relation->ri_RelationDesc;
	Bitmapset  *indexed = la_indexed_columns(table);
	ListCell   *lc;

	t->columns = la_update_columns(nt->mt, t->relation - nt->mt->resultRelInfo);
	foreach(lc, t->columns)
	{
		int			member = lfirst_int(lc) - FirstLowInvalidHeapAttributeNumber;

		if (bms_is_member(member, indexed))
			t->set_indexed = bms_add_member(t->set_indexed, lfirst_int(lc));
	}
	bms_free(indexed);
	t->fetched = make_slot(nt, table, &TTSOpsBufferHeapTuple);
	t->old = make_slot(nt, table, &TTSOpsHeapTuple);
	t->new = make_slot(nt, table, &TTSOpsVirtual);
}

static Table *
make_table(LaNewTuples *nt, ResultRelInfo *relation)
{
	Table	   *t = palloc0(sizeof(Table));
	const ModifyTable *plan = (const ModifyTable *) nt->mt->ps.plan;

	t->relation = relation;
	t->target = la_target_create(nt->ahead, relation->ri_RelationDesc, relation->ri_NumIndices,
								 relation->ri_IndexRelationDescs, false);
	if (t->target == NULL)
		return t;
	if (plan->onConflictAction != ONCONFLICT_NONE)
		la_target_set_arbiters(t->target, relation->ri_onConflictArbiterIndexes);
	if (is_update(nt))
		init_update(nt, t);
	else if (nt->route != NULL)
	{
		t->from_root = la_root_to_child_map(relation, nt->mt->ps.state);
		if (t->from_root != NULL)
			t->converted = make_slot(nt, relation->ri_RelationDesc, &TTSOpsVirtual);
	}
	return t;
}

/* The number of a table whose indexes are open. */
static int
table_of(LaNewTuples *nt, ResultRelInfo *relation)
{
	MemoryContext old;

	for (int i = 0; i < nt->ntables; i++)
	{
		if (nt->tables[i]->relation == relation)
			return i;
	}
	old = MemoryContextSwitchTo(nt->context);
	if (nt->ntables == nt->allocated)
	{
		nt->allocated *= 2;
		nt->tables = repalloc(nt->tables, nt->allocated * sizeof(Table *));
	}
	nt->tables[nt->ntables] = make_table(nt, relation);
	MemoryContextSwitchTo(old);
	return nt->ntables++;
}

/* The table of an UPDATE's row, or NULL. */
static ResultRelInfo *
updated_relation(const LaNewTuples *nt, TupleTableSlot *row)
{
	ModifyTableState *mt = nt->mt;
	bool		isnull;
	Datum		oid;

	if (!AttributeNumberIsValid(mt->mt_resultOidAttno))
		return mt->mt_nrels == 1 ? mt->resultRelInfo : NULL;
	oid = slot_getattr(row, mt->mt_resultOidAttno, &isnull);
	return isnull ? NULL : ExecLookupResultRelByOid(mt, DatumGetObjectId(oid), true, false);
}

/* The table that this row of the plan is for; -1 if nothing can be known of it. */
int
la_newtuples_target_of(LaNewTuples *nt, TupleTableSlot *row)
{
	ResultRelInfo *relation;
	int			n;

	if (is_update(nt))
		relation = updated_relation(nt, row);
	else
		relation = nt->route != NULL ? la_route_find(nt->route, row) : nt->mt->resultRelInfo;
	if (relation == NULL || relation->ri_IndexRelationDescs == NULL)
		return -1;
	n = table_of(nt, relation);
	return nt->tables[n]->target != NULL ? n : -1;
}

LaTarget *
la_newtuples_target(const LaNewTuples *nt, int target)
{
	return nt->tables[target]->target;
}

/* The plan's row is another one now, in perhaps the same slot. */
void
la_newtuples_forget_row(LaNewTuples *nt)
{
	nt->formed = nt->result = NULL;
}

/* Copy the old tuple of an UPDATE.  Returns false if it is not at hand. */
static bool
fetch_old(Table *t, TupleTableSlot *row)
{
	Relation	table = t->relation->ri_RelationDesc;
	BufferHeapTupleTableSlot *slot;
	ItemPointer tid;
	Buffer		recent;
	bool		isnull;

	if (!AttributeNumberIsValid(t->relation->ri_RowIdAttNo))
		return false;
	tid = (ItemPointer) DatumGetPointer(slot_getattr(row, t->relation->ri_RowIdAttNo, &isnull));
	if (isnull || !ItemPointerIsValid(tid) ||
		!la_issue_is_cached(table, ItemPointerGetBlockNumber(tid), &recent) ||
		!table_tuple_fetch_row_version(table, tid, SnapshotAny, t->fetched))
		return false;
	slot = (BufferHeapTupleTableSlot *) t->fetched;
	t->has_room = PageGetHeapFreeSpace(BufferGetPage(slot->buffer)) >=
		MAXALIGN(slot->base.tuple->t_len);
	ExecCopySlot(t->old, t->fetched);
	ExecClearTuple(t->fetched);
	return true;
}

static TupleTableSlot *
form_updated(Table *t, TupleTableSlot *row)
{
	TupleTableSlot *new = t->new;
	int			natts = new->tts_tupleDescriptor->natts;
	int			n = 0;
	ListCell   *lc;

	if (!fetch_old(t, row))
		return NULL;
	ExecClearTuple(new);
	slot_getallattrs(t->old);
	memcpy(new->tts_values, t->old->tts_values, natts * sizeof(Datum));
	memcpy(new->tts_isnull, t->old->tts_isnull, natts * sizeof(bool));
	foreach(lc, t->columns)
	{
		int			column = lfirst_int(lc) - 1;

		new->tts_values[column] = slot_getattr(row, ++n, &new->tts_isnull[column]);
	}
	return ExecStoreVirtualTuple(new);
}

/*
 * The tuple that will be made of this row, for the table that la_newtuples_target_of() has
 * named; NULL if it is not known.  It remains until the next call.
 */
TupleTableSlot *
la_newtuples_form(LaNewTuples *nt, int target, TupleTableSlot *row)
{
	Table	   *t = nt->tables[target];

	if (nt->formed == row)
		return nt->result;
	if (is_update(nt))
		nt->result = form_updated(t, row);
	else if (t->from_root != NULL)
		nt->result = execute_attr_map_slot(t->from_root->attrMap, row, t->converted);
	else
		nt->result = row;
	nt->formed = row;
	return nt->result;
}

static bool
is_changed(const Table *t, int column)
{
	Form_pg_attribute att = TupleDescAttr(t->new->tts_tupleDescriptor, column - 1);
	bool		isnull = t->new->tts_isnull[column - 1];

	if (isnull || t->old->tts_isnull[column - 1])
		return isnull != t->old->tts_isnull[column - 1];
	return !datumIsEqual(t->new->tts_values[column - 1], t->old->tts_values[column - 1],
						 att->attbyval, att->attlen);
}

/* Will the row's new tuple need no entries in indexes, as far as can be known? */
bool
la_newtuples_is_known_heap_only(LaNewTuples *nt, int target, TupleTableSlot *row)
{
	const Table *t = nt->tables[target];
	int			column = -1;

	if (!is_update(nt))
		return false;
	if (la_newtuples_form(nt, target, row) == NULL)
		return true;
	while ((column = bms_next_member(t->set_indexed, column)) >= 0)
	{
		if (is_changed(t, column))
			return false;
	}
	return t->has_room;
}
