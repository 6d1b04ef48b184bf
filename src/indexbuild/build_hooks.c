/*
 * build_hooks.c
 *	  How builds of stock btree indexes get to la_btbuild().
 *
 * index_build() calls ambuild() through the index's relcache entry, which has a copy of
 * the access method's routine of its own, or gets one here.  There btbuild() is exchanged,
 * at the last moment that can be seen of the build, in whatever statement it takes place:
 *
 *		index_create(), reindex_index()
 *		  |	CommandCounterIncrement()			-->	relcache callback (2)
 *		  v
 *		index_build()
 *		  |	plan_create_index_workers()			-->	la_relation_hook (1)
 *		  |	index->rd_indam->ambuild()			-->	build(): puts btbuild() back
 *		  v											   la_btbuild()
 *
 *	1. index_build() plans its workers, if there are any or not, unless
 *	   max_parallel_maintenance_workers is 0.
 *	2. If it is 0: when a new index, whose OID comes from the object access hook, or
 *	   the new file of an index that is reindexed becomes visible, index_build() is next.
 *	   Reindexing is also what CLUSTER, VACUUM FULL, REFRESH MATERIALIZED VIEW
 *	   and ALTER TABLE do to the indexes of a table that they have written anew.
 *
 * CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY build in another transaction than
 * they create the index in, where nothing of (2) takes place: with
 * max_parallel_maintenance_workers = 0 they are left to the server.
 *
 * Invariants
 *	I1	Nothing is exchanged but ambuild in one relcache entry at a time, of an index that
 *		its builder has open.  It is put back when the build begins, or else when the
 *		transaction or a subtransaction fails.
 *	I2	No setting is changed, nothing is locked, and no code of a user is called.
 *
 * src/indexbuild/build_hooks.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class_d.h"
#include "miscadmin.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "base/accessmethod.h"
#include "base/compat.h"
#include "base/guc.h"
#include "indexbuild/build.h"
#include "indexbuild/build_hooks.h"

static la_relation_hook_type prev_relation_hook = NULL;
static object_access_hook_type prev_object_access_hook = NULL;

/* The index whose ambuild is exchanged, and the copy of the routine that has it. */
static Oid	exchanged_index = InvalidOid;
static struct IndexAmRoutine *exchanged = NULL;

/* An index whose catalog rows become visible next. */
static Oid	created_index = InvalidOid;

static void
put_back(void)
{
	if (exchanged != NULL)
		exchanged->ambuild = btbuild;
	exchanged = NULL;
	exchanged_index = InvalidOid;
}

static IndexBuildResult *
build(Relation heap, Relation index, IndexInfo *info)
{
	put_back();
	/* also where it is not known any more that it is exchanged */
	la_am_own_routine(index)->ambuild = btbuild;
	return la_btbuild(heap, index, info);
}

/*
 * Is this index open to be built?  Then it is locked, in the mode that concurrent builds
 * take or that of all others.
 */
static bool
is_locked(Relation index)
{
	return CheckRelationLockedByMe(index, AccessExclusiveLock, false) ||
		CheckRelationLockedByMe(index, RowExclusiveLock, false);
}

/*
 * Exchange ambuild if that is a btree index that is about to be built: somebody else has it
 * open and locked, and it has no page yet, not even the metapage.
 */
static void
exchange(Relation index)
{
	if (index->rd_rel->relkind != RELKIND_INDEX ||
		index->rd_rel->relam != BTREE_AM_OID ||
		IsCatalogRelation(index) || index->rd_refcnt < 2 ||
		index->rd_indam->ambuild != btbuild || !is_locked(index) ||
		RelationGetNumberOfBlocks(index) != 0)
		return;
	put_back();
	exchanged = la_am_own_routine(index);
	exchanged_index = RelationGetRelid(index);
	exchanged->ambuild = build;
}

/*
 * The planner has looked at a table.  Every query has a join tree; what plans an index
 * build's workers has none.  The table is locked, so its indexes stay.
 */
