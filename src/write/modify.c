/*
 * modify.c
 *	  INSERT, UPDATE and MERGE that look ahead over the rows of their plan.
 *
 *	plan --> [ row | row | row | row | row ] --> ModifyTable (stock) --> heap, indexes
 *			  tail      leaf pages issued   head
 *
 * The server inserts row by row, and for each row waits for one leaf page after the other of all
 * indexes.  Here rows of the plan are taken before their turn into a queue, as the outer rows of a
 * nested loop are, and ahead.c starts the reads of the leaf pages that they will need.
 *
 * States
 *	CANDIDATE	No block has been read for a row yet.
 *	PASS, OBSERVE, ARMED	those of the policies (ahead.c)
 *	NOT ELIGIBLE	Rows may not be taken early.
 *
 * A statement is eligible if
 *	- it is an INSERT, UPDATE or MERGE, and the planner expects more than one row;
 *	- the plan may be run ahead of the write (attach/runahead.c, writer.c): the server evaluates
 *	  O1 W1 O2 W2 ..., where On is the plan's n-th row and Wn its being written, and here it is
 *	  O1 O2 O3 ... W1 W2 ....  The plan reads tables under the statement's snapshot, in which no W
 *	  is visible;
 *	- nothing else executes nodes of the plan: after KEPT ERROR they must not be executed.  Only
 *	  those of CTEs can be shared;
 *	- all rows of the plan will be taken, if nothing fails;
 *	- something can be known of its tables (target.c).
 *
 * Writes in a CTE: O1 W1 U1 O2 W2 U2 ..., where Un is whatever the rest of the statement does,
 * other writes included, before it asks for the next row.  It can be anything, as a trigger
 * that W calls can, so what O may evaluate early is the same: nothing that has effects, and
 * nothing that draws values or reads state unless W has no effects, nor U, which reads no
 * state.  All rows of its plan are taken, since the executor runs such a write to its end when
 * the statement has returned its last row.  The rest of the statement reads the rows that it
 * returns, and nothing below it if its plan reads no CTE, or one that cannot fail.  So it is
 * eligible then.  The other way round, a plan that reads a CTE that writes has effects: DELETE
 * in a CTE, whose rows INSERT takes, cannot be run ahead, since it locks rows and waits for
 * locks, which others could notice to be early.
 *
 * Behaviours
 *	KEPT ERROR	If the plan fails for a row taken early, the error is kept until the row's turn,
 *		when everything before it has been written, as in stock.  If a row before it fails, that
 *		is the error of the statement.  See base/attempt.c about which errors are kept.
 *	COPIED	Rows are copied into slots of the plan's own kind.  The copies hold no pin.
 *
 * Invariants
 *	- Rows are handed over in the order of the plan, each once.
 *	- The plan is not executed again after its end or an error.
 *
 * src/write/modify.c
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "window/window.h"
#include "write/write_int.h"

typedef enum Eligibility
{
	CANDIDATE,
	ELIGIBLE,
	NOT_ELIGIBLE
} Eligibility;

/* What is kept with a row that is known. */
typedef struct Queued
{
	TupleTableSlot *slot;
	bool		known;			/* what will be made of it */
	LaNewTuple	tuple;
} Queued;

struct LaModify
{
	ModifyTableState *mt;
	PlanState  *plan;
	const LaInterposer *interposer; /* of its output */
	MemoryContext context;		/* lives as long as the query */
	Oid			heaprelid;
	Oid			known_by;		/* the index whose history is used */
	Eligibility eligibility;
	bool		waits_for_partitions;	/* see writer.c */
	bool		started;		/* a row has been handed over */
	int64		seen_reads;		/* blocks read when it was */

	LaAhead    *ahead;			/* NULL until a block is read */
	LaNewTuples *tuples;
	TupleTableSlot *returned;	/* the row handed over last, if it was queued */
	TupleTableSlot *early;		/* the row that was taken last before its turn */
	bool		at_end;			/* the plan has no more rows */
	ErrorData  *error;			/* ... because of this */
};

