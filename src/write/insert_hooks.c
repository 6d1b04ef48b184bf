/*
 * insert_hooks.c
 *	  How inserts in stock btree indexes get to la_btinsert().
 *
 * The relation descriptor of an index has a copy of the access method's routine of its own,
 * or gets one here.  Where that has btinsert(), la_btinsert() is put in its place, once a
 * statement of many rows has opened the index:
 *	1. INSERT, UPDATE and MERGE open the indexes of a table, or partition, for the first row
 *	   that they put there, which btinsert() inserts.  That they have is seen when they ask
 *	   their plan for the next row, by a function between ModifyTable and the plan
 *	   (attach/takeover.c).  Not for statements that the planner expects to have one row
 *	   only, nor for more than MAX_RELATIONS tables.
 *	2. COPY FROM: before it, while the table, or its partitions, if they are not more than
 *	   MAX_RELATIONS, are locked for a moment.  What is locked by others right now is left
 *	   out.
 *
 * btinsert() is put back when a statement closes the index (from 17 on, which tells so), and
 * with the first row that comes when the setting is off.  The server drops or builds the
 * descriptor anew at any time, and then has its own.
 * Not reached: logical replication, which inserts row by row, toast tables and catalogs.
 *
 * Invariant: no index is opened or locked before the server does so.
 *
 * src/write/insert_hooks.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_inherits.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "attach/attach.h"
#include "attach/takeover.h"
#include "base/accessmethod.h"
#include "base/compat.h"
#include "base/guc.h"
#include "write/insert.h"
#include "write/insert_hooks.h"

#define MAX_RELATIONS	64

/* A running statement. */
typedef struct Inserting
{
	LaTakeover	takeover;		/* of the output of the plan below it */
	ModifyTableState *modify_table;
	bool		all_open;		/* its tables' indexes; partitions may come */
	int			seen;			/* partitions */
} Inserting;

static ProcessUtility_hook_type prev_ProcessUtility = NULL;

static void
inserted(Relation index, IndexInfo *info)
{
	la_insert_put_back(index);
}

static void
patch(Relation index)
{
	if (index->rd_indam->aminsert != btinsert || IsSystemRelation(index))
		return;
	la_am_own_routine(index)->aminsert = la_btinsert;
	la_set_insert_cleanup(la_am_own_routine(index), inserted);
}

/*
 * Returns false if the indexes have not been opened yet.
 */
static bool
patch_indexes(ResultRelInfo *relation)
{
	if (relation->ri_RelationDesc->rd_rel->relkind != RELKIND_RELATION ||
		!relation->ri_RelationDesc->rd_rel->relhasindex)
		return true;
	if (relation->ri_IndexRelationDescs == NULL)
		return false;
	for (int i = 0; i < relation->ri_NumIndices; i++)
	{
		if (relation->ri_IndexRelationDescs[i] != NULL)
			patch(relation->ri_IndexRelationDescs[i]);
	}
	return true;
}

/* The plan's next row: for the last one indexes may have been opened. */
static TupleTableSlot *
exec_plan(PlanState *ps)
{
	Inserting  *s = la_takeover_container(Inserting,
										  la_takeover_of(ps, LA_LAYER_OUTPUT));
	List	   *partitions = ps->state->es_tuple_routing_result_relations;

	if (!s->all_open)
	{
		s->all_open = true;
		for (int i = 0; i < s->modify_table->mt_nrels; i++)
			s->all_open &= patch_indexes(&s->modify_table->resultRelInfo[i]);
	}
	for (; s->seen < list_length(partitions); s->seen++)
		patch_indexes(list_nth(partitions, s->seen));
	return s->takeover.below(ps);
}

static void
no_event(LaTakeover *takeover)
{
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
		!la_takeover_of_output_is_possible(outerPlanState(ps)))
		return false;
	s = MemoryContextAllocZero(ps->state->es_query_cxt, sizeof(Inserting));
	s->modify_table = mt;
	s->takeover.on_rescan = s->takeover.on_end = no_event;
	la_takeover_begin(&s->takeover, outerPlanState(ps), LA_LAYER_OUTPUT, exec_plan);
	return false;
}

/*
 * All indexes of a table that is locked.
 */
static void
patch_table(Oid table_oid)
{
	Relation	table = try_relation_open(table_oid, NoLock);
	List	   *indexes;
	ListCell   *lc;

	if (table == NULL)
		return;
	if (table->rd_rel->relkind == RELKIND_RELATION && !IsSystemRelation(table))
	{
		indexes = RelationGetIndexList(table);
		foreach(lc, indexes)
		{
			/* the table's lock keeps it from being dropped */
			Relation	index = RelationIdGetRelation(lfirst_oid(lc));

			if (!RelationIsValid(index))
				continue;
			patch(index);
			RelationClose(index);
		}
		list_free(indexes);
	}
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
			patch_table(lfirst_oid(lc));
			UnlockRelationOid(lfirst_oid(lc), RowExclusiveLock);
		}
	}
	list_free(tables);
}

static void
insert_ProcessUtility(PlannedStmt *pstmt, const char *queryString,
					  bool readOnlyTree, ProcessUtilityContext context,
					  ParamListInfo params, QueryEnvironment *queryEnv,
					  DestReceiver *dest, QueryCompletion *qc)
{
	if (IsA(pstmt->utilityStmt, CopyStmt) && la_enable &&
		la_enable_btree_insert && !RecoveryInProgress())
	{
		const CopyStmt *copy = (const CopyStmt *) pstmt->utilityStmt;

		if (copy->is_from && copy->relation != NULL)
			attach_copy(copy);
	}
	if (prev_ProcessUtility)
		prev_ProcessUtility(pstmt, queryString, readOnlyTree, context, params,
							queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context,
								params, queryEnv, dest, qc);
}

void
la_insert_init(void)
{
	la_attach_register(T_ModifyTableState, attach_modify_table);
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = insert_ProcessUtility;
}
