/*
 * keyquery.h
 *	  Checks of foreign keys whose triggers cannot be reached, seen from their queries.
 *
 * src/write/keyquery.h
 */
#ifndef LA_KEYQUERY_H
#define LA_KEYQUERY_H

#include "nodes/nodes.h"
#include "utils/relcache.h"

#include "write/tidlog.h"

extern void la_keyquery_init(void);
extern void la_keyquery_set_constraints(bool deferred);
extern bool la_keyquery_follow(Relation table, CmdType operation);
extern LaTidLog *la_keyquery_log(void);
extern void la_keyquery_begin_copy(Relation table);
extern void la_keyquery_copy_starts(Oid table, const ItemPointerData *tid);
extern void la_keyquery_end_copy(void);

#endif							/* LA_KEYQUERY_H */
