/*
 * attempt.c
 *	  Speculative work whose errors are discarded, or kept until the row's turn.
 *
 * Look-ahead does work that the statement may never come to.  An error of that work belongs to
 * the statement only when the server itself gets there, and then the server raises it.  Whoever
 * catches an error has to undo what it left behind.  What that is depends on the work:
 *
 *	kind		may								after an error, this undoes
 *	COMPUTING	call functions on values		nothing: nothing is held
 *	SCANNING	call an access method, which	locks and pins of buffers, lightweight locks,
 *				reads pages and computes		I/O in progress, the owner's references
 *	READING		read, pin and lock pages,		the same
 *				keep relations open
 *	OPENING		open relations, fill the		all of it, by rolling a subtransaction back
 *				catalog caches, lock objects
 *
 * Proof for each kind that nothing else remains:
 *
 * COMPUTING.  Only errors of these are caught, all others are raised at once: data and the
 * program's limits (classes 21, 22, 23, 54 and 0A), names and syntax in arguments (42, 3D, 3F, and
 * a value of an enum that may not be used yet), a record that is not assigned (55000), and those
 * without a class of their own (XX000), as of a value that gets too long.  Functions that compute
 * something raise them while they hold memory of the caller's context only.  An error below a
 * buffer's lock is not caught: taking a lock holds off interrupts, which is seen when the error is
 * raised.  Cancels and damaged data are of other classes.
 *
 * SCANNING.  The same errors are caught, also where an access method has a page locked while it
 * calls a function.  What the call holds belongs to a resource owner of its own, as in READING, and
 * is released after an error.  The call may take long: so interrupts are not held off.
 *
 * READING.  There is no subtransaction, which a parallel worker may not begin, and which would take
 * longer than the work.  What the work holds belongs to a resource owner of its own, below that of
 * the query.  After an error we clean up as background processes do, which have no transaction
 * either.
 *	- The caller holds no lightweight lock, so that those held after an error are the work's.
 *	- The work changes nothing that only the end of a (sub)transaction would undo.
 *	- Interrupts are held off meanwhile, as they may raise errors that are not the work's: a cancel,
 *	  or the error of a parallel worker, which the server tells only once.
 *	- Warnings, as of a wrong checksum, are not shown: the server repeats them.  Where a setting
 *	  makes it accept such a page, it would not, and nothing is read.
 *
 * OPENING.  The work runs in a subtransaction, without an ID unless it writes.  What an error
 * leaves in the relation cache, only the end of a subtransaction cleans up.  It takes little
 * memory, and is begun only where more is free.
 *	- Interrupts are not held off, so that the session can be terminated at any time: that is a
 *	  FATAL error, which nobody catches.  Two errors of interrupts are the caller's and are raised
 *	  again: a cancel, and that a worker which applies a streamed transaction has failed, which this
 *	  one is told only once.  Workers of a parallel query may tell of errors, too: nothing is
 *	  attempted there.
 *	- No lock is waited for for longer than two TICK_MS.  The work takes its own locks without
 *	  waiting (lock.c).  But what is missing in the caches is read from catalogs, which the server
 *	  locks in the ordinary way.  So a timer looks from time to time whether a lock is waited for,
 *	  and if so cancels the work.  (lock_timeout would do so, too, but it sends a signal to all
 *	  processes of the session's group, such as the program of a COPY.)  All else that is waited
 *	  for in the server ends by itself.
 *	- A cancel of the timer looks like one of the user, or of statement_timeout, unless a SIGINT has
 *	  come meanwhile.  So that is noted, and then the cancel is the caller's.  What was pending
 *	  before is processed before the work begins.
 *
 * With exit_on_error each error ends the session, whoever catches it, and nothing is attempted.
 *
 * Input functions that report soft errors (16 and later) are caught like the rest: the executor
 * decides about soft errors when it compiles an expression, and exports no way to ask for them.
 *
 * src/base/attempt.c
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "libpq/pqsignal.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timeout.h"
#include "utils/wait_event.h"

#include "base/base.h"
#include "base/compat.h"

#define TICK_MS			1
#define SPARE_MEMORY	(64 * 1024) /* for the subtransaction, and for the
									 * error */

