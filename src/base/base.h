/*
 * base.h
 *	  What the room base/ offers to others.
 *
 * src/base/base.h
 */
#ifndef LA_BASE_H
#define LA_BASE_H

#include "access/amapi.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/xact.h"
#include "executor/execdesc.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/bufpage.h"
#include "storage/lockdefs.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/elog.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/palloc.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "base/compat.h"

/* ---- accessmethod: which index access methods may be run ahead of the executor ---- */

typedef enum LaAccessMethod
{
	LA_AM_UNKNOWN,
	LA_AM_BTREE,
	LA_AM_HASH,
	LA_AM_GIST,
	LA_AM_SPGIST,
	LA_AM_HNSW,
	LA_AM_IVFFLAT,
	LA_AM_RUM
} LaAccessMethod;

extern void la_am_init(void);
extern LaAccessMethod la_am_of(Oid am);
extern bool la_am_may_run_ahead(Oid am);
extern bool la_am_has_function(Oid am, Oid function);
extern bool la_am_is_vouched_for(Oid am);
extern bool la_am_is_excluded(Oid am);

/* hooks of the settings that list access methods */
extern bool la_am_check_excluded(char **newval, void **extra, GucSource source);
extern void la_am_assign_excluded(const char *newval, void *extra);
extern bool la_am_check_additional(char **newval, void **extra, GucSource source);
extern void la_am_assign_additional(const char *newval, void *extra);

/* ---- attempt ---- */

/*
 * The kinds of work are COMPUTING, SCANNING, READING and OPENING: see attempt.c.
 */

/* What reading keeps from one attempt to the next; zero before the first. */
typedef struct LaAttemptOwner
{
	ResourceOwner owner;		/* NULL: none yet, or the work has failed */
	bool		failed;
} LaAttemptOwner;

/* The setting may change within a statement. */
static inline bool
la_attempt_is_allowed(void)
{
	return !ExitOnAnyError;
}

extern bool la_attempt_compute(void (*work) (void *arg), void *arg);
extern ErrorData *la_attempt_compute_kept(void (*work) (void *arg), void *arg,
										  MemoryContext context);
extern void la_attempt_raise(ErrorData *error);
extern ErrorData *la_attempt_scan_kept(void (*work) (void *arg), void *arg,
									   MemoryContext context);
extern bool la_attempt_read(void (*work) (void *arg), void *arg);
extern bool la_attempt_read_with(LaAttemptOwner *owner, void (*work) (void *arg), void *arg);
extern void la_attempt_rest(LaAttemptOwner *owner);
extern void la_attempt_end(LaAttemptOwner *owner);
extern bool la_attempt_open(void (*work) (void *arg), void *arg, ErrorData **error);
extern bool la_attempt_has_memory(Size size);

/* ---- base: what all rooms use: settings, counters, limits ---- */

extern void la_base_init(void);

/* ---- bounds: does what a page says of itself lie within it? ---- */

/*
 * A page that is looked at ahead of the server may be damaged, and the server may never come to
 * it.  So nothing is followed that could lead out of it.
 */

/* Does a line pointer lead to so many bytes at least, before `end` of the page? */
static inline bool
la_item_fits(ItemId item, Size least, Size end)
{
	Size		begin = ItemIdGetOffset(item);

	return begin >= SizeOfPageHeaderData && begin == MAXALIGN(begin) &&
		ItemIdGetLength(item) >= least && begin + ItemIdGetLength(item) <= end;
}

/* Does a varlena that is not stored out of line lie before `end`? */
static inline bool
la_varlena_fits(const char *value, const char *end)
{
	Size		room = end - value;

	if (value >= end || VARATT_IS_EXTERNAL(value))
		return false;
	if (VARATT_IS_SHORT(value))
		return VARSIZE_SHORT(value) <= room;
	return room >= VARHDRSZ && VARSIZE_4B(value) >= VARHDRSZ &&
		VARSIZE_4B(value) <= room &&
		(!VARATT_IS_COMPRESSED(value) || VARSIZE_4B(value) >= VARHDRSZ_COMPRESSED);
}

/* ---- budget: limits of the memory and the pins that look-ahead takes ---- */

