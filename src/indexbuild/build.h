/*
 * build.h
 *	  Building a stock btree index: build.c, and how it gets there: build_hooks.c.
 *
 * src/indexbuild/build.h
 */
#ifndef LA_BUILD_H
#define LA_BUILD_H

#include "access/genam.h"
#include "nodes/execnodes.h"

extern IndexBuildResult *la_btbuild(Relation heap, Relation index, IndexInfo *info);
extern void la_build_init(void);

#endif							/* LA_BUILD_H */
