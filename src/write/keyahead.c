/*
 * keyahead.c
 *	  The rows that a foreign key's checks or actions will look for, read ahead.
 *
 *		what		for which rows				looks for
 *		check		inserted, updated			the referenced row, by the constraint's index
 *		action		updated, deleted (old)		referring rows, by an index on their columns
 *
 * An event is a row for which the server makes the check or action.  When one has its turn, the
 * next ones are known: they are behind it in the table, where a command has put them one after the
 * other, or in a log of what has been written (tidlog.c).  ahead.c reads what they will look for,
 * in two stages: the leaf page, and then the heap blocks of its matches.
 *
 * The event whose turn it is comes from the caller: as a row, if a trigger is called, or as the key
 * that a query asks for.  Where it is not the one that was expected, look-ahead goes on behind it,
 * if it is found further on, or ends.
 *
 * Behaviour BATCH.  19 collects the rows of a check, and looks for LA_CHECKS_AT_A_TIME keys at
 * once: when so many are there, and when the statement ends.  Each row has its turn when it is
 * collected, so that its blocks are there when the server looks.  Of the first rows nothing could
 * be known until the first batch is done, though.  So history.c is told whether blocks are read
 * for first batches, and where they were, the first row has its turn at the LA_KEY_TRIAL-th one,
 * for a trial: if a block is read for it, the others follow at once; if none is, look-ahead waits
 * until the server has read one.
 *
 * Invariants
 *	- What is looked up here is forgotten.  The server's function, or query, decides.
 *	- The other table has been locked by the first query.  It is open only while look-ahead works on
 *	  an event (keytables.c).  When a relcache entry has moved meanwhile, look-ahead ends.
 *	- What is kept for longer than a statement works only as long as the row type of the table that
 *	  is written is the same, and this transaction has it locked.
 *
 * src/write/keyahead.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "window/window.h"
#include "write/write_int.h"

#define MAX_SKIPPED		64		/* rows without an event, to be looked at for
								 * the next one */
#define MAX_SEARCHED	4096	/* rows or entries of the log, for one that
								 * was not expected */
#define TABLES			16		/* whose entries may alternate in the log */

/* Where the next event may be. */
typedef struct Place
{
	int64		entry;			/* in the log */
	bool		in_run;			/* ... which is a run, and there: */
	ItemPointerData run;		/* in the table */
} Place;

/* What is kept with a row that is known. */
typedef struct Known
{
	HeapTuple	tuple;			/* or NULL */
	Place		behind;
} Known;

/* A row whose turn it was, and which has not been looked at. */
typedef struct LaKeyWaiting
{
	ItemPointerData tid;
	ItemPointerData old;
} LaKeyWaiting;

struct LaKeyAhead
{
	LaKeyEvents events;
	EState	   *estate;			/* NULL if is_kept */
	MemoryContext parent;
	MemoryContext context;		/* of all that is made once a block is read */
	Relation	table;			/* that is written, open */
	LaKeyColumns key;			/* key.n == 0: not known yet */

	bool		started;		/* an event has had its turn */
	bool		refused;		/* nothing can be known ahead */
	int64		seen_reads;		/* blocks read then */
	const LaKeyAsked *asked;	/* whose turn it is */

	TupleDesc	desc;			/* is_kept: of the table */
	LaAhead    *ahead;			/* NULL until a block is read */
	LaKeyTables *others;		/* that are looked in */
	Oid			index;			/* of one of them */
	Place		next;			/* of events that are not known */
	Place		passed;			/* behind the last one that had its turn */
	int64		unseen;			/* of those that had it, since `passed` was
								 * right */
	int64		next_search;	/* with so many, a key is searched for */
	MemoryContextCallback callback;

	/* BATCH */
	LaKeyWaiting waiting[LA_KEY_TRIAL]; /* the first rows */
	bool		first_known;	/* it is known whether a block was read */
	MemoryContextCallback first_callback;
};

static inline Known *
known(LaKeyAhead *k, uint64 n)
{
	return la_ahead_own(k->ahead, n);
}

