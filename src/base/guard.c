/*
 * guard.c
 *	  Work that is done early, and whose errors are nobody's.
 *
 * A page that is damaged is the server's to report, when it comes to it, if it does.  Where
 * look-ahead reads pages of which that is not certain, it does so in here: an error ends the
 * look-ahead, silently, and the statement goes on.
 *
 * There is no subtransaction, which a parallel worker may not begin, and which would take longer
 * than the work.  What the work holds belongs to a resource owner of its own, below the one of the
 * query.  After an error it is cleaned up as background processes do, which have no transaction
 * either: locks and buffers are released, and the resource owner with all the rest.
 *
 * Invariants
 *	- The caller holds no lightweight lock, so that those held after an error are the work's.
 *	- The work changes nothing that only the end of a (sub)transaction would undo.
 *	- Interrupts are held off meanwhile, as they may raise errors that are not the work's: a cancel,
 *	  or the error of a parallel worker, which the server tells but once.
 *	- Warnings, as of a checksum that is wrong, are not shown: the server repeats them.  Where a
 *	  setting has it accept such a page, it would not, and nothing is done.
 *	- With exit_on_error each error ends the session, whoever catches it, and nothing is done.
 *
 * src/base/guard.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

#include "base/compat.h"
#include "base/guard.h"

/* What is to be as it was when the work began. */
typedef struct Before
{
	ResourceOwner owner;
	MemoryContext context;
	uint32		interrupt_holdoff;
	uint32		cancel_holdoff;
	int			client_messages;
	int			log_messages;
} Before;

static void
put_back(const Before *before)
{
	CurrentResourceOwner = before->owner;
	client_min_messages = before->client_messages;
	la_log_min_messages = before->log_messages;
}

static void
release(ResourceOwner owner)
{
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, false, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, false, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, false, false);
	ResourceOwnerDelete(owner);
}

/* The error has been caught, and is not raised again. */
static void
clean_up(LaGuard *guard, const Before *before)
{
	FlushErrorState();
	LWLockReleaseAll();
	ConditionVariableCancelSleep();
	pgstat_report_wait_end();
	la_aio_error_cleanup();
	la_abort_buffer_io();
	UnlockBuffers();
	release(guard->owner);
	guard->owner = NULL;
	guard->failed = true;
	QueryCancelHoldoffCount = before->cancel_holdoff;
}

/* Is it a cancel, or a conflict with recovery? */
static bool
is_for_the_caller(int sqlerrcode)
{
	return ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION ||
		ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_TRANSACTION_ROLLBACK;
}

/* Do the work.  Returns false if it has failed, now or before. */
bool
la_guard_run(LaGuard *guard, void (*work) (void *arg), void *arg)
{
	Before		before = {CurrentResourceOwner, CurrentMemoryContext, InterruptHoldoffCount,
	QueryCancelHoldoffCount, client_min_messages, la_log_min_messages};

	if (guard->failed || zero_damaged_pages || ignore_checksum_failure || ExitOnAnyError)
		return false;
	if (guard->owner == NULL)
		guard->owner = ResourceOwnerCreate(CurrentResourceOwner, "pg_lookahead");
	CurrentResourceOwner = guard->owner;
	HOLD_INTERRUPTS();
	client_min_messages = ERROR;
	la_log_min_messages = ERROR;
	PG_TRY();
	{
		work(arg);
	}
	PG_CATCH();
	{
		put_back(&before);
		if (ResourceOwnerGetParent(guard->owner) == NULL)
			ResourceOwnerNewParent(guard->owner, before.owner);
		if (is_for_the_caller(geterrcode()))
		{
			/* what it holds is released with the query's resource owner */
			guard->owner = NULL;
			guard->failed = true;
			PG_RE_THROW();
		}
		MemoryContextSwitchTo(before.context);
		clean_up(guard, &before);
	}
	PG_END_TRY();
	put_back(&before);
	InterruptHoldoffCount = before.interrupt_holdoff;
	return !guard->failed;
}

/*
 * Do work that is short and comes often.  Its resource owner, which holds nothing meanwhile, is
 * kept until work fails.
 */
bool
la_guard_run_briefly(void (*work) (void *arg), void *arg)
{
	static LaGuard guard = {NULL, false};

	if (guard.owner == NULL)
		guard.owner = ResourceOwnerCreate(NULL, "pg_lookahead");
	guard.failed = false;
	return la_guard_run(&guard, work, arg);
}

/*
 * There may be no more work for long: a function's statements have their caller's resource owner,
 * and each would leave one of ours to it.  The work holds nothing.
 */
void
la_guard_rest(LaGuard *guard)
{
	if (guard->owner != NULL)
		release(guard->owner);
	guard->owner = NULL;
}

/* The query goes on, or ends regularly, without it.  The work holds nothing. */
void
la_guard_end(LaGuard *guard)
{
	la_guard_rest(guard);
	guard->failed = true;
}
