/*
 * copy.c
 *	  COPY FROM that looks ahead over the rows that it has put into the table.
 *
 * COPY FROM puts up to a thousand rows into the table at once, and then inserts their entries
 * into the indexes, row by row.  la_copy_insert() is in the place of btinsert() meanwhile
 * (insert_hooks.c).  When it is called with the first entry of a row, the next rows are on the
 * pages of the table already, behind this one:
 *
 *		table  [ ... | row | row | row | row | older rows or none ... ]
 *					   ^ entries are	 ^ last one that is known
 *						 being inserted
 *
 * They are told by what the server has written into them: the transaction and the command that is
 * running.  ahead.c starts the reads of the leaf pages that they need, in all indexes.
 *
 * Where COPY inserts row by row (BEFORE ROW triggers, volatile defaults, and others), no next row
 * is ever found.  Then the pages that one row needs in several indexes are read at the same time,
 * and look-ahead ends after FUTILE_TURNS rows of which each has had no more than one to be read.
 *
 * State is kept for each table of a COPY statement, in the memory context of its IndexInfo, which
 * ends with the statement.  Statements are numbered, so that state that another statement has left
 * in the same context is never used.
 *
 * Invariants
 *	- The indexes are those that the server has opened for the statement, which keeps them open;
 *	  no reference to one is held here.
 *
 * src/write/copy.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/nbtree.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "window/window.h"
#include "write/write_int.h"

#define FUTILE_TURNS	64		/* see turn_to() */

/* What a COPY statement keeps for a table. */
typedef struct Copy
{
	uint64		statement;
	Relation	heap;
	Oid			heaprelid;
	Oid			known_by;		/* the index whose history is used */
	MemoryContext context;
	bool		refused;		/* nothing can be known ahead */
	int64		seen_reads;		/* blocks read when the last row's turn came */
	ItemPointerData turn;		/* the row whose entries are being inserted */
	int			futile;			/* turns in a row that were of no use */
	bool		expects;		/* the leaf pages of this turn's entries are
								 * known */

	LaAhead    *ahead;			/* NULL until a block is read */
	LaTarget   *target;
	ItemPointerData next;		/* where the next row may be */
	TupleTableSlot *slot;		/* has the row slot_row */
	uint64		slot_row;
	MemoryContextCallback callback;
	struct Copy *previous;
} Copy;

/* Newest first. */
static Copy *copies = NULL;
static uint64 statement = 0;
static bool running = false;	/* or has ended by an error */

/* A COPY FROM statement begins. */
void
la_copy_begin(void)
{
	statement++;
	running = true;
}

static void
end_ahead(Copy *c)
{
	if (c->ahead != NULL)
		la_ahead_end(c->ahead, LA_KIND_INDEX_INSERT, c->heaprelid, c->known_by);
	c->ahead = NULL;
	c->refused = true;
	c->expects = false;
}

static void
forget(void *arg)
{
	Copy	   *c = arg;
	Copy	  **p = &copies;

	while (*p != NULL && *p != c)
		p = &(*p)->previous;
	if (*p != NULL)
		*p = c->previous;
	end_ahead(c);
}

/*
 * It has ended.  What its tables keep is left to the memory contexts, and before 17 our function
 * may stay until the end of the transaction.
 */
void
la_copy_end(void)
{
	running = false;
	for (Copy *c = copies; c != NULL; c = c->previous)
		end_ahead(c);
}

/* tid: of its first row, if it is the first time to look */
static Copy *
copy_of(Relation heap, const IndexInfo *info, const ItemPointerData *tid)
{
	Copy	   *c = copies;

	while (c != NULL && (c->statement != statement || c->heap != heap ||
						 c->context != info->ii_Context))
		c = c->previous;
	if (c != NULL)
		return c;
	la_keyquery_copy_starts(RelationGetRelid(heap), tid);
	c = MemoryContextAllocZero(info->ii_Context, sizeof(Copy));
	c->statement = statement;
	c->heap = heap;
	c->heaprelid = RelationGetRelid(heap);
	c->context = info->ii_Context;
	ItemPointerSetInvalid(&c->turn);
	c->callback.func = forget;
	c->callback.arg = c;
	MemoryContextRegisterResetCallback(c->context, &c->callback);
	c->previous = copies;
	copies = c;
	c->refused = !la_enable_write;
	return c;
}

/* ---- rows ------------------------------------------------------------------- */

static inline HeapTuple *
row_at(Copy *c, uint64 n)
{
	return la_ahead_own(c->ahead, n);
}

/* Has the running command put this row there?  (LaRowFilter) */
static bool
is_own_row(HeapTupleHeader row)
{
	return la_heaprow_is_own(HeapTupleHeaderGetRawXmin(row)) &&
		(row->t_infomask & HEAP_XMAX_INVALID) != 0 &&
		(row->t_infomask & HEAP_COMBOCID) == 0 &&
		HeapTupleHeaderGetRawCommandId(row) == GetCurrentCommandId(false);
}

/* LaRowSource.fetch */
static bool
fetch(void *arg, uint64 n)
{
	Copy	   *c = arg;
	HeapTuple  *row = row_at(c, n);
	MemoryContext old;

	if (*row != NULL)
		heap_freetuple(*row);
	old = MemoryContextSwitchTo(la_ahead_copies(c->ahead));
	*row = la_heaprow_next(c->heap, &c->next, is_own_row);
	MemoryContextSwitchTo(old);
	if (*row == NULL)
		return false;
	c->slot_row = PG_UINT64_MAX;
	return true;
}

