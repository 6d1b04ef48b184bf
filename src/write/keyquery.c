/*
 * keyquery.c
 *	  Checks of foreign keys whose triggers cannot be reached, seen from their queries.
 *
 *	COPY FROM, or statements of a transaction --> rows, noted in a log of the transaction
 *													|
 *	the statement, or the transaction, ends:		v
 *		trigger --> query by SPI --> ExecutorStart --> is it the key of a row that is expected?
 *								   the keys of the next rows --> read ahead (keyahead.c)
 *
 * The triggers of a deferred constraint are called by the end of the transaction, or by SET
 * CONSTRAINTS, with an EState that is made for that and which no hook sees; those of COPY FROM with
 * the one of CopyFrom(), which calls no hook with anything that leads to it.  What can be seen of a
 * call is the query that it makes: it runs in a security context of its own
 * (InNoForceRLSOperation()), begins with ExecutorStart, locks rows of the other table, and has the
 * key as parameters.  The rows themselves are known from what has been written before.
 *
 * Which constraint a query is of follows from its table, its number of parameters, and the first
 * key that it asks for.  From then on its text, which the server keeps with the plan, tells.
 *
 * What else has been tried to get in front of such a trigger, and why it was not taken
 *	- The FmgrInfo is filled by fmgr_info(), which asks fmgr_hook only for functions that are not
 *	  built in.
 *	- A trigger of ours in the relcache entry, in place of the server's, would be asked in other
 *	  places, too, such as which rows have an event at all.
 *	- A table access method of ours in the relcache entry would be told of each row when the trigger
 *	  is about to be called (tuple_fetch_row_version), but not of which trigger; and could be put
 *	  back when a transaction aborts only if the entry were pinned until then.
 *	- The error context stack has an entry of COPY FROM, which leads to the parser's state alone.
 *
 * Behaviour BATCHES.  19 makes no query for a check, unless the referenced table is partitioned,
 * but collects keys (keyahead.c) and begins a scan of the constraint's index for them: one with an
 * array of them, or, where they have several columns, one for each.  So amrescan of that index is
 * exchanged (attach/interpose_index.c) when the rows are noted.  In it, all keys of the array have
 * their turns, one after the other, and then the server looks for them.  Which constraint they are
 * of is told by the first one.
 *
 * Actions that change rows cannot be deferred, and COPY FROM has none.  So checks are all there is,
 * and NO ACTION, which looks for a referring row.
 *
 * What is noted in the log (tidlog.c): rows of tables with constraints that are deferred initially,
 * or may have been by SET CONSTRAINTS; and where COPY FROM begins.
 *
 * Invariants
 *	- But for BATCHES nothing is exchanged, so nothing is put back.
 *	- No lock is kept that the server does not have.  An index is locked for a moment, if that is
 *	  free, to exchange amrescan.
 *	- A savepoint that is rolled back ends what is known of rows that come next, since locks end
 *	  with it.  The log is kept: rows that are gone are found not to be ours.
 *	- All ends with the transaction.
 *
 * src/write/keyquery.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "window/window.h"
#include "write/write_int.h"

#define MAX_KEYS	64			/* of a transaction */

typedef struct QueryKey
{
	LaKeyAhead *ahead;
	Oid			constraint;
	Oid			table;			/* that is written */
	Oid			other;
	bool		is_check;
	bool		ends_with_copy;
	int64		copy_entry;		/* of the log, until the first row of a COPY
								 * FROM is there; or -1 */
	const char *text;			/* of its query, or NULL */
	Oid			index;			/* BATCHES: that is watched, or InvalidOid */
	uint32		statements;		/* that have noted rows */
	bool		searched;		/* ... it has been, for some keys */
	int64		seen_reads;		/* blocks read then */
} QueryKey;

/* Of the transaction that is running. */
static MemoryContext context = NULL;
static MemoryContext batches = NULL;	/* of what a batch takes */
static LaTidLog *rows = NULL;
static List *keys = NIL;		/* of QueryKey */
static bool constraints_set = false;	/* SET CONSTRAINTS ... DEFERRED has
										 * been run */

/* ---- constraints --------------------------------------------------------------------- */

static QueryKey *
find_key(Oid constraint, bool is_check)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		QueryKey   *key = lfirst(lc);

		if (key->constraint == constraint && key->is_check == is_check)
			return key;
	}
	return NULL;
}