/* context: in which it lives; estate: of the statement with which it ends, if it does. */
LaKeyAhead *
la_keyahead_create(MemoryContext context, EState *estate, const LaKeyEvents *events)
{
	LaKeyAhead *k = MemoryContextAllocZero(context, sizeof(LaKeyAhead));

	k->events = *events;
	k->estate = estate;
	k->parent = context;
	k->passed.entry = events->first;
	return k;
}

/* Does the server make several checks at a time? */
static inline bool
is_batched(const LaKeyAhead *k)
{
	return LA_CHECKS_AT_A_TIME > 1 && k->events.is_check;
}

/* ---- events ----------------------------------------------------------------------- */

/* Has this transaction put the row there?  (LaRowFilter) */
static bool
is_own_row(HeapTupleHeader row)
{
	return la_heaprow_is_own(HeapTupleHeaderGetRawXmin(row));
}

static bool
has_null(const LaKeyAhead *k, HeapTuple row)
{
	for (int i = 0; i < k->key.n; i++)
	{
		if (heap_attisnull(row, k->key.here[i], RelationGetDescr(k->table)))
			return true;
	}
	return false;
}

/* Is the key null, or the same in both versions?  Then there is no event for an updated row. */
static bool
has_no_event(const LaKeyAhead *k, HeapTuple old, HeapTuple new)
{
	TupleDesc	desc = RelationGetDescr(k->table);

	if (has_null(k, k->events.is_check ? new : old))
		return true;

	/*
	 * the check of a row that this transaction has put there may not have
	 * been made yet
	 */
	if (new == NULL || (k->events.is_check && is_own_row(old->t_data)))
		return false;
	for (int i = 0; i < k->key.n; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, k->key.here[i] - 1);
		bool		isnull;
		Datum		before = heap_getattr(old, att->attnum, desc, &isnull);
		Datum		after = isnull ? (Datum) 0 : heap_getattr(new, att->attnum, desc, &isnull);

		if (isnull || !datumIsEqual(before, after, att->attbyval, att->attlen))
			return false;
	}
	return true;
}

/* An inserted row, if there is an event for it, else NULL. */
static HeapTuple
inserted_row(const LaKeyAhead *k, HeapTuple row)
{
	if (row == NULL)
		return NULL;
	/* the server asks nothing for a null, or for a row that it has replaced */
	if (k->events.by_key &&
		(has_null(k, row) || la_heaprow_is_replaced(row->t_data)))
	{
		heap_freetuple(row);
		return NULL;
	}
	return row;
}

/* An updated or deleted row, likewise: the version that has the key. */
static HeapTuple
changed_row(const LaKeyAhead *k, const LaTidEntry *entry)
{
	bool		is_check = k->events.is_check;
	HeapTuple	old = la_heaprow_copy(k->table, &entry->tid, NULL);
	HeapTuple	new = NULL;
	bool		useful = old != NULL && la_heaprow_is_replaced(old->t_data);

	if (useful && entry->kind == LA_TID_UPDATED)
	{
		new = ItemPointerIsValid(&old->t_data->t_ctid) ?
			la_heaprow_copy(k->table, &old->t_data->t_ctid, NULL) : NULL;
		useful = new != NULL;
	}
	useful = useful && !has_no_event(k, old, new);
	if (old != NULL && (!useful || is_check))
		heap_freetuple(old);
	if (new != NULL && (!useful || !is_check))
		heap_freetuple(new);
	if (!useful)
		return NULL;
	return is_check ? inserted_row(k, new) : old;
}

/* The event at this place of a run; NULL if there is none, *ended: nor behind it. */
static HeapTuple
event_of_run(const LaKeyAhead *k, Place *place, bool *ended)
{
	HeapTuple	row = la_heaprow_next(k->table, &place->run, is_own_row);

	*ended = row == NULL;
	return inserted_row(k, row);
}

