/*
 * applyahead.c
 *	  What the changes in the queue will need, read ahead of their turn.
 *
 *	queue --> [ C | B | change | C | B | change | change | C | ... ]
 *				^ to be handed	 	^ scanned so far
 *				  over next		      (R, S, E noted; changes taken apart, and rows of rows/)
 *
 * The rows of rows/ahead.c are changes.  Those of the first stage need the leaf page of the
 * index that finds a row which is updated or deleted; from its entries the heap blocks are known,
 * which are of the second stage, as are the leaf pages in all indexes for a new row.
 *
 * WHEN.  To look at something takes a transaction, and the worker has one open from the first
 * change of a transaction to its end.  So it is used: each time that the server asks for the next
 * message within it, the next change in the queue has its turn: it is read for, if it must be,
 * and the window goes on.  The next change may be one of the next transaction, so that a stream
 * of transactions of one change each is looked ahead for as well.  A change that is handed over
 * outside a transaction, and has not had its turn, has none.  No transaction is ever started
 * here, and none is longer but by the reads that the next one would have made.
 *
 * ERRORS.  What is looked at may be damaged, and then the error is the change's, not that of the
 * transaction that happens to be open.  So each turn has a subtransaction, which is rolled back,
 * and its error is dropped: the server will raise it.  Interrupts are held off meanwhile, since
 * what they raise is no error of looking ahead.  Only what tells of the process itself is passed
 * on, such as memory that is exhausted.
 *
 * NOT LOOKED AT are streamed transactions, SERIALIZABLE ones, and anything with direct I/O.  All
 * that is known of tables is forgotten when the relation cache is told that one has changed.
 *
 * src/replay/applyahead.c
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_subscription_rel.h"
#include "replication/worker_internal.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "base/guc.h"
#include "replay/applyahead.h"
#include "replay/applymessage.h"
#include "replay/applyremote.h"
#include "replay/applyscan.h"
#include "replay/applystats.h"
#include "replay/applytable.h"
#include "rows/ahead.h"
#include "rows/attempt.h"
#include "window/issue.h"

#define MAX_TABLES		16		/* whose changes are known ahead at a time */
#define MAX_MATCHES		4		/* rows of one key that are read */
#define MAX_LATE		8		/* turns at once of changes that have passed */
#define RETRY_AFTER		4096	/* changes, if a table was locked */
#define AGAIN_AFTER		64		/* changes, after an error; then twice as many */
#define MAX_ERRORS		12
#define MOST_RELATIONS	64		/* that a change may add */
#define NEVER			PG_UINT64_MAX

/* What is kept with a row of rows/: a change. */
typedef struct Change
{
	uint64		position;		/* in the queue */
	LaApplyTable *table;
	char		action;
	bool		is_bare;		/* the index pages of the new row are not
								 * known */
	bool		has_tid;
	ItemPointerData tid;		/* of the row that is changed */
	MinimalTuple search;		/* what it is found by; NULL for an insert */
	MinimalTuple row;			/* the new row; NULL for a delete */
} Change;

typedef struct TableKey
{
	uint32		remote;
	Oid			relid;			/* of a partition, or InvalidOid */
} TableKey;

typedef struct TableEntry
{
	TableKey	key;
	LaApplyTable *table;
} TableEntry;

static const LaApplyQueue *queue;
static uint64 scanned;			/* position of the message to be scanned next */
static bool scanned_stream;		/* it is within a streamed transaction */
static bool passed_stream;		/* the next one to be handed over is */
static bool passed_change;		/* the last one handed over was a change */
static int64 seen_reads;		/* blocks read then */

/* what is known of tables; NULL: nothing, or look-ahead has not begun */
static MemoryContext context = NULL;
static LaAhead *ahead = NULL;
static Oid	known_by;
static HTAB *tables;
static int	nactive;
static LaApplyTable *active[MAX_TABLES];	/* open, or with rows */
static volatile bool stale = false;
static int	nrelations;			/* of all tables, about */
static uint64 nchanges;			/* handed over */
static uint64 retry_at = NEVER;
static int	nerrors;
static uint64 again_at;			/* no look-ahead before this change */