static void
create_context(void)
{
	if (context != NULL)
		return;
	context = AllocSetContextCreate(TopTransactionContext, "pg_lookahead deferred keys",
									ALLOCSET_SMALL_SIZES);
	batches = AllocSetContextCreate(context, "pg_lookahead batch of keys", ALLOCSET_SMALL_SIZES);
	rows = la_tidlog_create(context);
}

/*
 * The key of this trigger, with a new one if there is none, for rows from this entry of the log on.
 * NULL if there are too many.
 */
static QueryKey *
key_of(Relation table, const Trigger *trigger, bool is_check, int64 first)
{
	QueryKey   *key = find_key(trigger->tgconstraint, is_check);
	LaKeyEvents events = {
		.constraint = trigger->tgconstraint,
		.table = RelationGetRelid(table),
		.is_check = is_check,
		.kinds = LA_TID_MASK(LA_TID_UPDATED) |
		(is_check ? LA_TID_MASK(LA_TID_INSERTED) | LA_TID_MASK(LA_TID_RUN) :
		 LA_TID_MASK(LA_TID_DELETED)),
		.first = first,
		.by_key = true,
		.is_kept = true
	};
	MemoryContext old;

	if (key != NULL || list_length(keys) >= MAX_KEYS)
		return key;
	old = MemoryContextSwitchTo(context);
	events.log = rows;
	key = palloc0(sizeof(QueryKey));
	key->ahead = la_keyahead_create(context, NULL, &events);
	key->constraint = events.constraint;
	key->table = events.table;
	key->other = trigger->tgconstrrelid;
	key->is_check = is_check;
	key->copy_entry = -1;
	keys = lappend(keys, key);
	MemoryContextSwitchTo(old);
	return key;
}

static void rescan(IndexScanDesc scan, ScanKey scankeys, int n, ScanKey orderbys, int norderbys);

/* Behaviour BATCHES: does the server check it without a query? */
static inline bool
is_checked_by_scan(bool is_check, Oid referenced)
{
	return LA_CHECKS_AT_A_TIME > 1 && is_check && get_rel_relkind(referenced) == RELKIND_RELATION;
}

/* ... be told when it looks for keys of this index, if that is not locked. */
static void
watch(Oid index)
{
	Relation	rel;

	if (!la_lock_relation_at_once(index, AccessShareLock))
		return;
	rel = RelationIdGetRelation(index);
	if (RelationIsValid(rel))
	{
		if (rel->rd_rel->relkind == RELKIND_INDEX && !IsSystemRelation(rel))
			la_interpose_amrescan(rel, rescan);
		RelationClose(rel);
	}
	UnlockRelationOid(index, AccessShareLock);
}

/* ... and of the checks of rows that a foreign key's action changes (CASCADE of foreign_key.c). */
void
la_keyquery_watch(const ModifyTableState *mt)
{
	LaKeyColumns columns;

	for (int i = 0; LA_CHECKS_AT_A_TIME > 1 && i < mt->mt_nrels; i++)
	{
		Oid			table = RelationGetRelid(mt->resultRelInfo[i].ri_RelationDesc);

		/* a copy: that of the relcache entry goes when the entry is rebuilt */
		const TriggerDesc *triggers = mt->resultRelInfo[i].ri_TrigDesc;

		for (int t = 0; triggers != NULL && t < triggers->numtriggers; t++)
		{
			const Trigger *trigger = &triggers->triggers[t];

			if (la_foreign_key_is_fired_by(trigger, mt->operation) &&
				is_checked_by_scan(RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_FK,
								   trigger->tgconstrrelid) &&
				la_keycolumns_load(&columns, trigger->tgconstraint, true, table))
				watch(columns.conindid);
		}
	}
}

/*
 * ... and of the keys that are noted of this table.  Each relcache entry may have been replaced
 * since, which is looked for less and less often.  many: the statement may write many rows
 */
static void
watch_keys(Oid table, bool many)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		QueryKey   *key = lfirst(lc);
		const LaKeyColumns *columns;

		if (key->table != table)
			continue;
		key->statements++;
		if ((!many && (key->statements == 1 || (key->statements & (key->statements - 1)) != 0)) ||
			!is_checked_by_scan(key->is_check, key->other))
			continue;
		columns = la_keyahead_columns(key->ahead);
		if (columns == NULL)
			continue;
		key->index = columns->conindid;
		watch(key->index);
	}
}

