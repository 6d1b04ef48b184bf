/*
 * applyrows.c
 *	  Changes in the queue, as rows of rows/ahead.c, and the tables that they are for.
 *
 *	queue --> [ C | B | change | C | B | change | change | C | ... ]
 *				^ to be handed	 	^ scanned so far
 *				  over next		      (R, S, E noted; changes taken apart, and rows of rows/)
 *
 * Rows of the first stage need the leaf page of the index that finds a row which is updated or
 * deleted; from its entries the heap blocks are known, which are of the second stage, as are the
 * leaf pages in all indexes for a new row.  Where the row is found by its new values, the page of
 * that index is not read a second time.
 *
 * HOW MANY are known is what the queue has at the time, so lots are as large as there are changes
 * (SUPPLY in window/lot_policy.c).  Of those the second stage has the nearest NEARER_PART-th.
 *
 * All that is known of tables is forgotten when the relation cache is told that one has changed.
 *
 * src/replay/applyrows.c
 */
#include "postgres.h"

#include "catalog/pg_subscription_rel.h"
#include "replication/worker_internal.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "replay/replay_int.h"

#define MAX_TABLES		16		/* whose changes are known ahead at a time */
#define MAX_MATCHES		4		/* rows of one key that are read */
#define NEARER_PART		8		/* see LaRowSource */
#define MOST_RELATIONS	64		/* that a change may add */

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

/* what is known of tables; NULL: nothing, or look-ahead has not begun */
static MemoryContext context = NULL;
static LaAhead *ahead = NULL;
static Oid	known_by;
static HTAB *tables;
static int	nactive;
static LaApplyTable *active[MAX_TABLES];	/* open, or with rows */
static volatile bool stale = false;
static bool was_locked = false; /* an index, when its table was created */
static int	nrelations;			/* of all tables, about */
static int	most_tables = MAX_TABLES;	/* less while locks are scarce */

static HTAB *ready = NULL;		/* OIDs of tables whose changes are applied */

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

void
la_applyrows_publish(void)
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
void
la_applyrows_forget(void)
{
	if (ahead != NULL)
	{
		la_ahead_clear(ahead);
		la_applyrows_publish();
		la_applystats_keep_reads();
		la_ahead_forget(ahead, known_by);
	}
	ahead = NULL;
	tables = NULL;
	nactive = 0;
	nrelations = 0;
	was_locked = false;
	scanned = 0;
	if (context != NULL)
		MemoryContextDelete(context);
	context = NULL;
	stale = false;
}

/* A stream begins. */
void
la_applyrows_begin(const LaApplyQueue *q)
{
	queue = q;
	la_applyrows_forget();
	scanned_stream = false;
	most_tables = MAX_TABLES;
	if (ready != NULL)
		hash_destroy(ready);
	ready = NULL;
}

LaAhead *
la_applyrows_ahead(void)
{
	return ahead;
}

/* Is what is known to be forgotten, as it is wrong, or takes up all the numbers of relations? */
bool
la_applyrows_are_outdated(void)
{
	return stale || nrelations > LA_AHEAD_RELATIONS - MOST_RELATIONS;
}

/* Was the index of a table locked, so that nothing is known of its changes? */
bool
la_applyrows_were_locked(void)
{
	return was_locked;
}

/* ---- changes in the queue ---------------------------------------------------------------- */

static Change *
change_at(uint64 n)
{
	return la_ahead_own(ahead, n);
}

bool
la_applyrows_exist(void)
{
	return ahead != NULL && la_ahead_has_rows(ahead);
}

/* Forget the changes that are known ahead. */
void
la_applyrows_clear(void)
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

/* A message is handed over, the first one of the queue or one that has not been in it. */
void
la_applyrows_pass(char action, LaApplyReader message, bool *in_stream)
{
	if (queue->count == 0 || scanned <= queue->head)
	{
		if (!note(action, message, !la_applyrows_exist(), in_stream))
		{
			la_applyrows_clear();
			(void) note(action, message, true, in_stream);
		}
		scanned_stream = *in_stream;
	}
	else if (action == LA_APPLY_STREAM_START || action == LA_APPLY_STREAM_STOP)
		*in_stream = action == LA_APPLY_STREAM_START;
}

/* Is this change, the next one, to have a turn: is it the first that is known, or not known yet? */
bool
la_applyrows_have_turn(uint64 position)
{
	return la_applyrows_exist() ? la_applyrows_first() <= position : scanned <= position;
}

