/*
 * insert.c
 *	  Inserting in stock btree indexes.
 *
 * Most new index entries go to a leaf page that has room for them, and all that is to be
 * done is to find the place and to put them there.  That is done here, by a search that
 * costs less than nbtree's (insert_location.c).  Whatever is more than that is left to btinsert(),
 * with nothing changed before:
 *
 *		aminsert --> la_btinsert --> place found, page has room, no doubt --> put there
 *		                 |                                   |
 *		                 `--- off, few rows, does not pay    `--- anything else
 *		                                  \                            /
 *		                                   `------> btinsert <--------'
 *
 * "Anything else" is: the page is full (to split it, or to make room), an equal key in
 * a unique index, a posting list that the new row address splits, an unfinished split on
 * the way, an entry of more than a quarter of a page, an empty index, one of an old version
 * without row addresses in its order, and checks without insertion.
 *
 * How it gets there: insert_hooks.c.  The settings are looked at each time.
 *
 * What is kept from row to row (the search key's functions, counters) is in the IndexInfo's
 * ii_AmCache, which nbtree does not use: it lives for one statement.  The first rows of a
 * statement go to btinsert(): short statements do not pay for it.  Nor does it pay if
 * places are too often not found here; then btinsert() gets the next rows, at once.
 *
 * Invariants
 *	- WAL, page changes, predicate locks, and the remembered rightmost leaf are those of
 *	  _bt_doinsert() and _bt_insertonpg() in nbtinsert.c for the same entry: the page is the
 *	  same, byte by byte.
 *	- Between the moment when a place is found and the entry is in it, its page stays
 *	  locked.  Without equal keys the first page that could have them is that of the
 *	  place (insert_location.c): so no two backends can insert an equal key in a unique index.
 *
 * src/write/insert.c
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/nbtxlog.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"

#include "attach/interpose_index.h"
#include "base/compat.h"
#include "base/guc.h"
#include "write/insert.h"
#include "btree/searchkey.h"
#include "write/insert_location.h"

#define ROWS_BEFORE		16		/* of a statement, for btinsert() */
#define WINDOW			64		/* rows after which to look at what was missed */
#define MAX_MISSED		20		/* of them */
#define FIRST_PAUSE		256		/* rows for btinsert() if it was more */
#define LONGEST_PAUSE	16384
#define LARGEST_ENTRY	(BLCKSZ / 4)
#define FASTPATH_LEVEL	2		/* nbtinsert.c's BTREE_FASTPATH_MIN_LEVEL */

/* What a statement keeps for an index. */
typedef struct InsertState
{
	LaInsertLocation *places;	/* NULL until rows enough were inserted */
	int			pause;			/* so many rows for btinsert() */
	int			next_pause;
	int			tried;			/* since the counters were looked at */
	int			missed;
} InsertState;

/*
 * What the statement keeps for the index; NULL if btinsert() is to insert this row.
 */
static InsertState *
state_of(Relation index, Relation heap, IndexInfo *info)
{
	InsertState *state = info->ii_AmCache;

	if (state == NULL)
	{
		state = MemoryContextAllocZero(info->ii_Context, sizeof(InsertState));
		state->pause = la_force ? 0 : ROWS_BEFORE;
		state->next_pause = FIRST_PAUSE;
		info->ii_AmCache = state;
	}
	if (state->pause > 0)
	{
		state->pause--;
		return NULL;
	}
	if (state->places == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(info->ii_Context);

		state->places = la_insertlocation_create(index, heap);
		MemoryContextSwitchTo(old);
		if (state->places == NULL)
		{
			state->pause = PG_INT32_MAX;
			return NULL;
		}
	}
	return state;
}

/* Are places found often enough to look for them? */
static void
count(InsertState *state, bool found)
{
	state->tried++;
	state->missed += !found;
	if (state->tried < WINDOW)
		return;
	if (state->missed > MAX_MISSED && !la_force)
	{
		state->pause = state->next_pause;
		state->next_pause = Min(2 * state->next_pause, LONGEST_PAUSE);
	}
	else
		state->next_pause = FIRST_PAUSE;
	state->tried = state->missed = 0;
}

/*
 * The new entry's key.  *has_null: in one of its columns.
 */
