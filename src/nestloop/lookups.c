/*
 * lookups.c
 *	  What a plan that is repeated for each row looks up in indexes by the row's values.
 *
 *		Limit                          a lookup is an index, index-only or bitmap index scan
 *		  -> Nested Loop               whose key has values of the row: its leaf page, and then
 *			   -> Index Scan    <---   the heap blocks of its matches
 *			   -> Index Scan           (not this one: its key has values of the row above it)
 *
 * A TID scan whose address is a value of the row looks up that block, without an index.  Where a
 * plan has look-ups in indexes, too, those come first, and TID scans are left to the server.
 *
 * All nodes are looked through that execute their children for each execution of their own: Sort,
 * Limit, Aggregate, joins, Append and MergeAppend, and so on; and InitPlans of theirs, such as that
 * of min() by an index.  Of a nested loop it is the outer side, and where that does not depend on
 * values of the row, so that it is the same each time, those scans of the inner side whose keys do
 * not depend on the outer side.
 *
 * Behaviours
 *	MOST	Below a Limit, or where one match is enough, no more heap blocks are named than are
 *		likely to be visited.  Where a filter or a join is between, that is learnt: the server
 *		counts the entries that the index's scans have taken.  Of an Append that a row of the first
 *		member may end, the others are left out where keys are ranges; and of a bitmap scan, the
 *		table.
 *	DOUBT	Where the key lacks a column that the scan compares, or most rows do not execute the
 *		plan, most of the blocks may be waste.  If JUDGED_ROWS rows had more than DOUBTFUL of them
 *		for each entry that was taken, only index pages are read ahead from then on.
 *	PARTITIONS	Where an Append chooses among its members by values of the row, only those lookups
 *		count that are below the chosen one (rows/prune.c), and are prepared when it is first
 *		chosen.  Where it does not, all members are executed for each row, and all are looked in, up
 *		to MAX_MEMBERS.
 *
 * Invariant: the keys are those that the scans will have, or no key is set.
 *
 * src/nestloop/lookups.c
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "rows/rows.h"
#include "nestloop/nestloop_int.h"
#include "window/window.h"

#define MAX_LOOKUPS		64
#define MAX_MEMBERS		32		/* of an Append that does not choose */
#define MAX_PARTITIONS	1024	/* of one that does */
#define ALL				32		/* heap blocks of one lookup, at most */
#define LEARNING		4		/* what is learnt is a mean of such samples */
#define MARGIN			1.5		/* of what is learnt */
#define JUDGED_ROWS		64
#define DOUBTFUL		8		/* blocks for an entry that is taken */

/* An Append that chooses among its members. */
typedef struct Partitions
{
	PartitionPruneState *pruning;
	LaPrune    *prune;
	List	  **members;		/* lookups below each of them */
} Partitions;

typedef enum LookupState
{
	LOOKUP_UNTRIED,
	LOOKUP_READY,				/* its key can be known ahead */
	LOOKUP_LEFT
} LookupState;

/* DOUBT: since the rows began. */
typedef struct Judged
{
	bool		begun;
	uint64		first_turn;		/* so many rows had had their turn */
	int64		first_taken;	/* entries that had been taken */
	int			rows;			/* that blocks were named for */
	int64		blocks;
} Judged;

typedef struct Lookup
{
	LaKeyedScan s;				/* of a TID scan only the table */
	AttrNumber	tid;			/* of a TID scan: attribute of the row; or 0 */
	BlockNumber nblocks;		/* ... of the table, or fewer */
	LookupState state;

	/* MOST */
	int			most;			/* heap blocks */
	bool		spare;			/* in a member of an Append that may not be
								 * executed, as one before has a row */
	bool		learns;
	double		taken;			/* entries for a row, at most ALL */
	uint64		seen_turn;		/* so many rows had had their turn */
	int64		seen_taken;		/* entries that had been taken */
	bool		memoized;		/* DOUBT: not each row executes the scan */
	Judged		judged;
	bool		doubtful;

	bool		has_numbers;
	int			index_number;	/* in ahead */
	int			heap_number;
} Lookup;

