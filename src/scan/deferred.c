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
 *	RECORDS	Some records, with their copies of the index's relation, outlive their scans: to
 *			allocate and copy would be a third of a short scan's cost.  A record is free once its
 *			scan has been attached or has ended, or, after an error, with its statement.  The copy
 *			is good until the relation is invalidated.  After a quiet scan of the index, history is
 *			not asked whether the next one is to be deferred.
 *
 * WRITE_LAST, AFTER_ERROR and STALE_COPY of shim.c hold here, too.
 *
 * src/scan/deferred.c
 */
#include "postgres.h"

#include "catalog/pg_am.h"
#include "utils/inval.h"

#include "scan/scan_int.h"

#define RECORDS 16

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

	/* RECORDS */
	const EState *user;			/* of the scan; NULL: it is free */
	Oid			copied;			/* the relation that shadow is a valid copy of */
	bool		quiet;			/* no block was read during the last scan */
} Deferred;

static IndexAmRoutine deferred_routine;

static Deferred records[RECORDS];

/* RECORDS: callback */
static void
on_invalidation(Datum arg, Oid relid)
{
	for (int i = 0; i < RECORDS; i++)
	{
		if (!OidIsValid(relid) || records[i].copied == relid)
			records[i].copied = InvalidOid;
	}
}

/* The scan goes on with the index itself. */
static inline void
release(Deferred *d)
{
	d->scan->indexRelation = d->real;
	d->user = NULL;
	d->quiet = la_issue_blocks_read() == d->seen_reads;
}

/* READ, MANY: is there a reason now?  Then it is deferred no longer. */
static inline bool
ends(Deferred *d)
{
	bool		read = la_issue_blocks_read() != d->seen_reads;
	PlanState  *node = d->node;
	MemoryContext context;

	if (!read && d->left-- > 0)
		return false;
	release(d);
	context = MemoryContextSwitchTo(node->state->es_query_cxt);
	d->end(node, read);
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

	release(d);
	d->real->rd_indam->amendscan(scan);
}

static IndexAmRoutine *
routine_of(Relation real)
{
	IndexAmRoutine *routine = &deferred_routine;

	Assert(real->rd_rel->relam == BTREE_AM_OID);
	if (routine->type == T_IndexAmRoutine)
		return routine;
	CacheRegisterRelcacheCallback(on_invalidation, (Datum) 0);
	*routine = *real->rd_indam;
	routine->amgettuple = deferred_gettuple;
	routine->amrescan = deferred_rescan;
	routine->amendscan = deferred_endscan;
	routine->ammarkpos = deferred_markpos;
	routine->amrestrpos = deferred_restrpos;
	routine->amparallelrescan = deferred_parallelrescan;
	return routine;
}

/*
 * RECORDS: the one that scans of this relation take, if it is free.  A statement that is not known
 * cannot tell when that is.
 */
static Deferred *
find_record(Relation real, const EState *estate)
{
	Deferred   *d = &records[RelationGetRelid(real) % RECORDS];

	if ((d->user != NULL && !la_statements_has_ended(d->user)) ||
		la_statements_find(estate) == NULL)
		return NULL;
	d->user = estate;
	return d;
}

static Deferred *
create(Relation real, const EState *estate)
{
	Deferred   *d = find_record(real, estate);

	if (d == NULL)
		d = MemoryContextAllocZero(estate->es_query_cxt, sizeof(Deferred));
	if (d->copied == RelationGetRelid(real) && d->real == real)
		la_shadow_renew(&d->shadow, real);
	else
		la_shadow_init(&d->shadow, real, routine_of(real));
	d->copied = RelationGetRelid(real);
	d->real = real;
	return d;
}

/* end: called, with the node and whether a block was read, when the scan is to be attached. */
void
la_deferred_install(IndexScanDesc scan, PlanState *node, la_deferred_end end)
{
	Relation	real = scan->indexRelation;
	Deferred   *d = create(real, node->state);

	d->scan = scan;
	d->end = end;
	d->node = node;
	d->seen_reads = la_issue_blocks_read();
	d->left = la_attach_threshold;
	scan->indexRelation = &d->shadow;
}

/* RECORDS: has a scan of the index been deferred before, and did the last one read no block? */
bool
la_deferred_was_quiet(Relation index)
{
	const Deferred *d = &records[RelationGetRelid(index) % RECORDS];

	return d->copied == RelationGetRelid(index) && d->quiet;
}

/* Is the scan deferred?  Then it is no longer, and was not attached either. */
bool
la_deferred_remove(IndexScanDesc scan)
{
	if (scan->indexRelation->rd_indam->amgettuple != deferred_gettuple)
		return false;
	release((Deferred *) scan->indexRelation);
	return true;
}
