/*
 * attach.h
 *	  What the room attach/ offers to others.
 *
 * src/attach/attach.h
 */
#ifndef LA_ATTACH_H
#define LA_ATTACH_H

#include "access/amapi.h"
#include "access/genam.h"
#include "access/itup.h"
#include "access/tableam.h"
#include "executor/instrument.h"
#include "nodes/execnodes.h"
#include "storage/buf.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "base/base.h"

/* ---- attach: finding the plan nodes that can look ahead ---- */

/* Row addresses of a scan that another room has found in advance. */
typedef struct LaTidSource
{
	void	   *arg;

	/*
	 * Called when the scan starts or is rescanned.  Sets all its row
	 * addresses, in the order of the index, which remain valid until the next
	 * rescan, or returns false if they are not known.
	 */
	bool		(*begin) (void *arg, ItemPointer *tids, int *ntids);
} LaTidSource;

struct LaComingRow;

/* What the room of index scans does for others. */
typedef struct LaIndexScans
{
	/*
	 * lets a scan take its rows from the source where it can; false if it
	 * never can
	 */
	bool		(*take_tids) (PlanState *scan, const LaTidSource *source);

	/* LaComing.peek */
	bool		(*peek) (PlanState *scan, int n, struct LaComingRow *row);
} LaIndexScans;

/*
 * Offers a node to its room.
 * Returns true if the room will ask later what is wanted of the node (attach.h).
 */
typedef bool (*la_attach_function) (PlanState *planstate);

extern void la_attach_init(void);
extern void la_attach_register(NodeTag tag, la_attach_function function);
extern void la_attach_register_subplans(la_attach_function function);
extern bool la_attach_is_registered(NodeTag tag);
extern void la_attach_register_index_scans(const LaIndexScans *scans);
extern bool la_attach_tidsource(PlanState *scan, const LaTidSource *source);
extern bool la_attach_peek(void *scan, int n, struct LaComingRow *row);

/* ---- collations ---- */

extern bool la_collation_is_silent(Oid collation);

/* ---- demand: how many of a node's rows the nodes above it will take ---- */

/* Which rows of a node will be taken, if nothing fails. */
typedef enum LaDemand
{
	LA_DEMAND_SOME,				/* not known */
	LA_DEMAND_RUN,				/* all, if the statement is run to its end */
	LA_DEMAND_ALL				/* all, as soon as one is asked for */
} LaDemand;

/* What the nodes above a node will want of it. */
typedef struct LaDemandContext
{
	/*
	 * The Limit node that takes at most one row of this node for each row it
	 * returns or skips, or NULL.
	 */
	LimitState *limit;

	/*
	 * Which of the node's rows will be taken; with a limit, of those that the
	 * Limit lets through.
	 */
	LaDemand	demand;

	/* A node above may take one row, and then find that it needs no more. */
	bool		skippable;
} LaDemandContext;

extern void la_demand_context(PlanState *ps, LaDemandContext *context);
extern bool la_demand_reads_all(PlanState *ps);
extern bool la_demand_is_all(LaDemand demand, const EState *estate);
extern int64 la_demand_rows_wanted(const LimitState *limit);

/* ---- effects: what could be noticed if an expression were evaluated at another time ---- */

#define LA_HAS_EFFECTS		0x01	/* or is volatile, or not known here */
#define LA_READS_STATE		0x02	/* which the statement may change */
#define LA_READS_VERSION	0x04	/* xmin, xmax, cmin or cmax of a row */
#define LA_MAY_FAIL			0x08
#define LA_HAS_SUBPLAN		0x10	/* which effects.c does not examine */
#define LA_DRAWS			0x20	/* draws a value in an order, as nextval() */
#define LA_HAS_NOTICES		0x40	/* may raise a notice or a warning */
#define LA_FAILS_FREELY		0x80	/* may fail with an error of any class */
#define LA_MAY_HOLD			0x100	/* if it fails, something may stay held,
									 * as an entry of a catalog's cache */
#define LA_ANY_EFFECTS		(LA_HAS_EFFECTS | LA_DRAWS)