struct LaLookups
{
	LaKeyRows  *rows;
	LaAhead    *ahead;
	List	   *all;			/* of Lookup *, which LaScanKeys points to */
	List	   *always;			/* those that each row needs */
	List	   *partitions;		/* of Partitions *, which have the others */
	bool		by_tid;			/* all of them are TID scans, else none */
	const char *refused;
	Lookup	  **by_number;		/* of the index, in ahead */
	Lookup	   *searched;		/* for the last key */
	LaMapPage	map;			/* of the table of an index-only scan */
};

/* What a node passes on to its children. */
typedef struct Walk
{
	int			most;
	int			bound;			/* rows that are wanted above a filter or a
								 * join; 0: all */
	bool		spare;			/* see Lookup */
	bool		memoized;		/* likewise */
	List	  **list;			/* of lookups */
	Partitions *partitions;		/* below a member of them, or NULL */
	Bitmapset  *inner_params;	/* that nested loops above set */
} Walk;

static void walk(LaLookups *l, PlanState *ps, Walk state);

/* The attribute of the row that is the address of a TID scan's row; 0 if it is something else. */
static AttrNumber
tid_attribute(const LaLookups *l, const PlanState *ps)
{
	const List *quals = ((const TidScan *) ps->plan)->tidquals;
	const OpExpr *op = list_length(quals) == 1 ? linitial(quals) : NULL;
	Node	   *sides[2];

	if (op == NULL || !IsA(op, OpExpr) || list_length(op->args) != 2)
		return 0;
	for (int i = 0; i < 2; i++)
		sides[i] = list_nth(op->args, i);
	for (int i = 0; i < 2; i++)
	{
		if (IsA(sides[i], Var) &&
			((Var *) sides[i])->varattno == SelfItemPointerAttributeNumber)
			return la_rowparams_attribute(&l->rows->params, (Expr *) sides[1 - i]);
	}
	return 0;
}

/* Fill in a look-up.  Returns false if it cannot be known ahead. */
static bool
init_lookup(const LaLookups *l, Lookup *lookup, PlanState *ps, Relation heap)
{
	if (!IsA(ps, TidScanState))
		return la_keyedscan_init(&lookup->s, ps, heap);
	lookup->s.heap = heap;
	lookup->tid = tid_attribute(l, ps);
	return lookup->tid != 0 && la_gate_is_heap(heap);
}

static void
add(LaLookups *l, PlanState *ps, Relation heap, Walk state)
{
	Lookup	   *lookup;

	if (heap == NULL || bms_overlap(ps->plan->allParam, state.inner_params) ||
		list_length(l->all) >= (state.partitions != NULL ? MAX_PARTITIONS : MAX_LOOKUPS) ||
		(l->all != NIL && RelationUsesLocalBuffers(heap) !=
		 RelationUsesLocalBuffers(la_lookups_first(l)->heap)))
		return;
	lookup = palloc0(sizeof(Lookup));
	if (!init_lookup(l, lookup, ps, heap))
	{
		pfree(lookup);
		return;
	}
	lookup->most = state.most;
	lookup->spare = state.spare;
	lookup->memoized = state.memoized;
	lookup->learns = state.most == ALL && state.bound > 0;
	lookup->taken = state.bound;
	lookup->seen_turn = PG_UINT64_MAX;
	*state.list = lappend(*state.list, lookup);
	l->all = lappend(l->all, lookup);
}

/* Bitmap index scans of this table. */
static void
walk_bitmap(LaLookups *l, PlanState *ps, Relation heap, Walk state)
{
	PlanState  *child;

	if (IsA(ps, BitmapIndexScanState))
		add(l, ps, heap, state);
	/* few of the matches of each will be left */
	if (IsA(ps, BitmapAndState))
		state.most = 0;
	for (int i = 0; (child = la_node_child(ps, i)) != NULL; i++)
		walk_bitmap(l, child, heap, state);
}

/* Behaviour MOST: may few rows be enough? */
static inline bool
is_bounded(const Walk *state)
{
	return state->most < ALL || state->bound > 0;
}

static PartitionPruneState *
pruning_of(const PlanState *ps)
{
	PartitionPruneState *pruning = NULL;

	if (IsA(ps, AppendState))
		pruning = ((const AppendState *) ps)->as_prune_state;
	else if (IsA(ps, MergeAppendState))
		pruning = ((const MergeAppendState *) ps)->ms_prune_state;
	return pruning != NULL && pruning->do_exec_prune ? pruning : NULL;
}

