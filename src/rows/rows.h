/*
 * rows.h
 *	  What the room rows/ offers to others.
 *
 * src/rows/rows.h
 */
#ifndef LA_ROWS_H
#define LA_ROWS_H

#include "access/heapam.h"
#include "access/htup.h"
#include "access/itup.h"
#include "access/skey.h"
#include "access/tableam.h"
#include "access/tupdesc.h"
#include "catalog/pg_class.h"
#include "executor/execPartition.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "nodes/params.h"
#include "partitioning/partdefs.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "attach/attach.h"
#include "base/base.h"
#include "btree/btree.h"
#include "window/window.h"

/* ---- rowsource: where rows to come are from, and which blocks they need ---- */

#define LA_AHEAD_RELATIONS	512 /* of the tables and indexes of a statement */
#define LA_ROW_VISITS		96	/* of one row, at most */

typedef enum LaRowVisitState
{
	ROW_VISIT_FRESH,			/* the leaf page of the row's key in an index */
	ROW_VISIT_DEFERRED,			/* ... for which an inner page is being read */
	ROW_VISIT_KNOWN,			/* the block is known */
	ROW_VISIT_NONE				/* there is none */
} LaRowVisitState;

typedef struct LaRowVisit
{
	BlockNumber block;
	Buffer		recent;			/* that had the block; see aheadtouch.c */
	OffsetNumber offset;		/* the first row wanted of a table's block */
	uint16		rel;			/* see la_ahead_add_relation() */
	uint8		item;			/* the source's own: which of the row's keys */
	uint8		state;			/* a LaRowVisitState */
	uint8		more;			/* blocks behind it, see LaForeseen */
	bool		foreseen;		/* by its stage's window */
} LaRowVisit;

/* The visits of a row: those of the first stage, and those of the second. */
typedef struct LaAheadRow
{
	uint8		nfirst;
	uint8		nvisits;		/* of both */
	uint8		room;			/* for visits */
	bool		planned;		/* those of the first stage are there */
	bool		located;		/* ... and of the second */
	LaRowVisit *visits;
} LaAheadRow;

/* Where rows come from.  They are numbered from 0, and numbers are not used again. */
typedef struct LaRowSource
{
	void	   *arg;
	Size		own_size;		/* see la_ahead_own() */
	uint8		nearer;			/* the second stage stays in the nearest of so
								 * many parts of the rows; 0: see PIPELINE */

	/* makes row n known, the next one; false if it cannot be known now */
	bool		(*fetch) (void *arg, uint64 n);

	/*
	 * Names the row's visits: of the first stage, or of the second if there
	 * is no first.  A row that needs no first stage, where others do, sets
	 * `located`, and its visits are of the second.  Only what has a descent
	 * may be visited in the first stage.
	 */
	void		(*plan) (void *arg, uint64 n, LaAheadRow *row);

	/*
	 * Sets the key of a row's visit in the index's descent, or its block with
	 * la_ahead_set_block() where there is none; false if the row has no key.
	 */
	bool		(*set_key) (void *arg, uint64 n, const LaRowVisit *visit);

	/*
	 * Names the row's visits of the second stage, given what its visit of the
	 * first stage has found.  Called for each of those until it returns true;
	 * NULL without a first stage.
	 */
	bool		(*locate) (void *arg, uint64 n, LaAheadRow *row,
						   const LaMatches *matches, bool last);
} LaRowSource;

typedef struct LaAhead LaAhead;

/* ---- ahead: the blocks that rows to come will need, read ahead of their turn ---- */

/* How to look ahead. */
typedef struct LaAheadConfig
{
	Relation	rel;			/* one of those that are visited, by whose
								 * tablespace reads are configured */
	Relation	first_rel;		/* the same for the first stage, or NULL */
	int			nrels;			/* that will be added at most; 0:
								 * LA_AHEAD_RELATIONS */
	Oid			known_by;		/* the index for which history.c may know
								 * whether they are waits */
	uint32		identity;		/* see la_history_scan_of(), or 0 */
	const EState *estate;		/* of the statement that ends no sooner, or
								 * NULL */
	bool		takes_all;		/* all rows that are known will have their
								 * turn */
	bool		supply_varies;	/* how many are known is not ours to decide */
	LaIssueOrder order;
	const LaCachePolicyConfig *touch;	/* see TOUCHED; NULL: never */
} LaAheadConfig;

/* Which heap blocks of matches are to be visited: in their order, each once in a row. */
typedef struct LaMatchVisits
{
	int			most;			/* blocks, or with most_more runs of them */
	int			most_more;		/* successive blocks behind a visit's first
								 * one */
	LaMapPage  *map;			/* of an index-only scan, which leaves out
								 * blocks that are all-visible; or NULL */
} LaMatchVisits;