/* the turn that is being made */
static uint64 turn_position;
static bool turn_missed;		/* a block was read for the change before */

/* ---- invalidation ------------------------------------------------------------------- */

static bool
is_of(const LaApplyTable *t, Oid relid)
{
	if (t->relid == relid)
		return true;
	for (int i = 0; i < t->nindexes; i++)
	{
		if (t->index_oids[i] == relid)
			return true;
	}
	return false;
}

static void
relation_changed(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	TableEntry *entry;

	if (ahead == NULL || stale)
		return;
	if (!OidIsValid(relid))
	{
		stale = true;
		return;
	}
	hash_seq_init(&status, tables);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->table != NULL && is_of(entry->table, relid))
			stale = true;
	}
}

static void
subscription_changed(Datum arg, int cacheid, uint32 hashvalue)
{
	stale = true;
}

static void
watch_catalogs(void)
{
	static bool listening = false;

	if (listening)
		return;
	listening = true;
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(SUBSCRIPTIONRELMAP, subscription_changed, (Datum) 0);
}

/* ---- begin and end ------------------------------------------------------------------- */

static void
publish(void)
{
	LaCounters	sum;

	if (ahead == NULL)
	{
		la_applystats_set_state(LA_APPLY_PASSIVE);
		return;
	}
	la_ahead_sum(ahead, &sum);
	la_applystats_set_reads(&sum);
	la_applystats_set_state(la_ahead_is_armed(ahead) ? LA_APPLY_AHEAD :
							la_ahead_is_active(ahead) ? LA_APPLY_OBSERVING : LA_APPLY_PASSIVE);
}

/* Forget all that is known of tables.  Nothing is open. */
static void
forget(void)
{
	if (ahead != NULL)
	{
		la_ahead_clear(ahead);
		publish();
		la_applystats_keep_reads();
		la_ahead_forget(ahead, known_by);
	}
	ahead = NULL;
	tables = NULL;
	nactive = 0;
	nrelations = 0;
	retry_at = NEVER;
	scanned = 0;
	if (context != NULL)
		MemoryContextDelete(context);
	context = NULL;
	stale = false;
}

/* A stream begins. */
void
la_applyahead_begin(const LaApplyQueue *q)
{
	queue = q;
	forget();
	la_applyremote_forget_all();
	scanned_stream = passed_stream = passed_change = false;
}

/* It has ended. */
void
la_applyahead_end(void)
{
	forget();
	la_applyremote_forget_all();
}

/* Messages are handed over without looking ahead. */
void
la_applyahead_stop(void)
{
	if (context != NULL)
		forget();
}

/* ---- changes in the queue ---------------------------------------------------------------- */

static Change *
change_at(uint64 n)
{
	return la_ahead_own(ahead, n);
}

static bool
has_rows(void)
{
	return ahead != NULL && la_ahead_has_rows(ahead);
}

/* Forget the changes that are known ahead. */
static void
clear_rows(void)
{
	la_ahead_clear(ahead);
	for (int i = 0; i < nactive; i++)
		active[i]->rows = 0;
	scanned = 0;
}

/*
 * Note what a message says of the following ones.  Returns false if it must not be passed, since
 * changes before it are known ahead.
 */
static bool
note(char action, LaApplyReader body, bool is_free, bool *in_stream)
{
	LaApplyNote result = la_applyscan_note(action, body, is_free, in_stream);

	/* tables refer to the description that there was */
	if (result == LA_APPLY_NOTED_OTHER)
		stale = true;
	return result != LA_APPLY_NOT_PASSED;
}

/*
 * A message is handed over: the first one of the queue, or one that has not been in it.  Those that
 * were scanned have been noted.
 */