static inline Queued *
queued(LaModify *m, uint64 n)
{
	return la_ahead_own(m->ahead, n);
}

/* ---- eligibility ------------------------------------------------------------- */

/* May the statement be eligible?  Asked for each ModifyTable node that starts. */
bool
la_modify_is_possible(ModifyTableState *mt)
{
	const Plan *plan = outerPlanState(mt)->plan;

	return la_enable_write && (plan->plan_rows > 1 || la_force) &&
		(mt->operation == CMD_INSERT || mt->operation == CMD_UPDATE ||
		 mt->operation == CMD_MERGE) &&
		!la_early_reads_may_fail();
}

LaModify *
la_modify_create(ModifyTableState *mt, const LaInterposer *interposer)
{
	MemoryContext context = mt->ps.state->es_query_cxt;
	LaModify   *m = MemoryContextAllocZero(context, sizeof(LaModify));

	m->mt = mt;
	m->plan = outerPlanState(mt);
	m->interposer = interposer;
	m->context = context;
	m->heaprelid = RelationGetRelid(mt->rootResultRelInfo->ri_RelationDesc);
	return m;
}

static bool
is_topmost(const LaModify *m)
{
	const LaStatement *s = la_statement_of(m->mt->ps.state);

	return s != NULL && s->top == &m->mt->ps;
}

/* NULL if rows may be taken early, or a constant that says why not. */
static const char *
refusal(LaModify *m)
{
	LaRunAhead	ahead = {.join = &m->mt->ps,.outer = m->plan};
	const char *reason;

	la_demand_context(&m->mt->ps, &ahead.context);
	reason = la_runahead_refuses_reading(la_runahead_takes_all(&ahead.context, m->mt->ps.state),
										 m->mt->ps.state);
	if (reason != NULL)
		return reason;
	ahead.keeps_errors = true;
	reason = la_runahead_refuses_outer(&ahead);
	if (reason == NULL || !(is_topmost(m) || la_runahead_rest_is_quiet(&ahead)) ||
		!la_writer_is_quiet(m->mt))
		return reason;
	ahead.writer_is_quiet = true;
	m->waits_for_partitions = la_modify_is_partitioned(m->mt);
	return la_runahead_refuses_outer(&ahead);
}

/*
 * Will all rows of the plan be taken?  (It may be of a kind whose demand is not known.)
 */
static bool
takes_all(const LaModify *m)
{
	const EState *estate = m->mt->ps.state;
	const ModifyTable *plan = (const ModifyTable *) m->mt->ps.plan;

	if (!is_topmost(m))
		return list_member_ptr(estate->es_auxmodifytables, m->mt);
	return plan->returningLists == NIL || la_demand_is_all(LA_DEMAND_RUN, estate);
}

static bool fetch(void *arg, uint64 n);
static void plan_visits(void *arg, uint64 n, LaAheadRow *row);
static bool set_key(void *arg, uint64 n, const LaRowVisit *visit);
static bool locate(void *arg, uint64 n, LaAheadRow *row, const LaMatches *matches,
				   bool last);

static bool
has_indexes(const ResultRelInfo *relation)
{
	return relation->ri_IndexRelationDescs != NULL && relation->ri_NumIndices > 0;
}

/* A table that the statement has written to, the last one as far as is known; or NULL. */
static ResultRelInfo *
any_table(const LaModify *m)
{
	ModifyTableState *mt = m->mt;
	List	   *partitions = mt->ps.state->es_tuple_routing_result_relations;

	if (has_indexes(&mt->resultRelInfo[mt->mt_lastResultIndex]))
		return &mt->resultRelInfo[mt->mt_lastResultIndex];
	if (has_indexes(mt->rootResultRelInfo))
		return mt->rootResultRelInfo;
	if (partitions != NIL && has_indexes(llast(partitions)))
		return llast(partitions);
	for (int i = 0; i < mt->mt_nrels; i++)
	{
		if (has_indexes(&mt->resultRelInfo[i]))
			return &mt->resultRelInfo[i];
	}
	return NULL;
}

