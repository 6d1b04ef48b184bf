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
 *	MERGE	A row of the plan has columns of the source and, if it is matched, the address of the
 *		old tuple.  The action that will be taken is an INSERT, whose new tuple is made of the
 *		row (mergeaction.c) and goes on as above, or an UPDATE, or needs no index.
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

#include "access/sysattr.h"
#include "access/tableam.h"
#include "access/tupconvert.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "window/window.h"
#include "write/write_int.h"

/* A table of the statement, of which something can be known if target is not NULL. */
typedef struct Table
{
	ResultRelInfo *relation;
	LaTarget   *target;
	TupleConversionMap *from_root;	/* of a partition, or NULL */
	bool		is_quiet;		/* see la_newtuples_is_quiet() */
	TupleTableSlot *converted;
	Bitmapset **unknown;		/* of each INSERT of MERGE: columns that are
								 * unknown, if the order differs */

	/* UPDATE */
	List	   *columns;		/* that are set, in the order of the plan's
								 * row */
	Bitmapset  *set_indexed;	/* those that are part of an index, numbered
								 * as in LaMergeAction */
	LaMergeActions *matched;	/* MERGE */
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
	LaMergeInto *merge;
	LaMergeActions *not_matched;	/* NULL until needed */
	int			ntables;
	int			allocated;
	Table	  **tables;
	TupleTableSlot *formed;		/* the plan's row whose tuple was formed last */
	TupleTableSlot *result;
	TupleTableSlot *old_of;		/* the plan's row whose old tuple was fetched */
};

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
	if (mt->operation != CMD_UPDATE && root->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		nt->route = la_route_create(root, mt);
	if (mt->operation == CMD_MERGE)
		nt->merge = la_mergeaction_create(mt);
	return nt;
}

static TupleTableSlot *
make_slot(LaNewTuples *nt, Relation table, const TupleTableSlotOps *ops)
{
	return la_alloc_table_slot(&nt->mt->ps.state->es_tupleTable, RelationGetDescr(table), ops);
}

static void
init_old(LaNewTuples *nt, Table *t)
{
	t->fetched = make_slot(nt, t->relation->ri_RelationDesc, &TTSOpsBufferHeapTuple);
	t->old = make_slot(nt, t->relation->ri_RelationDesc, &TTSOpsHeapTuple);
}

static void
init_update(LaNewTuples *nt, Table *t)
{
	Bitmapset  *indexed = la_indexed_columns(t->relation->ri_RelationDesc);
	ListCell   *lc;

	t->columns = la_update_columns(nt->mt, t->relation - nt->mt->resultRelInfo);
	foreach(lc, t->columns)
	{
		int			member = lfirst_int(lc) - FirstLowInvalidHeapAttributeNumber;

		if (bms_is_member(member, indexed))
			t->set_indexed = bms_add_member(t->set_indexed, member);
	}
	bms_free(indexed);
	t->new = make_slot(nt, t->relation->ri_RelationDesc, &TTSOpsVirtual);
	init_old(nt, t);
}

/* Is it one of the tables that a plan reads rows from, to update them? */
static bool
is_read(const LaNewTuples *nt, const ResultRelInfo *relation)
{
	return nt->mt->operation != CMD_INSERT && relation >= nt->mt->resultRelInfo &&
		relation < nt->mt->resultRelInfo + nt->mt->mt_nrels;
}

static void
init_matched(LaNewTuples *nt, Table *t)
{
	Bitmapset  *indexed = la_indexed_columns(t->relation->ri_RelationDesc);

	t->matched = la_mergeaction_matched(nt->merge, t->relation, indexed);
	bms_free(indexed);
	if (t->matched->useful)
		init_old(nt, t);
}

/* What the INSERTs of MERGE do not know, by the partition's numbers of columns. */
static void
convert_unknown(LaNewTuples *nt, Table *t)
{
	int			n = 0;
	const AttrMap *map = t->from_root->attrMap;
	ListCell   *lc;

	t->unknown = palloc0(Max(list_length(nt->not_matched->matched), 1) * sizeof(Bitmapset *));
	foreach(lc, nt->not_matched->matched)
	{
		const LaMergeAction *action = lfirst(lc);

		for (int i = 0; i < map->maplen; i++)
		{
			if (bms_is_member(map->attnums[i] - FirstLowInvalidHeapAttributeNumber,
							  action->unknown))
				t->unknown[n] = bms_add_member(t->unknown[n],
											   i + 1 - FirstLowInvalidHeapAttributeNumber);
		}
		n++;
	}
}