/* Does the work fail?  Then its error is the current one, to be flushed or raised again. */
static bool
fails(void (*work) (void *arg), void *arg)
{
	volatile bool failed = false;

	PG_TRY();
	{
		work(arg);
	}
	PG_CATCH();
	{
		failed = true;
	}
	PG_END_TRY();
	return failed;
}

/* Take the current error from the server. */
static ErrorData *
take_error(MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	ErrorData  *error = CopyErrorData();

	FlushErrorState();
	MemoryContextSwitchTo(old);
	return error;
}

/* ---- COMPUTING ---- */

static bool
is_of_values(int sqlerrcode)
{
	if (sqlerrcode == ERRCODE_UNSAFE_NEW_ENUM_VALUE_USAGE || sqlerrcode == ERRCODE_INTERNAL_ERROR ||
		sqlerrcode == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE)
		return true;
	switch (ERRCODE_TO_CATEGORY(sqlerrcode))
	{
		case ERRCODE_CARDINALITY_VIOLATION:
		case ERRCODE_DATA_EXCEPTION:
		case ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION:
		case ERRCODE_TO_CATEGORY(ERRCODE_INVALID_CATALOG_NAME):
		case ERRCODE_TO_CATEGORY(ERRCODE_INVALID_SCHEMA_NAME):
		case ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION:
		case ERRCODE_PROGRAM_LIMIT_EXCEEDED:
		case ERRCODE_FEATURE_NOT_SUPPORTED:
			return true;
		default:
			return false;
	}
}

/* Stands in the stack of callbacks while work is done whose errors may be kept. */
typedef struct Keeper
{
	ErrorContextCallback callback;
	ErrorContextCallback *outer;
	uint32		held;			/* interrupts held off before */
	bool		may_hold_locks;
	volatile bool keeps;		/* the error that was raised last */
} Keeper;

/*
 * An error is being raised: is it to be kept?  Not if a lock is held, unless that is expected.
 * (Taking one holds off interrupts.)  What is kept gets the context of its turn.
 */
static void
on_error(void *arg)
{
	Keeper	   *keeper = arg;

	keeper->keeps = is_of_values(geterrcode()) &&
		(keeper->may_hold_locks || InterruptHoldoffCount == keeper->held);
	keeper->callback.previous = keeper->keeps ? NULL : keeper->outer;
}

static void
begin_keeping(Keeper *keeper, bool may_hold_locks)
{
	keeper->callback.callback = on_error;
	keeper->callback.arg = keeper;
	keeper->callback.previous = keeper->outer = error_context_stack;
	keeper->held = InterruptHoldoffCount;
	keeper->may_hold_locks = may_hold_locks;
	keeper->keeps = false;
	error_context_stack = &keeper->callback;
}

/* Is that the current error?  (One that is raised again calls no callbacks.) */
static bool
is_kept(const Keeper *keeper)
{
	return keeper->keeps && is_of_values(geterrcode());
}

/* Compute.  Returns the error, in this memory context, or NULL. */
ErrorData *
la_attempt_compute_kept(void (*work) (void *arg), void *arg, MemoryContext context)
{
	MemoryContext old = CurrentMemoryContext;
	ErrorData  *error = NULL;
	Keeper		keeper;

	begin_keeping(&keeper, false);
	if (fails(work, arg))
	{
		if (!is_kept(&keeper))
			PG_RE_THROW();
		MemoryContextSwitchTo(old);
		error = take_error(context);
		/* raising an error has forgotten it, and the caller may hold them off */
		InterruptHoldoffCount = keeper.held;
	}
	error_context_stack = keeper.outer;
	return error;
}

/*
 * Raise an error that was kept: with the context that it has now, and as settings are now, by which
 * it may end the session, or be logged.
 */
void
la_attempt_raise(ErrorData *error)
{
	ThrowErrorData(error);
}

/* Compute, if that is allowed, and forget the error.  Returns false if there was one. */
bool
la_attempt_compute(void (*work) (void *arg), void *arg)
{
	ErrorData  *error;

	if (!la_attempt_is_allowed())
		return false;
	error = la_attempt_compute_kept(work, arg, CurrentMemoryContext);
	if (error == NULL)
		return true;
	FreeErrorData(error);
	return false;
}