static Relation
any_index(const LaModify *m)
{
	ResultRelInfo *relation = any_table(m);

	if (relation == NULL || !la_target_is_possible(relation->ri_RelationDesc))
		return NULL;
	return relation->ri_IndexRelationDescs[0];
}

/* A block has been read for a row: look at the reads of the next ones. */
static void
create_ahead(LaModify *m)
{
	LaRowSource source = {
		.arg = m,
		.own_size = sizeof(Queued),
		.fetch = fetch,
		.plan = plan_visits,
		.set_key = set_key,
		.locate = locate
	};
	LaAheadConfig config = {.takes_all = true,.order = LA_ORDER_OF_TABLE,.estate = m->mt->ps.state};
	const ModifyTable *plan = (const ModifyTable *) m->mt->ps.plan;
	Relation	index = any_index(m);

	if (index == NULL)
		return;
	if (plan->onConflictAction == ONCONFLICT_NONE)
		source.locate = NULL;
	m->known_by = RelationGetRelid(index);
	config.rel = index;
	config.known_by = m->known_by;
	m->ahead = la_ahead_create(&source, &config);
	if (m->ahead == NULL)
	{
		m->eligibility = NOT_ELIGIBLE;
		return;
	}
	m->tuples = la_newtuples_create(m->mt, m->ahead);
}

/* The policy would look ahead: may it?  The first call checks it. */
static bool
is_eligible(LaModify *m)
{
	const char *reason;
	MemoryContext old;

	if (m->eligibility != CANDIDATE)
		return m->eligibility == ELIGIBLE;
	old = MemoryContextSwitchTo(m->context);
	m->eligibility = NOT_ELIGIBLE;
	reason = refusal(m);
	if (reason != NULL)
		la_stats_refuse(m->mt->ps.state, LA_KIND_INDEX_INSERT, m->heaprelid, InvalidOid, reason);
	else if (takes_all(m))
		m->eligibility = ELIGIBLE;
	if (m->eligibility == NOT_ELIGIBLE)
		la_ahead_refuse(m->ahead);
	MemoryContextSwitchTo(old);
	return m->eligibility == ELIGIBLE;
}

/* ---- the queue ----------------------------------------------------------------- */

static void
copy_row(LaModify *m, uint64 n, TupleTableSlot *row)
{
	TupleTableSlot **slot = &queued(m, n)->slot;
	MemoryContext old;

	if (*slot == NULL)
	{
		bool		fixed;
		const TupleTableSlotOps *ops = ExecGetResultSlotOps(m->plan, &fixed);

		old = MemoryContextSwitchTo(la_ahead_memory(m->ahead));
		*slot = la_alloc_table_slot(&m->plan->state->es_tupleTable, ExecGetResultType(m->plan),
									fixed ? ops : &TTSOpsVirtual);
		MemoryContextSwitchTo(old);
		/* the slot stays, and what it has goes with the row */
		(*slot)->tts_mcxt = la_ahead_copies(m->ahead);
	}
	old = MemoryContextSwitchTo(la_ahead_copies(m->ahead));
	ExecCopySlot(*slot, row);
	ExecMaterializeSlot(*slot);
	MemoryContextSwitchTo(old);
}

/* Behaviour KEPT ERROR, for la_attempt_compute_kept(): the plan's next row, before its turn. */
static void
take_early(void *arg)
{
	LaModify   *m = arg;

	m->early = m->interposer->below(m->plan);
}