extern LaAhead *la_ahead_create(const LaRowSource *source, const LaAheadConfig *config);
extern int	la_ahead_add_relation(LaAhead *a, Relation rel, LaDescent *descent);
extern LaBudget *la_ahead_budget(LaAhead *a);
extern MemoryContext la_ahead_memory(LaAhead *a);
extern MemoryContext la_ahead_copies(LaAhead *a);
extern void la_ahead_set_block(LaAhead *a, BlockNumber block);
extern void *la_ahead_own(LaAhead *a, uint64 n);
extern LaRowVisit *la_ahead_add_visit(LaAheadRow *row, int rel);
extern LaRowVisit *la_ahead_add_block(LaAheadRow *row, int rel, BlockNumber block);
extern void la_ahead_add_matches(LaAhead *a, LaAheadRow *row, int rel, const LaMatches *matches,
								 const LaMatchVisits *which);
extern bool la_ahead_next(LaAhead *a, bool missed);
extern bool la_ahead_is_active(const LaAhead *a);
extern bool la_ahead_is_armed(const LaAhead *a);
extern bool la_ahead_has_rows(const LaAhead *a);
extern uint64 la_ahead_next_row(const LaAhead *a);
extern uint64 la_ahead_end_of_rows(const LaAhead *a);
extern const LaAheadRow *la_ahead_row(LaAhead *a, uint64 n);
extern int	la_ahead_rest(const LaAhead *a);
extern void la_ahead_pass_rest(LaAhead *a, int rows);
extern bool la_ahead_turn(LaAhead *a);
extern void la_ahead_skip(LaAhead *a);
extern void la_ahead_close_others(LaAhead *a);
extern void la_ahead_clear(LaAhead *a);
extern void la_ahead_pause(LaAhead *a);
extern void la_ahead_note_demand(const LaAhead *a, int64 taken, bool at_end);
extern void la_ahead_rescan(LaAhead *a, int64 taken, bool at_end);
extern void la_ahead_refuse(LaAhead *a);
extern void la_ahead_refuse_touch(LaAhead *a);
extern const LaCounters *la_ahead_counters(LaAhead *a);
extern void la_ahead_sum(const LaAhead *a, LaCounters *sum);
extern void la_ahead_forget(LaAhead *a, Oid known_by);
extern void la_ahead_end(LaAhead *a, LaKind kind, Oid heaprelid, Oid known_by);

/* ---- childqueue ---- */

#define LA_QUEUE_SIZE	1024	/* rows; a power of 2 */

/* Each row has a number that is not used again. */
typedef struct LaChildQueue
{
	PlanState  *child;
	const LaInterposer *interposer; /* of the child's output */
	LaBudget   *budget;
	MemoryContext context;		/* of the rows' copies */
	Size		accounted;		/* what of it was taken from the budget */
	uint64		head;			/* the row to be returned next */
	uint64		tail;			/* the row to be fetched next */
	bool		at_end;			/* the child has no more rows */
	bool		keeps_errors;	/* it may fail before its turn */
	ErrorData  *error;			/* it has, instead of row number tail */
	TupleTableSlot *fetched;	/* from the child, last */
	TupleTableSlot *returned;	/* the row returned last, or NULL */

	/* may a row be fetched now, while so many are queued? */
	bool		(*may_fetch) (void *arg, int64 queued);
	void	   *arg;
	TupleTableSlot *slots[LA_QUEUE_SIZE];
} LaChildQueue;

/* A row that is in the queue. */
static inline TupleTableSlot *
la_childqueue_at(const LaChildQueue *queue, uint64 n)
{
	return queue->slots[n & (LA_QUEUE_SIZE - 1)];
}

/* Is the next row from the queue, or an error? */
static inline bool
la_childqueue_has_rows(const LaChildQueue *queue)
{
	return queue->head < queue->tail || queue->error != NULL;
}

extern void la_childqueue_init(LaChildQueue *queue, const LaInterposer *interposer,
							   MemoryContext context, LaBudget *budget);
extern TupleTableSlot *la_childqueue_row(LaChildQueue *queue, uint64 n, bool early);
extern void la_childqueue_release(LaChildQueue *queue);
extern TupleTableSlot *la_childqueue_head(LaChildQueue *queue);
extern TupleTableSlot *la_childqueue_return_head(LaChildQueue *queue);
extern void la_childqueue_clear(LaChildQueue *queue);

/* ---- compile: expressions of a plan, compiled once more ---- */

extern ExprState *la_compile_expression(Expr *expression, ParamListInfo params);
extern bool la_compile_list(List *expressions, EState *estate, List **states);
extern ExprState *la_compile_qual(List *qual);

