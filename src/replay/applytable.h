/*
 * applytable.h
 *	  A table that changes are applied to: its indexes, and what is read early of a change.
 *
 * See applytable.c.
 *
 * src/replay/applytable.h
 */
#ifndef LA_APPLYTABLE_H
#define LA_APPLYTABLE_H

#include "access/htup.h"
#include "executor/tuptable.h"
#include "nodes/bitmapset.h"
#include "utils/rel.h"

#include "btree/descent.h"
#include "replay/applymessage.h"
#include "replay/applyremote.h"
#include "replay/applystats.h"
#include "rows/target.h"

typedef struct LaApplyTable
{
	Oid			relid;
	LaApplyReason refused;		/* or LA_APPLY_KNOWN */
	bool		is_partitioned;
	int			rows;			/* changes that are known ahead */
	bool		is_open;
	Relation	heap;			/* as they were when the table was created */
	int			nindexes;
	Relation	indexes[LA_TARGET_INDEXES];
	Oid			index_oids[LA_TARGET_INDEXES];

	LaTarget   *target;			/* NULL: no index needs anything for a new row */
	Bitmapset  *unknown;		/* columns that the publisher does not send,
								 * or that are not read here: by number minus
								 * FirstLowInvalidHeapAttributeNumber */

	/* the index that finds a row which is changed, and the table */
	LaDescent  *identity;		/* NULL: there is none */
	int			nkeys;
	AttrNumber	keys[INDEX_MAX_KEYS];
	int			identity_rel;	/* their numbers in LaAhead */
	int			heap_rel;

	struct LaApplyColumns *columns; /* how they are read */
	TupleTableSlot *slot;		/* that rows are formed in */
	TupleTableSlot *row_slot;	/* that formed rows are looked at in */
	int			heap_only;		/* updates in a row that needed no index */
} LaApplyTable;

extern Relation la_applytable_open_relation(Oid relid);
extern Oid	la_applytable_oid(const LaApplyRemote *remote);
extern LaApplyTable *la_applytable_create(LaAhead *ahead, const LaApplyRemote *remote,
										  Relation heap);
extern bool la_applytable_open(LaApplyTable *t);
extern void la_applytable_close(LaApplyTable *t);
extern bool la_applytable_read(LaApplyTable *t, LaApplyTuple row, bool *has_unchanged);
extern Oid	la_applytable_partition(LaApplyTable *t);
extern bool la_applytable_set_identity(LaApplyTable *t, TupleTableSlot *row);
extern void la_applytable_learn(LaApplyTable *t, ItemPointer tid, MinimalTuple row);
extern bool la_applytable_is_heap_only(const LaApplyTable *t);

#endif							/* LA_APPLYTABLE_H */
