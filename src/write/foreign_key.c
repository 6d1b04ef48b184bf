/*
 * foreign_key.c
 *	  The triggers of foreign keys that a statement fires, in front of which look-ahead is put.
 *
 *	rows written --> AFTER triggers of foreign keys, row by row --> a query by SPI for each
 *						   |
 *						   +- call_trigger(): the keys of the next rows --> leaf pages and heap
 *							  blocks of the other table, read ahead (keyahead.c)
 *
 * After the last row of a statement, the server calls the trigger of each foreign key for each
 * row: to look up the key in the referenced table, or to find the rows that refer to it.  Each
 * is a query of its own, which waits for a leaf page, and then for a heap block.  call_trigger() is
 * in front of the trigger's function, in the FmgrInfo that the statement keeps for it: it looks at
 * the rows whose turn is next, reads what their queries will need, and calls the function.
 *
 * The next rows are those behind the current one in the table that the same command has put there
 * (INSERT), or those that the plan returned next (UPDATE, DELETE: tidlog.c).
 *
 * Behaviour CASCADE.  An action's query changes rows of another table, whose triggers the server
 * calls in the same statement, when it has called those of all rows before.  So these rows are
 * noted in the statement's log, behind the others, when the query's plan returns them.  The server
 * makes a ResultRelInfo for them in the statement's EState when it is about to call the first of
 * these triggers.  The query that this call makes is seen to start (on 19, the scan of an index
 * for the first batch of checks: keyquery.c), and then call_trigger() is put in front of the other
 * calls.
 *
 * COPY FROM and deferred constraints keep their FmgrInfos where nothing leads to them: keyquery.c.
 *
 * Invariants
 *	- The server's function is called for each row, as in stock, and decides.
 *	- Nothing is put back: the FmgrInfo ends with the statement.
 *
 * src/write/foreign_key.c
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "base/base.h"
#include "rows/rows.h"
#include "write/write_int.h"

/* A trigger of a statement. */
typedef struct ForeignKey
{
	FmgrInfo	function;		/* the server's */
	EState	   *estate;
	Relation	table;			/* that is written */
	LaKeyAhead *ahead;
	bool		is_check;
	LaTidLog   *log;			/* NULL: INSERT */
} ForeignKey;

/* The call that is running. */
typedef struct Call
{
	ForeignKey *key;
	int			level;			/* of transactions */
	struct Call *outer;
} Call;

static Call *running = NULL;

/* In this session, actions of a statement have changed rows of other tables. */
static bool any_cascades = false;

/* ---- cascades ------------------------------------------------------------------------ */

bool
la_foreign_key_is_running(void)
{
	return running != NULL;
}

static void
remember_cascade(const ForeignKey *f)
{
	LaStatement *s = la_statements_get(f->estate);

	any_cascades = true;
	if (s->cascade_log == NULL)
		s->cascade_log = f->log;
}

/*
 * The log of the statement whose action changes these rows, if it is an action's query, and rows
 * that it changes may fire triggers of foreign keys; else NULL.
 */
LaTidLog *
la_foreign_key_cascade(const ModifyTableState *mt)
{
	if (running == NULL || running->key->log == NULL ||
		running->level != GetCurrentTransactionNestLevel() ||
		(mt->ps.state->es_top_eflags & EXEC_FLAG_SKIP_TRIGGERS) == 0 ||
		!InNoForceRLSOperation() ||
		(mt->operation != CMD_UPDATE && mt->operation != CMD_DELETE))
		return NULL;
	for (int i = 0; i < mt->mt_nrels; i++)
	{
		const TriggerDesc *triggers = mt->resultRelInfo[i].ri_TrigDesc;

		for (int t = 0; triggers != NULL && t < triggers->numtriggers; t++)
		{
			if (la_foreign_key_is_fired_by(&triggers->triggers[t], mt->operation))
			{
				remember_cascade(running->key);
				return running->key->log;
			}
		}
	}
	return NULL;
}

