/*
 * insert_hooks.c
 *	  How writes get to look-ahead, and inserts into stock btree indexes to la_btinsert().
 *
 * la_btinsert() is put in place of btinsert() in an index's access method routine
 * (attach/interpose_index.c), once a statement of many rows has the index open:
 *
 *	INSERT, UPDATE and MERGE
 *		They open the indexes of a table, or partition, for the first row that they put
 *		there, which btinsert() inserts.  That is noticed when they ask their plan for the
 *		next row, by a function between ModifyTable and the plan (attach/interpose_node.c).
 *		Statements are left out that the planner expects to have one row only, or that have
 *		more than MAX_RELATIONS tables.
 *		The same function passes the plan's rows through look-ahead (modify.c).
 *	COPY FROM
 *		When the server has opened and locked the table, and checked privileges (base/utility.c),
 *		the functions of its indexes are exchanged.  Partitions, if there are at most
 *		MAX_RELATIONS, are locked for a moment; those whose lock is not free are left out.
 *		la_copy_insert() (copy.c) is in front of both then.
 *
 * Not reached: logical replication, which inserts row by row, toast tables and catalogs.
 *
 * Invariant: no index is opened or locked before the server does so.
 *
 * src/write/insert_hooks.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "catalog/pg_inherits.h"
#include "executor/executor.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "attach/attach.h"
#include "base/base.h"
#include "rows/rows.h"
#include "write/write.h"
#include "write/write_int.h"

#define MAX_RELATIONS	64

/* A running statement. */
typedef struct Inserting
{
	LaInterposer interposer;	/* of the output of the plan below it */
	LaModify   *modify;			/* NULL: no look-ahead */
	bool		exchanges;		/* aminsert of its btree indexes */
	bool		routes;			/* rows to partitions, which may have GIN
								 * indexes */
	bool		follows_keys;	/* looks ahead over foreign keys */
	LaTidLog   *log;			/* ... of the plan's rows, or NULL */
	LaTidLog   *deferred;		/* the transaction's, or NULL */
	TupleTableSlot *last;		/* the plan's last row, for that log */
	int			routed;			/* partitions that it has seen */
	ModifyTableState *modify_table;
	bool		all_open;		/* all indexes but those of partitions */
	int			seen;			/* partitions whose indexes are exchanged */
} Inserting;

static void
exchange(const Inserting *s, Relation index)
{
	if (IsSystemRelation(index))
		return;
	if (s->exchanges)
		la_interpose_aminsert(index, btinsert, la_btinsert);
	if (la_enable_write)
		la_ginhooks_exchange(index);
}

static void
exchange_for_copy(Relation index)
{
	if (!IsSystemRelation(index))
		la_interpose_aminsert(index, btinsert,
							  la_enable_write || la_enable_foreign_key ? la_copy_insert :
							  la_btinsert);
}

/* Returns false if the indexes have not been opened yet. */
static bool
exchange_indexes(const Inserting *s, ResultRelInfo *relation)
{
	if (!la_target_is_heap(relation->ri_RelationDesc) ||
		!relation->ri_RelationDesc->rd_rel->relhasindex)
		return true;
	if (relation->ri_IndexRelationDescs == NULL)
		return false;
	for (int i = 0; i < relation->ri_NumIndices; i++)
	{
		if (relation->ri_IndexRelationDescs[i] != NULL)
			exchange(s, relation->ri_IndexRelationDescs[i]);
	}
	return true;
}

/* Exchange the functions of indexes that have been opened. */
static void
exchange_opened(Inserting *s, const List *partitions)
{
	if (!s->all_open)
	{
		s->all_open = true;
		for (int i = 0; i < s->modify_table->mt_nrels; i++)
			s->all_open &= exchange_indexes(s, &s->modify_table->resultRelInfo[i]);
	}
	for (; s->seen < Min(list_length(partitions), MAX_RELATIONS); s->seen++)
		exchange_indexes(s, list_nth(partitions, s->seen));
}

/* Partitions have been opened: look ahead over their foreign keys, too. */
static void
follow_routed(Inserting *s, EState *estate)
{
	const List *partitions = estate->es_tuple_routing_result_relations;

	for (; s->routed < Min(list_length(partitions), MAX_RELATIONS); s->routed++)
	{
		ResultRelInfo *partition = list_nth(partitions, s->routed);

		(void) la_foreign_key_install(partition, CMD_INSERT, estate, NULL);
		if (s->deferred != NULL)
			(void) la_keyquery_follow(partition->ri_RelationDesc, CMD_INSERT, true);
	}
}