static void
planned(LA_RELATION_HOOK_ARGS)
{
	Relation	heap;
	List	   *indexes;
	ListCell   *lc;

	if (prev_relation_hook)
		prev_relation_hook(LA_RELATION_HOOK_PASS);
	if (!la_enable || !la_enable_index_build || root->parse->jointree != NULL ||
		list_length(root->parse->rtable) != 1)
		return;

	heap = RelationIdGetRelation(LA_RELATION_HOOK_OID);
	if (!RelationIsValid(heap))
		return;
	indexes = RelationGetIndexList(heap);
	foreach(lc, indexes)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(lc));

		if (!RelationIsValid(index))
			continue;
		exchange(index);
		RelationClose(index);
	}
	list_free(indexes);
	RelationClose(heap);
}

static bool
is_unplanned(void)
{
	return la_enable && la_enable_index_build &&
		max_parallel_maintenance_workers == 0;
}

/*
 * The same for an index that is created.  One that is to be built concurrently, later, is
 * not ready for inserts.
 */
static void
exchange_created(Relation index)
{
	if (index->rd_index->indisready)
		exchange(index);
}

static void
object_accessed(ObjectAccessType access, Oid class, Oid object, int subid, void *arg)
{
	Relation	relation;

	if (prev_object_access_hook)
		prev_object_access_hook(access, class, object, subid, arg);
	if (access != OAT_POST_CREATE || class != RelationRelationId || subid != 0 ||
		!is_unplanned())
		return;
	/* its catalog rows cannot be seen yet, but its creator has it open */
	relation = RelationIdGetRelation(object);
	if (!RelationIsValid(relation))
		return;
	if (relation->rd_rel->relkind == RELKIND_INDEX)
	{
		/* a constraint's trigger has made them visible already */
		if (relation->rd_indam != NULL)
			exchange_created(relation);
		else
			created_index = object;
	}
	RelationClose(relation);
}

/*
 * Of the indexes that are to be reindexed the one whose turn it is is locked, and open.
 */
static bool
is_reindexed(Oid relid)
{
	RelationData lockable = {0};

	if (!ReindexIsProcessingIndex(relid))
		return false;
	/* the function that takes an OID is not in all minor releases */
	lockable.rd_lockInfo.lockRelId.relId = relid;
	lockable.rd_lockInfo.lockRelId.dbId = MyDatabaseId;
	return CheckRelationLockedByMe(&lockable, AccessExclusiveLock, false);
}

/*
 * The relcache entry of a relation is not what it was.  Entries that are open have been
 * brought up to date before callbacks are called; so no catalog is read for them.
 */
static void
relation_changed(Datum arg, Oid relid)
{
	bool		created;
	Relation	index;

	/* nobody may have it open any more, and the entry be gone */
	if (relid == exchanged_index || !OidIsValid(relid))
	{
		exchanged = NULL;
		exchanged_index = InvalidOid;
	}
	if (!OidIsValid(relid) || !is_unplanned() || !IsTransactionState())
		return;

	created = relid == created_index;
	if (!created && !is_reindexed(relid))
		return;
	created_index = InvalidOid;
	index = RelationIdGetRelation(relid);
	if (!RelationIsValid(index))
		return;
	if (created)
		exchange_created(index);
	else
		exchange(index);
	RelationClose(index);
}

static void
transaction_ends(XactEvent event, void *arg)
{
	put_back();
	created_index = InvalidOid;
}

static void
subtransaction_ends(SubXactEvent event, SubTransactionId id, SubTransactionId parent,
					void *arg)
{
	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	put_back();
	created_index = InvalidOid;
}

void
la_build_init(void)
{
	prev_relation_hook = la_relation_hook;
	la_relation_hook = planned;
	prev_object_access_hook = object_access_hook;
	object_access_hook = object_accessed;
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(subtransaction_ends, NULL);
}
