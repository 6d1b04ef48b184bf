/*
 * nestloop.h
 *	  Nested loops that look ahead over their outer rows.
 *
 * src/nestloop/nestloop.h
 */
#ifndef LA_NESTLOOP_H
#define LA_NESTLOOP_H

extern void la_nestloop_init(void);

#endif							/* LA_NESTLOOP_H */