/* Note a row whose foreign keys may be checked later: an inserted one when it has an address. */
static void
note_row(Inserting *s, TupleTableSlot *row)
{
	ModifyTableState *mt = s->modify_table;

	if (TupIsNull(row))
		return;
	if (s->log != NULL)
		la_tidlog_note(s->log, mt, row);
	if (s->deferred != NULL && mt->operation != CMD_INSERT)
		la_tidlog_note(s->deferred, mt, row);
	s->last = row;
}

/* The plan's next row.  Indexes may have been opened for the last one. */
static TupleTableSlot *
exec_plan(PlanState *ps)
{
	Inserting  *s = la_interpose_container(Inserting, la_interpose_enter(ps, LA_LAYER_OUTPUT));
	TupleTableSlot *row;

	if (s->exchanges || s->routes)
		exchange_opened(s, ps->state->es_tuple_routing_result_relations);
	if (s->follows_keys)
		follow_routed(s, ps->state);
	if (s->deferred != NULL && s->last != NULL && s->modify_table->operation == CMD_INSERT)
		la_tidlog_note_inserted(s->deferred, s->modify_table, s->last);
	s->last = NULL;
	row = s->modify != NULL ? la_modify_next(s->modify) : s->interposer.below(ps);
	if (s->log != NULL || s->deferred != NULL)
		note_row(s, row);
	return row;
}

/*
 * Look ahead over the foreign keys of the tables.  Returns false if there are none, and none can
 * come with a partition.
 */
static bool
follow_keys(Inserting *s)
{
	ModifyTableState *mt = s->modify_table;

	if (mt->operation != CMD_INSERT)
		s->log = la_tidlog_create(mt->ps.state->es_query_cxt);
	for (int i = 0; i < mt->mt_nrels; i++)
		s->follows_keys |= la_foreign_key_install(&mt->resultRelInfo[i], mt->operation,
												  mt->ps.state, s->log);
	if (!s->follows_keys)
		s->log = NULL;
	if (mt->operation == CMD_INSERT && la_modify_is_partitioned(mt))
		s->follows_keys = true;
	return s->follows_keys;
}

/* May the statement fire triggers of foreign keys, which are worth looking at? */
static bool
may_fire(const ModifyTableState *mt)
{
	if (!la_enable_foreign_key || mt->mt_nrels > MAX_RELATIONS ||
		(mt->operation != CMD_INSERT && mt->operation != CMD_UPDATE &&
		 mt->operation != CMD_DELETE))
		return false;
	for (int i = 0; i < mt->mt_nrels; i++)
	{
		if (mt->resultRelInfo[i].ri_TrigDesc != NULL)
			return true;
	}
	return false;
}

/* ... at its end, for many rows?  One row that is deleted may have many in other tables. */
static bool
may_fire_many(const ModifyTableState *mt)
{
	if (!may_fire(mt) || (mt->ps.state->es_top_eflags & EXEC_FLAG_SKIP_TRIGGERS) != 0)
		return false;
	return outerPlanState(mt)->plan->plan_rows > 1 || la_force ||
		(mt->operation == CMD_DELETE &&
		 la_foreign_key_cascades(mt->resultRelInfo[0].ri_TrigDesc));
}

/* The transaction's log, if the statement may write rows whose foreign keys are checked later. */
static LaTidLog *
deferred_log(const ModifyTableState *mt)
{
	bool		many = outerPlanState(mt)->plan->plan_rows > 1;
	bool		any = false;

	if (!may_fire(mt))
		return NULL;
	for (int i = 0; i < mt->mt_nrels; i++)
		any |= la_keyquery_follow(mt->resultRelInfo[i].ri_RelationDesc, mt->operation, many);
	return any ? la_keyquery_log() : NULL;
}

/* The memory of the query is freed. */
static void
on_end(LaInterposer *interposer)
{
	Inserting  *s = la_interpose_container(Inserting, interposer);

	if (s->modify != NULL)
		la_modify_end(s->modify);
}

/* May la_btinsert() insert the rows of this statement? */
static bool
is_exchangeable(const ModifyTableState *mt)
{
	const ModifyTable *plan = (const ModifyTable *) mt->ps.plan;

	return la_enable_btree_insert && plan->operation != CMD_DELETE &&
		(outerPlan(plan)->plan_rows > 1 || la_force) && mt->mt_nrels <= MAX_RELATIONS;
}

