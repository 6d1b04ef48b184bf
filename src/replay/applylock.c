/*
 * applylock.c
 *	  Locks of a turn, none of which is waited for.
 *
 * Whoever looks at a table's pages has it locked in ACCESS SHARE mode, so that nobody drops or
 * truncates it meanwhile.  A turn (applyahead.c) takes these locks one by one and releases all of
 * them at its end, before the server goes on.  So none of them is in the way of what the server
 * locks for a change.
 *
 * No lock is waited for, and none is an error: where it is not to be had, because somebody else
 * has a stronger one or because there is no room for it, the turn does without.
 *
 * ROOM.  The shared table of locks has an entry for each relation that is locked, and is as large
 * as max_locks_per_transaction says, times the sessions there may be.  A server may live with a
 * table that is almost full.  So a turn takes little of it:
 *	- Nothing for what the transaction has locked already: that lock lasts until the transaction
 *	  ends, which is later than the turn.
 *	- Nothing where the lock fits among those that the process keeps for itself (its fast path).
 *	- Else one entry, of at most a TABLE_PART-th of max_locks_per_transaction.
 *
 * src/replay/applylock.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/inval.h"

#include "base/compat.h"
#include "replay/replay_int.h"

#define TABLE_PART		4
#define MOST_LOCKS		512		/* tables and their indexes */

static Oid	taken[MOST_LOCKS];
static int	ntaken;
static int	nshared;			/* of these, entries in the shared table */
static bool ran_out;

/* A turn begins.  If the last one has failed, the locks were released with its subtransaction. */
void
la_applylock_begin(void)
{
	ntaken = nshared = 0;
	ran_out = false;
}

/* Was a lock refused because the turn has enough of them? */
bool
la_applylock_ran_out(void)
{
	return ran_out;
}

/* Lock a relation of this database until the turn ends, if that can be done at once. */
bool
la_applylock_take(Oid relid)
{
	LOCALLOCK  *lock;
	LOCKTAG		tag;

	if (la_is_locked_by_me(relid))
		return true;
	if (ntaken == MOST_LOCKS)
	{
		ran_out = true;
		return false;
	}
	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	if (la_lock_at_once(&tag, AccessShareLock, &lock) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	taken[ntaken++] = relid;
	if (lock->lock != NULL && ++nshared > max_locks_per_xact / TABLE_PART)
	{
		UnlockRelationOid(relid, AccessShareLock);
		ntaken--;
		nshared--;
		ran_out = true;
		return false;
	}
	/* as after any lock: news of the relation have come before it was granted */
	AcceptInvalidationMessages();
	MarkLockClear(lock);
	return true;
}

/* Release all locks of the turn. */
void
la_applylock_release_all(void)
{
	while (ntaken > 0)
		UnlockRelationOid(taken[--ntaken], AccessShareLock);
	nshared = 0;
}
