/*
 * foreign_key.h
 *	  The checks and actions of foreign keys, whose rows are looked up ahead.
 *
 * src/write/foreign_key.h
 */
#ifndef LA_FOREIGN_KEY_H
#define LA_FOREIGN_KEY_H

#include "nodes/execnodes.h"

#include "write/tidlog.h"

extern bool la_foreign_key_install(ResultRelInfo *relation, CmdType operation, EState *estate,
								   LaTidLog *log);

#endif							/* LA_FOREIGN_KEY_H */
