/*
 * repeat.h
 *	  May the expressions of an index be evaluated twice for a row?
 *
 * src/indexbuild/repeat.h
 */
#ifndef LA_REPEAT_H
#define LA_REPEAT_H

#include "nodes/execnodes.h"

extern bool la_repeat_is_safe(const IndexInfo *info);

#endif							/* LA_REPEAT_H */
