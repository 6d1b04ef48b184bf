/*
 * sample.h
 *	  A look at some rows of a table before its index is built.
 *
 * The room's own; see sample.c.
 *
 * src/indexbuild/sample.h
 */
#ifndef LA_SAMPLE_H
#define LA_SAMPLE_H

#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "indexbuild/normalizedkey.h"

extern double la_estimate_rows(Relation heap);
extern bool la_sample_is_worthwhile(Relation heap, IndexInfo *info, LaNormalizedKey *key);

#endif							/* LA_SAMPLE_H */