void
la_applyahead_pass(const char *data, size_t length)
{
	LaApplyReader body;
	char		action = la_applymessage_action(data, length, &body);

	passed_change = la_applyscan_is_change(action) && !passed_stream;
	if (queue->count == 0 || scanned <= queue->head)
	{
		if (!note(action, body, !has_rows(), &passed_stream))
		{
			clear_rows();
			(void) note(action, body, true, &passed_stream);
		}
		scanned_stream = passed_stream;
	}
	else if (action == LA_APPLY_STREAM_START || action == LA_APPLY_STREAM_STOP)
		passed_stream = action == LA_APPLY_STREAM_START;
	if (!passed_change)
		return;
	nchanges++;
	la_applystats_add(LA_APPLY_CHANGES);
	seen_reads = la_issue_blocks_read();
}

/* ---- tables --------------------------------------------------------------------------- */

/* Open a table for this turn, and keep it among those that are opened for the next ones. */
static bool
open_table(LaApplyTable *t, LaApplyReason *reason)
{
	for (int i = 0; i < nactive; i++)
	{
		if (active[i] == t)
			return !stale;
	}
	*reason = LA_APPLY_TOO_MANY;
	if (nactive == MAX_TABLES)
		return false;
	*reason = LA_APPLY_TABLE_LOCKED;
	if (!la_applytable_open(t))
		return false;
	active[nactive++] = t;

	/*
	 * a lock brings news: what is known may refer to a descriptor that has
	 * been replaced
	 */
	return !stale;
}

static bool
is_synchronized(Oid relid)
{
	XLogRecPtr	lsn;

	return GetSubscriptionRelState(MyLogicalRepWorker->subid, relid, &lsn) ==
		SUBREL_STATE_READY;
}

static void create_ahead(Relation heap);

/* Create the table, open, if it can be locked. */
static LaApplyTable *
create_table(const LaApplyRemote *remote, Oid relid, LaApplyReason *reason)
{
	Oid			oid = OidIsValid(relid) ? relid : la_applytable_oid(remote);
	LaApplyTable *t;
	Relation	heap;
	MemoryContext old;

	*reason = LA_APPLY_NO_TABLE;
	if (!OidIsValid(oid))
		return NULL;
	*reason = LA_APPLY_NOT_SYNCHRONIZED;
	if (!OidIsValid(relid) && !is_synchronized(oid))
		return NULL;
	*reason = LA_APPLY_TOO_MANY;
	if (nactive == MAX_TABLES)
		return NULL;
	*reason = LA_APPLY_TABLE_LOCKED;
	heap = la_applytable_open_relation(oid);
	if (heap == NULL)
		return NULL;
	create_ahead(heap);
	*reason = LA_APPLY_NO_INDEX;
	if (ahead == NULL)
	{
		la_applytable_close_relation(heap);
		return NULL;
	}
	old = MemoryContextSwitchTo(context);
	t = la_applytable_create(ahead, remote, heap);
	MemoryContextSwitchTo(old);
	active[nactive++] = t;
	if (t->refused == LA_APPLY_TABLE_LOCKED)
		retry_at = Min(retry_at, nchanges + RETRY_AFTER);
	nrelations += 2 + t->nindexes;
	return t;
}

/* The table of a description, or a partition of it: open; NULL if nothing can be known of it. */
static LaApplyTable *
get_table(const LaApplyRemote *remote, Oid relid, LaApplyReason *reason)
{
	TableKey	key = {remote->id, relid};
	TableEntry *entry = tables == NULL ? NULL : hash_search(tables, &key, HASH_FIND, NULL);
	LaApplyTable *t;

	if (entry != NULL)
		t = entry->table;
	else
	{
		t = create_table(remote, relid, reason);
		if (t == NULL)
			return NULL;
		entry = hash_search(tables, &key, HASH_ENTER, NULL);
		entry->table = t;
	}
	*reason = t->refused;
	return t->refused == LA_APPLY_KNOWN && open_table(t, reason) ? t : NULL;
}

static void
close_tables(void)
{
	int			n = 0;

	for (int i = 0; i < nactive; i++)
	{
		la_applytable_close(active[i]);
		/* others are opened when a change comes for them */
		if (active[i]->rows > 0)
			active[n++] = active[i];
	}
	nactive = n;
}

/* Open the tables of the changes that are known ahead. */
static bool
open_tables(void)
{
	for (int i = 0; i < nactive; i++)
	{
		if (!la_applytable_open(active[i]))
			return false;
	}
	return true;
}