static void
set_key(LaSearchKey *key, Relation index, IndexTuple entry,
		const Datum *values, const bool *isnull, bool *has_null)
{
	TupleDesc	desc = RelationGetDescr(index);

	*has_null = false;
	for (int i = 0; i < key->ncolumns; i++)
	{
		Datum		value = values[i];

		if (isnull[i])
		{
			la_key_set_null(key, i);
			*has_null = true;
			continue;
		}
		/* as in the entry, where it is not out of line any more */
		if (TupleDescAttr(desc, i)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(value)))
		{
			bool		null;

			value = index_getattr(entry, i + 1, desc, &null);
		}
		la_key_set(key, i, value);
	}
}

/*
 * Put the entry in its place, on a page that has room for it, and release the page.
 */
static void
put(Relation index, Buffer buffer, OffsetNumber position, IndexTuple entry,
	Size size)
{
	Page		page = BufferGetPage(buffer);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	bool		rightmost = P_RIGHTMOST(opaque) && !P_ISROOT(opaque);
	BlockNumber block = BufferGetBlockNumber(buffer);

	START_CRIT_SECTION();

	if (PageAddItem(page, (void *) entry, size, position, false, false) ==
		InvalidOffsetNumber)
		elog(PANIC, "could not add an entry to block %u of index \"%s\"",
			 block, RelationGetRelationName(index));
	MarkBufferDirty(buffer);

	if (RelationNeedsWAL(index))
	{
		xl_btree_insert record;
		XLogRecPtr	lsn;

		record.offnum = position;
		XLogBeginInsert();
		XLogRegisterData((char *) &record, SizeOfBtreeInsert);
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		XLogRegisterBufData(0, (char *) entry, IndexTupleSize(entry));
		/* a macro in 15, which would evaluate a call twice */
		lsn = XLogInsert(RM_BTREE_ID, XLOG_BTREE_INSERT_LEAF);
		PageSetLSN(page, lsn);
	}

	END_CRIT_SECTION();

	_bt_relbuf(index, buffer);

	/* may read the metapage: not under the lock */
	if (rightmost && _bt_getrootheight(index) >= FASTPATH_LEVEL)
		RelationSetTargetBlock(index, block);
}

/*
 * Insert an entry if that is simple.
 */
static bool
insert_simple(Relation index, LaInsertLocation *places, const Datum *values,
			  const bool *isnull, ItemPointer tid, IndexUniqueCheck unique,
			  bool *result)
{
	LaSearchKey *key = la_insertlocation_key(places);
	IndexTuple	entry = index_form_tuple(RelationGetDescr(index),
										 (Datum *) values, (bool *) isnull);
	Size		size = MAXALIGN(IndexTupleSize(entry));
	OffsetNumber position;
	Buffer		buffer = InvalidBuffer;
	bool		has_null;

	entry->t_tid = *tid;
	set_key(key, index, entry, values, isnull, &has_null);

	/* a null equals nothing, unless the index says so */
	if (index->rd_index->indnullsnotdistinct)
		has_null = false;
	*result = unique != UNIQUE_CHECK_NO;
	key->tid = *result && !has_null ? NULL : &entry->t_tid;

	if (size <= LARGEST_ENTRY)
		buffer = la_insertlocation_find(places, size, &position);
	if (BufferIsValid(buffer))
	{
		CheckForSerializableConflictIn(index, NULL, BufferGetBlockNumber(buffer));
		put(index, buffer, position, entry, size);
	}
	pfree(entry);
	return BufferIsValid(buffer);
}

/*
 * In place of btinsert().
 */
bool
la_btinsert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			Relation heap, IndexUniqueCheck unique, bool unchanged,
			IndexInfo *info)
{
	if (!la_enable || !la_enable_btree_insert)
		la_interpose_restore(index);
	else if (info != NULL && unique != UNIQUE_CHECK_EXISTING)
	{
		InsertState *state = state_of(index, heap, info);

		if (state != NULL)
		{
			bool		result;
			bool		done = insert_simple(index, state->places, values, isnull,
											 tid, unique, &result);

			count(state, done);
			if (done)
				return result;
		}
	}
	return btinsert(index, values, isnull, tid, heap, unique, unchanged, info);
}
