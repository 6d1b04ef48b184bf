/*
 * apply.h
 *	  Logical replication: changes looked at before they are applied.
 *
 * src/replay/apply.h
 */
#ifndef LA_APPLY_H
#define LA_APPLY_H

extern void la_apply_init(void);

#endif							/* LA_APPLY_H */
