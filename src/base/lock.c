/*
 * lock.c
 *	  A relation's lock, taken at once or not at all.
 *
 * What look-ahead locks and the server would not must not be waited for, and a shared table of
 * locks that is full is no error of the statement.  (The server's own function for locks that
 * are not waited for raises that error.)
 *
 * src/base/lock.c
 */
#include "postgres.h"

#include "catalog/catalog.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/inval.h"

#include "base/base.h"
#include "base/compat.h"

/* Returns false if somebody else has a stronger lock, or if there is no room for this one. */
bool
la_lock_relation_at_once(Oid relid, LOCKMODE mode)
{
	LOCALLOCK  *lock;
	LOCKTAG		tag;
	LockAcquireResult result;

	SET_LOCKTAG_RELATION(tag, IsSharedRelation(relid) ? InvalidOid : MyDatabaseId, relid);
	result = la_lock_at_once(&tag, mode, &lock);
	if (result == LOCKACQUIRE_NOT_AVAIL)
		return false;
	if (result != LOCKACQUIRE_ALREADY_CLEAR)
	{
		/*
		 * as after any lock: news of the relation have come before it was
		 * granted
		 */
		AcceptInvalidationMessages();
		MarkLockClear(lock);
	}
	return true;
}

/*
 * Lock these catalogs and their indexes for reading, so that what is read from them now is not
 * waited for.  Returns false, with none locked, if one is not free.
 */
bool
la_lock_catalogs_at_once(const Oid *relids, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (!la_lock_relation_at_once(relids[i], AccessShareLock))
		{
			la_lock_release_catalogs(relids, i);
			return false;
		}
	}
	return true;
}

void
la_lock_release_catalogs(const Oid *relids, int n)
{
	for (int i = 0; i < n; i++)
		UnlockRelationOid(relids[i], AccessShareLock);
}