typedef struct LaEffects
{
	int			flags;
	const char *reason;			/* for LA_HAS_EFFECTS; a constant */
	bool		fetches_params; /* external Params are variables of a
								 * procedural language, which may fail:
								 * "record is not assigned yet" */
	List	   *evaluated;		/* expressions that do not count, since they
								 * have been evaluated before */

	/* whose expressions these are, to find the columns of rows; or NULL */
	const Plan *plan;

	/* adds what the first evaluation of this Param may do; or NULL */
	void		(*note_param) (struct LaEffects *effects, int param, void *arg);
	void	   *arg;
} LaEffects;

extern void la_effects_add(LaEffects *effects, int flags, const char *reason);
extern void la_effects_of_expression(LaEffects *effects, Node *expression);
extern void la_effects_of_node(LaEffects *effects, Node *node);
extern void la_effects_of_function(LaEffects *effects, Oid function);
extern void la_effects_of_support(LaEffects *effects, Oid function, int ntypes,
								  const Oid *types);
extern void la_effects_of_collation(LaEffects *effects, Oid collation);
extern void la_effects_of_operator(LaEffects *effects, Oid operator, Oid collation);
extern void la_effects_of_hashing(LaEffects *effects, Oid operator);
extern void la_effects_of_operators(LaEffects *effects, int n,
									const Oid *operators, const Oid *collations);
extern void la_effects_of_index(LaEffects *effects, Relation index);

/* ---- follow: a room that acts on the rows of a scan before they are returned ---- */

/* A row that a scan will come to: as yet, an address in the table. */
typedef struct LaComingRow
{
	ItemPointerData tid;		/* perhaps of the first version of several */
	uint64		id;				/* of no other row that may be known at the
								 * same time */
	Buffer		buffer;			/* that the scan has pinned, or InvalidBuffer */
	bool		may_read;		/* its block may be read now; else it is
								 * looked at only if it is cached */
	IndexTuple	tuple;			/* of an index-only scan, valid for the
								 * moment; others need not set it */
} LaComingRow;

/* What the scan tells of its rows. */
typedef struct LaComing
{
	void	   *arg;

	/*
	 * the n-th row behind the current one, which is number 0; false: not
	 * known now
	 */
	bool		(*peek) (void *arg, int n, LaComingRow *row);
} LaComing;

/* A follower of a scan, embedded in what its room keeps. */
typedef struct LaFollower
{
	/* the scan is about to return a row; false: it need not be told of others */
	bool		(*turn) (struct LaFollower *follower);

	/* the rows to come are others: the scan starts over, or turns */
	void		(*clear) (struct LaFollower *follower);

	/* the scan ends, and not by an error */
	void		(*end) (struct LaFollower *follower);

	bool		attends;		/* to each row; else only after a block was
								 * read, or when the countdown is over */
	bool		rests;			/* until the countdown is over, unless it
								 * attends */
	int			countdown;		/* rows */
	int64		seen_reads;		/* blocks read when the last row was returned */
} LaFollower;

/*
 * Offers the room a scan node, which is an index scan, or about to scan a table for the first time.
 * NULL if the node's room need not tell of rows.
 */
typedef LaFollower *(*la_follow_function) (ScanState *scan);

/* Takes a value of a row.  Returns false if it wants no more of that row. */
typedef bool (*la_value_function) (void *to, Datum value);

/* What a node tells of its rows that are no table's. */
typedef struct LaComingValues
{
	void	   *arg;

	/* as LaComing.peek; id: see LaComingRow */
	bool		(*is_known) (void *arg, int n, uint64 *id);

	/* passes on the values of such a row that may be out of line */
	void		(*values) (void *arg, int n, la_value_function add, void *to);
} LaComingValues;

/* Offers the room such a node.  NULL if the current row has no value that leads to a table. */
typedef LaFollower *(*la_follow_values_function) (PlanState *node, const LaComingValues *of);

