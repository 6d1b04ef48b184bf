/*
 * toast_int.h
 *	  What the files of this room share.
 *
 * src/toast/toast_int.h
 */
#ifndef LA_TOAST_INT_H
#define LA_TOAST_INT_H

#include "access/htup_details.h"
#include "access/relscan.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "attach/attach.h"
#include "base/base.h"

/* ---- columns: the columns of a table whose values may be fetched from out of line ---- */

#define LA_TOAST_COLUMNS	8	/* more are left alone */

typedef struct LaToastColumns
{
	int			n;
	AttrNumber	numbers[LA_TOAST_COLUMNS];
} LaToastColumns;

extern bool la_toastcolumns_of_scan(LaToastColumns *c, ScanState *scan);
extern bool la_toastcolumns_of_filter(ScanState *scan);
extern bool la_toastcolumns_of_copy(LaToastColumns *c, Relation table, List *names);
extern bool la_toastcolumns_of_rows(LaToastColumns *c, TupleDesc desc);

/* ---- copyto: COPY TO of a table ---- */

extern void la_copyto_init(void);

/* ---- rewrite: statements that rewrite a table ---- */

extern void la_rewrite_init(void);

/* ---- passedrows: values of rows that are no table's ---- */

extern LaFollower *la_passedrows_follow(PlanState *node, const LaComingValues *of);

/* ---- noderows: the rows that a sort, or a Gather, passes on ---- */

extern bool la_noderows_attach(PlanState *ps);

/* ---- values: the values of a row that are stored out of line ---- */

struct varatt_external;

/* Where rows are looked at. */
typedef struct LaValueRows
{
	Relation	table;
	Snapshot	snapshot;
	BufferAccessStrategy *strategy; /* of the scan, or NULL */
	LaToastColumns columns;
	TupleDesc	desc;			/* of the rows; NULL: the table's */
	bool		versions;		/* those named by their addresses themselves,
								 * and no later ones */
	Oid			toast_table;	/* the table's; set by valueahead.c */
} LaValueRows;

/* A row's values. */
typedef struct LaRowValues
{
	int			n;
	int64		chunks;			/* of all of them */
	Oid			ids[LA_TOAST_COLUMNS];
} LaRowValues;

extern bool la_values_pointer(Datum value, struct varatt_external *pointer);
extern void la_values_add(LaRowValues *values, Datum value, Oid toast_table);
extern bool la_values_find(const LaValueRows *rows, const LaComingRow *row, LaRowValues *values);

/* ---- valueahead: the out-of-line values of rows that a scan will come to, read ahead ---- */

/* A scan whose rows may have such values. */
typedef struct LaValueScan
{
	PlanState  *node;			/* or NULL: there is no plan */
	LaValueRows rows;			/* no columns: those of the node, which is a
								 * ScanState */
	bool		may_skip;		/* rows may be passed over that are known; ids
								 * ascend */
	LaComing	coming;

	/*
	 * the values of the n-th row behind the current one, which is known;
	 * NULL: they are looked for in the table
	 */
	void		(*find) (void *arg, int n, LaRowValues *values);
	MemoryContext context;		/* as long as the scan lives */
} LaValueScan;

extern bool la_valueahead_is_possible(Relation table);
extern LaFollower *la_valueahead_create(const LaValueScan *scan);
extern const LaCounters *la_valueahead_counters(const PlanState *node);

/* ---- tablescan: between a scan of a table and heapam ---- */

extern void la_tablescan_follow(TableScanDesc scan, PlanState *node,
								const LaToastColumns *columns, TupleDesc desc,
								MemoryContext context);

/* ---- tidblocks: the blocks of a TID scan's rows, read ahead ---- */

typedef struct LaTidBlocks LaTidBlocks;

extern bool la_tidblocks_is_possible(const TidScanState *node);
extern LaTidBlocks *la_tidblocks_create(TidScanState *node);
extern void la_tidblocks_next(LaTidBlocks *b);
extern void la_tidblocks_returned(LaTidBlocks *b);
extern void la_tidblocks_clear(LaTidBlocks *b);
extern const LaCounters *la_tidblocks_counters(LaTidBlocks *b);

/* ---- tidscan: scans of rows by their addresses ---- */

extern void la_tidscan_init(void);

/* ---- toasttable: a toast table and its index ---- */

typedef struct LaToastTable
{
	Oid			table;
	Oid			index;			/* InvalidOid: not known yet */
	Relation	table_rel;		/* as they were when they were open last */
	Relation	index_rel;
	Oid			table_file;		/* their numbers, likewise */
	Oid			index_file;
} LaToastTable;

/* What this backend has fetched of its values. */
typedef struct LaToastCounts
{
	int64		values;
	int64		chunks;
} LaToastCounts;

extern void la_toasttable_init(void);
extern void la_toasttable_find_index(LaToastTable *t);
extern bool la_toasttable_open(LaToastTable *t);
extern void la_toasttable_close(LaToastTable *t);
extern LaToastCounts la_toasttable_counts(const LaToastTable *t);

/* ---- unplanned: statements that scan a table without a plan ---- */

/* The scan has begun: have it followed. */
typedef void (*la_unplanned_follow) (TableScanDesc scan);

extern void la_unplanned_init(void);
extern bool la_unplanned_expect(Relation rel, la_unplanned_follow follow);
extern void la_unplanned_cancel(void);

#endif							/* LA_TOAST_INT_H */