/* ---- changes -------------------------------------------------------------------------- */

/* The partition that a row is in, or t if it has none; NULL: not known. */
static LaApplyTable *
partition_of(LaApplyTable *t, const LaApplyRemote *remote, LaApplyTuple row,
			 LaApplyReason *reason)
{
	while (t != NULL && t->is_partitioned)
	{
		bool		unchanged;
		Oid			oid;

		*reason = LA_APPLY_NO_VALUE;
		if (!la_applytable_read(t, row, &unchanged) || unchanged)
			return NULL;
		oid = la_applytable_partition(t);
		*reason = LA_APPLY_NO_PARTITION;
		t = OidIsValid(oid) ? get_table(remote, oid, reason) : NULL;
	}
	return t;
}

/* A copy of the needed columns of a row, or NULL. */
static MinimalTuple
copy_row(LaApplyTable *t, LaApplyTuple row, bool *unchanged)
{
	MemoryContext old;
	MinimalTuple copy;

	if (!la_applytable_read(t, row, unchanged))
		return NULL;
	old = MemoryContextSwitchTo(la_ahead_copies(ahead));
	copy = ExecCopySlotMinimalTuple(t->slot);
	MemoryContextSwitchTo(old);
	return copy;
}

/* An update whose old row is sent may move the row to another partition. */
static bool
may_move(LaApplyTable *t, const LaApplyRemote *remote, const LaApplyChange *m)
{
	LaApplyReason reason;
	LaApplyTable *root;

	if (m->action != LA_APPLY_UPDATE || m->old_kind == 0)
		return false;
	root = get_table(remote, InvalidOid, &reason);
	return root == NULL || partition_of(root, remote, m->new_row, &reason) != t;
}

static void
free_rows(Change *c)
{
	if (c->search != NULL)
		heap_free_minimal_tuple(c->search);
	if (c->row != NULL)
		heap_free_minimal_tuple(c->row);
	c->search = c->row = NULL;
}

/* Make a change of a message, in the place of one that has passed. */
static bool
take_change(Change *c, const LaApplyChange *m, LaApplyReason *reason)
{
	const LaApplyRemote *remote = la_applyremote_find(m->relation);
	LaApplyTuple found_by = m->old_kind != 0 ? m->old_row : m->new_row;
	bool		unchanged = false;
	LaApplyTable *t;

	free_rows(c);
	*reason = LA_APPLY_NO_RELATION;
	if (remote == NULL)
		return false;
	t = get_table(remote, InvalidOid, reason);
	t = partition_of(t, remote, found_by, reason);
	if (t == NULL)
		return false;
	*reason = LA_APPLY_NO_IDENTITY;
	if (m->action != LA_APPLY_INSERT && t->identity == NULL)
		return false;
	*reason = LA_APPLY_NO_VALUE;
	c->table = t;
	c->action = m->action;
	c->has_tid = false;
	if (m->old_kind != 0 && (c->search = copy_row(t, m->old_row, &unchanged)) == NULL)
		return false;
	unchanged = false;
	if (m->action != LA_APPLY_DELETE &&
		(c->row = copy_row(t, m->new_row, &unchanged)) == NULL)
		return false;
	c->is_bare = unchanged || t->target == NULL || may_move(t, remote, m);
	t->rows++;
	return true;
}

/* ---- LaRowSource ---------------------------------------------------------------------- */

static bool
fetch(void *arg, uint64 n)
{
	Change	   *c = change_at(n);
	bool		is_first = !la_ahead_has_rows(ahead);

	if (!is_first && !la_ahead_is_armed(ahead))
		return false;
	for (;;)
	{
		LaApplyReason reason = LA_APPLY_DAMAGED;
		LaApplyReader body;
		LaApplyChange m;
		size_t		length;
		const char *data = la_applyqueue_at(queue, scanned, &length);
		char		action;

		if (data == NULL || stale)
			return false;
		action = la_applymessage_action(data, length, &body);
		if (!note(action, body, is_first, &scanned_stream))
			return false;
		c->position = scanned;
		scanned = la_applyqueue_after(queue, scanned);
		if (stale)
			return false;
		if (!la_applyscan_is_change(action) || scanned_stream)
			continue;
		if (la_applymessage_change(action, body, &m) && take_change(c, &m, &reason))
			return true;
		la_applystats_leave(reason);
		/* the first one is that which comes next */
		if (is_first)
			return false;
	}
}

