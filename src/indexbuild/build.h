/*
 * build.h
 *	  Building a stock btree index.
 *
 * src/indexbuild/build.h
 */
#ifndef LA_BUILD_H
#define LA_BUILD_H

#include "access/genam.h"
#include "nodes/execnodes.h"

extern IndexBuildResult *la_btbuild(Relation heap, Relation index, IndexInfo *info);

#endif							/* LA_BUILD_H */
