/*
 * sample.h
 *	  A sample of a table, before dictionaries are made for its index.
 *
 * src/indexbuild/sample.h
 */
#ifndef LA_SAMPLE_H
#define LA_SAMPLE_H

#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "indexbuild/normalizedkey.h"

extern bool la_sample_is_worthwhile(Relation heap, IndexInfo *info, LaNormalizedKey *key);

#endif							/* LA_SAMPLE_H */
