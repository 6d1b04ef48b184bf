/*
 * write_int.h
 *	  What the files of this room share.
 *
 * src/write/write_int.h
 */
#ifndef LA_WRITE_INT_H
#define LA_WRITE_INT_H

#include "access/genam.h"
#include "access/htup.h"
#include "nodes/execnodes.h"
#include "nodes/nodes.h"
#include "nodes/params.h"
#include "storage/block.h"
#include "storage/buf.h"
#include "storage/itemptr.h"
#include "storage/off.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/reltrigger.h"

#include "attach/attach.h"
#include "base/base.h"
#include "btree/btree.h"
#include "gin/gin.h"
#include "rows/rows.h"

/* ---- copy: COPY FROM that looks ahead over the rows that it has put into the table ---- */

extern void la_copy_begin(void);
extern void la_copy_end(void);
extern bool la_copy_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
						   Relation heap, IndexUniqueCheck unique, bool unchanged,
						   IndexInfo *info);

/* ---- tidlog: rows that have been written, in their order ---- */

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

/* ---- foreign_key ---- */

extern bool la_foreign_key_is_fired_by(const Trigger *trigger, CmdType operation);
extern bool la_foreign_key_cascades(const TriggerDesc *triggers);
extern bool la_foreign_key_install(ResultRelInfo *relation, CmdType operation, EState *estate,
								   LaTidLog *log);
extern LaTidLog *la_foreign_key_cascade(const ModifyTableState *mt);
extern void la_foreign_key_query_starts(void);
extern bool la_foreign_key_is_running(void);

/* ---- ginhooks: how inserts into GIN indexes get to look-ahead ---- */

extern void la_ginhooks_init(void);
extern void la_ginhooks_attach(const ModifyTableState *mt);
extern void la_ginhooks_begin(Relation table);
extern void la_ginhooks_exchange(Relation index);

/* ---- gininsert: inserting into GIN indexes ---- */

extern void la_gininsert_watch(const EState *estate);
extern bool la_gininsert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
						 Relation heap, IndexUniqueCheck unique, bool unchanged,
						 IndexInfo *info);

/* ---- heaprow: copies of rows that the statement has written ---- */

/* Is it a row that the caller looks for?  Called with the page share-locked. */
typedef bool (*LaRowFilter) (HeapTupleHeader row);

extern bool la_heaprow_is_own(TransactionId xid);
extern bool la_heaprow_is_replaced(HeapTupleHeader row);
extern HeapTuple la_heaprow_copy(Relation table, const ItemPointerData *tid, LaRowFilter filter);
extern void la_heaprow_seek(Relation table, ItemPointer next, LaRowFilter filter);
extern HeapTuple la_heaprow_next(Relation table, ItemPointer next, LaRowFilter filter);

/* ---- insert: inserting into stock btree indexes ---- */

extern void la_insert_expect(void **state, Relation index, const IndexInfo *info,
							 BlockNumber leaf);
extern bool la_btinsert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
						Relation heap, IndexUniqueCheck unique, bool unchanged,
						IndexInfo *info);

/* ---- insert_location: where a new entry of a stock btree index belongs ---- */

typedef struct LaInsertLocation LaInsertLocation;

extern LaInsertLocation *la_insertlocation_create(Relation index, Relation heap);
extern LaSearchKey *la_insertlocation_key(LaInsertLocation *p);
extern Buffer la_insertlocation_find(LaInsertLocation *p, BlockNumber expected, Size size,
									 OffsetNumber *position);

/* ---- keycolumns ---- */

/* The columns that are compared, in the constraint's order. */
typedef struct LaKeyColumns
{
	int			n;
	AttrNumber	here[INDEX_MAX_KEYS];	/* of the table that is written */
	AttrNumber	there[INDEX_MAX_KEYS];	/* of the other table */
	Oid			conindid;
	Oid			other;
} LaKeyColumns;

