/*
 * insert_hooks.c
 *	  How inserts in stock btree indexes get to la_btinsert().
 *
 * The relation descriptor of an index has a copy of the access method's routine of its own.
 * Where that has btinsert(), la_btinsert() is put in its place, as soon as somebody is about
 * to insert many rows:
 *	1. INSERT, UPDATE and MERGE, when they start: the indexes of their tables are opened a
 *	   moment before the executor would, for it.  Not for statements that the planner
 *	   expects to have one row only, nor for more than MOST_RELATIONS tables.
 *	2. Partitions that rows are routed to are opened when the first row comes.  They are
 *	   found in the executor's list of them when the statement asks its plan for the
 *	   next row: for that, the function that executes the plan below ModifyTable is
 *	   wrapped, when ModifyTable runs first, since other rooms look at it until then.
 *	3. COPY FROM: before it, indexes of the table, or of its partitions, if they are not
 *	   more than MOST_RELATIONS, are opened and closed again.  What is locked by others
 *	   right now is left out.
 *
 * The descriptor stays as it is until the server drops or builds it anew, which may be at
 * any time and is not noticed; la_btinsert() looks at the settings for each row.
 * Not reached: logical replication, which inserts row by row, toast tables and catalogs.
 *
 * src/btree/insert_hooks.c
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
#include "base/guc.h"
#include "btree/insert.h"

#define MOST_RELATIONS	64

/* A running statement that routes rows to partitions. */
typedef struct Routing
{
	PlanState  *modify_table;
	PlanState  *plan;			/* below it */
	ExecProcNodeMtd modify_table_function;
	ExecProcNodeMtd plan_function;
	int			seen;			/* partitions */
	MemoryContextCallback callback;
	struct Routing *next;
} Routing;

static Routing *routings = NULL;	/* newest first */

static ProcessUtility_hook_type prev_ProcessUtility = NULL;

static void
patch(Relation index)
{
	if (index->rd_indam->aminsert == btinsert && !IsSystemRelation(index))
		index->rd_indam->aminsert = la_btinsert;
}

static void
patch_indexes(ResultRelInfo *relation)
{
	if (relation->ri_IndexRelationDescs == NULL)
		return;
	for (int i = 0; i < relation->ri_NumIndices; i++)
	{
		if (relation->ri_IndexRelationDescs[i] != NULL)
			patch(relation->ri_IndexRelationDescs[i]);
	}
}

static void
on_memory(void *arg)
{
	for (Routing **r = &routings; *r != NULL; r = &(*r)->next)
	{
		if (*r == arg)
		{
			*r = (*r)->next;
			return;
		}
	}
}

/* The plan's next row: the last one may have opened a partition. */
static TupleTableSlot *
exec_plan(PlanState *ps)
{
	Routing    *r = routings;
	List	   *partitions = ps->state->es_tuple_routing_result_relations;

	while (r->plan != ps)
		r = r->next;
	for (; r->seen < list_length(partitions); r->seen++)
		patch_indexes(list_nth(partitions, r->seen));
	return r->plan_function(ps);
}

/* The first execution of ModifyTable. */
static TupleTableSlot *
exec_modify_table(PlanState *ps)
{
	Routing    *r = routings;

	while (r->modify_table != ps)
		r = r->next;
	ps->ExecProcNodeReal = r->modify_table_function;
	if (ps->instrument == NULL)
		ps->ExecProcNode = r->modify_table_function;
	r->plan_function = r->plan->ExecProcNodeReal;
	r->plan->ExecProcNodeReal = exec_plan;
	return r->modify_table_function(ps);
}

static void
attach_routing(PlanState *ps)
{
	Routing    *r = MemoryContextAllocZero(ps->state->es_query_cxt,
										   sizeof(Routing));

	r->modify_table = ps;
	r->plan = outerPlanState(ps);
	r->modify_table_function = ps->ExecProcNodeReal;
	r->callback.func = on_memory;
	r->callback.arg = r;
	MemoryContextRegisterResetCallback(ps->state->es_query_cxt, &r->callback);
	r->next = routings;
	routings = r;
	ps->ExecProcNodeReal = exec_modify_table;
}

static void
attach_modify_table(PlanState *ps, const LaAttachContext *context)
{
	ModifyTableState *mt = (ModifyTableState *) ps;
	ModifyTable *plan = (ModifyTable *) ps->plan;
	MemoryContext old;

	if (!la_enable_btree_insert || plan->operation == CMD_DELETE ||
		(outerPlan(plan)->plan_rows <= 1 && !la_force) ||
		mt->mt_nrels > MOST_RELATIONS)
		return;
	old = MemoryContextSwitchTo(ps->state->es_query_cxt);
	for (int i = 0; i < mt->mt_nrels; i++)
	{
		ResultRelInfo *relation = &mt->resultRelInfo[i];
		Relation	table = relation->ri_RelationDesc;

		if (table->rd_rel->relkind != RELKIND_RELATION ||
			!table->rd_rel->relhasindex)
			continue;
		if (relation->ri_IndexRelationDescs == NULL)
			ExecOpenIndices(relation, plan->onConflictAction != ONCONFLICT_NONE);
		patch_indexes(relation);
	}
	MemoryContextSwitchTo(old);
	if (mt->rootResultRelInfo->ri_RelationDesc->rd_rel->relkind ==
		RELKIND_PARTITIONED_TABLE && plan->operation != CMD_UPDATE)
		attach_routing(ps);
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
			Relation	index = index_open(lfirst_oid(lc), RowExclusiveLock);

			patch(index);
			index_close(index, RowExclusiveLock);
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
	if (list_length(tables) <= MOST_RELATIONS)
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
