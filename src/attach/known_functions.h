/*
 * known_functions.h
 *	  Functions of the server of which more is known than pg_proc says.
 *
 * src/attach/known_functions.h
 */
#ifndef LA_KNOWN_FUNCTIONS_H
#define LA_KNOWN_FUNCTIONS_H

typedef enum LaKnownFunction
{
	LA_FUNCTION_FIXED,			/* stable, with a value that cannot change
								 * before the statement ends */
	LA_FUNCTION_EFFECTS,		/* has effects, or shows those of the server,
								 * though not declared volatile */
	LA_FUNCTION_STATE,			/* immutable, but reads state */
	LA_FUNCTION_SETTINGS,		/* stable, and an error leaves nothing held */
	LA_FUNCTION_NOTICES,		/* may raise a notice or a warning */
	LA_FUNCTION_DRAWS,			/* volatile, but only draws a value */
	LA_FUNCTION_ERRORFREE,		/* raises no error, whatever its arguments */
	LA_FUNCTION_LIKE,			/* LIKE and NOT LIKE */
	LA_FUNCTION_DIVISION		/* of integers, which fails for a divisor of
								 * zero, and may overflow for one of -1 */
} LaKnownFunction;

extern bool la_function_is(Oid function, LaKnownFunction kind);
extern bool la_function_may_raise(Oid function);

#endif							/* LA_KNOWN_FUNCTIONS_H */