static bool
is_possible(Relation table)
{
	return table->trigdesc != NULL && la_target_is_heap(table) && !RelationUsesLocalBuffers(table);
}

/* May the trigger be called later than at the end of the statement? */
static bool
is_deferred(const Trigger *trigger)
{
	return trigger->tginitdeferred || (trigger->tgdeferrable && constraints_set);
}

/* SET CONSTRAINTS is run. */
void
la_keyquery_set_constraints(bool deferred)
{
	constraints_set |= deferred;
}

/*
 * A statement is going to write rows of this table.  Returns true if it has foreign keys that may
 * be checked later; the rows are to be noted in la_keyquery_log() then.  many: more than one row
 */
bool
la_keyquery_follow(Relation table, CmdType operation, bool many)
{
	bool		any = false;
	bool		possible = is_possible(table) ||
		(table->trigdesc != NULL && table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE);

	for (int i = 0; possible && i < table->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &table->trigdesc->triggers[i];

		if (!la_foreign_key_is_fired_by(trigger, operation) || !is_deferred(trigger))
			continue;
		any = true;
		create_context();
		if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
			continue;
		(void) key_of(table, trigger, RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_FK,
					  la_tidlog_length(rows));
	}
	if (any)
		watch_keys(RelationGetRelid(table), many);
	return any;
}

LaTidLog *
la_keyquery_log(void)
{
	return rows;
}

/* ---- COPY FROM ------------------------------------------------------------------------- */

/* Note that rows will be put behind the last ones of the table. */
static int64
add_run(Relation table)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(table);
	ItemPointerData start;

	ItemPointerSet(&start, Max(nblocks, 1) - 1, FirstOffsetNumber);
	return la_tidlog_add(rows, RelationGetRelid(table), LA_TID_RUN, &start);
}

/*
 * COPY FROM is going to begin.  Unless its first row is seen elsewhere, it is supposed to be in the
 * table's last block, or behind.
 */
void
la_keyquery_begin_copy(Relation table)
{
	int64		entry = -1;

	for (int i = 0; is_possible(table) && i < table->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &table->trigdesc->triggers[i];
		bool		is_new = find_key(trigger->tgconstraint, true) == NULL;
		QueryKey   *key;

		if (!la_foreign_key_is_fired_by(trigger, CMD_INSERT))
			continue;
		create_context();
		if (entry < 0)
			entry = add_run(table);
		key = entry < 0 ? NULL : key_of(table, trigger, true, entry);
		if (key == NULL)
			break;
		key->copy_entry = entry;
		key->ends_with_copy = is_new && !is_deferred(trigger);
	}
	if (entry >= 0)
		watch_keys(RelationGetRelid(table), true);
}

/* The first row of a table is there.  Others may be of a statement that a trigger makes. */
void
la_keyquery_copy_starts(Oid table, const ItemPointerData *tid)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		QueryKey   *key = lfirst(lc);

		if (key->table != table || key->copy_entry < 0)
			continue;
		la_tidlog_move(rows, key->copy_entry, tid);
		key->copy_entry = -1;
	}
}

/* BATCHES: has a block been read since the server has looked for some keys? */
static inline bool
has_read(const QueryKey *key)
{
	return key->searched && la_issue_blocks_read() != key->seen_reads;
}

/* ... what history is told, when the first ones are done */
static void
note_first(const QueryKey *key)
{
	if (key->searched)
		la_keyahead_note_first(key->ahead, has_read(key));
}

/* It has ended, and not by an error. */
void
la_keyquery_end_copy(void)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		QueryKey   *key = lfirst(lc);

		key->copy_entry = -1;
		if (!key->ends_with_copy)
			continue;
		note_first(key);
		la_keyahead_end(key->ahead);
		keys = foreach_delete_current(keys, lc);
		pfree(key->ahead);
		pfree(key);
	}
}

/* ---- queries ----------------------------------------------------------------------------- */

/* May this be a query of a key whose text is not known? */
static bool
is_candidate(const QueryKey *key, Oid other, const char *text)
{
	return key->other == other && key->text == NULL &&
		la_is_locked_by_me(key->table);
}

