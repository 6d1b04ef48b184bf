/*
 * keytables.h
 *	  The tables that a foreign key's queries look in: one, or partitions.
 *
 * src/write/keytables.h
 */
#ifndef LA_KEYTABLES_H
#define LA_KEYTABLES_H

#include "access/htup.h"

#include "rows/ahead.h"
#include "write/keycolumns.h"

typedef struct LaKeyTables LaKeyTables;

extern LaKeyTables *la_keytables_create(Relation table, const LaKeyColumns *key, bool is_check);
extern bool la_keytables_open(LaKeyTables *t, Relation table);
extern void la_keytables_close(LaKeyTables *t);
extern Relation la_keytables_heap(const LaKeyTables *t);
extern Oid	la_keytables_index(const LaKeyTables *t);
extern bool la_keytables_set_ahead(LaKeyTables *t, LaAhead *ahead);
extern void la_keytables_plan(LaKeyTables *t, HeapTuple row, LaAheadRow *visits);
extern bool la_keytables_set_key(LaKeyTables *t, HeapTuple row, int rel);
extern void la_keytables_locate(LaKeyTables *t, LaAheadRow *row, const LaMatches *matches);

#endif							/* LA_KEYTABLES_H */
