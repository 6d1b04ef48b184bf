/*
 * descriptors.h
 *	  The scan descriptors of access methods that are known.
 *
 * A descriptor is its access method's own, and so is what it keeps for a scan.  Each function
 * checks whose it is; a room has asked the gate before, so that a wrong one is an error of ours.
 * Where a shadow stands for the relation, it is a copy, and says the same.
 *
 * Invariant: no other file casts a descriptor (dev/lint).
 *
 * src/attach/descriptors.h
 */
#ifndef LA_DESCRIPTORS_H
#define LA_DESCRIPTORS_H

#include "access/gin_private.h"
#include "access/gist_private.h"
#include "access/hash.h"
#include "access/heapam.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/spgist_private.h"
#include "catalog/pg_am.h"
#include "utils/rel.h"

#include "attach/attach.h"

/* The descriptor of a table's scan, and the table itself. */
static inline HeapScanDesc
la_heap_scan(TableScanDesc scan, const RelationData *table)
{
	Assert(la_gate_is_heap(table));
	return (HeapScanDesc) scan;
}

/* What an index scan keeps of the table. */
static inline IndexFetchHeapData *
la_heap_fetch(IndexScanDesc scan)
{
	Assert(la_gate_is_heap(scan->heapRelation));
	return (IndexFetchHeapData *) scan->xs_heapfetch;
}

static inline BTScanOpaque
la_btree_scan(IndexScanDesc scan)
{
	Assert(scan->indexRelation->rd_rel->relam == BTREE_AM_OID);
	return (BTScanOpaque) scan->opaque;
}

static inline HashScanOpaque
la_hash_scan(IndexScanDesc scan)
{
	Assert(scan->indexRelation->rd_rel->relam == HASH_AM_OID);
	return (HashScanOpaque) scan->opaque;
}

static inline GISTScanOpaque
la_gist_scan(IndexScanDesc scan)
{
	Assert(scan->indexRelation->rd_rel->relam == GIST_AM_OID);
	return (GISTScanOpaque) scan->opaque;
}

static inline SpGistScanOpaque
la_spgist_scan(IndexScanDesc scan)
{
	Assert(scan->indexRelation->rd_rel->relam == SPGIST_AM_OID);
	return (SpGistScanOpaque) scan->opaque;
}

static inline GinScanOpaque
la_gin_scan(IndexScanDesc scan)
{
	Assert(scan->indexRelation->rd_rel->relam == GIN_AM_OID);
	return (GinScanOpaque) scan->opaque;
}

#endif							/* LA_DESCRIPTORS_H */
