/*
 * toasttable.c
 *	  A toast table and its index.
 *
 * Both are open, and locked, only while look-ahead works on a row, as they are in the server while
 * it fetches a value: a lock that is kept would keep VACUUM from truncating the toast table, and
 * REINDEX from ending.  Nobody is waited for.  The table itself cannot be dropped, since the
 * statement has locked the table that it belongs to.
 *
 * Which index it is, is remembered as long as neither has changed: most scans only ask how much
 * has been fetched by it.  As long as it is remembered, both are in the relation cache.
 * Otherwise they may be read from the catalogs, which are locked before, at once or not at all:
 * interrupts are held off here (base/attempt.c), so nothing could end a wait, not even a standby's
 * replay that needs the table's own lock.
 *
 * What has been fetched is seen from the statistics that this backend collects of the index: each
 * value is a scan of it, and each chunk a row of that.
 *
 * src/toast/toasttable.c
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/relcache.h"

#include "base/base.h"
#include "base/compat.h"
#include "toast/toast_int.h"

#define REMEMBERED	64

/* Indexes of toast tables, at a place that depends on the table. */
static struct
{
	Oid			table;			/* or InvalidOid */
	Oid			index;
}			remembered[REMEMBERED];

static void
on_invalidation(Datum arg, Oid oid)
{
	for (int i = 0; i < REMEMBERED; i++)
	{
		if (!OidIsValid(oid) || remembered[i].table == oid || remembered[i].index == oid)
			remembered[i].table = InvalidOid;
	}
}

void
la_toasttable_init(void)
{
	CacheRegisterRelcacheCallback(on_invalidation, (Datum) 0);
}

static Relation
open_relation(Oid oid)
{
	Relation	rel;

	if (!la_lock_relation_at_once(oid, AccessShareLock))
		return NULL;
	rel = RelationIdGetRelation(oid);	/* asks no catalog if the entry is
										 * there */
	if (rel == NULL)
		UnlockRelationOid(oid, AccessShareLock);
	return rel;
}

/* The index by which values are fetched; REINDEX CONCURRENTLY may be making another one. */
static Relation
open_valid_index(Relation table)
{
	List	   *list = RelationGetIndexList(table);
	Relation	result = NULL;
	ListCell   *lc;

	foreach(lc, list)
	{
		Relation	index = open_relation(lfirst_oid(lc));

		if (index == NULL)
			continue;
		if (result == NULL && index->rd_index->indisvalid &&
			index->rd_rel->relam == BTREE_AM_OID)
			result = index;
		else
			relation_close(index, AccessShareLock);
	}
	list_free(list);
	return result;
}

/* What is read from the catalogs to open both, by these indexes. */
static const Oid catalogs[] = {
	RelationRelationId, ClassOidIndexId,
	AttributeRelationId, AttributeRelidNumIndexId,
	IndexRelationId, IndexIndrelidIndexId, IndexRelidIndexId,
	AccessMethodRelationId, AmOidIndexId,
	OperatorClassRelationId, OpclassOidIndexId,
	AccessMethodProcedureRelationId, AccessMethodProcedureIndexId
};

static bool
open_both(LaToastTable *t)
{
	bool		first = t->table_rel == NULL;
	Relation	table = open_relation(t->table);
	Relation	index = table == NULL ? NULL :
		OidIsValid(t->index) ? open_relation(t->index) : open_valid_index(table);

	if (index == NULL)
	{
		if (table != NULL)
			relation_close(table, AccessShareLock);
		return false;
	}
	if (first)
	{
		t->index = RelationGetRelid(index);
		t->table_rel = table;
		t->index_rel = index;
		t->table_file = la_rel_file_number(table);
		t->index_file = la_rel_file_number(index);
	}
	/* a new file, as of TRUNCATE or REINDEX, leaves the entry where it is */
	if (table == t->table_rel && index == t->index_rel && index->rd_index->indisvalid &&
		la_rel_file_number(table) == t->table_file &&
		la_rel_file_number(index) == t->index_file)
		return true;
	relation_close(index, AccessShareLock);
	relation_close(table, AccessShareLock);
	return false;
}

/*
 * Open both.  Returns false, with none open, if a lock is not free, or if one is not what it was
 * the last time.
 */
bool
la_toasttable_open(LaToastTable *t)
{
	int			place = t->table % REMEMBERED;
	bool		opened;

	if (remembered[place].table == t->table)
		return open_both(t);
	if (!la_lock_catalogs_at_once(catalogs, lengthof(catalogs)))
		return false;
	opened = open_both(t);
	la_lock_release_catalogs(catalogs, lengthof(catalogs));
	if (opened)
	{
		remembered[place].table = t->table;
		remembered[place].index = t->index;
	}
	return opened;
}

/* Find out which index it has, if that is not known; InvalidOid if a lock is not free. */
void
la_toasttable_find_index(LaToastTable *t)
{
	int			place = t->table % REMEMBERED;

	if (remembered[place].table == t->table)
		t->index = remembered[place].index;
	else if (la_toasttable_open(t))
		la_toasttable_close(t);
}

void
la_toasttable_close(LaToastTable *t)
{
	relation_close(t->index_rel, AccessShareLock);
	relation_close(t->table_rel, AccessShareLock);
}

/* What has been fetched so far; its index is known. */
LaToastCounts
la_toasttable_counts(const LaToastTable *t)
{
	PgStat_TableStatus *entry = find_tabstat_entry(t->index);
	LaToastCounts counts = {0, 0};

	if (entry == NULL)
		return counts;
	counts.values = la_count_scans(entry);
	counts.chunks = la_count_returned(entry);
	la_count_free(entry);
	return counts;
}
