/*
 * guard.h
 *	  Work that is done early, and whose errors are nobody's.
 *
 * src/base/guard.h
 */
#ifndef LA_GUARD_H
#define LA_GUARD_H

#include "utils/resowner.h"

typedef struct LaGuard
{
	ResourceOwner owner;		/* NULL: none yet, or the work has failed */
	bool		failed;
} LaGuard;

extern bool la_guard_run(LaGuard *guard, void (*work) (void *arg), void *arg);
extern bool la_guard_run_briefly(void (*work) (void *arg), void *arg);
extern void la_guard_rest(LaGuard *guard);
extern void la_guard_end(LaGuard *guard);

#endif							/* LA_GUARD_H */