/* ---- the trigger ----------------------------------------------------------------------- */

static void
begin_row(ForeignKey *f, const TriggerData *data)
{
	LaKeyAsked	asked = {.tid = &data->tg_trigtuple->t_self,.old = &data->tg_trigtuple->t_self};

	if (f->is_check && TRIGGER_FIRED_BY_UPDATE(data->tg_event))
		asked.tid = &data->tg_newtuple->t_self;
	la_keyahead_turn(f->ahead, f->table, &asked);
}

static Datum
call_function(ForeignKey *f, FunctionCallInfo fcinfo)
{
	FmgrInfo   *ours = fcinfo->flinfo;
	Call		call = {f, GetCurrentTransactionNestLevel(), running};
	Datum		result;

	fcinfo->flinfo = &f->function;
	running = &call;
	PG_TRY();
	{
		result = FunctionCallInvoke(fcinfo);
	}
	PG_FINALLY();
	{
		running = call.outer;
	}
	PG_END_TRY();
	fcinfo->flinfo = ours;
	return result;
}

/* In place of the trigger's function. */
static Datum
call_trigger(PG_FUNCTION_ARGS)
{
	ForeignKey *f = fcinfo->flinfo->fn_extra;

	if (la_enable && la_enable_foreign_key && CALLED_AS_TRIGGER(fcinfo))
		begin_row(f, (const TriggerData *) fcinfo->context);
	return call_function(f, fcinfo);
}

/* Is it a trigger of a foreign key, called after rows are written like this? */
bool
la_foreign_key_is_fired_by(const Trigger *trigger, CmdType operation)
{
	if ((trigger->tgtype & TRIGGER_TYPE_TIMING_MASK) != TRIGGER_TYPE_AFTER ||
		!TRIGGER_FOR_ROW(trigger->tgtype) ||
		!OidIsValid(trigger->tgconstraint) ||
		RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_NONE)
		return false;
	return (operation == CMD_INSERT && TRIGGER_FOR_INSERT(trigger->tgtype)) ||
		(operation == CMD_UPDATE && TRIGGER_FOR_UPDATE(trigger->tgtype)) ||
		(operation == CMD_DELETE && TRIGGER_FOR_DELETE(trigger->tgtype));
}

static bool
has_any(const TriggerDesc *triggers, CmdType operation)
{
	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (la_foreign_key_is_fired_by(&triggers->triggers[i], operation))
			return true;
	}
	return false;
}

/* first: the log's first entry that may be of this table */
static void
install(ResultRelInfo *relation, int i, CmdType operation, EState *estate, LaTidLog *log,
		int64 first)
{
	MemoryContext context = estate->es_query_cxt;
	const Trigger *trigger = &relation->ri_TrigDesc->triggers[i];
	FmgrInfo   *function = &relation->ri_TrigFunctions[i];
	ForeignKey *f = MemoryContextAllocZero(context, sizeof(ForeignKey));
	LaKeyEvents events = {
		.constraint = trigger->tgconstraint,
		.table = RelationGetRelid(relation->ri_RelationDesc),
		.is_check = RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_FK,
		.log = log,
		.first = first,
		.kinds = LA_TID_MASK(operation == CMD_DELETE ? LA_TID_DELETED : LA_TID_UPDATED)
	};

	fmgr_info_cxt(trigger->tgfoid, &f->function, context);
	if (OidIsValid(function->fn_oid))
	{
		/* the server is in the first call, or has made one */
		if (function->fn_addr != f->function.fn_addr)
			return;
		f->function = *function;
	}
	f->estate = estate;
	f->table = relation->ri_RelationDesc;
	f->ahead = la_keyahead_create(context, estate, &events);
	f->is_check = events.is_check;
	f->log = log;
	*function = f->function;
	function->fn_addr = call_trigger;
	function->fn_extra = f;
}