extern bool la_keycolumns_load(LaKeyColumns *k, Oid constraint, bool is_check, Oid table);
extern Relation la_keycolumns_open_index(const LaKeyColumns *k, Relation other, bool is_check,
										 AttrNumber *columns, int *ncolumns);
extern LaDescent *la_keycolumns_descent(Relation table, Relation other, Relation index,
										const AttrNumber *columns, int ncolumns);

/* ---- keyahead ---- */

typedef struct LaKeyAhead LaKeyAhead;

/* What to look ahead over. */
typedef struct LaKeyEvents
{
	Oid			constraint;
	Oid			table;			/* that is written */
	bool		is_check;		/* else an action */
	LaTidLog   *log;			/* NULL: rows are behind each other in the
								 * table */
	int			kinds;			/* of the log's entries */
	int64		first;			/* the log's first entry that may be one */
	bool		by_key;			/* keys are asked for, not rows */
	bool		is_kept;		/* for longer than a statement */
} LaKeyEvents;

#define LA_KEY_TRIAL	8		/* rows, of the first batch; see BATCH in
								 * keyahead.c */

/* The columns of a key that is asked for, in the constraint's order. */
typedef struct LaKeyValues
{
	int			n;
	Datum		values[INDEX_MAX_KEYS];
	Oid			types[INDEX_MAX_KEYS];	/* InvalidOid: a null */
} LaKeyValues;

/* The one whose turn it is. */
typedef struct LaKeyAsked
{
	const ItemPointerData *tid; /* by row: as its tuple will be known */
	const ItemPointerData *old; /* ... as it is in the log */
	const LaKeyValues *key;		/* by key */
	bool		missed;			/* blocks have been read for the ones before,
								 * as far as the caller knows */
	bool		trial;			/* find out whether any has to be read */
} LaKeyAsked;

extern LaKeyAhead *la_keyahead_create(MemoryContext context, EState *estate,
									  const LaKeyEvents *events);
extern void la_keyahead_turn(LaKeyAhead *k, Relation table, const LaKeyAsked *asked);
extern const LaKeyColumns *la_keyahead_columns(LaKeyAhead *k);
extern void la_keyahead_note_first(LaKeyAhead *k, bool read);
extern bool la_keyahead_is_wanted(const LaKeyAhead *k, bool missed);
extern void la_keyahead_pass(LaKeyAhead *k, int n);
extern bool la_keyahead_expects(LaKeyAhead *k, Relation table, const LaKeyValues *key);
extern void la_keyahead_end(LaKeyAhead *k);
extern void la_keyahead_reset(LaKeyAhead *k);

/* ---- keyquery ---- */

extern void la_keyquery_init(void);
extern void la_keyquery_set_constraints(bool deferred);
extern bool la_keyquery_follow(Relation table, CmdType operation, bool many);
extern LaTidLog *la_keyquery_log(void);
extern void la_keyquery_watch(const ModifyTableState *mt);
extern void la_keyquery_begin_copy(Relation table);
extern void la_keyquery_copy_starts(Oid table, const ItemPointerData *tid);
extern void la_keyquery_end_copy(void);

/* ---- keytables: the tables that a foreign key's queries look in: one, or partitions ---- */

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

/* ---- mergeaction ---- */

typedef struct LaMergeColumn LaMergeColumn;

/* An INSERT or UPDATE, or something that needs no index. */
typedef struct LaMergeAction
{
	CmdType		command;
	int			number;			/* among those of its table */
	bool		decides;		/* its condition can be evaluated ahead */
	bool		may_fail;		/* ... and may fail */
	ExprState  *condition;		/* NULL: none */

	/* columns by their numbers minus FirstLowInvalidHeapAttributeNumber */
	Bitmapset  *known;			/* columns whose new values can be computed */
	Bitmapset  *unknown;		/* ... and those whose values cannot */
	int			ncolumns;
	LaMergeColumn *columns;		/* of known */
	bool		columns_may_fail;
	TupleTableSlot *new;
} LaMergeAction;