static bool
expects(const QueryKey *key, const LaKeyValues *values)
{
	Relation	table = RelationIdGetRelation(key->table);
	bool		result;

	if (table == NULL)
		return false;
	result = la_keyahead_expects(key->ahead, table, values);
	RelationClose(table);
	return result;
}

/* The key that a query is of, given its first one; or NULL. */
static QueryKey *
recognize(Oid other, const char *text, const LaKeyValues *values)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		QueryKey   *key = lfirst(lc);

		if (key->other == other && key->text == text)
			return key;
	}
	foreach(lc, keys)
	{
		QueryKey   *key = lfirst(lc);

		if (is_candidate(key, other, text) && expects(key, values))
		{
			key->text = text;

			return key;
		}
	}
	return NULL;
}

/* What a query asks for.  Returns false if it cannot be one of ours. */
static bool
load_params(LaKeyValues *values, const ParamListInfo params)
{
	if (params == NULL || params->paramFetch != NULL || params->numParams > INDEX_MAX_KEYS)
		return false;
	values->n = params->numParams;
	for (int i = 0; i < values->n; i++)
	{
		values->values[i] = params->params[i].value;
		values->types[i] = params->params[i].isnull ? InvalidOid : params->params[i].ptype;
	}
	return true;
}

/* A query that locks rows starts. */
static bool
attach_lock_rows(PlanState *ps)
{
	EState	   *estate = ps->state;
	LaKeyValues values;
	LaKeyAsked	asked = {.key = &values};
	QueryKey   *key;
	Relation	table;

	la_foreign_key_query_starts();
	if (keys == NIL || !la_enable_foreign_key || !InNoForceRLSOperation() ||
		la_foreign_key_is_running() || estate->es_range_table_size == 0 ||
		!load_params(&values, estate->es_param_list_info))
		return false;
	key = recognize(exec_rt_fetch(1, estate)->relid, estate->es_sourceText, &values);
	if (key == NULL)
		return false;
	table = RelationIdGetRelation(key->table);
	if (table == NULL)
		return false;
	la_keyahead_turn(key->ahead, table, &asked);
	RelationClose(table);
	return false;
}

/* ---- behaviour BATCHES ------------------------------------------------------------------- */

/* What an index is searched for: several keys of one column, or one. */
typedef struct Batch
{
	Relation	index;
	int			n;
	int			ncolumns;
	Datum	   *values;			/* of the keys, or of the columns */
	Datum		columns[INDEX_MAX_KEYS];
	Oid			types[INDEX_MAX_KEYS];
} Batch;

/* Returns false if the search is not for keys. */
static bool
load_batch(Batch *b, Relation index, ScanKey scankeys, int n)
{
	ArrayType  *array;
	int16		length;
	bool		byval;
	char		alignment;

	b->index = index;
	b->n = 1;
	b->ncolumns = n;
	b->values = b->columns;
	for (int i = 0; i < n; i++)
	{
		if ((scankeys[i].sk_flags & ~SK_SEARCHARRAY) != 0 || scankeys[i].sk_attno != i + 1 ||
			!OidIsValid(scankeys[i].sk_subtype))
			return false;
		b->columns[i] = scankeys[i].sk_argument;
		b->types[i] = scankeys[i].sk_subtype;
	}
	if ((scankeys->sk_flags & SK_SEARCHARRAY) == 0)
		return true;
	if (n > 1)
		return false;
	array = DatumGetArrayTypeP(scankeys->sk_argument);
	/* of a query that a cast, an operator or a trigger makes */
	if (ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) > LA_CHECKS_AT_A_TIME ||
		array_contains_nulls(array))
		return false;
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &byval, &alignment);
	deconstruct_array(array, ARR_ELEMTYPE(array), length, byval, alignment, &b->values, NULL,
					  &b->n);
	return b->n > 0;
}

/* Number i of the batch, with the columns in the constraint's order. */
static void
get_key(const Batch *b, const QueryKey *key, int i, LaKeyValues *values)
{
	const LaKeyColumns *columns = la_keyahead_columns(key->ahead);

	values->n = b->ncolumns;
	for (int c = 0; c < b->ncolumns; c++)
	{
		int			at = 0;

		while (at < b->ncolumns && b->index->rd_index->indkey.values[at] != columns->there[c])
			at++;
		values->types[c] = at < b->ncolumns ? b->types[at] : InvalidOid;
		values->values[c] = b->ncolumns == 1 ? b->values[i] : b->columns[at];
	}
}