/* Behaviour PARTITIONS, and nodes that execute all their children. */
static void
walk_children(LaLookups *l, PlanState *ps, Walk state)
{
	PartitionPruneState *pruning = pruning_of(ps);
	int			most = pruning != NULL ? MAX_PARTITIONS : MAX_MEMBERS;
	PlanState  *child;

	/*
	 * The choice below a choice is left to the server; and so is one by
	 * values of a nested loop's outer side, which are not there before it is
	 * executed.
	 */
	if (pruning != NULL &&
		(state.partitions != NULL || bms_overlap(pruning->execparamids, state.inner_params)))
		return;
	if (la_node_child(ps, most) != NULL)
		return;
	if (pruning != NULL)
	{
		state.partitions = palloc(sizeof(Partitions));
		state.partitions->pruning = pruning;
		state.partitions->prune = NULL;
		state.partitions->members = palloc0(most * sizeof(List *));
		l->partitions = lappend(l->partitions, state.partitions);
	}
	for (int i = 0; (child = la_node_child(ps, i)) != NULL; i++)
	{
		if (pruning != NULL)
			state.list = &state.partitions->members[i];
		else if (IsA(ps, AppendState) && i > 0)
			state.spare = is_bounded(&state);
		walk(l, child, state);
	}
}

/* The number, at most ALL; or -1 if it is null or negative. */
static int
number(Datum value, bool isnull)
{
	int64		n = isnull ? -1 : DatumGetInt64(value);

	return n < 0 ? -1 : (int) Min(n, ALL);
}

/* That of a constant or a parameter of the statement; -1 if it is something else. */
static int
number_of(const Node *node, const EState *estate)
{
	const		ParamListInfoData *given = estate->es_param_list_info;
	const Const *constant = (const Const *) node;
	const Param *param = (const Param *) node;
	const ParamExternData *value;

	if (IsA(node, Const))
		return number(constant->constvalue, constant->constisnull);
	if (!IsA(node, Param) || param->paramkind != PARAM_EXTERN || given == NULL ||
		given->paramFetch != NULL || param->paramid > given->numParams)
		return -1;
	value = &given->params[param->paramid - 1];
	return number(value->value, value->isnull);
}

/* Behaviour MOST: how many rows does the Limit take? */
static int
limited(const LimitState *node, int most)
{
	const Limit *plan = (const Limit *) node->ps.plan;
	const EState *estate = node->ps.state;
	int			count = plan->limitCount == NULL ? -1 : number_of(plan->limitCount, estate);
	int			offset = plan->limitOffset == NULL ? 0 : number_of(plan->limitOffset, estate);

	if (count < 0 || offset < 0 || plan->limitOption != LIMIT_OPTION_COUNT)
		return most;
	return Min(count + offset, most);
}

static void
walk_initplans(LaLookups *l, PlanState *ps, Walk state)
{
	ListCell   *lc;

	state.most = ALL;
	state.bound = 0;
	state.spare = false;
	foreach(lc, ps->initPlan)
	{
		SubPlanState *initplan = lfirst(lc);

		/* one without values of the row is not executed again */
		if (initplan->subplan->subLinkType != CTE_SUBLINK)
			walk(l, initplan->planstate, state);
	}
}

static void
walk_nestloop(LaLookups *l, PlanState *ps, Walk state)
{
	const LaRowParams *row = &l->rows->params;
	const Bitmapset *outer = outerPlanState(ps)->plan->allParam;
	ListCell   *lc;

	walk(l, outerPlanState(ps), state);
	if (bms_overlap(outer, state.inner_params))
		return;
	for (int i = 0; i < row->n; i++)
	{
		if (bms_is_member(row->params[i], outer))
			return;
	}
	foreach(lc, ((NestLoop *) ps->plan)->nestParams)
		state.inner_params = bms_add_member(bms_copy(state.inner_params),
											((NestLoopParam *) lfirst(lc))->paramno);
	walk(l, innerPlanState(ps), state);
}

