/*
 * foreign_key.c
 *	  The checks and actions of foreign keys, whose rows are looked up ahead.
 *
 *	rows written --> AFTER triggers of foreign keys, row by row --> a query by SPI for each
 *						   |
 *						   +- call_trigger(): the keys of the next rows --> leaf pages and heap
 *							  blocks of the other table, read ahead (ahead.c)
 *
 * After the last row of a statement, the server calls the trigger of each foreign key for each
 * row: to look up the key in the referenced table, or to find the rows that refer to it.  Each
 * is a query of its own, which waits for a leaf page, and then for a heap block.  call_trigger() is
 * in front of the trigger's function, in the FmgrInfo that the statement keeps for it: it looks at
 * the rows whose turn is next, reads what their queries will need, and calls the function.
 *
 *		what		for which rows				looks for
 *		check		inserted, updated			the referenced row, by the constraint's index
 *		action		updated, deleted (old)		referring rows, by an index on their columns
 *					CASCADE, SET NULL, SET DEFAULT, RESTRICT, NO ACTION
 *
 * The next rows are those behind the current one in the table that the same command has put there
 * (INSERT), or those that the plan returned next (UPDATE, DELETE: tidlog.c).
 *
 * Left alone: deferred constraints, whose triggers are called by the transaction's end; COPY FROM;
 * triggers of rows that an action has changed (a cascade of a cascade); referenced and referring
 * tables that are partitioned (not their partitions), temporary ones, and those without an index;
 * comparison functions that could be noticed to be called early.
 *
 * Invariants
 *	- The server's function is called for each row, as in stock, and decides.  What is looked up
 *	  here is forgotten.
 *	- No lock is taken: the other table, and the index that is used here, have been locked by an
 *	  earlier call of the function.  They are open only while look-ahead works on a row.  When a
 *	  relcache entry has moved meanwhile, look-ahead ends.
 *
 * src/write/foreign_key.c
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "parser/parse_coerce.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

#include "attach/effects.h"
#include "base/accessmethod.h"
#include "base/guc.h"
#include "window/issue.h"
#include "write/ahead.h"
#include "write/foreign_key.h"
#include "write/heaprow.h"
#include "write/target.h"

#define MAX_HEAP_VISITS	16		/* of referring rows of one key */
#define MAX_SKIPPED		64		/* rows without an event, to be looked at for
								 * the next one */
#define MAX_SEARCHED	4096	/* entries of the log, for a row that was not
								 * expected */

/* What is kept with a row that is known. */
typedef struct Known
{
	HeapTuple	tuple;			/* or NULL */
	int64		entry;			/* of it, in the log */
} Known;

/* A trigger of a statement. */
typedef struct ForeignKey
{
	FmgrInfo	function;		/* the server's */
	EState	   *estate;
	MemoryContext context;		/* lives as long as the query */
	Relation	table;			/* that is written */
	bool		is_check;
	CmdType		operation;
	LaTidLog   *log;			/* NULL: INSERT */

	bool		started;		/* it has been called */
	bool		refused;		/* nothing can be known ahead */
	int64		seen_reads;		/* blocks read before the last call */

	LaAhead    *ahead;			/* NULL until a block is read */
	LaDescent  *descent;		/* of the other table's index */
	int			index_rel;		/* numbers in ahead */
	int			heap_rel;
	Oid			other;			/* the other table */
	Oid			index;
	Relation	other_rel;		/* as they were when they were opened first */
	Relation	index_relation;
	int			ncolumns;
	AttrNumber	columns[INDEX_MAX_KEYS];	/* of this table, in the index's
											 * order */

	ItemPointerData next;		/* INSERT: where the next row may be */
	int64		next_entry;		/* else: in the log */
	int64		last_entry;		/* of the row whose turn was last */
	MemoryContextCallback callback;
} ForeignKey;

static inline Known *
known(ForeignKey *f, uint64 n)
{
	return la_ahead_own(f->ahead, n);
}

/* ---- the constraint ------------------------------------------------------------ */

/* What the row's columns are compared with, by index column. */
typedef struct KeyColumns
{
	int			n;
	AttrNumber	here[INDEX_MAX_KEYS];
	AttrNumber	there[INDEX_MAX_KEYS];
	Oid			conindid;
	Oid			other;
} KeyColumns;

