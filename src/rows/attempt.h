/*
 * attempt.h
 *	  Something that may fail, done before its turn.
 *
 * src/rows/attempt.h
 */
#ifndef LA_ATTEMPT_H
#define LA_ATTEMPT_H

#include "miscadmin.h"

/* The setting may change within a statement. */
static inline bool
la_attempt_is_allowed(void)
{
	return !ExitOnAnyError;
}

extern bool la_attempt_quietly(void (*function) (void *arg), void *arg);
extern ErrorData *la_attempt(void (*function) (void *arg), void *arg, MemoryContext context);

#endif							/* LA_ATTEMPT_H */