/* One per node; all but the limit is zero at first. */
typedef struct LaBudget
{
	Size		limit;			/* bytes */
	Size		used;
	int			pins[2];		/* on shared and on local buffers */
} LaBudget;

extern bool la_budget_has(LaBudget *budget, Size bytes);
extern bool la_budget_has_spare(LaBudget *budget, Size bytes);
extern void la_budget_take(LaBudget *budget, Size bytes);
extern void la_budget_return(LaBudget *budget, Size bytes);
extern Size la_budget_follow(LaBudget *budget, MemoryContext context, Size *accounted);
extern bool la_budget_has_pin(bool local);
extern void la_budget_take_pin(LaBudget *budget, bool local);
extern void la_budget_return_pin(LaBudget *budget, bool local);
extern void la_budget_end(LaBudget *budget);

/* ---- buildstats: cumulative statistics of index builds ---- */

/* Rows of pg_stat_lookahead_index_build: who built the index, and why the server did. */
typedef enum LaBuildOutcome
{
	LA_OUTCOME_BUILT,
	LA_LEFT_MANY_VALUES,		/* too many different values to rank them */
	LA_LEFT_PARALLEL,			/* values would have to be ranked by one
								 * process; the server's workers are faster */
	LA_LEFT_LONG_KEYS,			/* the index compresses long values */
	LA_LEFT_COMPARISON,			/* values would have to be ranked by a
								 * comparison function that is not built in */
	LA_LEFT_EXPRESSIONS			/* restarting the build would call functions
								 * of expressions again */
} LaBuildOutcome;

#define LA_NUM_BUILD_OUTCOMES (LA_LEFT_EXPRESSIONS + 1)

/* Times are in microseconds. */
typedef struct LaBuildFigures
{
	bool		parallel;		/* workers took part */
	bool		spilled;		/* some rows went to temporary files */
	int64		rows;			/* index entries */
	int64		scan_time;
	int64		sort_time;
	int64		load_time;
} LaBuildFigures;

extern void la_build_stats_init(void);
extern void la_build_stats_add(LaBuildOutcome outcome,
							   const LaBuildFigures *figures);
extern void la_build_stats_reset(void);

/* ---- counters: what is counted of a node that looks ahead ---- */

/* Kinds of plan nodes that look ahead: one row each of pg_stat_lookahead. */
typedef enum LaKind
{
	LA_KIND_INDEX_SCAN,
	LA_KIND_INDEX_ONLY_SCAN,
	LA_KIND_NESTED_LOOP,
	LA_KIND_HASH_JOIN,
	LA_KIND_BITMAP_HEAP_SCAN,
	LA_KIND_BITMAP_INDEX_SCAN,
	LA_KIND_INDEX_INSERT,
	LA_KIND_FOREIGN_KEY,
	LA_KIND_TOAST,
	LA_KIND_SUBPLAN,
	LA_KIND_TID_SCAN
} LaKind;

#define LA_NUM_KINDS (LA_KIND_TID_SCAN + 1)

/*
 * The counters, in the order of the view's columns.  Blocks are classified as in "Extended
 * Prefetching using Asynchronous IO" (Lumby and Freire, 2014), as far as that applies to
 * advice: its terms are noneed (cached), ontime (on time), waited (late), discrd (wasted).
 */