extern void la_follow_register(la_follow_function scans, la_follow_values_function values);
extern LaFollower *la_follow_scan(ScanState *scan);
extern LaFollower *la_follow_values(PlanState *node, const LaComingValues *of);
extern bool la_follow_turn(LaFollower *follower);

/* The scan is about to return a row.  Returns false if the follower need not be told of others. */
static inline bool
la_follow(LaFollower *follower)
{
	if (!follower->attends && --follower->countdown > 0 &&
		(follower->rests || pgBufferUsage.shared_blks_read == follower->seen_reads))
		return true;
	return la_follow_turn(follower);
}

/* ---- knowntable: is this a table whose pages and descriptors are known? ---- */

/*
 * Apart from attach.h, which has it for the rooms, since node_effects.c asks it for the gate.
 */

/* One of heap.  Views, foreign tables and tables of other access methods are not. */
static inline bool
la_gate_is_heap(const RelationData *table)
{
	return table != NULL && table->rd_tableam == GetHeapamTableAmRoutine();
}

/* ---- gate: may this be done early? The one place where rooms ask ---- */

/*
 * The functions la_gate_refuses_...() return NULL if what they are asked about may be early, or
 * else a constant that says why not.
 */

extern bool la_gate_allows_searches(void);
extern const char *la_gate_refuses_rows(const PlanState *scan);
extern const char *la_gate_refuses_index_pages(PlanState *ps, IndexScanDesc scan, bool *always,
											   bool *keeps_errors);
extern bool la_gate_allows_pin(bool local);
extern const char *la_gate_refuses_comparison(Oid function, Oid type);
extern const char *la_gate_refuses_child(PlanState *node, PlanState *child);

/* ---- interpose_index ---- */

extern void la_interpose_ambuild(Relation index, ambuild_function function);
extern void la_interpose_aminsert(Relation index, aminsert_function stock,
								  aminsert_function function);
extern bool la_interpose_has_aminsert(Relation index);
extern void la_interpose_amrescan(Relation index, amrescan_function function);
extern void la_interpose_restore(Relation index);
extern void la_interpose_each_index(Relation table, void (*exchange) (Relation index));

/* ---- interpose_node: functions of ours between a plan node and its parent ---- */

typedef enum LaLayer
{
	LA_LAYER_NODE,				/* executes the node */
	LA_LAYER_OUTPUT				/* passes its rows on to the parent */
} LaLayer;

/* The server's function for all nodes of a kind, taken from the first of them. */
typedef struct LaNodeKind
{
	ExecProcNodeMtd stock;
} LaNodeKind;

/*
 * Embedded in what a room keeps for a node, which lives in the query's memory.  The room
 * sets the first three members.
 */
typedef struct LaInterposer
{
	ExprContext *listens_to;	/* whose rescans call on_rescan, or NULL */
	void		(*on_rescan) (struct LaInterposer *interposer);
	void		(*on_end) (struct LaInterposer *interposer);	/* or NULL */

	PlanState  *node;
	LaLayer		layer;
	ExecProcNodeMtd function;	/* ours */
	ExecProcNodeMtd below;		/* the one behind it */
	bool		listens;		/* the callback is registered */
	bool		ended;			/* see la_interpose_end() */
	MemoryContextCallback callback;
} LaInterposer;

#define la_interpose_container(type, i) \
	((type *) ((char *) (i) - offsetof(type, interposer)))

extern void la_interpose_init(void);
extern bool la_interpose_is_unwrapped(const PlanState *node);
extern bool la_interpose_is_possible(PlanState *node, LaNodeKind *kind);
extern bool la_interpose_output_is_possible(PlanState *node);
extern ExecProcNodeMtd la_interpose_executing(PlanState *node);
extern void la_interpose_replace(PlanState *node, ExecProcNodeMtd old,
								 ExecProcNodeMtd new);
extern void la_interpose_begin(LaInterposer *interposer, PlanState *node,
							   LaLayer layer, ExecProcNodeMtd function);
extern LaInterposer *la_interpose_find(PlanState *node, LaLayer layer);
extern LaInterposer *la_interpose_enter(PlanState *node, LaLayer layer);
extern void la_interpose_renew(LaInterposer *interposer);
extern void la_interpose_end(LaInterposer *interposer);

