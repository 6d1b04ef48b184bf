/*
 * subplan.h
 *	  Plans that are repeated for rows of a node, and look ahead over these rows.
 *
 * src/subplan/subplan.h
 */
#ifndef LA_SUBPLAN_H
#define LA_SUBPLAN_H

extern void la_subplan_init(void);

#endif							/* LA_SUBPLAN_H */