static void
init_partition(LaNewTuples *nt, Table *t)
{
	Relation	root = nt->mt->rootResultRelInfo->ri_RelationDesc;

	t->is_quiet = la_writer_is_quiet_partition(nt->mt, t->relation);
	t->from_root = convert_tuples_by_name(RelationGetDescr(root),
										  RelationGetDescr(t->relation->ri_RelationDesc));
	if (t->from_root == NULL)
		return;
	t->converted = make_slot(nt, t->relation->ri_RelationDesc, &TTSOpsVirtual);
	if (nt->merge != NULL)
		convert_unknown(nt, t);
}

/* The actions of MERGE for rows that are not matched.  t: their table, or NULL if that varies. */
static const LaMergeActions *
not_matched(LaNewTuples *nt, const Table *t)
{
	if (nt->not_matched == NULL)
		nt->not_matched = la_mergeaction_not_matched(nt->merge, t == NULL ? NULL :
													 la_target_columns(t->target));
	return nt->not_matched;
}

static Table *
make_table(LaNewTuples *nt, ResultRelInfo *relation)
{
	Table	   *t = palloc0(sizeof(Table));
	const ModifyTable *plan = (const ModifyTable *) nt->mt->ps.plan;

	t->relation = relation;
	t->target = la_target_create(nt->ahead, relation->ri_RelationDesc, relation->ri_NumIndices,
								 relation->ri_IndexRelationDescs, relation->ri_IndexRelationInfo,
								 false);
	if (t->target == NULL)
		return t;
	if (plan->onConflictAction != ONCONFLICT_NONE)
		la_target_set_arbiters(t->target, relation->ri_onConflictArbiterIndexes);
	if (nt->merge != NULL && nt->route != NULL)
		(void) not_matched(nt, NULL);
	if (nt->merge == NULL && is_read(nt, relation))
		init_update(nt, t);
	else if (is_read(nt, relation))
		init_matched(nt, t);
	if (nt->route != NULL)
		init_partition(nt, t);
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

/* The table and the old tuple's address of a row of the plan. */
typedef enum OldRow
{
	OLD_ROW,
	NO_OLD_ROW,					/* MERGE: not matched */
	OLD_ROW_UNKNOWN
} OldRow;

static OldRow
find_old(const LaNewTuples *nt, TupleTableSlot *row, ResultRelInfo **relation,
		 ItemPointerData *tid)
{
	ModifyTableState *mt = nt->mt;
	bool		isnull;
	Datum		value;

	*relation = mt->resultRelInfo;
	if (AttributeNumberIsValid(mt->mt_resultOidAttno))
	{
		value = slot_getattr(row, mt->mt_resultOidAttno, &isnull);
		if (isnull)
			return NO_OLD_ROW;
		*relation = ExecLookupResultRelByOid(mt, DatumGetObjectId(value), true, false);
	}
	else if (mt->mt_nrels != 1)
		return OLD_ROW_UNKNOWN;
	if (*relation == NULL)
		return OLD_ROW_UNKNOWN;
	if ((*relation)->ri_RelationDesc->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		return NO_OLD_ROW;		/* no partition is read */
	if (!la_target_is_heap((*relation)->ri_RelationDesc) ||
		!AttributeNumberIsValid((*relation)->ri_RowIdAttNo))
		return OLD_ROW_UNKNOWN;
	value = slot_getattr(row, (*relation)->ri_RowIdAttNo, &isnull);
	if (isnull)
		return NO_OLD_ROW;
	*tid = *(ItemPointer) DatumGetPointer(value);
	return ItemPointerIsValid(tid) ? OLD_ROW : OLD_ROW_UNKNOWN;
}

/* Copy the old tuple.  Returns false if it is not at hand. */
static bool
fetch_old(LaNewTuples *nt, Table *t, TupleTableSlot *row)
{
	Relation	table = t->relation->ri_RelationDesc;
	BufferHeapTupleTableSlot *slot;
	ResultRelInfo *relation;
	ItemPointerData tid;
	Buffer		recent;

	if (nt->old_of == row)
		return true;
	if (find_old(nt, row, &relation, &tid) != OLD_ROW || relation != t->relation ||
		!la_issue_is_cached(table, ItemPointerGetBlockNumber(&tid), &recent) ||
		!table_tuple_fetch_row_version(table, &tid, SnapshotAny, t->fetched))
		return false;
	slot = (BufferHeapTupleTableSlot *) t->fetched;
	t->has_room = PageGetHeapFreeSpace(BufferGetPage(slot->buffer)) >=
		MAXALIGN(slot->base.tuple->t_len);
	ExecCopySlot(t->old, t->fetched);
	ExecClearTuple(t->fetched);
	nt->old_of = row;
	return true;
}

static bool
is_known(const LaNewTuples *nt, int table)
{
	return table >= 0 && nt->tables[table]->target != NULL;
}

/* The number of the table, or -1 if nothing is known of it. */
static int
known_table(LaNewTuples *nt, ResultRelInfo *relation)
{
	int			table = -1;

	if (relation != NULL && relation->ri_IndexRelationDescs != NULL)
		table = table_of(nt, relation);
	return is_known(nt, table) ? table : -1;
}

/* A row of MERGE that is matched. */
static bool
know_matched(LaNewTuples *nt, ResultRelInfo *relation, TupleTableSlot *row, LaNewTuple *tuple)
{
	Table	   *t;

	tuple->table = known_table(nt, relation);
	if (tuple->table < 0)
		return false;
	t = nt->tables[tuple->table];
	if (t->matched == NULL || !t->matched->useful || !fetch_old(nt, t, row))
		return false;
	tuple->action = la_mergeaction_choose(nt->merge, t->matched, row, t->old);
	return tuple->action != NULL;
}

/* The columns that the partition key depends on have to be known. */
static ResultRelInfo *
route_merged(LaNewTuples *nt, LaMergeAction *action, TupleTableSlot *row)
{
	TupleTableSlot *new;

	if (la_route_depends_on(nt->route, action->unknown))
		return NULL;
	new = la_mergeaction_form(nt->merge, action, row, NULL);
	return new == NULL ? NULL : la_route_find(nt->route, new);
}

/* A row of MERGE that is not matched. */
static bool
know_not_matched(LaNewTuples *nt, TupleTableSlot *row, LaNewTuple *tuple)
{
	const LaMergeActions *actions;
	const Table *t = NULL;

	if (nt->route == NULL)
	{
		tuple->table = known_table(nt, nt->mt->rootResultRelInfo);
		if (tuple->table < 0)
			return false;
		t = nt->tables[tuple->table];
	}
	actions = not_matched(nt, t);
	if (!actions->useful)
		return false;
	tuple->action = la_mergeaction_choose(nt->merge, actions, row, NULL);
	if (tuple->action == NULL)
		return false;
	if (nt->route != NULL)
		tuple->table = known_table(nt, route_merged(nt, tuple->action, row));
	return tuple->table >= 0;
}

/* What this row of the plan will be made into.  Returns false if nothing can be known of it. */
bool
la_newtuples_know(LaNewTuples *nt, TupleTableSlot *row, LaNewTuple *tuple)
{
	ResultRelInfo *relation = nt->mt->resultRelInfo;
	ItemPointerData tid;

	tuple->action = NULL;
	if (nt->mt->operation == CMD_INSERT)
	{
		if (nt->route != NULL)
			relation = la_route_find(nt->route, row);
		tuple->table = known_table(nt, relation);
		return tuple->table >= 0;
	}
	switch (find_old(nt, row, &relation, &tid))
	{
		case OLD_ROW:
			if (nt->merge != NULL)
				return know_matched(nt, relation, row, tuple);
			tuple->table = known_table(nt, relation);
			return tuple->table >= 0;
		case NO_OLD_ROW:
			return nt->merge != NULL && know_not_matched(nt, row, tuple);
		default:
			return false;
	}
}

/*
 * INSERT into a partitioned table: is the partition of this row of the plan known, and quiet
 * (writer.c)?  One without an index that can be known counts as not quiet.
 */
bool
la_newtuples_is_quiet(LaNewTuples *nt, TupleTableSlot *row)
{
	LaNewTuple	tuple;

	return la_newtuples_know(nt, row, &tuple) && nt->tables[tuple.table]->is_quiet;
}

LaTarget *
la_newtuples_target(const LaNewTuples *nt, const LaNewTuple *tuple)
{
	return nt->tables[tuple->table]->target;
}

/* The columns of the table of which the tuple has no value yet. */
const Bitmapset *
la_newtuples_unknown(const LaNewTuples *nt, const LaNewTuple *tuple)
{
	const Table *t = nt->tables[tuple->table];

	if (tuple->action == NULL)
		return NULL;
	if (tuple->action->command == CMD_INSERT && t->unknown != NULL)
		return t->unknown[tuple->action->number];
	return tuple->action->unknown;
}

/* The plan's row is another one now, in perhaps the same slot. */
void
la_newtuples_forget_row(LaNewTuples *nt)
{
	nt->formed = nt->result = nt->old_of = NULL;
}

static TupleTableSlot *
form_updated(LaNewTuples *nt, Table *t, TupleTableSlot *row)
{
	TupleTableSlot *new = t->new;
	int			natts = new->tts_tupleDescriptor->natts;
	int			n = 0;
	ListCell   *lc;

	if (!fetch_old(nt, t, row))
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

/* An INSERT's tuple, as the table has its columns. */
static TupleTableSlot *
convert(Table *t, TupleTableSlot *tuple)
{
	if (tuple == NULL || t->from_root == NULL)
		return tuple;
	return execute_attr_map_slot(t->from_root->attrMap, tuple, t->converted);
}

static TupleTableSlot *
form(LaNewTuples *nt, const LaNewTuple *tuple, TupleTableSlot *row)
{
	Table	   *t = nt->tables[tuple->table];

	if (nt->mt->operation == CMD_INSERT)
		return convert(t, row);
	if (nt->mt->operation == CMD_UPDATE)
		return form_updated(nt, t, row);
	if (tuple->action->command == CMD_INSERT)
		return convert(t, la_mergeaction_form(nt->merge, tuple->action, row, NULL));
	if (!fetch_old(nt, t, row))
		return NULL;
	return la_mergeaction_form(nt->merge, tuple->action, row, t->old);
}

/*
 * The tuple that will be made of this row, of which la_newtuples_know() knew something; NULL if it
 * is not known.  It remains until the next call.
 */
TupleTableSlot *
la_newtuples_form(LaNewTuples *nt, const LaNewTuple *tuple, TupleTableSlot *row)
{
	if (nt->formed != row)
	{
		nt->result = form(nt, tuple, row);
		nt->formed = row;
	}
	return nt->result;
}

static bool
is_changed(TupleTableSlot *new, TupleTableSlot *old, int column)
{
	Form_pg_attribute att = TupleDescAttr(new->tts_tupleDescriptor, column);
	bool		isnull = new->tts_isnull[column];

	if (isnull || old->tts_isnull[column])
		return isnull != old->tts_isnull[column];
	return !datumIsEqual(new->tts_values[column], old->tts_values[column],
						 att->attbyval, att->attlen);
}

/* Will the row's new tuple need no entries in indexes, as far as can be known? */
bool
la_newtuples_is_known_heap_only(LaNewTuples *nt, const LaNewTuple *tuple, TupleTableSlot *row)
{
	const Table *t = nt->tables[tuple->table];
	const LaMergeAction *action = tuple->action;
	const Bitmapset *set = action != NULL ? action->known : t->set_indexed;
	TupleTableSlot *new;
	int			member = -1;

	if ((action != NULL ? action->command : nt->mt->operation) != CMD_UPDATE)
		return false;
	new = la_newtuples_form(nt, tuple, row);
	if (new == NULL)
		return true;
	if (action != NULL && action->unknown != NULL)
		return false;
	while ((member = bms_next_member(set, member)) >= 0)
	{
		if (is_changed(new, t->old, member + FirstLowInvalidHeapAttributeNumber - 1))
			return false;
	}
	return t->has_room;
}
