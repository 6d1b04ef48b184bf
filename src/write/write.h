/*
 * write.h
 *	  What the room write/ offers to others.
 *
 * src/write/write.h
 */
#ifndef LA_WRITE_H
#define LA_WRITE_H

/* ---- insert_hooks: how inserts into stock btree indexes get to la_btinsert() ---- */

extern void la_insert_init(void);

#endif							/* LA_WRITE_H */