typedef enum LaCounter
{
	LA_SCANS_ATTACHED,			/* scans and joins that were attached */
	LA_SCANS_ACTIVATED,			/* times that one began to look ahead */
	LA_BLOCKS_FORESEEN,			/* visits of heap blocks known in advance */
	LA_BLOCKS_ISSUED,			/* ... whose read was started early */
	LA_BLOCKS_CACHED,			/* ... found in shared buffers */
	LA_BLOCKS_SKIPPED_RECENT,	/* ... foreseen a moment before, too */
	LA_BLOCKS_SKIPPED_SEQUENTIAL,	/* ... left to the kernel's read-ahead */
	LA_BLOCKS_ON_TIME,			/* issued, and read without a wait */
	LA_BLOCKS_LATE,				/* issued, but still waited for */
	LA_BLOCKS_WASTED,			/* issued, but never visited */
	LA_ENTRIES_KILLED,			/* index entries marked as dead */
	LA_LEAF_PAGES_ISSUED,		/* index leaf pages whose read was started */
	LA_NUM_VIEW_COUNTERS,

	/* not in the views of the first versions */
	LA_BLOCKS_EVICTED = LA_NUM_VIEW_COUNTERS,	/* late, long after they were
												 * issued */
	LA_BLOCKS_NOT_STARTED,		/* foreseen, not cached, and no read could be
								 * started */
	LA_WAIT_NS,					/* nanoseconds that timed reads have taken */
	LA_SAVED_NS,				/* ... that they would have taken longer */
	LA_SAVED_ERROR_NS,			/* how uncertain that is */
	LA_NUM_SHARED_COUNTERS,

	/* of single nodes only, for EXPLAIN and the last statement */
	LA_DISTANCE_SUM = LA_NUM_SHARED_COUNTERS,	/* over visits while armed */
	LA_DISTANCE_SAMPLES,
	LA_DISTANCE_MAX,
	LA_DISTANCE_CAPACITY,
	LA_IO_COUNT,				/* requests to read, which were made early */
	LA_IO_BLOCKS,				/* ... for so many blocks */
	LA_IO_WAITS,				/* blocks of theirs that were waited for */
	LA_IO_IN_PROGRESS,			/* over requests: so many were in progress */
	LA_IO_SAMPLES,				/* ... where that is known */
	LA_NUM_COUNTERS
} LaCounter;

#define LA_NS_IN_MS 1000000.0

struct LaStatementStats;

typedef struct LaCounters
{
	int64		c[LA_NUM_COUNTERS];
	struct LaStatementStats *statement; /* that the node belongs to, or NULL;
										 * see statements.c */
} LaCounters;

/* The times and requests of other reads of the same node. */
static inline void
la_counters_add_reads(LaCounters *counters, const LaCounters *other)
{
	for (int i = LA_WAIT_NS; i <= LA_SAVED_ERROR_NS; i++)
		counters->c[i] += other->c[i];
	for (int i = LA_IO_COUNT; i <= LA_IO_SAMPLES; i++)
		counters->c[i] += other->c[i];
}

/* Look-ahead is so many blocks ahead at a visit. */
static inline void
la_counters_note_distance(LaCounters *counters, int64 distance)
{
	int64	   *c = counters->c;

	c[LA_DISTANCE_SUM] += distance;
	c[LA_DISTANCE_SAMPLES]++;
	if (distance > c[LA_DISTANCE_MAX])
		c[LA_DISTANCE_MAX] = distance;
}

/*
 * A request was made to read blocks early.  in_progress: requests whose blocks have not been
 * visited, with this one; negative: not known.
 */
static inline void
la_counters_note_request(LaCounters *counters, int64 nblocks, int in_progress)
{
	int64	   *c = counters->c;

	c[LA_IO_COUNT]++;
	c[LA_IO_BLOCKS] += nblocks;
	if (in_progress >= 0)
	{
		c[LA_IO_IN_PROGRESS] += in_progress;
		c[LA_IO_SAMPLES]++;
	}
}

/* ---- stats: counters of look-ahead: per node, per session and for the server ---- */

/*
 * A room counts into an LaCounters of its own, which it opens for the statement that the node
 * belongs to, and passes it to la_stats_publish() when its node ends.  Where look-ahead would not
 * be safe, the room says why by la_stats_refuse(), once per node and execution.  See stats.c.
 */

extern void la_stats_init(void);
extern void la_stats_open(LaCounters *counters, const EState *estate);
extern void la_stats_flush_at_exit(void);
extern int	la_stats_last_count(void);
extern const LaCounters *la_stats_last_node(int n, char **name);
extern TimestampTz la_stats_reset_time(void);
extern void la_stats_publish(LaKind kind, Oid heaprelid, Oid indexrelid,
							 const LaCounters *counters);
extern void la_stats_refuse(EState *estate, LaKind kind, Oid heaprelid,
							Oid indexrelid, const char *reason);

/* ---- explain: look-ahead in EXPLAIN (ANALYZE) ---- */

/* A node's counters, or NULL if it is another room's, or has never looked ahead. */
typedef const LaCounters *(*la_explain_source) (PlanState *planstate);

extern void la_explain_init(void);
extern void la_explain_register(la_explain_source source);
extern void la_explain_register_part(la_explain_source source, const char *part);

