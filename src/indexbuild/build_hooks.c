/*
 * build_hooks.c
 *	  How builds of stock btree indexes get to la_btbuild().
 *
 * index_build() calls ambuild() of the index's access method routine.  There btbuild() is
 * exchanged (attach/interpose_index.c), by the last function of ours that is called before the
 * build, in whatever statement that takes place:
 *
 *		index_create(), reindex_index()
 *		  |	CommandCounterIncrement()			-->	relcache callback: UNPLANNED
 *		  v
 *		index_build()
 *		  |	plan_create_index_workers()			-->	la_relation_hook: PLANNED
 *		  |	index->rd_indam->ambuild()			-->	build(): puts btbuild() back
 *		  v											   la_btbuild()
 *
 * Behaviours
 *	PLANNED		index_build() has the planner choose the number of workers, unless
 *				max_parallel_maintenance_workers is 0.
 *	UNPLANNED	If it is 0, index_build() is called next after a new index, whose OID comes from
 *				the object access hook, or the new file of an index that is reindexed becomes
 *				visible.  CLUSTER, VACUUM FULL, REFRESH MATERIALIZED VIEW and ALTER TABLE reindex
 *				a table that they have rewritten.  CREATE INDEX CONCURRENTLY and REINDEX
 *				CONCURRENTLY do not come here: they build in another transaction than they
 *				create the index in.  With that setting, the server builds their indexes.
 *
 * Invariant: nothing but ambuild is exchanged, and only of an index that its builder has open.
 * No setting is changed, no lock is taken, and no user code is called.
 *
 * src/indexbuild/build_hooks.c
 */
#include "postgres.h"

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

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "indexbuild/indexbuild.h"
#include "indexbuild/indexbuild_int.h"

static la_relation_hook_type prev_relation_hook = NULL;
static object_access_hook_type prev_object_access_hook = NULL;

/* An index whose catalog rows become visible next. */
static Oid	created_index = InvalidOid;

static IndexBuildResult *
build(Relation heap, Relation index, IndexInfo *info)
{
	la_interpose_restore(index);
	return la_btbuild(heap, index, info);
}

/* Is the index locked in the mode of a build, or in that of a concurrent one? */
static bool
is_locked(Relation index)
{
	return CheckRelationLockedByMe(index, AccessExclusiveLock, false) ||
		CheckRelationLockedByMe(index, RowExclusiveLock, false);
}

/*
 * Exchange ambuild if this is a btree index that is about to be built: its builder has it open,
 * besides the caller, and it has no page yet, not even the metapage.
 */
static void
exchange(Relation index)
{
	if (index->rd_rel->relkind == RELKIND_INDEX &&
		index->rd_rel->relam == BTREE_AM_OID &&
		!IsCatalogRelation(index) && index->rd_refcnt >= 2 &&
		is_locked(index) && RelationGetNumberOfBlocks(index) == 0)
		la_interpose_ambuild(index, build);
}

/*
 * The planner has looked at a table.  plan_create_index_workers() and plan_cluster_use_sort() have
 * it do so with a query that has no join tree.  For the latter no index is without pages, and
 * exchange() does nothing.
 */
static void
planned(LA_RELATION_HOOK_ARGS)
{
	Relation	heap;

	if (prev_relation_hook)
		prev_relation_hook(LA_RELATION_HOOK_PASS);
	if (!la_enable || !la_enable_index_build || root->parse->jointree != NULL ||
		list_length(root->parse->rtable) != 1)
		return;

	heap = RelationIdGetRelation(LA_RELATION_HOOK_OID);
	if (!RelationIsValid(heap))
		return;
	la_interpose_each_index(heap, exchange);
	RelationClose(heap);
}

static bool
is_unplanned(void)
{
	return la_enable && la_enable_index_build &&
		max_parallel_maintenance_workers == 0;
}

/* The same for a new index.  One that will be built concurrently is not ready for inserts. */
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

/* Is this the index to be reindexed next?  The other pending ones are not locked. */
static bool
is_reindexed(Oid relid)
{
	RelationData lockable = {0};

	if (!ReindexIsProcessingIndex(relid))
		return false;
	/* CheckRelationOidLockedByMe() is not in all minor releases */
	lockable.rd_lockInfo.lockRelId.relId = relid;
	lockable.rd_lockInfo.lockRelId.dbId = MyDatabaseId;
	return CheckRelationLockedByMe(&lockable, AccessExclusiveLock, false);
}

/*
 * A relcache entry was invalidated.  Entries that are open are rebuilt before callbacks are
 * called, so no catalog is read for them here.
 */
static void
relation_changed(Datum arg, Oid relid)
{
	bool		created;
	Relation	index;

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

/* la_transaction_function */
static void
transaction_ends(XactEvent event, SubTransactionId failed)
{
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
	la_transaction_register(transaction_ends);
}
