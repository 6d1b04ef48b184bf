/*
 * insert.c
 *	  Inserting into stock btree indexes.
 *
 * Most new entries go to a leaf page that has room for them, so that they only have to be located
 * and added.  That is done here, by a search that costs less than nbtree's (insert_location.c).
 * All else is left to btinsert(), with nothing changed before:
 *
 *		aminsert --> la_btinsert() --> location found, page has room --> entry added
 *		                 |                                |
 *		                 '--- off, few rows, misses       '--- anything else
 *		                                  \                     /
 *		                                   '---> btinsert() <--'
 *
 * "Anything else" is: a full page (which has to be split, or cleaned up), an equal key in a unique
 * index, a posting list that the new heap TID splits, an incomplete split on the way, an entry
 * larger than a quarter of a page, an empty index, one of a version in which heap TIDs are not part
 * of the order, and checks without insertion.
 *
 * What is kept from row to row (the search key with its functions, counters) is in the IndexInfo's
 * ii_AmCache, which nbtree does not use and which lives for one statement.  The first rows of a
 * statement go to btinsert(), so that short statements do not pay for it.  So do the next rows if
 * too many of the last ones had no location.  The settings are checked for each row.
 *
 * Invariants
 *	- WAL, page changes, predicate locks, and the remembered rightmost leaf are those of
 *	  _bt_doinsert() and _bt_insertonpg() in nbtinsert.c for the same entry: the page is the
 *	  same, byte for byte.
 *	- From the moment when a location is found until the entry is there, its page is locked.
 *	  If there is no equal key, the first page that could have one is that of the location
 *	  (insert_location.c), so no two backends can insert equal keys into a unique index.
 *
 * src/write/insert.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/nbtxlog.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "write/write_int.h"

#define ROWS_BEFORE		16		/* of a statement, for btinsert() */

/* If more than MAX_MISSED of TRIALS rows have no location, the next rows are for btinsert(). */
#define TRIALS			64
#define MAX_MISSED		20
#define FIRST_PAUSE		256		/* rows; doubled each time */
#define LONGEST_PAUSE	16384

#define LARGEST_ENTRY	(BLCKSZ / 4)
#define FASTPATH_LEVEL	2		/* nbtinsert.c's BTREE_FASTPATH_MIN_LEVEL */

/* What a statement keeps for an index. */
typedef struct LaInsertState
{
	LaInsertLocation *location; /* NULL before it is first needed */
	BlockNumber expected;		/* of the next entry, or InvalidBlockNumber */
	int			pause;			/* so many more rows are for btinsert() */
	int			next_pause;
	int			tried;			/* rows, of the current TRIALS */
	int			missed;			/* of these */
} LaInsertState;

/* What the statement keeps for the index; NULL if btinsert() is to insert this row. */
static LaInsertState *
state_of(Relation index, Relation heap, IndexInfo *info)
{
	LaInsertState *state = info->ii_AmCache;

	if (state == NULL)
	{
		state = MemoryContextAllocZero(info->ii_Context, sizeof(LaInsertState));
		state->pause = la_force ? 0 : ROWS_BEFORE;
		state->next_pause = FIRST_PAUSE;
		state->expected = InvalidBlockNumber;
		info->ii_AmCache = state;
	}
	if (state->pause > 0)
	{
		state->pause--;
		return NULL;
	}
	if (state->location == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(info->ii_Context);

		state->location = la_insertlocation_create(index, heap);
		MemoryContextSwitchTo(old);
		if (state->location == NULL)
			state->pause = PG_INT32_MAX;
	}
	return state->location != NULL ? state : NULL;
}

/*
 * LaExpectLeaf: look-ahead has come to this leaf page for the entry that will be inserted next.
 * What the statement keeps for the index is there once our function has inserted a row.
 */