static void
plan(void *arg, uint64 n, LaAheadRow *row)
{
	Change	   *c = change_at(n);

	if (c->action != LA_APPLY_INSERT)
		(void) la_ahead_add_visit(row, c->table->identity_rel);
	else
	{
		row->located = true;
		if (!c->is_bare)
			la_target_plan(c->table->target, row, c->table->unknown);
	}
}

static bool
set_key(void *arg, uint64 n, const LaRowVisit *visit)
{
	Change	   *c = change_at(n);
	LaApplyTable *t = c->table;

	if (t->identity != NULL && visit->rel == t->identity_rel)
	{
		ExecStoreMinimalTuple(c->search != NULL ? c->search : c->row, t->row_slot, false);
		return la_applytable_set_identity(t, t->row_slot);
	}
	if (c->row == NULL || t->target == NULL)
		return false;
	ExecStoreMinimalTuple(c->row, t->row_slot, false);
	return la_target_set_key(t->target, visit->rel, t->row_slot);
}

static bool
locate(void *arg, uint64 n, LaAheadRow *row, const LaMatches *matches, bool last)
{
	Change	   *c = change_at(n);
	LaApplyTable *t = c->table;

	for (int i = 0; i < Min(matches->count, MAX_MATCHES); i++)
	{
		LaRowVisit *v = la_ahead_add_visit(row, t->heap_rel);

		if (v == NULL)
			break;
		v->block = ItemPointerGetBlockNumber(&matches->tids[i]);
		v->state = ROW_VISIT_KNOWN;
	}
	c->has_tid = matches->count > 0;
	if (c->has_tid)
		c->tid = matches->tids[0];
	if (c->action == LA_APPLY_UPDATE && !c->is_bare && !la_applytable_is_heap_only(t))
		la_target_plan(t->target, row, t->unknown);
	return true;
}

