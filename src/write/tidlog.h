/*
 * tidlog.h
 *	  Rows that have been written, in their order.
 *
 * src/write/tidlog.h
 */
#ifndef LA_TIDLOG_H
#define LA_TIDLOG_H

#include "nodes/execnodes.h"
#include "storage/itemptr.h"

typedef enum LaTidKind
{
	LA_TID_INSERTED,
	LA_TID_UPDATED,				/* the old version */
	LA_TID_DELETED,
	LA_TID_RUN					/* rows were inserted from here on, one behind
								 * the other in the table */
} LaTidKind;

#define LA_TID_MASK(kind)	(1 << (kind))

typedef struct LaTidEntry
{
	ItemPointerData tid;
	uint16		kind;			/* a LaTidKind */
	Oid			table;
} LaTidEntry;

typedef struct LaTidLog LaTidLog;

extern LaTidLog *la_tidlog_create(MemoryContext context);
extern int64 la_tidlog_add(LaTidLog *log, Oid table, LaTidKind kind, const ItemPointerData *tid);
extern void la_tidlog_move(LaTidLog *log, int64 n, const ItemPointerData *tid);
extern void la_tidlog_note(LaTidLog *log, ModifyTableState *mt, TupleTableSlot *row);
extern void la_tidlog_note_inserted(LaTidLog *log, ModifyTableState *mt, TupleTableSlot *row);
extern int64 la_tidlog_find(const LaTidLog *log, int64 from, int64 most, Oid table,
							const ItemPointerData *tid);
extern const LaTidEntry *la_tidlog_get(const LaTidLog *log, int64 n);
extern int64 la_tidlog_length(const LaTidLog *log);

#endif							/* LA_TIDLOG_H */
