/*
 * turn.c
 *	  A turn of looking ahead that may neither fail nor wait.
 *
 * Some looking ahead asks the relation cache and the catalog caches for what may not be there,
 * takes locks, and needs memory, which may be exhausted.  None of that is the statement's, or the
 * apply worker's, whose next change may need nothing of it.
 *
 * ERRORS.  The turn is in a subtransaction, which is rolled back after an error of any class, and
 * the error is dropped: if it is of a change or a row, the server raises it in its turn.  Unlike in
 * guard.c relations may be opened: what an error leaves in the relation cache, only the end of a
 * subtransaction cleans up.  The subtransaction itself takes little memory, and it is begun
 * only where some more is free.
 *
 * INTERRUPTS are not held off, so that the session can be terminated at any time: that is a FATAL
 * error, which nobody catches.  Two other errors of interrupts are not the turn's either, and are
 * raised again: that somebody has canceled the statement, and that a worker which applies a
 * streamed transaction has failed, which this one is told once.  A parallel query has workers
 * that may tell of an error, too, and there no turn is made.
 *
 * WAITS.  The turn's own locks are not waited for (lock.c).  But whatever is not in the caches
 * is read from catalogs, and the server locks them, and their indexes, in the ordinary way: which
 * ones, depends on what is missing.  Such a lock is waited for in ProcSleep(), which heeds
 * lock_timeout.  That is WAIT_MS during the turn.  So no lock is waited for for longer, and then
 * the error is dropped as any other.  All else that is waited for in the server (reads, buffers'
 * locks, lightweight locks) ends by itself.
 *
 * The timeout strikes by way of a canceled statement.  It may do so just when the lock is granted,
 * and is then noticed later: what is pending is taken back at the end of the turn.  What is pending
 * before a turn is processed before it begins, and so is not mistaken for the turn's.
 *
 * src/base/turn.c
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timeout.h"

#include "base/turn.h"

#define WAIT_MS			1
#define SPARE_MEMORY	(64 * 1024) /* for the subtransaction, and for the
									 * error */

/* Is the error of an interrupt that is the caller's? */
static bool
is_for_the_caller(const ErrorData *error)
{
	return ERRCODE_TO_CATEGORY(error->sqlerrcode) ==
		ERRCODE_TO_CATEGORY(ERRCODE_OPERATOR_INTERVENTION) ||
		(error->funcname != NULL && strstr(error->funcname, "ParallelApplyMessage") != NULL);
}

/* Is so much memory free? */
bool
la_turn_has_memory(Size size)
{
	void	   *memory = MemoryContextAllocExtended(TopMemoryContext, size, MCXT_ALLOC_NO_OOM);

	if (memory == NULL)
		return false;
	pfree(memory);
	return true;
}

/* The turn has ended.  A timeout of its own may be pending. */
static void
restore_timeout(int before)
{
	LockTimeout = before;
	if (get_timeout_indicator(LOCK_TIMEOUT, true))
		QueryCancelPending = false;
}

/* Call the function.  Returns its error, in this memory context, or NULL. */
static ErrorData *
call(void (*work) (void *arg), void *arg, MemoryContext context)
{
	ErrorData  *volatile error = NULL;

	PG_TRY();
	{
		work(arg);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	return error;
}

/*
 * Make a turn, within a transaction.  Returns false if it was not made, or has failed; then *error
 * is the error, in this memory context, or NULL.
 */
bool
la_turn_make(void (*work) (void *arg), void *arg, ErrorData **error)
{
	MemoryContext old = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	int			lock_timeout = LockTimeout;

	*error = NULL;
	if (ExitOnAnyError || IsInParallelMode() || !la_turn_has_memory(SPARE_MEMORY))
		return false;
	CHECK_FOR_INTERRUPTS();
	BeginInternalSubTransaction(NULL);
	/* what is left in its own context would stay until the transaction ends */
	MemoryContextSwitchTo(old);
	LockTimeout = WAIT_MS;
	*error = call(work, arg, old);
	restore_timeout(lock_timeout);
	if (*error == NULL)
		ReleaseCurrentSubTransaction();
	else
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(old);
	CurrentResourceOwner = owner;
	if (*error != NULL && is_for_the_caller(*error))
		ReThrowError(*error);
	return *error == NULL;
}
