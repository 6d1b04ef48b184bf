/*
 * known_functions.h
 *	  Functions of the server of which more is known than pg_proc says.
 *
 * src/attach/known_functions.h
 */
#ifndef LA_KNOWN_FUNCTIONS_H
#define LA_KNOWN_FUNCTIONS_H

/* Stable, and its value cannot change before the statement ends. */
extern bool la_function_is_fixed(Oid function);

/* Raises no error, whatever its arguments are. */
extern bool la_function_is_errorfree(Oid function);

/* LIKE and NOT LIKE. */
extern bool la_function_is_like(Oid function);

/* Integer division, which fails for a divisor of zero, and may overflow for one of -1. */
extern bool la_function_divides(Oid function);

#endif							/* LA_KNOWN_FUNCTIONS_H */
