/*
 * getbitmap.c
 *	  Between a bitmap index scan and its access method.
 *
 *		MultiExecBitmapIndexScan --> index_getbitmap(scan)
 *									  | scan->indexRelation->rd_indam->amgetbitmap
 *									  v
 *		shadow Relation (a copy, this scan's own) --> shim_getbitmap (here)
 *									  v
 *		gin.c: pages advised around the real gingetbitmap
 *		range.c: btgetbitmap's loop, with pages advised
 *
 * indexRelation is pointed at a copy of the Relation (base/base.h) whose access method routine is
 * ours.  The node, its keys, and what it does with the bitmap are the server's.
 *
 * Behaviours:
 *	STALE_COPY	Of the copy only rd_indam and pgstat_info are used, by indexam.c.  The access
 *				method is called through the real entry of the relcache, which DDL with an open
 *				cursor may have rebuilt.
 *	AFTER_ERROR	An error in the access method leaves the real Relation in the descriptor.  The
 *				scan does not go on; if it is ended, the access method's amendscan is called.
 *	LIFETIME	The LaBitmapScan lives in the query's memory context.  amendscan restores
 *				indexRelation.  The callback on the context publishes the counters, also after
 *				an error.  Nothing is pinned between two calls.
 *
 * src/bitmap/getbitmap.c
 */
#include "postgres.h"

#include "base/base.h"
#include "base/compat.h"
#include "bitmap/bitmap_int.h"
#include "window/window.h"

/* The shim's routines: one for all scans of an access method. */
static IndexAmRoutine gin_routine;
static IndexAmRoutine btree_routine;

static int64
shim_getbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	LaBitmapScan *bs = (LaBitmapScan *) scan->indexRelation;
	int64		ntids;

	la_shadow_call(bs, ntids = bs->getbitmap(bs, tbm));
	la_memory_end_call(bs);
	return ntids;
}

static void
shim_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	LaBitmapScan *bs = (LaBitmapScan *) scan->indexRelation;

	la_shadow_call(bs, bs->real->rd_indam->amrescan(scan, keys, nkeys, orderbys, norderbys));
}

/* index_endscan goes on with scan->indexRelation, so it must be the real one. */
static void
shim_endscan(IndexScanDesc scan)
{
	LaBitmapScan *bs = (LaBitmapScan *) scan->indexRelation;

	if (bs->getbitmap == la_range_getbitmap)
		la_leafahead_free(&bs->leaf);
	scan->indexRelation = bs->real;
	bs->real->rd_indam->amendscan(scan);
}

/* The scan's own record, if the shim is there, or NULL. */
LaBitmapScan *
la_getbitmap_of(IndexScanDesc scan)
{
	if (scan == NULL || scan->indexRelation->rd_indam->amendscan != shim_endscan)
		return NULL;
	return (LaBitmapScan *) scan->indexRelation;
}

/*
 * Are there pages of such an index to be advised?  Local buffers and direct I/O know no advice
 * that has an effect.
 */
bool
la_getbitmap_is_eligible(Relation index)
{
	return (la_ginreads_is_stock(index->rd_indam) || la_range_is_stock(index->rd_indam)) &&
		!la_am_is_excluded(index->rd_rel->relam) &&
		!RelationUsesLocalBuffers(index) && !la_direct_io();
}

/* Callback of the scan's memory context. */
static void
end_scan(void *arg)
{
	LaBitmapScan *bs = (LaBitmapScan *) arg;

	la_budget_end(&bs->budget);
	la_stats_publish(LA_KIND_BITMAP_INDEX_SCAN, bs->heaprelid, bs->indexrelid,
					 &bs->counters);
}

static IndexAmRoutine *
routine_for(Relation real)
{
	IndexAmRoutine *routine = la_ginreads_is_stock(real->rd_indam) ? &gin_routine : &btree_routine;

	if (routine->type != T_IndexAmRoutine)
	{
		*routine = *real->rd_indam;
		routine->amgetbitmap = shim_getbitmap;
		routine->amrescan = shim_rescan;
		routine->amendscan = shim_endscan;
	}
	return routine;
}

/* Get between the descriptor of an eligible scan, which may have been started, and the index. */
void
la_getbitmap_install(IndexScanDesc scan, EState *estate)
{
	MemoryContext context = estate->es_query_cxt;
	Relation	real = scan->indexRelation;
	LaBitmapScan *bs = MemoryContextAlloc(context, sizeof(LaBitmapScan));

	la_shadow_init(&bs->shadow, real, routine_for(real));
	memset((char *) bs + sizeof(RelationData), 0, sizeof(LaBitmapScan) - sizeof(RelationData));
	bs->real = real;
	bs->scan = scan;
	bs->getbitmap = la_ginreads_is_stock(real->rd_indam) ? la_gin_getbitmap : la_range_getbitmap;
	bs->context = context;
	bs->heaprelid = real->rd_index->indrelid;
	bs->indexrelid = RelationGetRelid(real);
	bs->budget.limit = (Size) la_scan_memory * 1024;
	la_stats_open(&bs->counters, estate);
	bs->counters.c[LA_SCANS_ATTACHED] = 1;
	if (bs->getbitmap == la_range_getbitmap)
		la_range_init(bs);
	else
		la_ginreads_init(&bs->reads, real, &bs->counters);

	bs->callback.func = end_scan;
	bs->callback.arg = bs;
	MemoryContextRegisterResetCallback(context, &bs->callback);
	scan->indexRelation = &bs->shadow;
}