/* LaRowSource.plan */
static void
plan_visits(void *arg, uint64 n, LaAheadRow *row)
{
	la_target_plan(((Copy *) arg)->target, row, NULL);
}

/* LaRowSource.set_key */
static bool
set_key(void *arg, uint64 n, const LaRowVisit *visit)
{
	Copy	   *c = arg;

	if (c->slot_row != n)
		ExecForceStoreHeapTuple(*row_at(c, n), c->slot, false);
	c->slot_row = n;
	return la_target_set_key(c->target, visit->rel, c->slot);
}

/* ---- a row's turn -------------------------------------------------------------- */

/* The indexes of the table; those that are not ready for inserts may not be open. */
static void
create_target(Copy *c)
{
	Relation	indexes[LA_TARGET_INDEXES];
	int			n = 0;
	List	   *list = RelationGetIndexList(c->heap);
	ListCell   *lc;

	foreach(lc, list)
	{
		Relation	index = n == LA_TARGET_INDEXES ? NULL : RelationIdGetRelation(lfirst_oid(lc));

		if (RelationIsValid(index))
			indexes[n++] = index;
	}
	list_free(list);
	c->target = la_target_create(c->ahead, c->heap, n, indexes, NULL, true);
	while (n > 0)
		RelationClose(indexes[--n]);
}

/* A block has been read for a row: look at the reads of the next ones. */
static void
create_ahead(Copy *c, Relation index)
{
	LaRowSource source = {
		.arg = c,
		.own_size = sizeof(HeapTuple),
		.fetch = fetch,
		.plan = plan_visits,
		.set_key = set_key
	};
	LaAheadConfig config = {.takes_all = true,.order = LA_ORDER_OF_TABLE,.estate = NULL};
	MemoryContext old = MemoryContextSwitchTo(c->context);

	c->known_by = RelationGetRelid(index);
	config.rel = index;
	config.known_by = c->known_by;
	c->ahead = la_ahead_create(&source, &config);
	if (c->ahead != NULL)
	{
		create_target(c);
		c->slot = MakeSingleTupleTableSlot(CreateTupleDescCopy(RelationGetDescr(c->heap)),
										   &TTSOpsHeapTuple);
		c->slot_row = PG_UINT64_MAX;
	}
	c->refused = c->ahead == NULL || c->target == NULL;
	MemoryContextSwitchTo(old);
}

/* The row is known already, or look-ahead begins with it. */
static void
turn_to(Copy *c, ItemPointer tid)
{
	uint64		n = la_ahead_next_row(c->ahead);
	int64		reads = la_issue_blocks_read();
	bool		together;
	bool		known;

	if (!la_ahead_has_rows(c->ahead) || !ItemPointerEquals(&(*row_at(c, n))->t_self, tid))
	{
		la_ahead_clear(c->ahead);
		c->next = *tid;
	}
	n = la_ahead_next_row(c->ahead);
	known = la_ahead_turn(c->ahead);
	together = la_issue_blocks_read() - reads > 1;
	c->expects = known && la_enable_btree_insert;
	if (c->expects)
		la_target_expect(c->target, la_ahead_row(c->ahead, n), la_insert_expect);
	if (known && (together || la_ahead_has_rows(c->ahead) || !la_ahead_is_armed(c->ahead)))
		c->futile = 0;
	else
		c->futile++;
	if (c->futile > FUTILE_TURNS)
	{
		la_ahead_clear(c->ahead);
		c->refused = true;
	}
}

/* The first entry of a row is to be inserted. */
static void
begin_row(Copy *c, Relation index, ItemPointer tid)
{
	bool		missed = ItemPointerIsValid(&c->turn) && la_issue_blocks_read() != c->seen_reads;

	c->turn = *tid;
	if (c->ahead == NULL && (missed || la_force))
		create_ahead(c, index);
	if (c->ahead != NULL && !c->refused)
	{
		if (la_ahead_next(c->ahead, missed))
			turn_to(c, tid);
	}
	c->seen_reads = la_issue_blocks_read();
}

/* In place of btinsert() during COPY FROM. */
bool
la_copy_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			   IndexUniqueCheck unique, bool unchanged, IndexInfo *info)
{
	if (!la_enable || (!la_enable_write && !la_enable_foreign_key && !la_enable_btree_insert))
		la_interpose_restore(index);
	else if (running && (la_enable_write || la_enable_foreign_key) && info != NULL &&
			 unique != UNIQUE_CHECK_EXISTING && la_target_is_possible(heap))
	{
		Copy	   *c = copy_of(heap, info, tid);

		if (!c->refused &&
			(!ItemPointerIsValid(&c->turn) || !ItemPointerEquals(&c->turn, tid)))
			begin_row(c, index, tid);
		if (la_enable_btree_insert && c->expects)
			la_target_set_info(c->target, index, info);
	}
	return la_enable && la_enable_btree_insert ?
		la_btinsert(index, values, isnull, tid, heap, unique, unchanged, info) :
		btinsert(index, values, isnull, tid, heap, unique, unchanged, info);
}
