/*
 * build_hooks.h
 *	  How builds of stock btree indexes get to la_btbuild().
 *
 * src/indexbuild/build_hooks.h
 */
#ifndef LA_BUILD_HOOKS_H
#define LA_BUILD_HOOKS_H

extern void la_build_init(void);

#endif							/* LA_BUILD_HOOKS_H */