/* The message to be handed over is the first that may have to be scanned. */
void
la_applyrows_catch_up(bool in_stream)
{
	if (scanned > queue->head)
		return;
	scanned = queue->head;
	scanned_stream = in_stream;
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
	if (nactive >= most_tables)
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

static void
create_ready(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(Oid)};

	ctl.hcxt = TopMemoryContext;
	ready = hash_create("pg_lookahead synchronized tables", 64, &ctl,
						HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Does the server apply changes of this table?  Once it does, it does so until the stream ends, and
 * does not ask the catalog again.  Neither is it asked here; and what is in the catalog cache is
 * found without a lock.
 */
static bool
is_synchronized(Oid relid)
{
	HeapTuple	tuple;
	bool		is_ready;

	if (ready == NULL)
		create_ready();
	if (hash_search(ready, &relid, HASH_FIND, NULL) != NULL)
		return true;
	tuple = SearchSysCache2(SUBSCRIPTIONRELMAP, ObjectIdGetDatum(relid),
							ObjectIdGetDatum(MyLogicalRepWorker->subid));
	if (!HeapTupleIsValid(tuple))
		return false;
	is_ready = ((Form_pg_subscription_rel) GETSTRUCT(tuple))->srsubstate == SUBREL_STATE_READY;
	ReleaseSysCache(tuple);
	if (is_ready)
		(void) hash_search(ready, &relid, HASH_ENTER, NULL);
	return is_ready;
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
	if (nactive >= most_tables)
		return NULL;
	*reason = LA_APPLY_TABLE_LOCKED;
	heap = la_applytable_open_relation(oid);
	if (heap == NULL)
		return NULL;
	create_ahead(heap);
	*reason = LA_APPLY_NO_INDEX;
	if (ahead == NULL)
	{
		RelationClose(heap);
		return NULL;
	}
	old = MemoryContextSwitchTo(context);
	t = la_applytable_create(ahead, remote, heap);
	MemoryContextSwitchTo(old);
	active[nactive++] = t;
	if (t->refused == LA_APPLY_TABLE_LOCKED)
		was_locked = true;
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

/*
 * There are too few locks for all tables of the changes that are known ahead: be content with half
 * of them.
 */
void
la_applyrows_take_fewer(void)
{
	most_tables = Max(nactive / 2, 1);
}

/* Locks may be had again. */
void
la_applyrows_take_more(void)
{
	most_tables = Min(most_tables * 2, MAX_TABLES);
}

/* The turn ends: close all, and release the locks. */
void
la_applyrows_close(void)
{
	int			n = 0;

	for (int i = 0; i < nactive; i++)
	{
		la_applytable_close(active[i]);
		/* others are opened when a change comes for them */
		if (active[i]->rows > 0)
			active[n++] = active[i];
	}
	if (n < nactive && ahead != NULL)
		la_ahead_close_others(ahead);
	nactive = n;
	la_applylock_release_all();
}

/* Open the tables of the changes that are known ahead. */
bool
la_applyrows_open(void)
{
	la_applylock_begin();
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

/* The index in which the new row will be where the old one is: its page is read already. */
static Relation
keeps_place(const Change *c)
{
	Relation	index = la_descent_index(c->table->identity);

	return c->search == NULL && index->rd_index->indisunique ? index : NULL;
}

static bool
locate(void *arg, uint64 n, LaAheadRow *row, const LaMatches *matches, bool last)
{
	Change	   *c = change_at(n);
	LaApplyTable *t = c->table;

	LaMatchVisits which = {.most = MAX_MATCHES};

	la_ahead_add_matches(ahead, row, t->heap_rel, matches, &which);
	c->has_tid = matches->count > 0;
	if (c->has_tid)
		c->tid = matches->tids[0];
	if (c->action == LA_APPLY_UPDATE && !c->is_bare && !la_applytable_is_heap_only(t))
		la_target_plan_without(t->target, row, t->unknown, keeps_place(c));
	return true;
}

/* Look-ahead begins: with this table, which is open. */
static void
create_ahead(Relation heap)
{
	LaRowSource source = {
		.own_size = sizeof(Change),
		.nearer = NEARER_PART,
		.fetch = fetch,
		.plan = plan,
		.set_key = set_key,
		.locate = locate
	};
	LaAheadConfig config = {
		.rel = heap,
		.takes_all = true,
		.supply_varies = true,
		.order = LA_ORDER_OF_TABLE
	};
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
		la_applyrows_forget();
	nrelations = 0;
}

/* Begin with the table of a change.  Returns why nothing is known of it. */
LaApplyReason
la_applyrows_begin_with(const LaApplyChange *m)
{
	const LaApplyRemote *remote = la_applyremote_find(m->relation);
	LaApplyReason reason = LA_APPLY_NO_RELATION;

	if (remote != NULL)
		(void) get_table(remote, InvalidOid, &reason);
	return reason;
}

/* ---- turns ---------------------------------------------------------------------------- */

/* The position of the first change that is known ahead. */
uint64
la_applyrows_first(void)
{
	return change_at(la_ahead_next_row(ahead))->position;
}

/* The first change that is known ahead, or the next one, has its turn. */
void
la_applyrows_turn(void)
{
	uint64		n = la_ahead_next_row(ahead);
	Change	   *c;

	if (!la_ahead_turn(ahead))
	{
		la_applyrows_clear();
		return;
	}
	c = change_at(n);
	if (c->action == LA_APPLY_UPDATE && c->has_tid && !c->is_bare)
		la_applytable_learn(c->table, &c->tid, c->row);
	c->table->rows--;
	la_applystats_add(LA_APPLY_CHANGES_AHEAD);
}