/* ---- READING ---- */

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

/* Is the error of reading a cancel, or a conflict with recovery? */
static bool
is_for_the_reader(int sqlerrcode)
{
	return ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION ||
		ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_TRANSACTION_ROLLBACK;
}

/* Release what the work holds, after an error. */
static void
release_all(ResourceOwner resources)
{
	LWLockReleaseAll();
	ConditionVariableCancelSleep();
	pgstat_report_wait_end();
	la_aio_error_cleanup();
	la_abort_buffer_io();
	UnlockBuffers();
	release(resources);
}

/* The work has failed. */
static void
clean_up(LaAttemptOwner *owner, const Before *before)
{
	ResourceOwner resources = owner->owner;

	owner->owner = NULL;
	owner->failed = true;
	if (ResourceOwnerGetParent(resources) == NULL)
		ResourceOwnerNewParent(resources, before->owner);
	/* what it holds is then released with the query's resource owner */
	if (is_for_the_reader(geterrcode()))
		PG_RE_THROW();
	MemoryContextSwitchTo(before->context);
	FlushErrorState();
	release_all(resources);
	QueryCancelHoldoffCount = before->cancel_holdoff;
}

/*
 * Read.  What is left open belongs to this owner until the next attempt, or la_attempt_rest().
 * Returns false if it has failed, now or before.
 */
bool
la_attempt_read_with(LaAttemptOwner *owner, void (*work) (void *arg), void *arg)
{
	Before		before = {CurrentResourceOwner, CurrentMemoryContext, InterruptHoldoffCount,
	QueryCancelHoldoffCount, client_min_messages, la_log_min_messages};
	bool		failed;

	if (owner->failed || zero_damaged_pages || ignore_checksum_failure || !la_attempt_is_allowed())
		return false;
	if (owner->owner == NULL)
		owner->owner = ResourceOwnerCreate(CurrentResourceOwner, "pg_lookahead");
	CurrentResourceOwner = owner->owner;
	HOLD_INTERRUPTS();
	client_min_messages = ERROR;
	la_log_min_messages = ERROR;
	failed = fails(work, arg);
	put_back(&before);
	if (failed)
		clean_up(owner, &before);
	InterruptHoldoffCount = before.interrupt_holdoff;
	return !failed;
}

/*
 * Read something briefly, as often happens.  The resource owner holds nothing meanwhile and is
 * kept until work fails.
 */
bool
la_attempt_read(void (*work) (void *arg), void *arg)
{
	static LaAttemptOwner brief = {NULL, false};

	if (brief.owner == NULL)
		brief.owner = ResourceOwnerCreate(NULL, "pg_lookahead");
	brief.failed = false;
	return la_attempt_read_with(&brief, work, arg);
}

/*
 * There may be no more work for long: a function's statements have their caller's resource owner,
 * and each would leave one of ours to it.  The work holds nothing.
 */
void
la_attempt_rest(LaAttemptOwner *owner)
{
	if (owner->owner != NULL)
		release(owner->owner);
	owner->owner = NULL;
}

/* The query goes on, or ends regularly, without it.  The work holds nothing. */
void
la_attempt_end(LaAttemptOwner *owner)
{
	la_attempt_rest(owner);
	owner->failed = true;
}

/* ---- SCANNING ---- */

/* Call an access method, which holds nothing afterwards.  Returns the error, in this context. */
ErrorData *
la_attempt_scan_kept(void (*work) (void *arg), void *arg, MemoryContext context)
{
	static ResourceOwner spare = NULL;	/* of no work now */
	ResourceOwner ours = spare;
	ResourceOwner owner = CurrentResourceOwner;
	MemoryContext old = CurrentMemoryContext;
	Keeper		keeper;
	ErrorData  *error;

	if (ours == NULL)
		ours = ResourceOwnerCreate(NULL, "pg_lookahead");
	spare = NULL;
	CurrentResourceOwner = ours;
	begin_keeping(&keeper, true);
	if (!fails(work, arg))
	{
		CurrentResourceOwner = owner;
		error_context_stack = keeper.outer;
		if (spare == NULL)
			spare = ours;
		else
			ResourceOwnerDelete(ours);
		return NULL;
	}
	CurrentResourceOwner = owner;
	/* what it holds is released with the query's resource owner, or here */
	ResourceOwnerNewParent(ours, owner);
	if (!is_kept(&keeper))
		PG_RE_THROW();
	MemoryContextSwitchTo(old);
	error = take_error(context);
	release_all(ours);
	error_context_stack = keeper.outer;
	InterruptHoldoffCount = keeper.held;
	return error;
}

