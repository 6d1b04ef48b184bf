/*
 * nestloop_int.h
 *	  What the files of this room share.
 *
 * src/nestloop/nestloop_int.h
 */
#ifndef LA_NESTLOOP_INT_H
#define LA_NESTLOOP_INT_H

#include "executor/tuptable.h"
#include "nodes/execnodes.h"

#include "attach/attach.h"
#include "base/base.h"
#include "rows/rows.h"

/* ---- rows_to_come: the rows that a node is about to process, behind its current one ---- */

typedef struct LaRowsToCome LaRowsToCome;

/* Embedded in what a source of rows keeps for the node. */
struct LaRowsToCome
{
	/* continue behind the node's current row */
	void		(*restart) (LaRowsToCome *rows);

	/*
	 * The next row, valid until the next call, or NULL if it is not known
	 * now. Some rows may be left out, and others may not be processed.
	 */
	TupleTableSlot *(*next) (LaRowsToCome *rows);
};

/* ---- child_rows: the rows to come of a node that takes them from a child ---- */

extern LaRowsToCome *la_childrows_create(PlanState *node, PlanState *child,
										 const LaDemandContext *context,
										 const char **refused);

/* ---- row_filter: will a row pass the filter of its scan? ---- */

typedef struct LaRowFilter LaRowFilter;

extern LaRowFilter *la_rowfilter_create(ScanState *scan, const LaRunAhead *hints);
extern bool la_rowfilter_passes(LaRowFilter *filter, TupleTableSlot *row);

/* ---- scan_rows: the rows to come of a scan of a table ---- */

extern LaRowsToCome *la_scanrows_create(ScanState *scan, const LaRunAhead *hints);

/* ---- lookups ---- */

typedef struct LaLookups LaLookups;

extern LaLookups *la_lookups_create(PlanState *plan, LaKeyRows *rows, bool first_match_only,
									bool filtered);
extern bool la_lookups_prepare(LaLookups *l, const char **refused);
extern LaKeyedScan *la_lookups_first(const LaLookups *l);
extern Oid	la_lookups_known_by(const LaLookups *l);
extern Relation la_lookups_narrowest(const LaLookups *l);
extern int	la_lookups_relations(const LaLookups *l);
extern bool la_lookups_set_ahead(LaLookups *l, LaAhead *ahead);
extern void la_lookups_plan(LaLookups *l, TupleTableSlot *row, LaAheadRow *visits);
extern bool la_lookups_set_key(LaLookups *l, TupleTableSlot *row, int rel);
extern LaKeyedScan *la_lookups_locate(LaLookups *l, LaAheadRow *row, const LaMatches *matches);
extern void la_lookups_release(LaLookups *l);

/* ---- nestloop: outer rows, which others may want to know, too ---- */

extern bool la_nestloop_has(const LaInterposer *interposer);
extern LaChildQueue *la_nestloop_want(LaInterposer *interposer, int rows);

/* ---- repeated: a plan that a node repeats for each of its rows, read ahead ---- */

typedef struct LaRepeated
{
	LaInterposer interposer;	/* of the plan's output */
	PlanState  *node;			/* that repeats it, for its rows */
	PlanState  *plan;
	bool		first_match_only;	/* one row of the plan is enough */

	/* Params of the plan that have values of the node's current row */
	int			nparams;
	int		   *params;
	AttrNumber *attributes;		/* ... of which attributes of the row */

	/* passive */
	bool		restarted;		/* a new execution begins */
	bool		refused;		/* nothing can be known ahead */
	bool		missed;			/* this execution has read a block */
	int64		nmissed;		/* executions that have */
	int64		executions;

	/* once blocks are read */
	LaDemandContext context;	/* of the node */
	LaRunAhead	hints;
	LaBudget	budget;			/* of keys; the rest is in ahead */
	LaKeyRows	rows;
	TupleTableSlot *slot;		/* a row of the values only */
	LaLookups  *lookups;
	LaRowsToCome *to_come;
	LaAhead    *ahead;			/* NULL: not yet */
} LaRepeated;

extern void la_repeated_execute(LaRepeated *r);
extern void la_repeated_end(LaRepeated *r);

/* ---- reuse ---- */

typedef struct LaReuse LaReuse;

/* What was found for a row. */
typedef struct LaKept
{
	LaKeyedScan *scan;			/* that will need it, or NULL */
	bool		complete;		/* all of it is kept */
	uint32		first;
	uint16		count;
} LaKept;

extern bool la_reuse_is_possible(const LaKeyedScan *scan);
extern LaReuse *la_reuse_create(LaBudget *budget);
extern void la_reuse_keep(LaReuse *reuse, LaKept *kept, LaKeyedScan *scan,
						  const LaMatches *matches);
extern void la_reuse_turn(LaReuse *reuse, const LaKept *kept);
extern void la_reuse_clear(LaReuse *reuse);

/* ---- stored_rows: the rows to come of a scan whose rows lie in a tuplestore ---- */

extern LaRowsToCome *la_storedrows_create(ScanState *scan, const LaRunAhead *hints,
										  const LaDemandContext *context,
										  const char **refused);

/* ---- values_rows: the rows to come of VALUES ---- */

extern LaRowsToCome *la_valuesrows_create(ValuesScanState *scan, const LaRunAhead *hints);

#endif							/* LA_NESTLOOP_INT_H */
