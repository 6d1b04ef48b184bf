/*
 * deferred.c
 *	  Between a btree scan and nbtree until there is a reason to attach the scan.
 *
 * Most index scans are small and find every block in shared buffers.  The shim's installation alone
 * can be noticed in them: it asks what the plan wants of the scan, sets policies up, and has
 * counters to publish.  So something smaller stands in its place at first, in the same way, and has
 * the scan attached before nbtree is asked for an entry, if meanwhile
 *	READ	a block has been read, whether for an entry that was returned, for one that was dead or
 *			that a filter has rejected, or for a leaf page; or
 *	MANY	attach_threshold entries have been taken since the last rescan.
 *
 * The shim can be installed between two entries: as long as it is passive, position, mark and
 * killed items are nbtree's.  Nothing is decided here, and nothing is kept of the scan.
 *
 * WRITE_LAST, AFTER_ERROR and STALE_COPY of shim.c hold here, too.
 *
 * src/scan/deferred.c
 */
#include "postgres.h"

#include "catalog/pg_am.h"

#include "scan/scan_int.h"

typedef struct Deferred
{
	RelationData shadow;		/* must be first: scan->indexRelation points
								 * here, see base/base.h */
	Relation	real;			/* the index */
	IndexScanDesc scan;
	la_deferred_end end;
	PlanState  *node;			/* argument of end */
	int64		seen_reads;		/* blocks read when it was last looked */
	int			left;			/* entries until MANY */
} Deferred;

static IndexAmRoutine deferred_routine;

/* READ, MANY: is there a reason now?  Then it is deferred no longer. */
static inline bool
ends(Deferred *d)
{
	bool		read = la_issue_blocks_read() != d->seen_reads;
	MemoryContext context;

	if (!read && d->left-- > 0)
		return false;
	d->scan->indexRelation = d->real;
	context = MemoryContextSwitchTo(d->node->state->es_query_cxt);
	d->end(d->node, read);
	MemoryContextSwitchTo(context);
	return true;
}

static bool
deferred_gettuple(IndexScanDesc scan, ScanDirection dir)
{
	Deferred   *d = (Deferred *) scan->indexRelation;
	bool		found;

	if (ends(d))
		return scan->indexRelation->rd_indam->amgettuple(scan, dir);
	if (la_btree_step(scan, dir))
		return true;
	la_shadow_call(d, found = d->real->rd_indam->amgettuple(scan, dir));
	return found;
}

static void
deferred_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	Deferred   *d = (Deferred *) scan->indexRelation;

	d->left = la_attach_threshold;
	if (ends(d))
	{
		scan->indexRelation->rd_indam->amrescan(scan, keys, nkeys, orderbys, norderbys);
		return;
	}
	la_shadow_call(d, d->real->rd_indam->amrescan(scan, keys, nkeys, orderbys, norderbys));
	d->left = la_attach_threshold;
}

static void
deferred_parallelrescan(IndexScanDesc scan)
{
	Deferred   *d = (Deferred *) scan->indexRelation;

	la_shadow_call(d, d->real->rd_indam->amparallelrescan(scan));
}

static void
deferred_markpos(IndexScanDesc scan)
{
	Deferred   *d = (Deferred *) scan->indexRelation;

	la_shadow_call(d, d->real->rd_indam->ammarkpos(scan));
}

static void
deferred_restrpos(IndexScanDesc scan)
{
	Deferred   *d = (Deferred *) scan->indexRelation;

	la_shadow_call(d, d->real->rd_indam->amrestrpos(scan));
}

/* index_endscan goes on with scan->indexRelation, so it must be the real one. */
static void
deferred_endscan(IndexScanDesc scan)
{
	Deferred   *d = (Deferred *) scan->indexRelation;

	scan->indexRelation = d->real;
	d->real->rd_indam->amendscan(scan);
}

static IndexAmRoutine *
routine_of(Relation real)
{
	IndexAmRoutine *routine = &deferred_routine;

	Assert(real->rd_rel->relam == BTREE_AM_OID);
	if (routine->type == T_IndexAmRoutine)
		return routine;
	*routine = *real->rd_indam;
	routine->amgettuple = deferred_gettuple;
	routine->amrescan = deferred_rescan;
	routine->amendscan = deferred_endscan;
	routine->ammarkpos = deferred_markpos;
	routine->amrestrpos = deferred_restrpos;
	routine->amparallelrescan = deferred_parallelrescan;
	return routine;
}

/* end: called, with the node and whether a block was read, when the scan is to be attached. */
void
la_deferred_install(IndexScanDesc scan, PlanState *node, la_deferred_end end)
{
	Relation	real = scan->indexRelation;
	Deferred   *d;

	/* another extension may have saved the node's function, and call it again */
	if (real->rd_indam->amgettuple == deferred_gettuple)
		return;
	d = MemoryContextAlloc(node->state->es_query_cxt, sizeof(Deferred));
	la_shadow_init(&d->shadow, real, routine_of(real));
	d->real = real;
	d->scan = scan;
	d->end = end;
	d->node = node;
	d->seen_reads = la_issue_blocks_read();
	d->left = la_attach_threshold;
	scan->indexRelation = &d->shadow;
}

/* Is the scan deferred?  Then it is no longer, and was not attached either. */
bool
la_deferred_remove(IndexScanDesc scan)
{
	if (scan->indexRelation->rd_indam->amgettuple != deferred_gettuple)
		return false;
	scan->indexRelation = ((Deferred *) scan->indexRelation)->real;
	return true;
}