/* ---- guc: the settings of pg_lookahead, as the rooms read them ---- */

/*
 * See guc.c for units, ranges and meaning.
 */

extern bool la_enable;
extern bool la_enable_index_scan;
extern bool la_enable_bitmap_scan;
extern bool la_enable_nestloop;
extern bool la_nestloop_reuse_tids;
extern bool la_enable_hash_join;
extern bool la_hash_huge_pages;
extern bool la_enable_index_build;
extern bool la_enable_btree_insert;
extern bool la_enable_write;
extern bool la_enable_foreign_key;
extern bool la_enable_toast;
extern bool la_enable_subplan;
extern bool la_enable_tid_scan;
extern bool la_enable_replay;
extern bool la_enable_apply;
extern bool la_adjust_costs;
extern bool la_force;
extern bool la_explain;
extern int	la_attach_threshold;	/* see also la_few_rows() */
extern int	la_max_distance;
extern int	la_tablespace_max_in_flight;
extern int	la_miss_threshold;
extern double la_min_read_time;
extern int	la_cache_prefetch_threshold;
extern int	la_cache_prefetch_distance;
extern int	la_max_leaf_pages;
extern int	la_scan_memory;
extern int	la_backend_memory;
extern int	la_apply_queue_size;
extern int	la_max_statements;
extern int	la_max_indexes;
extern bool la_save_statistics;
extern int	la_log_min_saved;

/* Scans of tables by TID, or in order, of so few rows are left alone. */
#define LA_FEW_ROWS 8

static inline int
la_few_rows(void)
{
	return Min(la_attach_threshold, LA_FEW_ROWS);
}

extern void la_guc_init(void);

/* ---- locale: the server's locales, without the headers of ICU ---- */

/*
 * Where the server was built with ICU, utils/pg_locale.h includes ICU's headers, which need
 * not be installed where extensions are built (Debian 13's server package does not require
 * them).  pg_lookahead does not use what they declare, and the structures that it reads
 * have it at their end.  la_collation_is_c() of compat.h needs this file.
 */

#ifdef USE_ICU
#undef USE_ICU
#include "utils/pg_locale.h"
#define USE_ICU 1
#else
#include "utils/pg_locale.h"
#endif

/* ---- lock: a relation's lock, taken at once or not at all ---- */

extern bool la_lock_relation_at_once(Oid relid, LOCKMODE mode);
extern bool la_lock_catalogs_at_once(const Oid *relids, int n);
extern void la_lock_release_catalogs(const Oid *relids, int n);

/* ---- minor: which rooms may work in the minor release that is running ---- */

/* In the order of the columns of minor_table.h, and of ROOMS in dev/fingerprint. */
typedef enum LaRoom
{
	LA_ROOM_SCAN,
	LA_ROOM_NESTLOOP,
	LA_ROOM_HASHJOIN,
	LA_ROOM_INDEXBUILD,
	LA_ROOM_WRITE,
	LA_ROOM_BITMAP,
	LA_ROOM_TOAST
} LaRoom;

#define LA_NUM_ROOMS (LA_ROOM_TOAST + 1)

extern void la_minor_init(void);
extern bool la_minor_allows(LaRoom room);

/* ---- shadow: a copy of an index's relation descriptor, whose access method is ours ---- */

/*
 * The executor reaches an access method only through scan->indexRelation->rd_indam.  A room that
 * gets between the two points indexRelation at such a copy, and back at the index around every call
 * of the access method, which expects the index itself.  The record of the scan begins with the
 * copy, so that routines of ours find it:
 *
 * 	RelationData shadow;		must be first
 * 	Relation	real;			the index
 * 	IndexScanDesc scan;
 *
 * Of the copy only rd_indam and pgstat_info are used, by indexam.c.
 */

/*
 * Evaluate a call of the access method.  An error in it leaves the index in the descriptor: no scan
 * goes on after an error, and if one is ended, the access method's amendscan is called directly.
 */
#define la_shadow_call(record, call) \
	do { \
		(record)->scan->indexRelation = (record)->real; \
		call; \
		(record)->scan->indexRelation = &(record)->shadow; \
	} while (0)

