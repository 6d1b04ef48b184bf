/*
 * nestloop.h
 *	  Nested loops and correlated subqueries, which repeat a plan for each of their rows.
 *
 * src/nestloop/nestloop.h
 */
#ifndef LA_NESTLOOP_H
#define LA_NESTLOOP_H

extern void la_nestloop_init(void);
extern void la_subplan_init(void);

#endif							/* LA_NESTLOOP_H */
