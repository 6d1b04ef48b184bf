/*
 * turn.h
 *	  A turn of looking ahead that may neither fail nor wait.
 *
 * See turn.c.
 *
 * src/base/turn.h
 */
#ifndef LA_TURN_H
#define LA_TURN_H

extern bool la_turn_has_memory(Size size);
extern bool la_turn_make(void (*work) (void *arg), void *arg, ErrorData **error);

#endif							/* LA_TURN_H */