static inline bool
is_of_index(const QueryKey *key, Relation index)
{
	return key->index == RelationGetRelid(index);
}

/* Is it the first batch, and worth a trial? */
static inline bool
is_tried(const QueryKey *key, const Batch *b)
{
	return !key->searched && b->n >= LA_KEY_TRIAL &&
		la_history_begins_with_reads(key->index);
}

/* The key that the batch is of, if anything is to be done for it; or NULL. */
static QueryKey *
recognize_batch(const Batch *b)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		QueryKey   *key = lfirst(lc);
		LaKeyValues values;

		if (!is_of_index(key, b->index) ||
			!la_keyahead_is_wanted(key->ahead, has_read(key) || is_tried(key, b)) ||
			!la_is_locked_by_me(key->table))
			continue;
		get_key(b, key, 0, &values);
		if (expects(key, &values))
			return key;
	}
	return NULL;
}

static void
turn_batch(const QueryKey *key, const Batch *b)
{
	Relation	table = RelationIdGetRelation(key->table);
	int64		reads = la_issue_blocks_read();
	LaKeyValues values;
	LaKeyAsked	asked = {.key = &values,.missed = has_read(key),.trial = is_tried(key, b)};

	for (int i = 0; i < b->n && table != NULL; i++)
	{
		get_key(b, key, i, &values);
		la_keyahead_turn(key->ahead, table, &asked);
		asked.missed = asked.trial = false;
	}
	if (table != NULL)
		RelationClose(table);
	if (la_issue_blocks_read() != reads)
		la_keyahead_note_first(key->ahead, true);
}

/* The server is about to look for these keys. */
static void
begin_batch(const Batch *b)
{
	QueryKey   *found;
	ListCell   *lc;

	foreach(lc, keys)
	{
		if (is_of_index(lfirst(lc), b->index))
			note_first(lfirst(lc));
	}
	found = recognize_batch(b);
	if (found != NULL)
		turn_batch(found, b);
	foreach(lc, keys)
	{
		QueryKey   *key = lfirst(lc);

		if (!is_of_index(key, b->index))
			continue;
		if (key != found)
			la_keyahead_pass(key->ahead, b->n);
		key->searched = true;
		key->seen_reads = la_issue_blocks_read();
	}
}

/*
 * amrescan of a key's index.  Queries that a cast, an operator or a trigger makes may come here,
 * too, in the memory of their statements.
 */
static void
rescan(IndexScanDesc scan, ScanKey scankeys, int n, ScanKey orderbys, int norderbys)
{
	if (n > 0 && scankeys != NULL && la_enable && la_enable_foreign_key && InNoForceRLSOperation())
	{
		la_foreign_key_query_starts();
		if (keys != NIL && !la_foreign_key_is_running())
		{
			MemoryContext old = MemoryContextSwitchTo(batches);
			Batch		batch;

			if (load_batch(&batch, scan->indexRelation, scankeys, n))
				begin_batch(&batch);
			MemoryContextSwitchTo(old);
			MemoryContextReset(batches);
		}
	}
	btrescan(scan, scankeys, n, orderbys, norderbys);
}

/* ---- the transaction's end ----------------------------------------------------------------- */

static void
subtransaction_fails(void)
{
	ListCell   *lc;

	foreach(lc, keys)
	{
		QueryKey   *key = lfirst(lc);

		la_keyahead_reset(key->ahead);
		key->copy_entry = -1;
	}
}

/* la_transaction_function */
static void
transaction_ends(XactEvent event, SubTransactionId failed)
{
	ListCell   *lc;

	if (failed != InvalidSubTransactionId)
	{
		subtransaction_fails();
		return;
	}
	constraints_set = false;
	if (context == NULL)
		return;
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
	{
		foreach(lc, keys)
		{
			QueryKey   *key = lfirst(lc);

			note_first(key);
			la_keyahead_end(key->ahead);
		}
	}
	MemoryContextDelete(context);
	context = batches = NULL;
	rows = NULL;
	keys = NIL;
}

void
la_keyquery_init(void)
{
	la_attach_register(T_LockRowsState, attach_lock_rows);
	la_transaction_register(transaction_ends);
}
