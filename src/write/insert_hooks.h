/*
 * insert_hooks.h
 *	  How inserts into stock btree indexes get to la_btinsert().
 *
 * src/write/insert_hooks.h
 */
#ifndef LA_INSERT_HOOKS_H
#define LA_INSERT_HOOKS_H

extern void la_insert_init(void);

#endif							/* LA_INSERT_HOOKS_H */
