/*
 * writer.c
 *	  Does a write run code that could notice that rows of its plan were taken early?
 *
 * Where the plan calls a function that reads state, or draws values in an order, such as
 * nextval(), the write between two rows must neither change that state nor draw from the same
 * source.  What the server itself does in a write changes neither.  So a write is quiet if all
 * else that it runs between two rows has no effects:
 *	- the table has no BEFORE ROW trigger for what the statement does.  (Others run before the first
 *	  row of the plan, or after the last one has been written, as in stock.);
 *	- constraints, WHEN conditions of other triggers, generated columns, expressions and predicates
 *	  of indexes, policies, RETURNING, the SET and WHERE clauses of ON CONFLICT, and the conditions
 *	  and actions of MERGE call trusted functions only, and have no subqueries; and so do
 *	  comparisons in indexes, and operators of exclusion constraints (attach/effects.c);
 *	- an UPDATE or MERGE is not of partitions, since a row may move to another one.  An INSERT into
 *	  a partitioned table opens a partition for the first row that is routed there.  What that has
 *	  is not known before; so rows are taken no farther than one whose partition is not known to be
 *	  quiet (la_writer_is_quiet_partition()):
 *
 *		O1 W1  O2 O3 O4  W2 W3 W4  O5 ...		where W4 is the first row of its partition
 *
 *	- the partition's constraint, where it is checked, has such functions only: that of a
 *	  partition that the statement names, and of the default one.  ON CONFLICT DO UPDATE checks
 *	  those of all, when a row is updated, and is not quiet.
 *
 * src/write/writer.c
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/partition.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "write/write_int.h"

static void
note_text(LaEffects *e, const char *expression)
{
	if (expression != NULL)
		la_effects_of_expression(e, stringToNode(expression));
}

/* Constraints, and generated columns.  (Other defaults are part of the plan.) */
static void
note_constraints(LaEffects *e, Relation table)
{
	const TupleConstr *constr = RelationGetDescr(table)->constr;

	if (constr == NULL)
		return;
	for (int i = 0; i < constr->num_check; i++)
		note_text(e, constr->check[i].ccbin);
	for (int i = 0; i < constr->num_defval; i++)
	{
		const AttrDefault *value = &constr->defval[i];

		if (TupleDescAttr(RelationGetDescr(table), value->adnum - 1)->attgenerated != '\0')
			note_text(e, value->adbin);
	}
}

/* The operators by which an exclusion constraint looks for conflicts. */
static void
note_exclusion(LaEffects *e, Relation index, const IndexInfo *info)
{
	for (int i = 0; info->ii_ExclusionProcs != NULL && i < info->ii_NumIndexKeyAttrs; i++)
	{
		Oid			type = index->rd_opcintype[i];

		if (get_typtype(type) == TYPTYPE_PSEUDO)
			type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
		la_effects_of_support(e, info->ii_ExclusionProcs[i], 1, &type);
	}
}

static void
note_indexes(LaEffects *e, const ResultRelInfo *relation)
{
	for (int i = 0; i < relation->ri_NumIndices; i++)
	{
		const IndexInfo *info = relation->ri_IndexRelationInfo[i];

		if (relation->ri_IndexRelationDescs[i] == NULL)
			continue;
		la_effects_of_index(e, relation->ri_IndexRelationDescs[i]);
		la_effects_of_expression(e, (Node *) info->ii_Expressions);
		la_effects_of_expression(e, (Node *) info->ii_Predicate);
		note_exclusion(e, relation->ri_IndexRelationDescs[i], info);
	}
}

static void
note_policies(LaEffects *e, const List *policies)
{
	ListCell   *lc;

	foreach(lc, policies)
		la_effects_of_expression(e, ((WithCheckOption *) lfirst(lc))->qual);
}

/*
 * AFTER ROW triggers are called after the last row, but whether a row is for them is decided when
 * it is written.
 */
static void
note_when(LaEffects *e, const TriggerDesc *triggers)
{
	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (TRIGGER_FOR_ROW(triggers->triggers[i].tgtype))
			note_text(e, triggers->triggers[i].tgqual);
	}
}

/* An InitPlan is executed when its value is first wanted. */
static void
note_param(LaEffects *effects, int param, void *arg)
{
	la_effects_add(effects, LA_HAS_EFFECTS, "the write has a subquery");
}