static bool
load_constraint(const ForeignKey *f, Oid constraint, KeyColumns *k)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	AttrNumber	referring[INDEX_MAX_KEYS];
	AttrNumber	referenced[INDEX_MAX_KEYS];
	Form_pg_constraint con;

	if (!HeapTupleIsValid(tuple))
		return false;
	con = (Form_pg_constraint) GETSTRUCT(tuple);
	if (con->contype != CONSTRAINT_FOREIGN)
	{
		ReleaseSysCache(tuple);
		return false;
	}
	DeconstructFkConstraintRow(tuple, &k->n, referring, referenced, NULL, NULL, NULL, NULL, NULL);
	k->conindid = con->conindid;
	k->other = f->is_check ? con->confrelid : con->conrelid;
	memcpy(k->here, f->is_check ? referring : referenced, sizeof(referring));
	memcpy(k->there, f->is_check ? referenced : referring, sizeof(referring));
	/* an inherited constraint is of the same columns by name only */
	if (RelationGetRelid(f->table) != (f->is_check ? con->conrelid : con->confrelid))
		k->n = 0;
	ReleaseSysCache(tuple);
	return k->n > 0;
}

/* How many of the index's first columns are compared; fills in the row's columns for them. */
static int
match_columns(const KeyColumns *k, Relation index, AttrNumber *columns)
{
	int			n;

	for (n = 0; n < IndexRelationGetNumberOfKeyAttributes(index); n++)
	{
		int			i = 0;

		while (i < k->n && k->there[i] != index->rd_index->indkey.values[n])
			i++;
		if (i == k->n)
			break;
		columns[n] = k->here[i];
	}
	return n;
}

/* The type of the row's column, as the index's operator class knows it. */
static Oid
subtype_of(const ForeignKey *f, Relation index, int i)
{
	Oid			type = TupleDescAttr(RelationGetDescr(f->table), f->columns[i] - 1)->atttypid;
	Oid			input = index->rd_opcintype[i];

	type = getBaseType(type);
	return type == input || IsBinaryCoercible(type, input) ? InvalidOid : type;
}

static bool
create_descent(ForeignKey *f, Relation other, Relation index)
{
	f->descent = la_descent_create(index, other, LA_DESCENT_ALL);
	for (int i = 0; i < f->ncolumns; i++)
	{
		LaEffects	effects = {0};
		Oid			type;
		Oid			function;

		if (!la_descent_add_column(f->descent, subtype_of(f, index, i), index->rd_indcollation[i]))
			return false;
		function = la_descent_comparison(f->descent, i, &type);
		la_effects_of_support(&effects, function, 1, &type);
		if (effects.flags != 0)
			return false;
	}
	return true;
}

static bool
is_usable(Relation index)
{
	return index->rd_rel->relam == BTREE_AM_OID && index->rd_rel->relkind == RELKIND_INDEX &&
		index->rd_index->indisvalid && RelationGetIndexPredicate(index) == NIL;
}

/*
 * Open a table or an index if it has been locked, or else return NULL.  The constraint, or the lock
 * on its table, keeps it from being dropped.
 */
static Relation
open_locked(Oid oid)
{
	Relation	relation = RelationIdGetRelation(oid);

	if (!RelationIsValid(relation) || CheckRelationLockedByMe(relation, AccessShareLock, true))
		return relation;
	RelationClose(relation);
	return NULL;
}

static bool
is_locked(Oid oid)
{
	Relation	relation = open_locked(oid);

	if (relation == NULL)
		return false;
	RelationClose(relation);
	return true;
}

/* An open index of the other table that the queries are likely to use, or NULL. */
static Relation
open_index(ForeignKey *f, const KeyColumns *k, Relation other)
{
	List	   *list = f->is_check ? list_make1_oid(k->conindid) : RelationGetIndexList(other);
	Relation	best = NULL;
	ListCell   *lc;

	foreach(lc, list)
	{
		AttrNumber	columns[INDEX_MAX_KEYS];
		Relation	index = open_locked(lfirst_oid(lc));
		int			n;

		if (index == NULL)
			continue;
		n = is_usable(index) ? match_columns(k, index, columns) : 0;
		if (n <= f->ncolumns)
		{
			RelationClose(index);
			continue;
		}
		if (best != NULL)
			RelationClose(best);
		best = index;
		f->ncolumns = n;
		memcpy(f->columns, columns, sizeof(columns));
	}
	list_free(list);
	return best;
}

