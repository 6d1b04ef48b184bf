/*
 * target.h
 *	  A table that rows are written to, and the leaf pages of its btree indexes that a row needs.
 *
 * src/rows/target.h
 */
#ifndef LA_TARGET_H
#define LA_TARGET_H

#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "attach/knowntable.h"
#include "rows/ahead.h"

#define LA_TARGET_INDEXES	16	/* of a table; others are left alone */

typedef struct LaTargetIndex LaTargetIndex;

typedef struct LaTarget
{
	LaAhead    *ahead;
	Relation	heap;
	EState	   *estate;			/* of expressions; NULL until needed */
	int			nindexes;
	LaTargetIndex *indexes;
	bool		has_arbiters;	/* ON CONFLICT looks some of them up first */
	int			heap_rel;		/* its number in ahead, then */
} LaTarget;

/*
 * What inserts are to be told of a leaf page of an index.  *state is NULL at first, and kept with
 * the index; info: see la_target_set_info().
 */
typedef void (*LaExpectLeaf) (void **state, Relation index, const IndexInfo *info,
							  BlockNumber leaf);

/* An ordinary table, of heap: what is known of others may be wrong. */
static inline bool
la_target_is_heap(Relation table)
{
	return table->rd_rel->relkind == RELKIND_RELATION &&
		la_gate_is_heap(table);
}

extern bool la_target_is_possible(Relation heap);
extern LaTarget *la_target_create(LaAhead *ahead, Relation heap, int nindexes,
								  Relation *indexes, IndexInfo **infos, bool generated_known);
extern void la_target_set_info(LaTarget *target, Relation index, IndexInfo *info);
extern void la_target_expect(LaTarget *target, const LaAheadRow *row, LaExpectLeaf expect);
extern void la_target_set_arbiters(LaTarget *target, List *arbiters);
extern Bitmapset *la_target_columns(const LaTarget *target);
extern void la_target_plan(const LaTarget *target, LaAheadRow *row, const Bitmapset *unknown);
extern void la_target_plan_without(const LaTarget *target, LaAheadRow *row,
								   const Bitmapset *unknown, Relation index);
extern bool la_target_locate(const LaTarget *target, LaAheadRow *row,
							 const LaMatches *matches, bool last);
extern bool la_target_set_key(LaTarget *target, int rel, TupleTableSlot *slot);

#endif							/* LA_TARGET_H */
