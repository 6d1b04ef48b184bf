/*
 * modify.c
 *	  INSERT and UPDATE that look ahead over the rows of their plan.
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
 *	- it is an INSERT or UPDATE, and the topmost node of its plan, so that nothing else runs
 *	  between its rows; the planner expects more than one row;
 *	- the plan may be run ahead of the write (attach/runahead.c, writer.c): the server evaluates
 *	  O1 W1 O2 W2 ..., where On is the plan's n-th row and Wn its being written, and here it is
 *	  O1 O2 O3 ... W1 W2 ....  The plan reads tables under the statement's snapshot, in which no W
 *	  is visible;
 *	- something can be known of its tables (target.c).
 *
 * Behaviours
 *	KEPT ERROR	If the plan fails for a row taken early, the error is kept until the row's turn,
 *		when everything before it has been written, as in stock.  If a row before it fails, that
 *		is the error of the statement.  See attempt.c about which errors are kept.
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
#include "utils/memutils.h"
#include "utils/rel.h"

#include "attach/runahead.h"
#include "attach/statement.h"
#include "base/compat.h"
#include "base/guc.h"
#include "window/issue.h"
#include "write/ahead.h"
#include "write/attempt.h"
#include "write/modify.h"
#include "write/newtuple.h"
#include "write/writer.h"

#define NO_TARGET	(-1)

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
	int			target;			/* its table */
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
		(mt->operation == CMD_INSERT || mt->operation == CMD_UPDATE) &&
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
	if (reason == NULL || !la_writer_is_quiet(m->mt))
		return reason;
	ahead.writer_is_quiet = true;
	return la_runahead_refuses_outer(&ahead);
}

/* Is the node the topmost one, and will all its plan's rows be taken? */
static bool
is_whole_statement(const LaModify *m)
{
	const EState *estate = m->mt->ps.state;
	const LaStatement *s = la_statement_of(estate);
	LaDemandContext context;

	if (s == NULL || s->top != &m->mt->ps)
		return false;
	la_demand_context(m->plan, &context);
	return la_demand_is_all(context.demand, estate);
}

static bool fetch(void *arg, uint64 n);
static void plan_visits(void *arg, uint64 n, LaAheadRow *row);
static bool set_key(void *arg, uint64 n, int rel);
static bool locate(void *arg, uint64 n, LaAheadRow *row, const LaMatches *matches,
				   bool last);

/* A btree index of a table that the statement has opened, or NULL. */
static Relation
any_index(const LaModify *m)
{
	ResultRelInfo *relation = m->mt->resultRelInfo;
	List	   *partitions = m->mt->ps.state->es_tuple_routing_result_relations;

	if (relation->ri_IndexRelationDescs == NULL && partitions != NIL)
		relation = llast(partitions);
	if (relation->ri_IndexRelationDescs == NULL || relation->ri_NumIndices == 0 ||
		!la_target_is_possible(relation->ri_RelationDesc))
		return NULL;
	return relation->ri_IndexRelationDescs[0];
}

/* A block has been read for a row: look at the reads of the next ones. */
static void
create_ahead(LaModify *m)
{
	LaRowSource source = {m, sizeof(Queued), fetch, plan_visits, set_key, locate};
	const ModifyTable *plan = (const ModifyTable *) m->mt->ps.plan;
	Relation	index = any_index(m);

	if (index == NULL)
		return;
	if (plan->onConflictAction == ONCONFLICT_NONE)
		source.locate = NULL;
	m->known_by = RelationGetRelid(index);
	m->ahead = la_ahead_create(&source, index, m->known_by);
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
	else if (is_whole_statement(m))
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

/* Behaviour KEPT ERROR, for la_attempt(): the plan's next row, before its turn. */
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

	if (m->at_end || (early && !la_ahead_is_armed(m->ahead)))
		return false;
	if (early)
	{
		m->early = NULL;
		m->error = la_attempt(take_early, m, m->context);
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
	queued(m, n)->target = NO_TARGET;
	return true;
}

/* LaRowSource.plan */
static void
plan_visits(void *arg, uint64 n, LaAheadRow *row)
{
	LaModify   *m = arg;
	TupleTableSlot *slot = queued(m, n)->slot;
	int			target = la_newtuples_target_of(m->tuples, slot);

	if (target < 0 || la_newtuples_is_known_heap_only(m->tuples, target, slot))
		return;
	queued(m, n)->target = target;
	la_target_plan(la_newtuples_target(m->tuples, target), row);
}

/* LaRowSource.set_key */
static bool
set_key(void *arg, uint64 n, int rel)
{
	LaModify   *m = arg;
	int			target = queued(m, n)->target;
	TupleTableSlot *tuple;

	if (target == NO_TARGET)
		return false;
	tuple = la_newtuples_form(m->tuples, target, queued(m, n)->slot);
	return tuple != NULL && la_target_set_key(la_newtuples_target(m->tuples, target), rel, tuple);
}

/* LaRowSource.locate */
static bool
locate(void *arg, uint64 n, LaAheadRow *row, const LaMatches *matches, bool last)
{
	LaModify   *m = arg;
	int			target = queued(m, n)->target;

	return target == NO_TARGET ||
		la_target_locate(la_newtuples_target(m->tuples, target), row, matches, last);
}

/* ---- a row's turn --------------------------------------------------------------- */

static TupleTableSlot *
next_queued(LaModify *m)
{
	uint64		n = la_ahead_next_row(m->ahead);

	if (la_ahead_turn(m->ahead))
		return m->returned = queued(m, n)->slot;
	la_ahead_clear(m->ahead);
	if (m->error != NULL)
		ReThrowError(m->error);
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
		if (!la_ahead_is_active(m->ahead) && m->eligibility != NOT_ELIGIBLE)
			la_ahead_pass(m->ahead, missed);
		if (la_ahead_has_rows(m->ahead) || (la_ahead_is_active(m->ahead) && is_eligible(m)))
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
