/*
 * tidlog.h
 *	  The rows that an UPDATE or DELETE has come to, in their order.
 *
 * src/write/tidlog.h
 */
#ifndef LA_TIDLOG_H
#define LA_TIDLOG_H

#include "nodes/execnodes.h"
#include "storage/itemptr.h"

typedef struct LaTidLog LaTidLog;

extern LaTidLog *la_tidlog_create(ModifyTableState *mt);
extern void la_tidlog_note(LaTidLog *log, TupleTableSlot *row);
extern int64 la_tidlog_find(const LaTidLog *log, int64 from, int64 most,
							const ItemPointerData *tid);
extern const ItemPointerData *la_tidlog_get(const LaTidLog *log, int64 n, Oid table);
extern int64 la_tidlog_length(const LaTidLog *log);

#endif							/* LA_TIDLOG_H */