/* Look-ahead begins: with this table, which is open. */
static void
create_ahead(Relation heap)
{
	LaRowSource source = {
		.own_size = sizeof(Change),
		.fetch = fetch,
		.plan = plan,
		.set_key = set_key,
		.locate = locate
	};
	LaAheadConfig config = {.rel = heap,.takes_all = true,.order = LA_ORDER_OF_TABLE};
	HASHCTL		ctl = {.keysize = sizeof(TableKey),.entrysize = sizeof(TableEntry)};
	MemoryContext old;
	List	   *indexes;

	if (ahead != NULL)
		return;
	watch_catalogs();
	context = AllocSetContextCreate(TopMemoryContext, "pg_lookahead apply",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	ctl.hcxt = context;
	tables = hash_create("pg_lookahead tables of changes", 32, &ctl,
						 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	indexes = RelationGetIndexList(heap);
	known_by = indexes == NIL ? RelationGetRelid(heap) : linitial_oid(indexes);
	config.known_by = known_by;
	ahead = la_ahead_create(&source, &config);
	MemoryContextSwitchTo(old);
	if (ahead == NULL)
		forget();
	nrelations = 0;
}

/* ---- turns ---------------------------------------------------------------------------- */

/* Begin to look ahead with the next change, where the last one has waited. */
static void
begin_with_next(void)
{
	LaApplyReason reason = LA_APPLY_DAMAGED;
	LaApplyReader body;
	LaApplyChange m;
	size_t		length;
	const char *data = la_applyqueue_at(queue, turn_position, &length);
	char		action = la_applymessage_action(data, length, &body);
	const LaApplyRemote *remote;

	if (la_applymessage_change(action, body, &m))
	{
		reason = LA_APPLY_NO_RELATION;
		remote = la_applyremote_find(m.relation);
		if (remote != NULL)
			(void) get_table(remote, InvalidOid, &reason);
	}
	if (ahead == NULL)
		la_applystats_leave(reason);
	else if (!la_ahead_is_active(ahead))
		la_ahead_pass(ahead, turn_missed);
}

/* The position of the first change that is known ahead. */
static uint64
first_known(void)
{
	return change_at(la_ahead_next_row(ahead))->position;
}

/* The first change that is known ahead, or the next one, has its turn. */
static void
turn_one(void)
{
	uint64		n = la_ahead_next_row(ahead);
	Change	   *c;

	if (!la_ahead_turn(ahead))
	{
		clear_rows();
		return;
	}
	c = change_at(n);
	if (c->action == LA_APPLY_UPDATE && c->has_tid && !c->is_bare)
		la_applytable_learn(c->table, &c->tid, c->row);
	c->table->rows--;
	la_applystats_add(LA_APPLY_CHANGES_AHEAD);
}

/*
 * The next change has its turn, and before it those that were applied without one: their blocks are
 * there by now, and what was foreseen behind them remains.
 */
static void
turn_to_next(void)
{
	for (int i = 0; i < MAX_LATE && has_rows() && first_known() < turn_position; i++)
		turn_one();
	if (has_rows() && first_known() < turn_position)
		clear_rows();
	if (scanned <= queue->head)
	{
		scanned = queue->head;
		scanned_stream = passed_stream;
	}
	if (has_rows() ? first_known() == turn_position : scanned <= turn_position)
		turn_one();
}

static void
make_turn(void)
{
	if (!open_tables() || stale)
	{
		la_applystats_add(LA_APPLY_LOCKED);
		clear_rows();
	}
	else
	{
		if (ahead == NULL)
			begin_with_next();
		if (ahead != NULL && (la_ahead_is_active(ahead) || has_rows()))
			turn_to_next();
	}
	close_tables();
}

/* Errors that are not of looking ahead, but of the process. */
static bool
is_of_process(const ErrorData *error)
{
	int			category = ERRCODE_TO_CATEGORY(error->sqlerrcode);

	return category == ERRCODE_TO_CATEGORY(ERRCODE_INSUFFICIENT_RESOURCES) ||
		category == ERRCODE_TO_CATEGORY(ERRCODE_OPERATOR_INTERVENTION);
}

/* Make a turn.  Its error is dropped, with all that it has left. */
static void
try_turn(void)
{
	ErrorData  *error = la_attempt_subtransaction(make_turn);

	if (error == NULL)
		return;
	forget();
	if (is_of_process(error))
		ReThrowError(error);
	elog(DEBUG1, "pg_lookahead: looking ahead has failed: %s", error->message);
	la_applystats_add(LA_APPLY_ERRORS);
	la_applystats_leave(LA_APPLY_FAILED);
	FreeErrorData(error);
	nerrors = Min(nerrors + 1, MAX_ERRORS);
	again_at = nchanges + (AGAIN_AFTER << nerrors);
}

/* Is there a turn to be made, for the next change, which is at turn_position? */
static bool
is_turn(void)
{
	turn_position = la_applyscan_next_change(queue, passed_stream);
	return turn_position != LA_APPLY_NOWHERE &&
		(has_rows() ? first_known() <= turn_position : scanned <= turn_position);
}

/* The server asks for the next message: make the turn of the next change, if that is possible. */
void
la_applyahead_look(void)
{
	bool		passed = passed_change;

	passed_change = false;
	if (!IsTransactionState() || passed_stream || IsolationIsSerializable() || la_direct_io())
		return;
	if (stale || nchanges >= retry_at || nrelations > LA_AHEAD_RELATIONS - MOST_RELATIONS)
		forget();
	turn_missed = passed && la_issue_blocks_read() != seen_reads;
	if (nchanges < again_at || (ahead == NULL && !turn_missed && !la_force))
		return;
	if (ahead != NULL && passed && !la_ahead_is_active(ahead))
		la_ahead_pass(ahead, turn_missed);
	if ((ahead == NULL || la_ahead_is_active(ahead) || has_rows()) && is_turn())
		try_turn();
	publish();
}