/* The event at this place of the log, or NULL; the place is then the next one. */
static HeapTuple
event_of_entry(const LaKeyAhead *k, Place *place)
{
	const LaTidEntry *entry = la_tidlog_get(k->events.log, place->entry);

	if (entry->kind == LA_TID_RUN)
	{
		place->in_run = true;
		place->run = entry->tid;
		la_heaprow_seek(k->table, &place->run, is_own_row);
		return NULL;
	}
	place->entry++;
	if (entry->kind == LA_TID_INSERTED)
		return inserted_row(k, la_heaprow_copy(k->table, &entry->tid, is_own_row));
	return changed_row(k, entry);
}

static bool
is_at_end(const LaKeyAhead *k, const Place *place)
{
	return k->events.log != NULL && !place->in_run &&
		place->entry >= la_tidlog_length(k->events.log);
}

/*
 * The next event at this place or soon behind it.  The place is then behind the event.  *entries:
 * so many of the log may be looked at, and are left.
 */
static HeapTuple
next_event(const LaKeyAhead *k, Place *place, int64 *entries)
{
	HeapTuple	row = NULL;
	int			skipped = 0;

	if (k->events.log == NULL)
		return la_heaprow_next(k->table, &place->run, is_own_row);
	for (; *entries > 0 && skipped < MAX_SKIPPED && row == NULL; (*entries)--)
	{
		const LaTidEntry *entry;
		bool		ended = false;

		if (is_at_end(k, place))
			return NULL;
		entry = la_tidlog_get(k->events.log, place->entry);
		if (place->in_run)
			row = event_of_run(k, place, &ended);
		else if (entry->table != k->events.table ||
				 (k->events.kinds & LA_TID_MASK(entry->kind)) == 0)
		{
			place->entry++;
			continue;
		}
		else
			row = event_of_entry(k, place);
		if (ended)
		{
			place->in_run = false;
			place->entry++;
		}
		skipped++;
	}
	return row;
}

/* Is a value of variable length there as it is? */
static bool
is_inline(Datum value)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(value);

	return !VARATT_IS_EXTERNAL(v) && !VARATT_IS_COMPRESSED(v);
}

/*
 * Has the row's column this value of a key?  The server may have taken it out of its row, and made
 * its header a longer one.
 */
static bool
is_value(Form_pg_attribute att, Datum value, Datum other, Oid type)
{
	struct varlena *a;
	struct varlena *b;

	if (type != att->atttypid && !IsBinaryCoercible(att->atttypid, type))
		return false;
	if (att->attlen != -1 || !is_inline(value) || !is_inline(other))
		return datumIsEqual(value, other, att->attbyval, att->attlen);
	a = (struct varlena *) DatumGetPointer(value);
	b = (struct varlena *) DatumGetPointer(other);
	return VARSIZE_ANY_EXHDR(a) == VARSIZE_ANY_EXHDR(b) &&
		memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
}

/* Is this row the one whose turn it is? */
static bool
is_asked(const LaKeyAhead *k, HeapTuple row)
{
	TupleDesc	desc = RelationGetDescr(k->table);
	const LaKeyValues *key = k->asked->key;

	if (!k->events.by_key)
		return ItemPointerEquals(&row->t_self, unconstify(ItemPointerData *, k->asked->tid));
	if (key->n != k->key.n)
		return false;
	for (int i = 0; i < k->key.n; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, k->key.here[i] - 1);
		bool		isnull;
		Datum		value = heap_getattr(row, att->attnum, desc, &isnull);

		if (isnull || !OidIsValid(key->types[i]) ||
			!is_value(att, value, key->values[i], key->types[i]))
			return false;
	}
	return true;
}

/* ---- LaRowSource ------------------------------------------------------------------- */

static bool
fetch(void *arg, uint64 n)
{
	LaKeyAhead *k = arg;
	Known	   *row = known(k, n);
	int64		entries = MAX_SEARCHED;
	MemoryContext old;

	if (row->tuple != NULL)
		heap_freetuple(row->tuple);
	old = MemoryContextSwitchTo(la_ahead_copies(k->ahead));
	row->tuple = next_event(k, &k->next, &entries);
	row->behind = k->next;
	MemoryContextSwitchTo(old);
	return row->tuple != NULL;
}