/* LaRowSource.fetch */
static bool
fetch(void *arg, uint64 n)
{
	LaModify   *m = arg;
	bool		early = la_ahead_has_rows(m->ahead);
	TupleTableSlot *row;

	if (m->at_end || (early && !la_attempt_is_allowed()) ||
		(early && m->waits_for_partitions &&
		 !la_newtuples_is_quiet(m->tuples, queued(m, n - 1)->slot)))
		return false;
	if (early)
	{
		m->early = NULL;
		m->error = la_attempt_compute_kept(take_early, m, m->context);
		row = m->early;
	}
	else
		row = m->interposer->below(m->plan);
	if (TupIsNull(row))
	{
		m->at_end = true;
		return false;
	}
	copy_row(m, n, row);
	la_newtuples_forget_row(m->tuples);
	queued(m, n)->known = false;
	return true;
}

/* LaRowSource.plan */
static void
plan_visits(void *arg, uint64 n, LaAheadRow *row)
{
	LaModify   *m = arg;
	Queued	   *q = queued(m, n);

	q->known = la_newtuples_know(m->tuples, q->slot, &q->tuple) &&
		!la_newtuples_is_known_heap_only(m->tuples, &q->tuple, q->slot);
	if (q->known)
		la_target_plan(la_newtuples_target(m->tuples, &q->tuple), row,
					   la_newtuples_unknown(m->tuples, &q->tuple));
}

/* LaRowSource.set_key */
static bool
set_key(void *arg, uint64 n, const LaRowVisit *visit)
{
	LaModify   *m = arg;
	const Queued *q = queued(m, n);
	TupleTableSlot *tuple;

	if (!q->known)
		return false;
	tuple = la_newtuples_form(m->tuples, &q->tuple, q->slot);
	return tuple != NULL &&
		la_target_set_key(la_newtuples_target(m->tuples, &q->tuple), visit->rel, tuple);
}

/* LaRowSource.locate */
static bool
locate(void *arg, uint64 n, LaAheadRow *row, const LaMatches *matches, bool last)
{
	LaModify   *m = arg;
	const Queued *q = queued(m, n);

	return !q->known ||
		la_target_locate(la_newtuples_target(m->tuples, &q->tuple), row, matches, last);
}

/* ---- a row's turn --------------------------------------------------------------- */

static TupleTableSlot *
next_queued(LaModify *m)
{
	uint64		n = la_ahead_next_row(m->ahead);

	if (la_ahead_turn(m->ahead))
	{
		const Queued *q = queued(m, n);

		if (q->known && la_enable_btree_insert)
			la_target_expect(la_newtuples_target(m->tuples, &q->tuple),
							 la_ahead_row(m->ahead, n), la_insert_expect);
		return m->returned = q->slot;
	}
	la_ahead_clear(m->ahead);
	if (m->error != NULL)
		la_attempt_raise(m->error);
	return NULL;
}

static TupleTableSlot *
next_row(LaModify *m)
{
	bool		missed = m->started && la_issue_blocks_read() != m->seen_reads;

	if (m->returned != NULL)
		ExecClearTuple(m->returned);
	m->returned = NULL;
	if (m->ahead == NULL && m->started && (missed || la_force) && m->eligibility != NOT_ELIGIBLE)
		create_ahead(m);
	if (m->ahead != NULL)
	{
		if (m->at_end && !la_ahead_has_rows(m->ahead))
			return m->error == NULL ? NULL : next_queued(m);
		if (la_ahead_next(m->ahead, missed) && (la_ahead_has_rows(m->ahead) || is_eligible(m)))
			return next_queued(m);
	}
	return m->interposer->below(m->plan);
}

/* The next row of the plan, for ModifyTable. */
TupleTableSlot *
la_modify_next(LaModify *m)
{
	TupleTableSlot *row = next_row(m);

	m->started = true;
	m->seen_reads = la_issue_blocks_read();
	return row;
}

const LaCounters *
la_modify_counters(LaModify *m)
{
	return m->ahead == NULL ? NULL : la_ahead_counters(m->ahead);
}

/* The memory of the query is freed. */
void
la_modify_end(LaModify *m)
{
	if (m->ahead != NULL)
		la_ahead_end(m->ahead, LA_KIND_INDEX_INSERT, m->heaprelid, m->known_by);
}
