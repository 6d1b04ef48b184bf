/*
 * indexbuild.h
 *	  What the room indexbuild/ offers to others.
 *
 * src/indexbuild/indexbuild.h
 */
#ifndef LA_INDEXBUILD_H
#define LA_INDEXBUILD_H

/* ---- build_hooks: how builds of stock btree indexes get to la_btbuild() ---- */

extern void la_build_init(void);

#endif							/* LA_INDEXBUILD_H */