/* May rows be routed to partitions that have GIN indexes? */
static bool
may_route_many(const ModifyTableState *mt)
{
	return la_enable_write && mt->operation != CMD_DELETE &&
		outerPlanState(mt)->plan->plan_rows > 1 && la_modify_is_partitioned(mt);
}

static bool
attach_modify_table(PlanState *ps)
{
	ModifyTableState *mt = (ModifyTableState *) ps;
	bool		exchanges = is_exchangeable(mt);
	bool		looks_ahead = la_modify_is_possible(mt);
	bool		has_keys = may_fire_many(mt);
	bool		routes = may_route_many(mt);
	LaTidLog   *cascade;
	LaTidLog   *deferred = deferred_log(mt);
	Inserting  *s;

	la_ginhooks_attach(mt);
	la_foreign_key_query_starts();
	cascade = la_foreign_key_cascade(mt);
	if (cascade != NULL)
		la_keyquery_watch(mt);
	if ((!exchanges && !looks_ahead && !has_keys && !routes && cascade == NULL &&
		 deferred == NULL) ||
		!la_interpose_output_is_possible(outerPlanState(ps)))
		return false;
	s = MemoryContextAllocZero(ps->state->es_query_cxt, sizeof(Inserting));
	s->modify_table = mt;
	s->exchanges = exchanges;
	s->routes = routes;
	s->deferred = deferred;
	if (has_keys && !follow_keys(s) && !exchanges && !looks_ahead && !routes &&
		deferred == NULL)
		return false;
	if (cascade != NULL)
		s->log = cascade;
	if (looks_ahead)
		s->modify = la_modify_create(mt, &s->interposer);
	s->interposer.on_end = on_end;
	la_interpose_begin(&s->interposer, outerPlanState(ps), LA_LAYER_OUTPUT, exec_plan);
	return looks_ahead;
}

static const LaCounters *
explain_source(PlanState *ps)
{
	LaInterposer *interposer = !IsA(ps, ModifyTableState) ? NULL :
		la_interpose_find(outerPlanState(ps), LA_LAYER_OUTPUT);
	LaModify   *modify;

	if (interposer == NULL || interposer->function != exec_plan)
		return NULL;
	modify = la_interpose_container(Inserting, interposer)->modify;
	return modify == NULL ? NULL : la_modify_counters(modify);
}

/* A table that is locked. */
static void
begin_copy(Relation table)
{
	if (!la_target_is_heap(table) || IsSystemRelation(table))
		return;
	la_interpose_each_index(table, exchange_for_copy);
	la_ginhooks_begin(table);
	if (la_enable_foreign_key)
		la_keyquery_begin_copy(table);
}

static void
begin_copy_partitions(Oid root)
{
	List	   *tables = find_all_inheritors(root, NoLock, NULL);
	ListCell   *lc;

	if (list_length(tables) <= MAX_RELATIONS)
	{
		foreach(lc, tables)
		{
			Relation	table;

			if (!la_lock_relation_at_once(lfirst_oid(lc), RowExclusiveLock))
				continue;
			table = RelationIdGetRelation(lfirst_oid(lc));
			if (table != NULL)
			{
				begin_copy(table);
				RelationClose(table);
			}
			UnlockRelationOid(lfirst_oid(lc), RowExclusiveLock);
		}
	}
	list_free(tables);
}

/* la_utility_copy */
static bool
copy_starts(const CopyStmt *copy, Relation table)
{
	if (!la_enable || !copy->is_from || RecoveryInProgress() ||
		!(la_enable_btree_insert || la_enable_write || la_enable_foreign_key))
		return false;
	la_copy_begin();
	if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		begin_copy_partitions(RelationGetRelid(table));
	else
		begin_copy(table);
	return true;
}

static bool
before_utility(const Node *statement)
{
	if (IsA(statement, ConstraintsSetStmt))
		la_keyquery_set_constraints(((const ConstraintsSetStmt *) statement)->deferred);
	return false;
}

static void
after_copy(void)
{
	la_copy_end();
	la_keyquery_end_copy();
}

void
la_insert_init(void)
{
	la_attach_register(T_ModifyTableState, attach_modify_table);
	la_utility_register(before_utility, NULL);
	la_utility_register_copy(copy_starts, after_copy);
	la_keyquery_init();
	la_ginhooks_init();
	la_explain_register(explain_source);
}