static inline void
la_shadow_init(Relation shadow, Relation real, IndexAmRoutine *routine)
{
	/* the copy must find the statistics entry that the index uses */
	(void) pgstat_should_count_relation(real);
	*shadow = *real;
	shadow->rd_indam = routine;
}

/* A copy of this relation, which has not been invalidated since, is used again. */
static inline void
la_shadow_renew(Relation shadow, Relation real)
{
	(void) pgstat_should_count_relation(real);
	shadow->pgstat_enabled = real->pgstat_enabled;
	shadow->pgstat_info = real->pgstat_info;
}

/* ---- shmem: shared memory, if the library is preloaded by the server ---- */

/* A hash table in shared memory, of keys that are compared as bytes, and its lock. */
typedef struct LaShmemTable
{
	HTAB	   *hash;			/* NULL: there is no shared memory */
	LWLock	   *lock;
} LaShmemTable;

/* A double as an atomic variable holds it. */
static inline uint64
la_bits_of(double value)
{
	uint64		bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline double
la_double_of(uint64 bits)
{
	double		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

extern void la_shmem_init(void);
extern bool la_shmem_is_there(void);
extern void la_shmem_require(void);
extern void la_shmem_init_counters(void *area, Size size);
extern void la_shmem_reset_counters(void *area, Size size);
extern void la_shmem_register(const char *name, Size size, void (*init) (void *area),
							  void **area);
extern void la_shmem_register_per_backend(const char *name, Size size,
										  void (*init) (void *area), void **area);
extern void la_shmem_register_table(const char *name, int max_entries, Size key_size,
									Size entry_size, LaShmemTable *table);
extern void la_shmem_register_startup(void (*started) (void));

/* ---- sqlrow: the rows that an SQL function returns, put together column by column ---- */

#define LA_SQLROW_COLUMNS 40

typedef struct LaSqlRow
{
	ReturnSetInfo *result;		/* of a function that returns a set */
	int			n;
	Datum		values[LA_SQLROW_COLUMNS];
	bool		nulls[LA_SQLROW_COLUMNS];
} LaSqlRow;

static inline void
la_sqlrow_put_unless(LaSqlRow *row, bool null, Datum value)
{
	Assert(row->n < LA_SQLROW_COLUMNS);
	row->nulls[row->n] = null;
	row->values[row->n++] = value;
}

static inline void
la_sqlrow_put(LaSqlRow *row, Datum value)
{
	la_sqlrow_put_unless(row, false, value);
}

static inline void
la_sqlrow_put_count(LaSqlRow *row, int64 count)
{
	la_sqlrow_put(row, Int64GetDatum(count));
}

/* 0 is null. */
static inline void
la_sqlrow_put_oid(LaSqlRow *row, Oid oid)
{
	la_sqlrow_put_unless(row, !OidIsValid(oid), ObjectIdGetDatum(oid));
}

static inline void
la_sqlrow_put_text(LaSqlRow *row, const char *text)
{
	la_sqlrow_put_unless(row, text == NULL, text == NULL ? (Datum) 0 : CStringGetTextDatum(text));
}

/* 0 is null. */
static inline void
la_sqlrow_put_time(LaSqlRow *row, TimestampTz time)
{
	la_sqlrow_put_unless(row, time == 0, TimestampTzGetDatum(time));
}

static inline void
la_sqlrow_put_milliseconds(LaSqlRow *row, int64 ns)
{
	la_sqlrow_put(row, Float8GetDatum((double) ns / LA_NS_IN_MS));
}

/* The function returns a set, of no row so far. */
static inline void
la_sqlrow_begin(LaSqlRow *row, FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	row->result = (ReturnSetInfo *) fcinfo->resultinfo;
	row->n = 0;
}

/* The row is complete; the next one begins. */
static inline void
la_sqlrow_end(LaSqlRow *row)
{
	Assert(row->n == row->result->setDesc->natts);
	tuplestore_putvalues(row->result->setResult, row->result->setDesc, row->values, row->nulls);
	row->n = 0;
}

/* The result of a function that returns one row.  Columns that were not put are null. */
static inline Datum
la_sqlrow_datum(LaSqlRow *row, FunctionCallInfo fcinfo)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	Assert(row->n <= desc->natts && desc->natts <= LA_SQLROW_COLUMNS);
	while (row->n < desc->natts)
		la_sqlrow_put_unless(row, true, (Datum) 0);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), row->values, row->nulls));
}

