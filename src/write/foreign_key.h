/*
 * foreign_key.h
 *	  The checks and actions of foreign keys, whose rows are looked up ahead.
 *
 * src/write/foreign_key.h
 */
#ifndef LA_FOREIGN_KEY_H
#define LA_FOREIGN_KEY_H

#include "nodes/execnodes.h"
#include "utils/reltrigger.h"

#include "write/tidlog.h"

extern bool la_foreign_key_is_fired_by(const Trigger *trigger, CmdType operation);
extern bool la_foreign_key_cascades(const TriggerDesc *triggers);
extern bool la_foreign_key_install(ResultRelInfo *relation, CmdType operation, EState *estate,
								   LaTidLog *log);
extern LaTidLog *la_foreign_key_cascade(const ModifyTableState *mt);
extern void la_foreign_key_query_starts(void);
extern bool la_foreign_key_is_running(void);

#endif							/* LA_FOREIGN_KEY_H */