void
la_insert_expect(void **state, Relation index, const IndexInfo *info, BlockNumber leaf)
{
	if (*state == NULL && la_interpose_has_aminsert(index))
		*state = info->ii_AmCache;
	if (*state != NULL)
		((LaInsertState *) *state)->expected = leaf;
}

/* Leave the next rows to btinsert() if too few locations are found. */
static void
count(LaInsertState *state, bool found)
{
	state->tried++;
	state->missed += !found;
	if (state->tried < TRIALS)
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

/* Set the key to that of the new entry.  *has_null: a column is null. */
static void
set_key(LaSearchKey *key, Relation index, IndexTuple entry, const Datum *values,
		const bool *isnull, bool *has_null)
{
	TupleDesc	desc = RelationGetDescr(index);

	*has_null = false;
	for (int i = 0; i < key->ncolumns; i++)
	{
		Datum		value = values[i];

		if (isnull[i])
		{
			la_searchkey_set_null(key, i);
			*has_null = true;
			continue;
		}
		/* the entry has a copy that is not stored out of line */
		if (TupleDescAttr(desc, i)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(value)))
		{
			bool		null;

			value = index_getattr(entry, i + 1, desc, &null);
		}
		la_searchkey_set(key, i, value);
	}
}

/* Add the entry to a page that has room for it, and release the page. */
static void
add_entry(Relation index, Buffer buffer, OffsetNumber position, IndexTuple entry, Size size)
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
		/* not an argument of PageSetLSN(), which is a macro in 15 */
		lsn = XLogInsert(RM_BTREE_ID, XLOG_BTREE_INSERT_LEAF);
		PageSetLSN(page, lsn);
	}
	else
		la_set_fake_lsn(index, page);

	END_CRIT_SECTION();

	_bt_relbuf(index, buffer);

	/* not under the lock, since it may read the metapage */
	if (rightmost && _bt_getrootheight(index) >= FASTPATH_LEVEL)
		RelationSetTargetBlock(index, block);
}

/* Insert an entry if a location is found for it. */
static bool
insert_entry(Relation index, const LaInsertState *state, Datum *values, bool *isnull,
			 ItemPointer tid, IndexUniqueCheck unique, bool *result)
{
	LaSearchKey *key = la_insertlocation_key(state->location);
	IndexTuple	entry = index_form_tuple(RelationGetDescr(index), values, isnull);
	Size		size = MAXALIGN(IndexTupleSize(entry));
	OffsetNumber position = InvalidOffsetNumber;
	Buffer		buffer = InvalidBuffer;
	bool		has_null;

	entry->t_tid = *tid;
	set_key(key, index, entry, values, isnull, &has_null);

	/* a null equals nothing, unless the index is NULLS NOT DISTINCT */
	if (index->rd_index->indnullsnotdistinct)
		has_null = false;
	*result = unique != UNIQUE_CHECK_NO;
	key->tid = *result && !has_null ? NULL : &entry->t_tid;

	if (size <= LARGEST_ENTRY)
		buffer = la_insertlocation_find(state->location, state->expected, size, &position);
	if (BufferIsValid(buffer))
	{
		CheckForSerializableConflictIn(index, NULL, BufferGetBlockNumber(buffer));
		add_entry(index, buffer, position, entry, size);
	}
	pfree(entry);
	return BufferIsValid(buffer);
}

/* In place of btinsert(). */
bool
la_btinsert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			IndexUniqueCheck unique, bool unchanged, IndexInfo *info)
{
	if (!la_enable || !la_enable_btree_insert)
		la_interpose_restore(index);
	else if (info != NULL && unique != UNIQUE_CHECK_EXISTING)
	{
		LaInsertState *state = state_of(index, heap, info);

		if (state != NULL)
		{
			bool		result;
			bool		done = insert_entry(index, state, values, isnull, tid, unique, &result);

			state->expected = InvalidBlockNumber;
			count(state, done);
			if (done)
				return result;
		}
	}
	return btinsert(index, values, isnull, tid, heap, unique, unchanged, info);
}