/* ---- statements ---- */

/* A statement.  What other files find out about it, they keep here. */
typedef struct LaStatement
{
	EState	   *estate;			/* NULL: a utility statement */
	PlanState  *top;			/* its topmost node, if a room is interested
								 * in one; else NULL */
	struct LaNodeDemands *demands;	/* attach/demand.c; NULL until asked for */
	bool		without_effects;	/* attach/runahead.c, "State" */
	bool		without_effects_known;
	struct LaTidLog *cascade_log;	/* write/foreign_key.c: rows that actions
									 * have changed, or NULL */
	int			cascade_seen;	/* so many ResultRelInfos of estate */
	struct LaStatementStats *stats; /* NULL: none are kept */
	MemoryContextCallback callback;
	struct LaStatement *next;	/* an older one */
} LaStatement;

/* How the executor runs a statement (attach/statement.c); all is zero if that is not known. */
typedef struct LaRun
{
	uint64		number;			/* of the call of ExecutorRun(), never used
								 * again */
	bool		to_end;			/* this call of ExecutorRun() returns all rows */
	bool		rows_stay;		/* no row leaves the server before it returns */
	bool		no_code;		/* the receiver calls no function that a user
								 * can define: la_statement_runs_no_code() */
	const TupleDesc *types;		/* no_code is still to be found out by these,
								 * or NULL */
	bool		may_fail;		/* the receiver may refuse a row */
} LaRun;

/* A statement is run: how, and what to add at the end.  It is on the stack of who runs it. */
typedef struct LaStatementRun
{
	LaStatement *statement;		/* NULL: one without a record */
	struct LaStatementRun *outer;
	LaRun		how;
	int			depth;			/* la_statement_depth before */
	int64		blocks_read;
	double		read_seconds;
} LaStatementRun;

/* How many statements are in progress in this one: 0 while a top-level statement runs. */
extern int	la_statement_depth;

extern void la_statements_init(void);
extern void la_statements_begin(QueryDesc *queryDesc);
extern LaStatement *la_statements_newest(void);
extern LaStatement *la_statements_find(const EState *estate);
extern LaStatement *la_statements_get(EState *estate);
extern void la_statements_set_top(QueryDesc *queryDesc);
extern bool la_statements_has_ended(const EState *estate);
extern const LaRun *la_statements_run(const EState *estate);
extern struct LaStatementStats *la_statements_stats(const EState *estate);
extern void la_statements_add(struct LaStatementStats *statement, Oid heaprelid, Oid indexrelid,
							  const LaCounters *counters);
extern void la_statements_add_reason(struct LaStatementStats *statement, const char *reason);
extern void la_statements_enter_run(LaStatementRun *run, const QueryDesc *queryDesc);
extern void la_statements_enter_utility(LaStatementRun *run, const PlannedStmt *pstmt);
extern void la_statements_leave_run(LaStatementRun *run);
extern void la_statements_end_utility(const LaStatementRun *run, const char *query);
extern void la_statements_before_end(void);
extern void la_statements_log(const char *query);

/* ---- transaction: what is to be forgotten when a transaction or a subtransaction ends ---- */

/*
 * Called at each step of the end of a transaction, with an invalid identifier; and with
 * XACT_EVENT_ABORT and its identifier when a subtransaction fails.
 */
typedef void (*la_transaction_function) (XactEvent event, SubTransactionId failed);

extern void la_transaction_register(la_transaction_function function);

/* ---- utility: what is done before and after utility statements ---- */

/* Called before a statement.  Returns true if "after" is to be called after it. */
typedef bool (*la_utility_before) (const Node *statement);
typedef void (*la_utility_after) (void);

/*
 * The server has opened and locked the table of a COPY statement, and checked privileges.  Returns
 * true if "after" is to be called after the statement.  Errors are forgotten.
 */
typedef bool (*la_utility_copy) (const CopyStmt *copy, Relation table);

extern bool la_utility_resets_session(const Node *statement);
extern void la_utility_register(la_utility_before before, la_utility_after after);
extern void la_utility_register_copy(la_utility_copy copy, la_utility_after after);
extern void la_utility_init(void);

#endif							/* LA_BASE_H */
