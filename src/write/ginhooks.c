/*
 * ginhooks.c
 *	  How inserts into GIN indexes, and flushes of their pending lists, get to look-ahead.
 *
 *	INSERT, UPDATE, MERGE and COPY FROM
 *		la_gininsert() is put in place of gininsert() in the index's access method routine
 *		(attach/interpose_index.c) when the server has opened and locked the table, also for a
 *		single row: it may be the one that flushes the list.  Indexes of partitions that rows are
 *		routed to get it when the plan is asked for the next row (insert_hooks.c).
 *	gin_clean_pending_list()
 *		Where it is called with a constant, in a SELECT without a table, the pages are read before
 *		that is executed, if the index is one that the function would flush.
 *
 * Not reached: VACUUM, and autovacuum, which call no function of ours between the scan of the table
 * and the flush; a single row that is routed to a partition; logical replication.
 *
 * RECORDS	The GIN indexes of a table are remembered until the table is invalidated, so that
 * statements do not look through its indexes.
 *
 * src/write/ginhooks.c
 */
#include "postgres.h"

#include "access/gin_private.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/relcache.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "gin/gin.h"
#include "write/write_int.h"

#define RECORDS			16
#define MAX_INDEXES		8
#define MAX_RELATIONS	64

typedef struct Record
{
	Oid			table;			/* InvalidOid: none */
	int			nindexes;
	Oid			indexes[MAX_INDEXES];
} Record;

static Record records[RECORDS];
static Record *looked_at;
static LaNodeKind results;

/* ---- inserts ------------------------------------------------------------------------- */

static void
look(Relation index)
{
	if (index->rd_rel->relam == GIN_AM_OID && looked_at->nindexes < MAX_INDEXES)
		looked_at->indexes[looked_at->nindexes++] = RelationGetRelid(index);
}

/* RECORDS */
static const Record *
record_of(Relation table)
{
	Oid			oid = RelationGetRelid(table);
	Record	   *r = &records[oid % RECORDS];

	if (r->table != oid)
	{
		r->table = InvalidOid;
		r->nindexes = 0;
		looked_at = r;
		la_interpose_each_index(table, look);
		r->table = oid;
	}
	return r;
}

static void
on_invalidation(Datum arg, Oid relid)
{
	for (int i = 0; i < RECORDS; i++)
	{
		if (!OidIsValid(relid) || records[i].table == relid)
			records[i].table = InvalidOid;
	}
}

/* The statement inserts into this index. */
void
la_ginhooks_exchange(Relation index)
{
	if (index->rd_rel->relam == GIN_AM_OID && !IsSystemRelation(index) &&
		!la_am_is_excluded(GIN_AM_OID))
		la_interpose_aminsert(index, gininsert, la_gininsert);
}

/* A table that is locked, and that rows are written to. */
void
la_ginhooks_begin(Relation table)
{
	Record		r;

	if (!la_enable_write || !table->rd_rel->relhasindex || !la_gate_is_heap(table))
		return;
	/* a copy, since it may be invalidated meanwhile */
	r = *record_of(table);
	for (int i = 0; i < r.nindexes; i++)
	{
		Relation	index = RelationIdGetRelation(r.indexes[i]);

		if (!RelationIsValid(index))
			continue;
		la_ginhooks_exchange(index);
		RelationClose(index);
	}
}

void
la_ginhooks_attach(const ModifyTableState *mt)
{
	if (mt->operation == CMD_DELETE)
		return;
	for (int i = 0; i < Min(mt->mt_nrels, MAX_RELATIONS); i++)
		la_ginhooks_begin(mt->resultRelInfo[i].ri_RelationDesc);
	la_gininsert_watch(mt->ps.state);
}

/* ---- gin_clean_pending_list() ---------------------------------------------------------- */

/* The index whose list the node flushes, or InvalidOid. */
static Oid
flushed_by(const Plan *plan)
{
	ListCell   *lc;

	foreach(lc, plan->targetlist)
	{
		const FuncExpr *call = (const FuncExpr *) lfirst_node(TargetEntry, lc)->expr;

		if (call != NULL && IsA(call, FuncExpr) && call->funcid == F_GIN_CLEAN_PENDING_LIST &&
			IsA(linitial(call->args), Const) && !linitial_node(Const, call->args)->constisnull)
			return DatumGetObjectId(linitial_node(Const, call->args)->constvalue);
	}
	return InvalidOid;
}

/* Will the function flush the list of this index? */
static bool
is_flushable(Relation index)
{
	return index->rd_rel->relkind == RELKIND_INDEX && index->rd_rel->relam == GIN_AM_OID &&
		index->rd_indam->aminsert == gininsert && index->rd_index->indisvalid &&
		!RelationUsesLocalBuffers(index) && !la_direct_io() &&
		!la_am_is_excluded(GIN_AM_OID) &&
		la_owns_relation(RelationGetRelid(index), GetUserId());
}

static void
read_for_flush(Oid oid, EState *estate)
{
	Relation	index;

	if (RecoveryInProgress() || !la_lock_relation_at_once(oid, RowExclusiveLock))
		return;
	index = RelationIdGetRelation(oid);
	if (RelationIsValid(index))
	{
		if (is_flushable(index))
			la_gininsert_flush(index, estate);
		RelationClose(index);
	}
	UnlockRelationOid(oid, RowExclusiveLock);
}

static TupleTableSlot *
first_execution(PlanState *ps)
{
	la_interpose_replace(ps, first_execution, results.stock);
	if (la_enable && la_enable_write)
		read_for_flush(flushed_by(ps->plan), ps->state);
	return results.stock(ps);
}

static bool
attach_result(PlanState *ps)
{
	if (la_enable_write && OidIsValid(flushed_by(ps->plan)) &&
		la_interpose_is_possible(ps, &results))
		la_interpose_replace(ps, results.stock, first_execution);
	return false;
}

void
la_ginhooks_init(void)
{
	la_attach_register(T_ResultState, attach_result);
	CacheRegisterRelcacheCallback(on_invalidation, (Datum) 0);
}