/* The trigger from number i on that call_trigger() is not in front of yet, or -1. */
static int
next_trigger(const ResultRelInfo *relation, CmdType operation, int i)
{
	const TriggerDesc *triggers = relation->ri_TrigDesc;

	for (; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (la_foreign_key_is_fired_by(&triggers->triggers[i], operation) &&
			relation->ri_TrigFunctions[i].fn_addr != call_trigger)
			return i;
	}
	return -1;
}

static bool
install_each(ResultRelInfo *relation, CmdType operation, EState *estate, LaTidLog *log,
			 int64 first)
{
	bool		any = false;

	for (int i = next_trigger(relation, operation, 0); i >= 0;
		 i = next_trigger(relation, operation, i + 1))
	{
		install(relation, i, operation, estate, log, first);
		any = true;
	}
	return any;
}

static bool
is_possible(const ResultRelInfo *relation, CmdType operation)
{
	return has_any(relation->ri_TrigDesc, operation) &&
		la_target_is_heap(relation->ri_RelationDesc) &&
		!RelationUsesLocalBuffers(relation->ri_RelationDesc);
}

/*
 * Put call_trigger() in front of the triggers of the foreign keys of a statement's table.
 * Returns true if there is any.  log: see above; NULL for INSERT.
 */
bool
la_foreign_key_install(ResultRelInfo *relation, CmdType operation, EState *estate, LaTidLog *log)
{
	if (!is_possible(relation, operation))
		return false;
	/* for the triggers of a partition the server has another one */
	if (relation->ri_RootResultRelInfo != NULL)
		relation = ExecGetTriggerResultRel(estate, RelationGetRelid(relation->ri_RelationDesc),
										   NULL);
	return install_each(relation, operation, estate, log, 0);
}

/* The log's first entry for this table, if it is written like this; or -1. */
static int64
first_entry(const LaTidLog *log, Oid table, CmdType operation)
{
	for (int64 n = 0; n < la_tidlog_length(log); n++)
	{
		const LaTidEntry *entry = la_tidlog_get(log, n);

		if (entry->table == table &&
			(entry->kind == LA_TID_DELETED) == (operation == CMD_DELETE))
			return n;
	}
	return -1;
}

static void
install_cascaded(const LaStatement *s, ResultRelInfo *relation)
{
	Oid			table = RelationGetRelid(relation->ri_RelationDesc);

	for (int i = 0; i < 2; i++)
	{
		CmdType		operation = i == 0 ? CMD_UPDATE : CMD_DELETE;
		int64		first = next_trigger(relation, operation, 0) < 0 ||
			!is_possible(relation, operation) ? -1 : first_entry(s->cascade_log, table, operation);

		if (first >= 0)
			(void) install_each(relation, operation, s->estate, s->cascade_log, first);
	}
}

/* Behaviour CASCADE: a query of a foreign key starts. */
void
la_foreign_key_query_starts(void)
{
	if (running != NULL || !any_cascades || !InNoForceRLSOperation())
		return;
	for (LaStatement *s = la_statements_newest(); s != NULL; s = s->next)
	{
		const List *opened;
		const List *others;
		ListCell   *lc;

		if (s->cascade_log == NULL)
			continue;
		opened = s->estate->es_opened_result_relations;
		others = s->estate->es_trig_target_relations;
		if (s->cascade_seen == list_length(opened) + list_length(others))
			continue;
		s->cascade_seen = list_length(opened) + list_length(others);
		foreach(lc, opened)
			install_cascaded(s, lfirst(lc));
		foreach(lc, others)
			install_cascaded(s, lfirst(lc));
	}
}

/* Does a foreign key delete or change rows of another table when rows are deleted? */
bool
la_foreign_key_cascades(const TriggerDesc *triggers)
{
	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		Oid			function = triggers->triggers[i].tgfoid;

		if (function == F_RI_FKEY_CASCADE_DEL || function == F_RI_FKEY_SETNULL_DEL ||
			function == F_RI_FKEY_SETDEFAULT_DEL)
			return true;
	}
	return false;
}