/* Behaviour MOST: what is wanted of the children, or of the scan. */
static Walk
bounded(const PlanState *ps, Walk state)
{
	bool		asks_alike = la_node_is(ps, LA_NODE_ASKS_ALIKE);

	if (IsA(ps, LimitState))
		state.most = limited((const LimitState *) ps, state.most);
	else if (asks_alike && ps->qual == NULL)
		return state;
	if (state.most < ALL)
		state.bound = Max(state.most, 1);
	if (IsA(ps, LimitState))
		return state;
	/* a filter lets few rows through, and a join may */
	state.most = ALL;
	if (!asks_alike && !IsA(ps, NestLoopState))
		state.bound = 0;
	return state;
}

static void
walk(LaLookups *l, PlanState *ps, Walk state)
{
	bool		enough = is_bounded(&state);

	if (ps == NULL || ps->plan->parallel_aware)
		return;
	state.memoized |= IsA(ps, MemoizeState);
	walk_initplans(l, ps, state);
	state = bounded(ps, state);
	switch (nodeTag(ps))
	{
		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_TidScanState:
			add(l, ps, ((ScanState *) ps)->ss_currentRelation, state);
			break;
		case T_BitmapHeapScanState:
			/* the first ones in the table's order will do */
			if (enough)
				state.most = 0;
			walk_bitmap(l, ps, ((ScanState *) ps)->ss_currentRelation, state);
			break;
		case T_NestLoopState:
			walk_nestloop(l, ps, state);
			break;
		default:
			if (la_node_is(ps, LA_NODE_REPEATS))
				walk_children(l, ps, state);
			break;
	}
}

/*
 * The lookups of a plan, created in the current memory context.  first_match_only: one row of it is
 * enough, if it passes a filter (filtered).  NULL if there are none.
 */
LaLookups *
la_lookups_create(PlanState *plan, LaKeyRows *rows, bool first_match_only, bool filtered)
{
	LaLookups  *l = palloc0(sizeof(LaLookups));
	Walk		state = {
		.most = first_match_only && !filtered ? 1 : ALL,
		.bound = first_match_only ? 1 : 0,
		.list = &l->always
	};

	l->rows = rows;
	walk(l, plan, state);
	if (l->all != NIL)
		return l;
	pfree(l);
	return NULL;
}

/* Can the lookup's key be known ahead?  The first call finds out. */
static bool
is_ready(LaLookups *l, Lookup *lookup)
{
	if (lookup->state != LOOKUP_UNTRIED)
		return lookup->state == LOOKUP_READY;
	lookup->state = LOOKUP_LEFT;
	/* by equality, few members have a row; by a range, most have */
	if (lookup->spare && la_keyedscan_is_range(&lookup->s))
		return false;
	if (lookup->tid == 0)
	{
		if (la_scankeys_get(&lookup->s, l->rows) == NULL)
		{
			if (lookup->s.keys_refused != NULL)
				l->refused = lookup->s.keys_refused;
			return false;
		}
		if (!la_scankeys_are_covered(lookup->s.keys))
			lookup->most = Min(lookup->most * ALL, ALL);
		/* each is a scan of its own of a large part of the index */
		if (la_scankeys_are_open(lookup->s.keys) && lookup->most == ALL)
			return false;
		lookup->s.last_first = ScanDirectionIsBackward(lookup->s.direction);
		if (lookup->s.last_first)
			la_descent_search_backward(lookup->s.descent);
	}
	lookup->state = LOOKUP_READY;
	return true;
}

/* Of these, is one ready?  Counts TID scans, and others. */
static bool
is_any_ready(LaLookups *l, const List *list, int *ntids, int *nothers)
{
	bool		any = false;
	ListCell   *lc;

	foreach(lc, list)
	{
		Lookup	   *lookup = lfirst(lc);

		if (!is_ready(l, lookup))
			continue;
		any = true;
		if (lookup->tid != 0)
			(*ntids)++;
		else
			(*nothers)++;
	}
	return any;
}

/* Have the choice known ahead.  Returns false if that is not possible, or to no avail. */
static bool
prepare_partitions(LaLookups *l, Partitions *p, int *ntids, int *nothers)
{
	for (int i = 0; i < MAX_PARTITIONS; i++)
	{
		if (p->members[i] == NIL || !is_any_ready(l, p->members[i], ntids, nothers))
			continue;
		p->prune = la_prune_create(p->pruning, l->rows, &l->refused);
		return p->prune != NULL;
	}
	return false;
}