/* ---- OPENING ---- */

static TimeoutId ticks;
static struct sigaction cancel_handler; /* of the process */
static volatile sig_atomic_t canceled;	/* by somebody else */
static volatile sig_atomic_t timed_out;

/* The signal handler of the timer: is a lock waited for? */
static void
on_tick(void)
{
	if (MyProc->waitLock == NULL)
		return;
	timed_out = true;
	InterruptPending = true;
	QueryCancelPending = true;
	SetLatch(MyLatch);
}

/* The handler of SIGINT meanwhile. */
static void
on_cancel(int number, siginfo_t * info, void *context)
{
	canceled = true;
	if ((cancel_handler.sa_flags & SA_SIGINFO) != 0)
		cancel_handler.sa_sigaction(number, info, context);
	else if (cancel_handler.sa_handler != SIG_IGN && cancel_handler.sa_handler != SIG_DFL)
		cancel_handler.sa_handler(number);
}

static void
start_ticks(void)
{
	struct sigaction handler;

	if (ticks == 0)
		ticks = RegisterTimeout(USER_TIMEOUT, on_tick);
	canceled = timed_out = false;
	sigaction(SIGINT, NULL, &cancel_handler);
	handler = cancel_handler;
	handler.sa_flags |= SA_SIGINFO;
	handler.sa_sigaction = on_cancel;
	sigaction(SIGINT, &handler, NULL);
	enable_timeout_every(ticks, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), TICK_MS),
						 TICK_MS);
}

static void
stop_ticks(void)
{
	disable_timeout(ticks, false);
	sigaction(SIGINT, &cancel_handler, NULL);
	if (timed_out && !canceled)
		QueryCancelPending = false;
}

/* Is the error of an interrupt that is the caller's? */
static bool
is_for_the_opener(const ErrorData *error)
{
	if (ERRCODE_TO_CATEGORY(error->sqlerrcode) ==
		ERRCODE_TO_CATEGORY(ERRCODE_OPERATOR_INTERVENTION))
		return canceled || !timed_out;
	return error->funcname != NULL && strstr(error->funcname, "ParallelApplyMessage") != NULL;
}

/* Is so much memory free? */
bool
la_attempt_has_memory(Size size)
{
	void	   *memory = MemoryContextAllocExtended(TopMemoryContext, size, MCXT_ALLOC_NO_OOM);

	if (memory == NULL)
		return false;
	pfree(memory);
	return true;
}

/*
 * Open, within a transaction.  Returns false if it was not attempted, or has failed; then *error is
 * the error, in this memory context, or NULL.
 */
bool
la_attempt_open(void (*work) (void *arg), void *arg, ErrorData **error)
{
	MemoryContext old = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	int			lock_timeout = LockTimeout;

	*error = NULL;
	if (!la_attempt_is_allowed() || IsInParallelMode() || !la_attempt_has_memory(SPARE_MEMORY))
		return false;
	CHECK_FOR_INTERRUPTS();
	BeginInternalSubTransaction(NULL);
	/* what is left in its own context would stay until the transaction ends */
	MemoryContextSwitchTo(old);
	LockTimeout = 0;
	start_ticks();
	if (fails(work, arg))
	{
		MemoryContextSwitchTo(old);
		*error = take_error(old);
	}
	stop_ticks();
	LockTimeout = lock_timeout;
	if (*error == NULL)
		ReleaseCurrentSubTransaction();
	else
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(old);
	CurrentResourceOwner = owner;
	if (*error != NULL && is_for_the_opener(*error))
		ReThrowError(*error);
	return *error == NULL;
}
