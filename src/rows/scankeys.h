/*
 * scankeys.h
 *	  The search key of an index scan for a row that is known ahead.
 *
 * src/rows/scankeys.h
 */
#ifndef LA_SCANKEYS_H
#define LA_SCANKEYS_H

#include "access/skey.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "attach/runahead.h"
#include "base/budget.h"
#include "btree/descent.h"
#include "rows/params.h"

/* Rows, whose values are in the keys of index scans. */
typedef struct LaKeyRows
{
	LaRowParams params;
	MemoryContext context;		/* lives as long as the query */
	LaBudget   *budget;
	const LaRunAhead *ahead;	/* what may be evaluated early */
	ExprContext *econtext;		/* of keys; NULL until there are any */
} LaKeyRows;

typedef struct LaScanKeys LaScanKeys;

/* An index scan that a node repeats for each row. */
typedef struct LaKeyedScan
{
	PlanState  *scan;			/* NULL: its reads cannot be known */
	struct IndexScanDescData **scandesc;	/* points to NULL until it runs */
	Relation	heap;
	Relation	index;
	bool		index_only;
	ScanDirection direction;	/* in which the plan reads the index */
	ScanKey		scankeys;
	int			nkeys;
	IndexRuntimeKeyInfo *runtime;
	int			nruntime;

	LaScanKeys *keys;			/* see la_scankeys_get() */
	LaDescent  *descent;		/* that searches for them */
	bool		keys_tried;
	const char *keys_refused;	/* the reason that prohibits them, or NULL */
} LaKeyedScan;

extern bool la_keyedscan_init(LaKeyedScan *scan, PlanState *ps, Relation heap);
extern LaScanKeys *la_scankeys_get(LaKeyedScan *scan, LaKeyRows *rows);
extern bool la_scankeys_set(LaScanKeys *keys, TupleTableSlot *row);
extern bool la_scankeys_are_complete(const LaScanKeys *keys);

#endif							/* LA_SCANKEYS_H */