/* The actions for rows that are matched by a row of one table, or not matched. */
typedef struct LaMergeActions
{
	bool		useful;			/* one of them may need an index */
	bool		decides;		/* the join's condition can be evaluated ahead */
	bool		may_fail;		/* ... and may fail */
	ExprState  *join_condition; /* NULL: none */
	List	   *matched;		/* LaMergeActions */
	List	   *others;			/* if the join's condition does not hold */
} LaMergeActions;

typedef struct LaMergeInto LaMergeInto;

extern LaMergeInto *la_mergeaction_create(ModifyTableState *mt);
extern LaMergeActions *la_mergeaction_matched(LaMergeInto *merge, ResultRelInfo *relation,
											  const Bitmapset *wanted);
extern LaMergeActions *la_mergeaction_not_matched(LaMergeInto *merge, const Bitmapset *wanted);
extern LaMergeAction *la_mergeaction_choose(LaMergeInto *merge, const LaMergeActions *actions,
											TupleTableSlot *row, TupleTableSlot *old);
extern TupleTableSlot *la_mergeaction_form(LaMergeInto *merge, LaMergeAction *action,
										   TupleTableSlot *row, TupleTableSlot *old);

/* ---- modify: INSERT, UPDATE and MERGE that look ahead over the rows of their plan ---- */

/* Is the table that the statement names partitioned? */
static inline bool
la_modify_is_partitioned(const ModifyTableState *mt)
{
	return mt->rootResultRelInfo->ri_RelationDesc->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
}

typedef struct LaModify LaModify;

extern bool la_modify_is_possible(ModifyTableState *mt);
extern LaModify *la_modify_create(ModifyTableState *mt, const LaInterposer *interposer);
extern TupleTableSlot *la_modify_next(LaModify *m);
extern const LaCounters *la_modify_counters(LaModify *m);
extern void la_modify_end(LaModify *m);

/* ---- newtuple ---- */

typedef struct LaNewTuples LaNewTuples;

/* What is kept with a row of the plan that something is known of. */
typedef struct LaNewTuple
{
	int			table;			/* its number */
	struct LaMergeAction *action;	/* MERGE; or NULL */
} LaNewTuple;

extern LaNewTuples *la_newtuples_create(ModifyTableState *mt, LaAhead *ahead);
extern bool la_newtuples_know(LaNewTuples *nt, TupleTableSlot *row, LaNewTuple *tuple);
extern LaTarget *la_newtuples_target(const LaNewTuples *nt, const LaNewTuple *tuple);
extern const Bitmapset *la_newtuples_unknown(const LaNewTuples *nt, const LaNewTuple *tuple);
extern TupleTableSlot *la_newtuples_form(LaNewTuples *nt, const LaNewTuple *tuple,
										 TupleTableSlot *row);
extern bool la_newtuples_is_known_heap_only(LaNewTuples *nt, const LaNewTuple *tuple,
											TupleTableSlot *row);
extern bool la_newtuples_is_quiet(LaNewTuples *nt, TupleTableSlot *row);
extern void la_newtuples_forget_row(LaNewTuples *nt);

/* ---- route: the partition that a row is going to be inserted into ---- */

typedef struct LaRoute LaRoute;

extern LaRoute *la_route_create(Relation root, ModifyTableState *mt);
extern bool la_route_depends_on(const LaRoute *route, const Bitmapset *columns);
extern ResultRelInfo *la_route_find(LaRoute *route, TupleTableSlot *row);

/* ---- writer ---- */

extern bool la_writer_is_quiet(ModifyTableState *mt);
extern bool la_writer_is_quiet_partition(const ModifyTableState *mt,
										 const ResultRelInfo *partition);

#endif							/* LA_WRITE_INT_H */
