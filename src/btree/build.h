/*
 * build.h
 *	  Building a stock btree index.
 *
 * See build.c.
 *
 * src/btree/build.h
 */
#ifndef LA_BUILD_H
#define LA_BUILD_H

extern void la_build_init(void);

#endif							/* LA_BUILD_H */