/* ---- nodes ---- */

/* Subplans aside, an outer and an inner child are all that it has. */
#define LA_NODE_IS_SIMPLE	0x01

/* Without a filter, it takes a row of its child for each row that it returns. */
#define LA_NODE_ONE_TO_ONE	0x02

/* Without a filter, it asks its children for no more rows than it is asked for. */
#define LA_NODE_ASKS_ALIKE	0x04

/* It reads its outer side, or its members, as far as it is read itself, or to the end. */
#define LA_NODE_READS_ALIKE 0x08

/* It executes its children anew for each execution of its own. */
#define LA_NODE_REPEATS		0x10

/* It passes the bound of a Limit above it on to its children, as ExecSetTupleBound() does. */
#define LA_NODE_BOUNDS		0x20

/* It passes on the row that a cursor is on, as search_plan_tree() looks for it. */
#define LA_NODE_HAS_CURSOR	0x40

/* A scan of a table, which may be where that row comes from. */
#define LA_NODE_SCANS_TABLE 0x80

/* By tag. */
extern const uint8 la_node_properties[T_LimitState + 1];

static inline bool
la_node_is(const PlanState *ps, int property)
{
	/* LimitState is the last node of a plan */
	return nodeTag(ps) <= T_LimitState && (la_node_properties[nodeTag(ps)] & property) != 0;
}

extern PlanState *la_node_child(const PlanState *ps, int n);
extern bool la_node_has_one_row(const PlanState *ps);

/* ---- runahead: may the outer side of a join, or the plan of a write, be run ahead? ---- */

/*
 * A join, or a write, whose outer side is to be run ahead.  The functions
 * la_runahead_refuses_...() return NULL if what they are asked about may be early, or else a
 * constant that says why not.
 */
typedef struct LaRunAhead
{
	PlanState  *join;
	PlanState  *outer;			/* its outer side */
	PlanState  *inner;			/* inner side with keys to evaluate, or NULL */
	LaDemandContext context;	/* of the join */
	bool		can_keep_errors;	/* of the outer side, until their turn */
	bool		keeps_errors;	/* ... and has to, as it may fail */
	bool		hints_only;		/* keys are for hints; stock may never
								 * evaluate them */
	bool		pages_only;		/* of `outer`, an index scan, the pages of the
								 * index are early, and not the rows */
	bool		writer_is_quiet;	/* a write of which only the server's own
									 * effects come between rows */
} LaRunAhead;

extern const char *la_runahead_refuses_reading(bool takes_all, const EState *estate);
extern const char *la_runahead_refuses_outer(LaRunAhead *ahead);
extern const char *la_runahead_refuses_pages(PlanState *scan, const LaEffects *early);
extern const char *la_runahead_refuses_plan(PlanState *plan);
extern const char *la_runahead_refuses_expression(const LaRunAhead *ahead,
												  Node *expression);
extern const char *la_runahead_refuses_attempt(const LaRunAhead *ahead, Node *expression,
											   bool *may_fail);
extern const char *la_runahead_refuses_support(const LaRunAhead *ahead,
											   Oid function, Oid type, Oid collation);
extern const char *la_runahead_refuses_hashing(const LaRunAhead *ahead,
											   List *operators);
extern bool la_runahead_is_without_effects(const EState *estate);
extern bool la_runahead_rest_is_quiet(const LaRunAhead *ahead);
extern bool la_runahead_takes_all(const LaDemandContext *context,
								  const EState *estate);
extern bool la_runahead_may_fetch(const LaDemandContext *context, const EState *estate,
								  int64 known, int64 taken);

/* ---- statement: how the executor runs a statement that a room is interested in ---- */

extern LaStatement *la_statement_of(const EState *estate);
extern void la_statement_enter_run(LaStatementRun *run, const QueryDesc *queryDesc, uint64 count);
extern bool la_statement_runs_no_code(const LaRun *run);

#endif							/* LA_ATTACH_H */
