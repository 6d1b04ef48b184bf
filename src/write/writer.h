/*
 * writer.h
 *	  Does a write run code that could notice that rows of its plan were taken early?
 *
 * src/write/writer.h
 */
#ifndef LA_WRITER_H
#define LA_WRITER_H

#include "nodes/execnodes.h"

extern bool la_writer_is_quiet(ModifyTableState *mt);

#endif							/* LA_WRITER_H */
