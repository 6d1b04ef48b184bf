/*
 * insert_hooks.c
 *	  How inserts into stock btree indexes get to la_btinsert().
 *
 * It is put in place of btinsert() in an index's access method routine
 * (attach/interpose_index.c), once a statement of many rows has the index open:
 *
 *	INSERT, UPDATE and MERGE
 *		They open the indexes of a table, or partition, for the first row that they put
 *		there, which btinsert() inserts.  That is noticed when they ask their plan for the
 *		next row, by a function between ModifyTable and the plan (attach/interpose_node.c).
 *		Statements are left out that the planner expects to have one row only, or that have
 *		more than MAX_RELATIONS tables.
 *	COPY FROM
 *		Before the statement, the table, or its partitions, if there are at most MAX_RELATIONS,
 *		are locked for a moment.  Those whose lock is not free are left out.
 *
 * Not reached: logical replication, which inserts row by row, toast tables and catalogs.
 *
 * Invariant: no index is opened or locked before the server does so.
 *
 * src/write/insert_hooks.c
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_inherits.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "attach/attach.h"
#include "attach/interpose_index.h"
#include "attach/interpose_node.h"
#include "base/guc.h"
#include "base/utility.h"
#include "write/insert.h"
#include "write/insert_hooks.h"

#define MAX_RELATIONS	64

/* A running statement. */
typedef struct Inserting
{
	LaInterposer interposer;	/* of the output of the plan below it */
	ModifyTableState *modify_table;
	bool		all_open;		/* all indexes but those of partitions */
	int			seen;			/* partitions whose indexes are exchanged */
} Inserting;

static void
exchange(Relation index)
{
	if (!IsSystemRelation(index))
		la_interpose_aminsert(index, la_btinsert);
}

static bool
is_ordinary_heap(Relation table)
{
	return table->rd_rel->relkind == RELKIND_RELATION &&
		table->rd_tableam == GetHeapamTableAmRoutine();
}

/* Returns false if the indexes have not been opened yet. */
static bool
exchange_indexes(ResultRelInfo *relation)
{
	if (!is_ordinary_heap(relation->ri_RelationDesc) ||
		!relation->ri_RelationDesc->rd_rel->relhasindex)
		return true;
	if (relation->ri_IndexRelationDescs == NULL)
		return false;
	for (int i = 0; i < relation->ri_NumIndices; i++)
	{
		if (relation->ri_IndexRelationDescs[i] != NULL)
			exchange(relation->ri_IndexRelationDescs[i]);
	}
	return true;
}

/* The plan's next row.  Indexes may have been opened for the last one. */
static TupleTableSlot *
exec_plan(PlanState *ps)
{
	Inserting  *s = la_interpose_container(Inserting, la_interpose_enter(ps, LA_LAYER_OUTPUT));
	List	   *partitions = ps->state->es_tuple_routing_result_relations;

	if (!s->all_open)
	{
		s->all_open = true;
		for (int i = 0; i < s->modify_table->mt_nrels; i++)
			s->all_open &= exchange_indexes(&s->modify_table->resultRelInfo[i]);
	}
	for (; s->seen < Min(list_length(partitions), MAX_RELATIONS); s->seen++)
		exchange_indexes(list_nth(partitions, s->seen));
	return s->interposer.below(ps);
}

static bool
attach_modify_table(PlanState *ps, bool limited)
{
	ModifyTableState *mt = (ModifyTableState *) ps;
	ModifyTable *plan = (ModifyTable *) ps->plan;
	Inserting  *s;

	if (!la_enable_btree_insert || plan->operation == CMD_DELETE ||
		(outerPlan(plan)->plan_rows <= 1 && !la_force) ||
		mt->mt_nrels > MAX_RELATIONS ||
		!la_interpose_output_is_possible(outerPlanState(ps)))
		return false;
	s = MemoryContextAllocZero(ps->state->es_query_cxt, sizeof(Inserting));
	s->modify_table = mt;
	la_interpose_begin(&s->interposer, outerPlanState(ps), LA_LAYER_OUTPUT, exec_plan);
	return false;
}

/* All indexes of a table that is locked. */
static void
exchange_table(Oid table_oid)
{
	Relation	table = try_relation_open(table_oid, NoLock);

	if (table == NULL)
		return;
	if (is_ordinary_heap(table) && !IsSystemRelation(table))
		la_interpose_each_index(table, exchange);
	relation_close(table, NoLock);
}

static void
attach_copy(const CopyStmt *copy)
{
	Oid			table = RangeVarGetRelid(copy->relation, NoLock, true);
	List	   *tables;
	ListCell   *lc;

	if (!OidIsValid(table) ||
		pg_class_aclcheck(table, GetUserId(), ACL_INSERT) != ACLCHECK_OK)
		return;
	tables = get_rel_relkind(table) == RELKIND_PARTITIONED_TABLE ?
		find_all_inheritors(table, NoLock, NULL) : list_make1_oid(table);
	if (list_length(tables) <= MAX_RELATIONS)
	{
		foreach(lc, tables)
		{
			if (!ConditionalLockRelationOid(lfirst_oid(lc), RowExclusiveLock))
				continue;
			exchange_table(lfirst_oid(lc));
			UnlockRelationOid(lfirst_oid(lc), RowExclusiveLock);
		}
	}
	list_free(tables);
}

static bool
before_utility(const Node *statement)
{
	const CopyStmt *copy = (const CopyStmt *) statement;

	if (IsA(statement, CopyStmt) && la_enable && la_enable_btree_insert &&
		copy->is_from && copy->relation != NULL && !RecoveryInProgress())
		attach_copy(copy);
	return false;
}

void
la_insert_init(void)
{
	la_attach_register(T_ModifyTableState, attach_modify_table);
	la_utility_register(before_utility, NULL);
}
