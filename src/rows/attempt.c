/*
 * attempt.c
 *	  Something that may fail, done before its turn.
 *
 * The error of a row is the statement's only when the row's turn comes: until then it is kept.
 * There is no subtransaction that would clean up.  So only errors are kept that functions raise
 * which compute something: those of data and of the program's limits (classes 21, 22, 23, 54 and
 * 0A), of names and syntax in their arguments (42, 3F, and a value of an enum that may not be used
 * yet), of a record that is not assigned (55000), and those without a class of their own (XX000),
 * as of a value that gets too long; and only if no lock is held on a buffer.  Others are raised at
 * once: cancels, and damaged data.
 *
 * With exit_on_error each error ends the session, whoever catches it, so nothing may be attempted
 * (la_attempt_is_allowed()).
 *
 * src/rows/attempt.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "rows/attempt.h"

static bool
is_kept(int sqlerrcode)
{
	if (sqlerrcode == ERRCODE_UNSAFE_NEW_ENUM_VALUE_USAGE || sqlerrcode == ERRCODE_INTERNAL_ERROR ||
		sqlerrcode == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE)
		return true;
	switch (ERRCODE_TO_CATEGORY(sqlerrcode))
	{
		case ERRCODE_CARDINALITY_VIOLATION:
		case ERRCODE_DATA_EXCEPTION:
		case ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION:
		case ERRCODE_TO_CATEGORY(ERRCODE_INVALID_SCHEMA_NAME):
		case ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION:
		case ERRCODE_PROGRAM_LIMIT_EXCEEDED:
		case ERRCODE_FEATURE_NOT_SUPPORTED:
			return true;
		default:
			return false;
	}
}

/* An error is being raised: is a lock held?  (Taking one holds off interrupts.) */
static void
note_held(void *arg)
{
	*(volatile uint32 *) arg = InterruptHoldoffCount;
}

/* Call the function.  Returns its error, in this memory context, or NULL. */
ErrorData *
la_attempt(void (*function) (void *arg), void *arg, MemoryContext context)
{
	MemoryContext old = CurrentMemoryContext;
	ErrorData  *volatile error = NULL;
	uint32		held_before = InterruptHoldoffCount;
	volatile uint32 held_at_error = held_before;
	ErrorContextCallback callback = {error_context_stack, note_held, (void *) &held_at_error};

	error_context_stack = &callback;
	PG_TRY();
	{
		function(arg);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (!is_kept(error->sqlerrcode) || held_at_error != held_before)
			PG_RE_THROW();
		FlushErrorState();
		/* raising an error has forgotten it, and the caller may hold them off */
		InterruptHoldoffCount = held_before;
		MemoryContextSwitchTo(old);
	}
	PG_END_TRY();
	error_context_stack = callback.previous;
	return error;
}

/* Call the function, if that is allowed, and forget its error.  Returns false if it has failed. */
bool
la_attempt_quietly(void (*function) (void *arg), void *arg)
{
	ErrorData  *error;

	if (!la_attempt_is_allowed())
		return false;
	error = la_attempt(function, arg, CurrentMemoryContext);
	if (error == NULL)
		return true;
	FreeErrorData(error);
	return false;
}