/* ---- fits: do the values of a row lie within it? ---- */

extern bool la_fits_row(const HeapTupleData *tuple, TupleDesc desc);
extern bool la_fits_entry(IndexTuple tuple, TupleDesc desc);

/* ---- heappage: the rows of a table's page ---- */

extern bool la_heappage_row(Page page, OffsetNumber offset, HeapTuple tuple);
extern int	la_heappage_visible(Relation rel, Snapshot snapshot, Buffer buffer,
								OffsetNumber *offsets);
extern bool la_heappage_is_visible(Relation rel, Snapshot snapshot, Buffer buffer,
								   const ItemPointerData *tid, HeapTuple tuple);
extern bool la_heappage_version(Relation rel, Snapshot snapshot, Buffer buffer,
								const ItemPointerData *tid, HeapTuple tuple);
extern int	la_heappage_versions(Relation rel, Snapshot snapshot, Buffer buffer,
								 OffsetNumber *offsets, int n);

/* ---- params: the executor's Params as they will be for a row that is known ahead ---- */

/* Params that have a row's values: those that a node passes to a plan that it repeats for each. */
typedef struct LaRowParams
{
	EState	   *estate;
	int			n;
	int		   *params;
	AttrNumber *attributes;		/* of the row, likewise */
} LaRowParams;

typedef struct LaParams LaParams;

extern bool la_params_walker(Node *node, void *arg);
extern void la_rowparams_init(LaRowParams *row, EState *estate, int max);
extern void la_rowparams_add(LaRowParams *row, int param, AttrNumber attribute);
extern AttrNumber la_rowparams_attribute(const LaRowParams *row, Expr *expression);
extern LaParams *la_params_create(const LaRowParams *row, Bitmapset *used, bool *has_values);
extern ParamExecData *la_params_get(LaParams *params, TupleTableSlot *slot);

/* ---- partition: the number of a key's partition ---- */

extern bool la_partition_key_is_pure(const PartitionKey key);
extern int	la_partition_number(Relation root, const PartitionDesc desc, Datum *values,
								bool *isnull);

/* ---- scankeys: the search key of an index scan for a row that is known ahead ---- */

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
	bool		last_first;		/* it finds the last match first */
	bool		keys_tried;
	const char *keys_refused;	/* the reason that prohibits them, or NULL */

	/*
	 * what was found for the row may be the scan's result; see
	 * nestloop/reuse.c
	 */
	bool		takes_matches;	/* instead of searching */
	int			offers;			/* how often it was asked to take them */
} LaKeyedScan;

extern bool la_keyedscan_init(LaKeyedScan *scan, PlanState *ps, Relation heap);
extern bool la_keyedscan_is_range(const LaKeyedScan *scan);
extern LaScanKeys *la_scankeys_get(LaKeyedScan *scan, LaKeyRows *rows);
extern bool la_scankeys_set(LaScanKeys *keys, TupleTableSlot *row);
extern bool la_scankeys_are_complete(const LaScanKeys *keys);
extern bool la_scankeys_are_covered(const LaScanKeys *keys);
extern bool la_scankeys_are_open(const LaScanKeys *keys);

/* ---- prune: which partition will a plan scan for a row that is known ahead? ---- */

typedef struct LaPrune LaPrune;

extern LaPrune *la_prune_create(PartitionPruneState *pruning, LaKeyRows *rows,
								const char **refused);
extern int	la_prune_find(LaPrune *prune, TupleTableSlot *row);

/* ---- tablecursor: the rows that a scan of a table's pages will come to ---- */

typedef struct LaTablePage LaTablePage;

typedef struct LaTableCursor
{
	/* set by whoever has it, the rest being zero */
	Relation	table;
	TableScanDesc *scan;		/* points to NULL until it runs */
	BitmapHeapScanState *bitmap;	/* whose next pages are looked for, until
									 * la_tablecursor_restart(); or NULL */
	bool		reads_on;		/* reads pages as far as the scan will in a
								 * moment */
	MemoryContext context;		/* lives as long as the scan */

	LaTablePage *pages;			/* a ring, or NULL */
	int			first_page;
	int			npages;
	LaTablePage *here;			/* the page that the scan is on, if it returns
								 * all versions; or NULL */
	int			place;			/* of the current row on it */
	struct LaBitmapPlace *in_bitmap;	/* or NULL */
} LaTableCursor;

extern bool la_tablecursor_peek(void *cursor, int n, LaComingRow *row);
extern void la_tablecursor_restart(LaTableCursor *c);

/* ---- target ---- */

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

#endif							/* LA_ROWS_H */
