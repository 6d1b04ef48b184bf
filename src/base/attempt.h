/*
 * attempt.h
 *	  Speculative work whose errors are discarded, or kept until the row's turn.
 *
 * The three kinds of work are COMPUTING, READING and OPENING: see attempt.c.
 *
 * src/base/attempt.h
 */
#ifndef LA_ATTEMPT_H
#define LA_ATTEMPT_H

#include "miscadmin.h"
#include "utils/elog.h"
#include "utils/resowner.h"

/* What reading keeps from one attempt to the next; zero before the first. */
typedef struct LaAttemptOwner
{
	ResourceOwner owner;		/* NULL: none yet, or the work has failed */
	bool		failed;
} LaAttemptOwner;

/* The setting may change within a statement. */
static inline bool
la_attempt_is_allowed(void)
{
	return !ExitOnAnyError;
}

extern bool la_attempt_compute(void (*work) (void *arg), void *arg);
extern ErrorData *la_attempt_compute_kept(void (*work) (void *arg), void *arg,
										  MemoryContext context);
extern bool la_attempt_read(void (*work) (void *arg), void *arg);
extern bool la_attempt_read_with(LaAttemptOwner *owner, void (*work) (void *arg), void *arg);
extern void la_attempt_rest(LaAttemptOwner *owner);
extern void la_attempt_end(LaAttemptOwner *owner);
extern bool la_attempt_open(void (*work) (void *arg), void *arg, ErrorData **error);
extern bool la_attempt_has_memory(Size size);

#endif							/* LA_ATTEMPT_H */