static void
plan_visits(void *arg, uint64 n, LaAheadRow *row)
{
	LaKeyAhead *k = arg;

	la_keytables_plan(k->others, known(k, n)->tuple, row);
}

static bool
set_key(void *arg, uint64 n, const LaRowVisit *visit)
{
	LaKeyAhead *k = arg;

	return la_keytables_set_key(k->others, known(k, n)->tuple, visit->rel);
}

static bool
locate(void *arg, uint64 n, LaAheadRow *row, const LaMatches *matches, bool last)
{
	la_keytables_locate(((LaKeyAhead *) arg)->others, row, matches);
	return last;
}

/* ---- begin and end ----------------------------------------------------------------- */

static void
on_end(void *arg)
{
	LaKeyAhead *k = arg;

	if (k->ahead != NULL)
		la_ahead_end(k->ahead, LA_KIND_FOREIGN_KEY, k->key.other, k->index);
	k->ahead = NULL;
}

/* The statement ends, and not by an error: rows may be known for which there was no event. */
static void
on_shutdown(Datum arg)
{
	LaKeyAhead *k = (LaKeyAhead *) DatumGetPointer(arg);

	if (k->ahead != NULL)
		la_ahead_clear(k->ahead);
}

/* The statement, or the transaction, ends regularly, if that is not seen from its EState. */
void
la_keyahead_end(LaKeyAhead *k)
{
	if (k->ahead != NULL)
		la_ahead_clear(k->ahead);
	la_keyahead_reset(k);
}

/* Forget all but what is asked for, and where. */
void
la_keyahead_reset(LaKeyAhead *k)
{
	if (k->context != NULL)
		MemoryContextDelete(k->context);
	k->context = NULL;
	k->others = NULL;
	k->started = false;
}

static bool
load_key(LaKeyAhead *k)
{
	if (k->key.n > 0)
		return true;
	k->refused |= !la_keycolumns_load(&k->key, k->events.constraint, k->events.is_check,
									  k->events.table);
	return !k->refused;
}

/* Look at the other table, which is open then.  Returns false if nothing can be known ahead. */
static bool
prepare(LaKeyAhead *k)
{
	LaRowSource source = {
		.arg = k,
		.own_size = sizeof(Known),
		.fetch = fetch,
		.plan = plan_visits,
		.set_key = set_key,
		.locate = locate
	};
	LaAheadConfig config = {.takes_all = true,.order = LA_ORDER_OF_TABLE,.estate = k->estate};

	/*
	 * reads in flight hold buffers, whose resource owner may end before what
	 * is kept does
	 */
	if (!la_gate_allows_searches() || (k->events.is_kept && la_direct_io()))
		return false;
	k->others = la_keytables_create(k->table, &k->key, k->events.is_check);
	if (k->others == NULL)
		return false;
	k->desc = k->events.is_kept ? CreateTupleDescCopyConstr(RelationGetDescr(k->table)) : NULL;
	k->index = la_keytables_index(k->others);
	config.rel = la_keytables_heap(k->others);
	config.known_by = k->index;
	k->ahead = la_ahead_create(&source, &config);
	if (k->ahead == NULL)
		return false;
	k->callback.func = on_end;
	k->callback.arg = k;
	MemoryContextRegisterResetCallback(k->context, &k->callback);
	if (k->estate != NULL)
		RegisterExprContextCallback(GetPerTupleExprContext(k->estate), on_shutdown,
									PointerGetDatum(k));
	return la_keytables_set_ahead(k->others, k->ahead);
}

/* ---- turns -------------------------------------------------------------------------- */

/*
 * The next event is the one whose turn it is, if that is among the `most` next ones, and among so
 * many entries of the log.
 */
static bool
search_key(LaKeyAhead *k, int64 most, int64 entries)
{
	k->next = k->passed;
	for (int64 i = 0; i < most; i++)
	{
		Place		here = k->next;
		HeapTuple	row;
		bool		found;

		CHECK_FOR_INTERRUPTS();
		row = next_event(k, &k->next, &entries);
		if (row == NULL && (k->events.log == NULL || entries <= 0 || is_at_end(k, &k->next)))
			return false;
		if (row == NULL)
			continue;
		found = is_asked(k, row);
		heap_freetuple(row);
		if (found)
		{
			k->next = here;
			return true;
		}
	}
	return false;
}