/* BEFORE ROW triggers that the statement may fire.  (INSTEAD OF triggers are of views.) */
static bool
has_row_triggers(const ModifyTableState *mt, const TriggerDesc *triggers)
{
	const ModifyTable *plan = (const ModifyTable *) mt->ps.plan;
	bool		merges = mt->operation == CMD_MERGE;
	bool		inserts = merges || mt->operation == CMD_INSERT;
	bool		updates = merges || mt->operation == CMD_UPDATE ||
		plan->onConflictAction == ONCONFLICT_UPDATE;

	return triggers != NULL && ((inserts && triggers->trig_insert_before_row) ||
								(updates && triggers->trig_update_before_row) ||
								(merges && triggers->trig_delete_before_row));
}

/* A constraint that is checked has been computed when the table's first row was written. */
static bool
is_known_constraint(LaEffects *e, const ResultRelInfo *relation)
{
	Relation	table = relation->ri_RelationDesc;
	Relation	root = relation->ri_RootResultRelInfo == NULL ? NULL :
		relation->ri_RootResultRelInfo->ri_RelationDesc;

	if (!table->rd_rel->relispartition ||
		(root != NULL &&
		 get_default_partition_oid(RelationGetRelid(root)) != RelationGetRelid(table)))
		return true;
	la_effects_of_expression(e, (Node *) table->rd_partcheck);
	return table->rd_partcheckvalid;
}

static bool
is_quiet_table(LaEffects *e, const ModifyTableState *mt, const ResultRelInfo *relation)
{
	Relation	table = relation->ri_RelationDesc;

	if (!la_target_is_heap(table) || has_row_triggers(mt, relation->ri_TrigDesc) ||
		(relation->ri_IndexRelationDescs == NULL && table->rd_rel->relhasindex) ||
		!is_known_constraint(e, relation))
		return false;
	note_constraints(e, table);
	note_indexes(e, relation);
	note_policies(e, relation->ri_WithCheckOptions);
	note_when(e, relation->ri_TrigDesc);
	return true;
}

static void
note_actions(LaEffects *e, const List *actions)
{
	ListCell   *lc;

	foreach(lc, actions)
	{
		const MergeAction *action = ((MergeActionState *) lfirst(lc))->mas_action;

		la_effects_of_expression(e, action->qual);
		la_effects_of_expression(e, (Node *) action->targetList);
	}
}

static void
note_merge(LaEffects *e, const ModifyTableState *mt)
{
	for (int i = 0; i < mt->mt_nrels; i++)
	{
		const ResultRelInfo *relation = &mt->resultRelInfo[i];

		la_effects_of_expression(e, (Node *) la_merge_join_condition(mt, i));
		note_actions(e, la_merge_matched_actions(relation));
		note_actions(e, la_merge_by_source_actions(relation));
		note_actions(e, la_merge_not_matched_actions(relation));
	}
}

static bool
is_quiet(const LaEffects *effects)
{
	return (effects->flags & (LA_ANY_EFFECTS | LA_HAS_SUBPLAN)) == 0;
}

/* A table of the statement.  The partitions that rows are routed to are asked about later. */
static bool
is_quiet_result(LaEffects *e, const ModifyTableState *mt, const ResultRelInfo *relation)
{
	const ModifyTable *plan = (const ModifyTable *) mt->ps.plan;

	if (mt->operation == CMD_INSERT &&
		relation->ri_RelationDesc->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		return plan->onConflictAction != ONCONFLICT_UPDATE;
	return !(relation->ri_RelationDesc->rd_rel->relispartition &&
			 relation->ri_RootResultRelInfo != NULL) && is_quiet_table(e, mt, relation);
}

/* One that a row of an INSERT is routed to, and that is open. */
bool
la_writer_is_quiet_partition(const ModifyTableState *mt, const ResultRelInfo *partition)
{
	LaEffects	effects = {.note_param = note_param};

	return is_quiet_table(&effects, mt, partition) && is_quiet(&effects);
}

/* The indexes of the tables are open. */
bool
la_writer_is_quiet(ModifyTableState *mt)
{
	const ModifyTable *plan = (const ModifyTable *) mt->ps.plan;
	LaEffects	effects = {.note_param = note_param};

	for (int i = 0; i < mt->mt_nrels; i++)
	{
		if (!is_quiet_result(&effects, mt, &mt->resultRelInfo[i]))
			return false;
	}
	if (mt->operation == CMD_MERGE)
	{
		/* INSERT is into this table, which others inherit from */
		if (mt->rootResultRelInfo != mt->resultRelInfo &&
			!is_quiet_table(&effects, mt, mt->rootResultRelInfo))
			return false;
		note_merge(&effects, mt);
	}
	la_effects_of_expression(&effects, (Node *) plan->returningLists);
	la_effects_of_expression(&effects, (Node *) plan->onConflictSet);
	la_effects_of_expression(&effects, plan->onConflictWhere);
	return is_quiet(&effects);
}