/* ---- rows ------------------------------------------------------------------------ */

/* Has this transaction put the row there?  (LaRowFilter) */
static bool
is_own_row(HeapTupleHeader row)
{
	return la_heaprow_is_own(HeapTupleHeaderGetRawXmin(row));
}

/* Is the key null in one version, or the same in both?  Then there is no event for the row. */
static bool
has_no_event(const ForeignKey *f, HeapTuple old, HeapTuple new)
{
	TupleDesc	desc = RelationGetDescr(f->table);
	bool		same = new != NULL;

	for (int i = 0; i < f->ncolumns; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, f->columns[i] - 1);
		bool		isnull;
		Datum		value = heap_getattr(f->is_check ? new : old, att->attnum, desc, &isnull);
		Datum		other;

		if (isnull)
			return true;
		if (!same)
			continue;
		other = heap_getattr(f->is_check ? old : new, att->attnum, desc, &isnull);
		same = !isnull && datumIsEqual(value, other, att->attbyval, att->attlen);
	}
	return same;
}

/* The row of an entry of the log, if there is an event for it, else NULL. */
static HeapTuple
logged_row(const ForeignKey *f, int64 entry)
{
	const ItemPointerData *place = la_tidlog_get(f->log, entry, RelationGetRelid(f->table));
	HeapTuple	old = place == NULL ? NULL : la_heaprow_copy(f->table, place, NULL);
	HeapTuple	new = NULL;
	bool		useful = old != NULL && la_heaprow_is_own(HeapTupleHeaderGetRawXmax(old->t_data));

	if (useful && f->operation == CMD_UPDATE)
	{
		new = ItemPointerIsValid(&old->t_data->t_ctid) ?
			la_heaprow_copy(f->table, &old->t_data->t_ctid, NULL) : NULL;
		useful = new != NULL;
	}
	useful = useful && !has_no_event(f, old, new);
	if (old != NULL && (!useful || f->is_check))
		heap_freetuple(old);
	if (new != NULL && (!useful || !f->is_check))
		heap_freetuple(new);
	return !useful ? NULL : f->is_check ? new : old;
}

/* UPDATE, DELETE: the next row in the log with an event. */
static HeapTuple
next_logged(ForeignKey *f)
{
	for (int i = 0; i < MAX_SKIPPED && f->next_entry < la_tidlog_length(f->log); i++)
	{
		HeapTuple	row = logged_row(f, f->next_entry++);

		if (row != NULL)
			return row;
	}
	return NULL;
}

/* LaRowSource.fetch */
static bool
fetch(void *arg, uint64 n)
{
	ForeignKey *f = arg;
	Known	   *row = known(f, n);
	MemoryContext old;

	if (la_ahead_has_rows(f->ahead) && !la_ahead_is_armed(f->ahead))
		return false;
	if (row->tuple != NULL)
		heap_freetuple(row->tuple);
	old = MemoryContextSwitchTo(la_ahead_copies(f->ahead));
	row->tuple = f->log == NULL ? la_heaprow_next(f->table, &f->next, is_own_row) : next_logged(f);
	row->entry = f->next_entry - 1;
	MemoryContextSwitchTo(old);
	return row->tuple != NULL;
}

/* LaRowSource.plan */
static void
plan_visits(void *arg, uint64 n, LaAheadRow *row)
{
	(void) la_ahead_add_visit(row, ((ForeignKey *) arg)->index_rel);
}

/* LaRowSource.set_key */
static bool
set_key(void *arg, uint64 n, int rel)
{
	ForeignKey *f = arg;
	TupleDesc	desc = RelationGetDescr(f->table);

	for (int i = 0; i < f->ncolumns; i++)
	{
		bool		isnull;
		Datum		value = heap_getattr(known(f, n)->tuple, f->columns[i], desc, &isnull);

		if (isnull)
			return false;
		if (!la_descent_set_stored(f->descent, i, value,
								   TupleDescAttr(desc, f->columns[i] - 1)->attlen == -1))
			return false;
	}
	return true;
}