/* An event is not the one that was expected: continue with it. */
static void
continue_with(LaKeyAhead *k)
{
	la_ahead_clear(k->ahead);
	if (k->events.by_key)
		k->refused |= !search_key(k, MAX_SEARCHED + k->unseen,
								  TABLES * (MAX_SEARCHED + k->unseen));
	else if (k->events.log == NULL)
		k->next.run = *k->asked->tid;
	else
	{
		int64		entry = la_tidlog_find(k->events.log, Max(k->passed.entry - 1, 0),
										   MAX_SEARCHED + TABLES * k->unseen, k->events.table,
										   k->asked->old);

		k->refused |= entry < 0;
		k->next.entry = Max(entry, 0);
		k->passed.entry = k->next.entry + 1;
	}
}

/* Open the other tables for an event, the first time to look at them. */
static void
open_others(LaKeyAhead *k)
{
	MemoryContext old;

	if (k->ahead == NULL)
	{
		k->context = AllocSetContextCreate(k->parent, "pg_lookahead foreign key",
										   ALLOCSET_SMALL_SIZES);
		old = MemoryContextSwitchTo(k->context);
		k->others = NULL;
		k->refused = !prepare(k);
		MemoryContextSwitchTo(old);
		/* BATCH: the next block is read when many rows have passed */
		if (!k->refused && is_batched(k))
			(void) la_ahead_next(k->ahead, true);
		return;
	}
	k->refused |= !la_keytables_open(k->others, k->table);
	if (k->refused)
		la_ahead_clear(k->ahead);
}

/* With the other tables open. */
static void
turn(LaKeyAhead *k)
{
	uint64		n = la_ahead_next_row(k->ahead);

	if (!la_ahead_has_rows(k->ahead) || !is_asked(k, known(k, n)->tuple))
		continue_with(k);
	if (k->refused)
		return;
	n = la_ahead_next_row(k->ahead);
	if (!la_ahead_turn(k->ahead))
		return;
	k->passed = known(k, n)->behind;
	k->unseen = 0;
}

/* Is what has been kept still of this table? */
static bool
is_same_table(const LaKeyAhead *k)
{
	return !k->events.is_kept ||
		(CheckRelationLockedByMe(k->table, AccessShareLock, true) &&
		 (k->ahead == NULL || equalTupleDescs(k->desc, RelationGetDescr(k->table))));
}

static void
begin_turn(LaKeyAhead *k)
{
	bool		missed = k->asked->missed || k->asked->trial ||
		(k->started && la_issue_blocks_read() != k->seen_reads);

	k->unseen++;
	if (k->ahead == NULL && !missed && !(k->started && la_force))
		return;
	if (k->ahead != NULL && !la_ahead_next(k->ahead, missed))
		return;
	if (!is_same_table(k))
	{
		k->refused = true;
		return;
	}
	/* no query has been made yet for rows whose keys are null */
	if (k->ahead == NULL && (!load_key(k) || !la_is_locked_by_me(k->key.other)))
		return;
	open_others(k);
	if (!k->refused)
		turn(k);
	if (k->others != NULL)
		la_keytables_close(k->others);
}

/* The same, and if nothing is read for a trial, it ends. */
static void
begin_turn_of(LaKeyAhead *k, const LaKeyAsked *asked)
{
	int64		reads = la_issue_blocks_read();

	k->asked = asked;
	begin_turn(k);
	if (asked->trial && !k->refused && k->ahead != NULL && la_issue_blocks_read() == reads)
		la_ahead_pause(k->ahead);
	k->asked = NULL;
}

/* Behaviour BATCH: was a block read for the first one?  The key's columns are known. */
void
la_keyahead_note_first(LaKeyAhead *k, bool read)
{
	if (!k->first_known)
		la_history_note_begin(k->key.conindid, read);
	k->first_known = true;
}

