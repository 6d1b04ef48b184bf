/*
 * attempt.h
 *	  Something that may fail, done before its turn.
 *
 * src/rows/attempt.h
 */
#ifndef LA_ATTEMPT_H
#define LA_ATTEMPT_H

extern ErrorData *la_attempt_subtransaction(void (*function) (void));
extern ErrorData *la_attempt(void (*function) (void *arg), void *arg, MemoryContext context);

#endif							/* LA_ATTEMPT_H */