/* LaRowSource.locate */
static bool
locate(void *arg, uint64 n, LaAheadRow *row, const LaMatches *matches, bool last)
{
	ForeignKey *f = arg;
	BlockNumber seen = InvalidBlockNumber;

	for (int i = 0; i < matches->count && row->nvisits - row->nfirst < MAX_HEAP_VISITS; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&matches->tids[i]);
		LaRowVisit *v = block == seen ? NULL : la_ahead_add_visit(row, f->heap_rel);

		seen = block;
		if (v == NULL)
			continue;
		v->block = block;
		v->state = ROW_VISIT_KNOWN;
	}
	return true;
}

/* ---- the trigger -------------------------------------------------------------------- */

static void
on_end(void *arg)
{
	ForeignKey *f = arg;

	if (f->ahead != NULL)
		la_ahead_end(f->ahead, LA_KIND_FOREIGN_KEY, f->other, f->index);
}

/* The statement ends, and not by an error: rows may be known for which there was no event. */
static void
on_shutdown(Datum arg)
{
	la_ahead_clear(((ForeignKey *) DatumGetPointer(arg))->ahead);
}

/* Look at the other table.  Returns false if nothing can be known ahead. */
static bool
prepare(ForeignKey *f, const Trigger *trigger)
{
	LaRowSource source = {f, sizeof(Known), fetch, plan_visits, set_key, locate};
	KeyColumns	k;
	Relation	other;
	Relation	index;

	if (!load_constraint(f, trigger->tgconstraint, &k) || la_am_is_excluded(BTREE_AM_OID))
		return false;

	f->other = k.other;
	f->other_rel = other = open_locked(k.other);
	if (other == NULL || !la_target_is_heap(other) || RelationUsesLocalBuffers(other))
		return false;
	f->index_relation = index = open_index(f, &k, other);
	if (index == NULL || !create_descent(f, other, index))
		return false;
	f->index = RelationGetRelid(index);
	f->ahead = la_ahead_create(&source, other, f->index);
	if (f->ahead == NULL)
		return false;
	f->callback.func = on_end;
	f->callback.arg = f;
	MemoryContextRegisterResetCallback(f->context, &f->callback);
	RegisterExprContextCallback(GetPerTupleExprContext(f->estate), on_shutdown,
								PointerGetDatum(f));
	f->index_rel = la_ahead_add_relation(f->ahead, index, f->descent);
	f->heap_rel = la_ahead_add_relation(f->ahead, other, NULL);
	return f->index_rel >= 0 && f->heap_rel >= 0;
}

/* A row is not the one that was expected: continue behind it. */
static void
continue_at(ForeignKey *f, const ItemPointerData *tid, const ItemPointerData *old)
{
	la_ahead_clear(f->ahead);
	if (f->log == NULL)
		f->next = *tid;
	else
	{
		int64		entry = la_tidlog_find(f->log, f->last_entry, MAX_SEARCHED, old);

		f->refused |= entry < 0;
		f->next_entry = f->last_entry = Max(entry, 0);
	}
}

/* Open the other table and its index for a row, the first time to look at them. */
static void
open_other(ForeignKey *f, const Trigger *trigger)
{
	MemoryContext old;

	if (f->ahead == NULL)
	{
		old = MemoryContextSwitchTo(f->context);
		f->refused = !prepare(f, trigger);
		MemoryContextSwitchTo(old);
	}
	else
	{
		Relation	other = RelationIdGetRelation(f->other);
		Relation	index = RelationIdGetRelation(f->index);

		f->refused |= other != f->other_rel || index != f->index_relation;
		f->other_rel = other;
		f->index_relation = index;
		if (f->refused)
			la_ahead_clear(f->ahead);
	}
}

static void
close_other(ForeignKey *f)
{
	if (RelationIsValid(f->index_relation))
		RelationClose(f->index_relation);
	if (RelationIsValid(f->other_rel))
		RelationClose(f->other_rel);
}

/* The turn of this row, with the other table open. */
static void
turn_to(ForeignKey *f, const ItemPointerData *tid, const ItemPointerData *old)
{
	uint64		n = la_ahead_next_row(f->ahead);

	if (!la_ahead_has_rows(f->ahead) ||
		!ItemPointerEquals(&known(f, n)->tuple->t_self, unconstify(ItemPointerData *, tid)))
		continue_at(f, tid, old);
	if (f->refused)
		return;
	n = la_ahead_next_row(f->ahead);
	if (la_ahead_turn(f->ahead))
		f->last_entry = Max(known(f, n)->entry, 0);
}