/*
 * Find out which lookups can be known ahead.  Returns false if none can; *refused is the reason
 * that prohibits it, if any.
 */
bool
la_lookups_prepare(LaLookups *l, const char **refused)
{
	bool		any;
	int			ntids = 0;
	int			nothers = 0;
	ListCell   *lc;

	any = is_any_ready(l, l->always, &ntids, &nothers);
	foreach(lc, l->partitions)
	{
		if (prepare_partitions(l, lfirst(lc), &ntids, &nothers))
			any = true;
		else
			l->partitions = foreach_delete_current(l->partitions, lc);
	}
	l->by_tid = nothers == 0;
	*refused = l->refused;
	return any;
}

/* One of the scans; of a TID scan only the table is set. */
LaKeyedScan *
la_lookups_first(const LaLookups *l)
{
	return &((Lookup *) linitial(l->all))->s;
}

/* Its index, or the table of a TID scan. */
Oid
la_lookups_known_by(const LaLookups *l)
{
	const LaKeyedScan *first = la_lookups_first(l);

	return RelationGetRelid(first->index == NULL ? first->heap : first->index);
}

/* The table whose tablespace has the lowest limit of reads in flight. */
Relation
la_lookups_narrowest(const LaLookups *l)
{
	Relation	narrowest = la_lookups_first(l)->heap;
	ListCell   *lc;

	foreach(lc, l->all)
	{
		Relation	heap = ((Lookup *) lfirst(lc))->s.heap;

		if (heap->rd_rel->reltablespace != narrowest->rd_rel->reltablespace &&
			la_config_reads(heap, false, InvalidOid).max_distance <
			la_config_reads(narrowest, false, InvalidOid).max_distance)
			narrowest = heap;
	}
	return narrowest;
}

/* How many relations may be added to a LaAhead? */
int
la_lookups_relations(const LaLookups *l)
{
	return 2 * list_length(l->all);
}

/* Add the lookup's relations, after those of others in the list. */
static bool
add_relations(LaLookups *l, const List *list, Lookup *lookup)
{
	ListCell   *lc;

	lookup->index_number = l->by_tid ? 0 :
		la_ahead_add_relation(l->ahead, lookup->s.index, lookup->s.descent);
	lookup->heap_number = -1;
	foreach(lc, list)
	{
		const Lookup *other = lfirst(lc);

		if (other->has_numbers && other->s.heap == lookup->s.heap)
			lookup->heap_number = other->heap_number;
	}
	if (lookup->heap_number < 0)
		lookup->heap_number = la_ahead_add_relation(l->ahead, lookup->s.heap, NULL);
	if (lookup->index_number < 0 || lookup->heap_number < 0)
		return false;
	l->by_number[lookup->index_number] = lookup;
	lookup->has_numbers = true;
	return true;
}

/* Can the lookup be looked ahead of? */
static bool
is_usable(LaLookups *l, const List *list, Lookup *lookup)
{
	if (!is_ready(l, lookup) || (lookup->tid != 0) != l->by_tid)
		return false;
	if (!lookup->has_numbers && !add_relations(l, list, lookup))
		lookup->state = LOOKUP_LEFT;
	return lookup->has_numbers;
}

/* In the current memory context.  Returns false if there is no room for all of them. */
bool
la_lookups_set_ahead(LaLookups *l, LaAhead *ahead)
{
	ListCell   *lc;

	l->ahead = ahead;
	l->by_number = palloc0(la_lookups_relations(l) * sizeof(Lookup *));
	foreach(lc, l->always)
	{
		Lookup	   *lookup = lfirst(lc);

		if (!is_usable(l, l->always, lookup) && is_ready(l, lookup) &&
			(lookup->tid != 0) == l->by_tid)
			return false;
	}
	return true;
}

/* ---- LaRowSource ---------------------------------------------------------------------- */

/* The block of the row's address, which may be anything. */
static void
plan_tid(Lookup *lookup, TupleTableSlot *row, LaAheadRow *visits)
{
	bool		isnull;
	ItemPointer tid = (ItemPointer) DatumGetPointer(slot_getattr(row, lookup->tid, &isnull));

	if (isnull)
		return;
	if (ItemPointerGetBlockNumberNoCheck(tid) >= lookup->nblocks)
		lookup->nblocks = RelationGetNumberOfBlocks(lookup->s.heap);
	if (ItemPointerGetBlockNumberNoCheck(tid) < lookup->nblocks)
		(void) la_ahead_add_block(visits, lookup->heap_number,
								  ItemPointerGetBlockNumberNoCheck(tid));
}