/* The statement ends. */
static void
on_first_end(void *arg)
{
	LaKeyAhead *k = arg;

	la_keyahead_note_first(k, la_issue_blocks_read() != k->seen_reads);
}

/* The server has looked for none of the first rows, of which this is the last one. */
static void
try_first(LaKeyAhead *k, const LaKeyAsked *last)
{
	int64		reads = la_issue_blocks_read();

	if (!load_key(k))
		return;
	k->first_callback.func = on_first_end;
	k->first_callback.arg = k;
	MemoryContextRegisterResetCallback(k->parent, &k->first_callback);
	if (!la_history_begins_with_reads(k->key.conindid))
	{
		begin_turn_of(k, last);
		return;
	}
	for (int i = 0; i < LA_KEY_TRIAL && !k->refused; i++)
	{
		LaKeyAsked	asked = {.tid = &k->waiting[i].tid,.old = &k->waiting[i].old,.trial = i == 0};

		begin_turn_of(k, &asked);
		if (k->ahead == NULL || !la_ahead_is_active(k->ahead))
			break;
	}
	if (la_issue_blocks_read() != reads)
		la_keyahead_note_first(k, true);
}

/* A row is collected before anything is looked ahead over. */
static void
collect(LaKeyAhead *k, const LaKeyAsked *asked)
{
	if (k->unseen < LA_KEY_TRIAL)
		k->waiting[k->unseen] = (LaKeyWaiting)
	{
		*asked->tid, *asked->old
	};
	if (k->unseen == LA_KEY_TRIAL - 1)
	{
		try_first(k, asked);
		return;
	}
	begin_turn_of(k, asked);
	/* a block has been read since the first row */
	if (k->ahead != NULL)
		la_keyahead_note_first(k, true);
}

/* An event has its turn.  table: that is written. */
void
la_keyahead_turn(LaKeyAhead *k, Relation table, const LaKeyAsked *asked)
{
	if (!k->refused)
	{
		k->table = table;
		if (is_batched(k) && !k->events.by_key && k->ahead == NULL)
			collect(k, asked);
		else
			begin_turn_of(k, asked);
	}
	k->started = true;
	k->seen_reads = la_issue_blocks_read();
}

/* The key's columns, or NULL if nothing can be known. */
const LaKeyColumns *
la_keyahead_columns(LaKeyAhead *k)
{
	return load_key(k) ? &k->key : NULL;
}

/* By key: is anything to be done in turns?  missed: blocks have been read. */
bool
la_keyahead_is_wanted(const LaKeyAhead *k, bool missed)
{
	if (k->refused)
		return false;
	if (k->ahead == NULL)
		return missed || la_force;
	return la_ahead_is_active(k->ahead) || la_ahead_has_rows(k->ahead) ||
		(missed && la_ahead_rest(k->ahead) == 0);
}

/* So many events have passed that had no turns. */
void
la_keyahead_pass(LaKeyAhead *k, int n)
{
	k->unseen += n;
	if (k->ahead != NULL)
		la_ahead_pass_rest(k->ahead, n);
}

/* By key: may this be the key of an event that comes soon? */
bool
la_keyahead_expects(LaKeyAhead *k, Relation table, const LaKeyValues *key)
{
	LaKeyAsked	asked = {.key = key};
	Place		next = k->next;
	bool		expected;

	k->table = table;
	k->asked = &asked;
	if (k->refused || !is_same_table(k) || !load_key(k) || key->n != k->key.n)
		expected = false;
	else if (k->ahead != NULL && la_ahead_has_rows(k->ahead) &&
			 is_asked(k, known(k, la_ahead_next_row(k->ahead))->tuple))
		expected = true;
	else if (k->unseen < k->next_search)
		expected = false;
	else
	{
		expected = search_key(k, MAX_SKIPPED + k->unseen, MAX_SEARCHED + TABLES * k->unseen);
		k->next = next;

		/*
		 * where none is ever of this key, all rows together are passed a few
		 * times
		 */
		k->next_search = expected || k->unseen < MAX_SKIPPED ? 0 : 2 * k->unseen;
	}
	k->asked = NULL;
	return expected;
}