static void
begin_row(ForeignKey *f, const TriggerData *data)
{
	bool		is_new = f->is_check && f->operation == CMD_UPDATE;
	const ItemPointerData *tid = is_new ? &data->tg_newtuple->t_self : &data->tg_trigtuple->t_self;
	bool		missed = f->started && la_issue_blocks_read() != f->seen_reads;

	if (f->ahead == NULL && !(f->started && (missed || la_force)))
		return;
	if (f->ahead != NULL && !la_ahead_is_active(f->ahead))
		la_ahead_pass(f->ahead, missed);
	if (f->ahead != NULL && !la_ahead_is_active(f->ahead) && !la_ahead_has_rows(f->ahead))
		return;
	/* a call for a key with nulls makes no query */
	if (f->ahead == NULL && !is_locked(data->tg_trigger->tgconstrrelid))
		return;
	open_other(f, data->tg_trigger);
	if (!f->refused)
		turn_to(f, tid, &data->tg_trigtuple->t_self);
	close_other(f);
}

/* In place of the trigger's function. */
static Datum
call_trigger(PG_FUNCTION_ARGS)
{
	FmgrInfo   *ours = fcinfo->flinfo;
	ForeignKey *f = ours->fn_extra;
	Datum		result;

	if (la_enable && la_enable_foreign_key && !f->refused && CALLED_AS_TRIGGER(fcinfo))
		begin_row(f, (const TriggerData *) fcinfo->context);
	f->started = true;
	f->seen_reads = la_issue_blocks_read();
	fcinfo->flinfo = &f->function;
	result = FunctionCallInvoke(fcinfo);
	fcinfo->flinfo = ours;
	return result;
}

static bool
is_fired_by(const Trigger *trigger, CmdType operation)
{
	if ((trigger->tgtype & TRIGGER_TYPE_TIMING_MASK) != TRIGGER_TYPE_AFTER ||
		!TRIGGER_FOR_ROW(trigger->tgtype) ||
		!OidIsValid(trigger->tgconstraint) ||
		RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_NONE)
		return false;
	return (operation == CMD_INSERT && TRIGGER_FOR_INSERT(trigger->tgtype)) ||
		(operation == CMD_UPDATE && TRIGGER_FOR_UPDATE(trigger->tgtype)) ||
		(operation == CMD_DELETE && TRIGGER_FOR_DELETE(trigger->tgtype));
}

static bool
has_any(const TriggerDesc *triggers, CmdType operation)
{
	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (is_fired_by(&triggers->triggers[i], operation))
			return true;
	}
	return false;
}

/*
 * Put call_trigger() in front of the triggers of the foreign keys of a statement's table.
 * Returns true if there is any.  log: see above; NULL for INSERT.
 */
bool
la_foreign_key_install(ResultRelInfo *relation, CmdType operation, EState *estate, LaTidLog *log)
{
	const TriggerDesc *triggers = relation->ri_TrigDesc;
	bool		any = false;

	if (!has_any(triggers, operation) || !la_target_is_heap(relation->ri_RelationDesc) ||
		RelationUsesLocalBuffers(relation->ri_RelationDesc))
		return false;
	/* for the triggers of a partition the server has another one */
	if (relation->ri_RootResultRelInfo != NULL)
		relation = ExecGetTriggerResultRel(estate, RelationGetRelid(relation->ri_RelationDesc),
										   NULL);
	triggers = relation->ri_TrigDesc;
	for (int i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		FmgrInfo   *function = &relation->ri_TrigFunctions[i];
		ForeignKey *f;

		if (!is_fired_by(trigger, operation) || OidIsValid(function->fn_oid))
			continue;
		f = MemoryContextAllocZero(estate->es_query_cxt, sizeof(ForeignKey));
		fmgr_info_cxt(trigger->tgfoid, &f->function, estate->es_query_cxt);
		f->estate = estate;
		f->context = estate->es_query_cxt;
		f->table = relation->ri_RelationDesc;
		f->is_check = RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_FK;
		f->operation = operation;
		f->log = log;
		*function = f->function;
		function->fn_addr = call_trigger;
		function->fn_extra = f;
		any = true;
	}
	return any;
}