static void
plan_list(LaLookups *l, const List *list, TupleTableSlot *row, LaAheadRow *visits)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		Lookup	   *lookup = lfirst(lc);

		if (!is_usable(l, list, lookup))
			continue;
		if (l->by_tid)
			plan_tid(lookup, row, visits);
		else
			(void) la_ahead_add_visit(visits, lookup->index_number);
	}
}

void
la_lookups_plan(LaLookups *l, TupleTableSlot *row, LaAheadRow *visits)
{
	ListCell   *lc;

	plan_list(l, l->always, row, visits);
	foreach(lc, l->partitions)
	{
		const Partitions *p = lfirst(lc);
		int			chosen = la_prune_find(p->prune, row);

		if (chosen >= 0)
			plan_list(l, p->members[chosen], row, visits);
	}
	visits->located = l->by_tid;
}

/*
 * Behaviour DOUBT: compare blocks for a row that is known with entries for one whose turn is over.
 * (Not all rows need the lookup, if it is in a partition.)
 */
static void
judge(LaLookups *l, Lookup *lookup, uint64 turn, int64 taken)
{
	Judged	   *j = &lookup->judged;
	uint64		end = la_ahead_end_of_rows(l->ahead);

	if (!j->begun)
	{
		j->begun = true;
		j->first_turn = turn;
		j->first_taken = taken;
	}
	if (lookup->memoized || j->rows < JUDGED_ROWS || turn < j->first_turn + JUDGED_ROWS)
		return;
	lookup->doubtful = (double) j->blocks / (double) (end - j->first_turn) >
		DOUBTFUL * (double) (taken - j->first_taken) / (double) (turn - j->first_turn);
}

/* Of rows whose turn is over, all entries that the scan wanted have been taken. */
static void
learn(LaLookups *l, Lookup *lookup)
{
	const PgStat_TableStatus *counts = lookup->s.index->pgstat_info;
	uint64		turn = la_ahead_next_row(l->ahead);
	int64		taken;

	if (counts == NULL || turn == lookup->seen_turn || lookup->doubtful)
		return;
	taken = la_count_returned(counts);
	judge(l, lookup, turn, taken);
	if (lookup->learns && turn > lookup->seen_turn && taken >= lookup->seen_taken)
	{
		double		rows = (double) (turn - lookup->seen_turn);
		double		each = (double) (taken - lookup->seen_taken) / rows;

		lookup->taken += (Min(each, ALL) - lookup->taken) / LEARNING;
	}
	lookup->seen_turn = turn;
	lookup->seen_taken = taken;
	if (lookup->learns)
		lookup->most = Min((int) (lookup->taken * MARGIN) + 1, ALL);
	if (lookup->doubtful)
		lookup->most = 0;
}

bool
la_lookups_set_key(LaLookups *l, TupleTableSlot *row, int rel)
{
	l->searched = l->by_number[rel];
	learn(l, l->searched);
	la_descent_set_most(l->searched->s.descent, l->searched->most);
	return la_scankeys_set(l->searched->s.keys, row);
}

/* The matches are of the last key that was set.  Returns the scan that it is of. */
LaKeyedScan *
la_lookups_locate(LaLookups *l, LaAheadRow *row, const LaMatches *matches)
{
	Lookup	   *lookup = l->searched;
	LaMatchVisits which = {
		.most = lookup->most,
		.map = lookup->s.index_only ? &l->map : NULL
	};
	int			nvisits = row->nvisits;

	la_ahead_add_matches(l->ahead, row, lookup->heap_number, matches, &which);
	lookup->judged.blocks += row->nvisits - nvisits;
	lookup->judged.rows++;
	return &lookup->s;
}

/* The rows are forgotten, or others begin: release what is pinned. */
void
la_lookups_release(LaLookups *l)
{
	ListCell   *lc;

	foreach(lc, l->all)
		memset(&((Lookup *) lfirst(lc))->judged, 0, sizeof(Judged));
	la_issue_release_map(&l->map, la_ahead_budget(l->ahead));
}
