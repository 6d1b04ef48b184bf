/*
 * ginhooks.c
 *	  How inserts into GIN indexes get to look-ahead.
 *
 * la_gininsert() is put in place of gininsert() in the index's access method routine
 * (attach/interpose_index.c) when the server has opened and locked the table, for INSERT, UPDATE,
 * MERGE and COPY FROM, also of a single row: it may have many keys.  Indexes of partitions that
 * rows are routed to get it when the plan is asked for the next row (insert_hooks.c).
 *
 * Not reached: a single row that is routed to a partition; logical replication.
 *
 * RECORDS	The GIN indexes of a table are remembered until the table is invalidated, so that
 * statements do not look through its indexes.
 *
 * src/write/ginhooks.c
 */
#include "postgres.h"

#include "access/gin_private.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "utils/inval.h"
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
	if (index->rd_rel->relam == GIN_AM_OID && !GinGetUseFastUpdate(index) &&
		!IsSystemRelation(index) && !la_am_is_excluded(GIN_AM_OID))
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

void
la_ginhooks_init(void)
{
	CacheRegisterRelcacheCallback(on_invalidation, (Datum) 0);
}
