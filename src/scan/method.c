/*
 * method.c
 *	  What look-ahead knows of index access methods other than btree.
 *
 * rowqueue.c runs any access method ahead through amgettuple alone.  What that does not allow is
 * here, for the access methods whose scan state is known:
 *
 *	hash	An entry's place is currPos.  Dead entries are marked by _hash_kill_items, called on a
 *			state of their own.  It finds them by their TIDs, and is right as long as VACUUM has
 *			not been in the bucket since: stock keeps the primary bucket page pinned for the whole
 *			scan for that reason (and the old bucket's during a split).  The scan may end, and drop
 *			these pins, while rows are still queued, so the queue holds pins of its own.  Stock,
 *			which has not come to the end by then, holds as many.
 *	GiST	Dead entries are marked by a function that is not exported, which gistgettuple calls
 *			before it turns to the next page.  So gistgettuple is called with the scan state set to
 *			the page in question, with its LSN and its dead entries, at its last row, and with an
 *			empty search queue.  It marks the entries under GiST's own rule that the page's LSN
 *			must be the same, finds nothing more, and returns false; then the state is restored.
 *			Entries of a root page that is a leaf are never marked, as in stock.  Marking entries
 *			may change the page's LSN (a full-page image, with checksums), so those that GiST has
 *			noted for the current page are taken over when look-ahead begins, and returned when it
 *			ends on that page.
 *	SP-GiST	marks no entries.
 *	others	A dead entry is reported to the access method only if it is the one that it returned
 *			last.  The report is a hint, and none of those in base/accessmethod.c uses it.
 *
 * Index-only scans: GiST and SP-GiST hold no pin on the index page whose rows they return, so a
 * row that VACUUM removes between reading the page and looking at the visibility map may be
 * returned, in stock too.  This must not become more likely: such scans foresee rows of the current
 * page only (rows_on_page).  Those of other access methods do not look ahead.
 *
 * Index pages to come: hash knows the next overflow page.  GiST and SP-GiST keep the pages that
 * they have not visited in a pairing heap.
 *
 * src/scan/method.c
 */
#include "postgres.h"

#include "access/gist_private.h"
#include "access/hash.h"
#include "access/spgist_private.h"
#include "catalog/pg_am.h"
#include "lib/pairingheap.h"
#include "storage/bufmgr.h"

#include "attach/descriptors.h"
#include "scan/scan_int.h"

#define PAGES_AHEAD	16			/* index pages of a search queue */
#define NODES_AHEAD	64			/* nodes looked at to find them */

/* ---- hash ---------------------------------------------------------------- */

static void
hash_locate(LaScan *ls, LaKilledItems *killed, LaIndexEntry *entry)
{
	HashScanOpaque so = la_hash_scan(ls->scan);
	Buffer		buckets[2] = {so->hashso_bucket_buf, so->hashso_split_bucket_buf};

	if (!HashScanPosIsValid(so->currPos))
		return;
	entry->page = so->currPos.currPage;
	entry->offset = so->currPos.items[so->currPos.itemIndex].indexOffset;
	for (Size i = 0; i < lengthof(buckets); i++)
	{
		if (BufferIsValid(buckets[i]) && !BufferIsValid(killed->pins[i]))
		{
			IncrBufferRefCount(buckets[i]);
			killed->pins[i] = buckets[i];
		}
	}
}

static void
hash_kill(LaScan *ls, LaKilledItems *killed)
{
	IndexScanDesc scan = ls->scan;
	HashScanOpaque so = la_hash_scan(scan);
	HashScanOpaque ks = killed->work;
	int			items[MaxIndexTuplesPerPage];

	if (ks == NULL)
		ks = killed->work = MemoryContextAllocZero(ls->context, sizeof(HashScanOpaqueData));
	HashScanPosInvalidate(ks->currPos);
	ks->currPos.currPage = killed->page;
	for (Size i = 0; i < lengthof(killed->pins); i++)
	{
		if (BufferIsValid(killed->pins[i]) &&
			BufferGetBlockNumber(killed->pins[i]) == killed->page)
			ks->currPos.buf = killed->pins[i];
	}
	/* InvalidBuffer would equal the buffer of an unpinned overflow page */
	ks->hashso_bucket_buf = killed->pins[0];
	for (int i = 0; i < killed->n; i++)
	{
		ks->currPos.items[i].heapTid = killed->entries[i].tid;
		ks->currPos.items[i].indexOffset = killed->entries[i].offset;
		items[i] = i;
	}
	ks->currPos.lastItem = killed->n - 1;
	ks->killedItems = items;
	ks->numKilled = killed->n;
	scan->opaque = ks;
	la_shadow_call(ls, _hash_kill_items(scan));
	scan->opaque = so;
}

static void
hash_issue_pages(LaScan *ls)
{
	HashScanOpaque so = la_hash_scan(ls->scan);

	if (HashScanPosIsValid(so->currPos) && BlockNumberIsValid(so->currPos.nextPage))
		(void) la_leafahead_issue_page(&ls->leaf, so->currPos.nextPage);
}

/* ---- GiST ---------------------------------------------------------------- */

static void
gist_locate(LaScan *ls, LaKilledItems *killed, LaIndexEntry *entry)
{
	GISTScanOpaque so = la_gist_scan(ls->scan);

	/* ordered scans return rows of many pages mixed, and mark none dead */
	if (ls->scan->numberOfOrderBys > 0 || so->curPageData == 0)
		return;
	entry->page = so->curBlkno;
	entry->offset = so->pageData[so->curPageData - 1].offnum;
	entry->lsn = so->curPageLSN;
}

static void
gist_kill(LaScan *ls, LaKilledItems *killed)
{
	GISTScanOpaque so = la_gist_scan(ls->scan);
	pairingheap *queue = so->queue;
	OffsetNumber *own_killed = so->killedItems;
	int			nown_killed = so->numKilled;
	BlockNumber page = so->curBlkno;
	GistNSN		lsn = so->curPageLSN;
	OffsetNumber nrows = so->nPageData;
	OffsetNumber row = so->curPageData;
	OffsetNumber offsets[MaxIndexTuplesPerPage];
	pairingheap empty = *queue;

	empty.ph_root = NULL;
	for (int i = 0; i < killed->n; i++)
		offsets[i] = killed->entries[i].offset;

	so->queue = &empty;
	so->killedItems = offsets;
	so->numKilled = killed->n;
	so->curBlkno = killed->page;
	so->curPageLSN = killed->lsn;
	so->nPageData = so->curPageData = 0;

	ls->scan->kill_prior_tuple = false;
	if (la_scan_am_gettuple(ls, ForwardScanDirection))
		elog(ERROR, "GiST scan returned a row from an empty search queue");

	so->queue = queue;
	so->killedItems = own_killed;
	so->numKilled = nown_killed;
	so->curBlkno = page;
	so->curPageLSN = lsn;
	so->nPageData = nrows;
	so->curPageData = row;
}

static void
gist_take_killed(LaScan *ls, LaKilledItems *killed)
{
	GISTScanOpaque so = la_gist_scan(ls->scan);
	LaIndexEntry entry = {.page = so->curBlkno,.lsn = so->curPageLSN};

	for (int i = 0; i < so->numKilled; i++)
	{
		entry.offset = so->killedItems[i];
		la_killed_add(ls, killed, &entry);
	}
	so->numKilled = 0;
}

static void
gist_return_killed(LaScan *ls, LaKilledItems *killed)
{
	GISTScanOpaque so = la_gist_scan(ls->scan);

	if (killed->page != so->curBlkno || killed->lsn != so->curPageLSN || so->numKilled > 0)
		return;
	if (so->killedItems == NULL)
		so->killedItems = MemoryContextAlloc(so->giststate->scanCxt,
											 MaxIndexTuplesPerPage * sizeof(OffsetNumber));
	for (int i = 0; i < killed->n; i++)
		so->killedItems[so->numKilled++] = killed->entries[i].offset;
	killed->n = 0;
}

static int
gist_rows_on_page(LaScan *ls)
{
	GISTScanOpaque so = la_gist_scan(ls->scan);

	return ls->scan->numberOfOrderBys > 0 ? 0 : so->nPageData - so->curPageData;
}

/* ---- Search queues ------------------------------------------------------- */

/*
 * Start the reads of the first index pages of a search queue: roughly, since a pairing heap is in
 * order only from each node to its children.
 */
static void
issue_queued_pages(LaScan *ls, pairingheap *heap,
				   BlockNumber (*page_of) (pairingheap_node *node))
{
	pairingheap_node *nodes[NODES_AHEAD];
	int			nnodes = 0;
	int			npages = 0;
	int			wanted = Min(PAGES_AHEAD, 1 + ls->policy.ahead / 8);

	if (heap->ph_root != NULL)
		nodes[nnodes++] = heap->ph_root;
	for (int i = 0; i < nnodes && npages < wanted; i++)
	{
		BlockNumber page = page_of(nodes[i]);

		if (page != InvalidBlockNumber)
		{
			(void) la_leafahead_issue_page(&ls->leaf, page);
			npages++;
		}
		for (pairingheap_node *child = nodes[i]->first_child;
			 child != NULL && nnodes < NODES_AHEAD; child = child->next_sibling)
			nodes[nnodes++] = child;
	}
}

static BlockNumber
gist_page_of(pairingheap_node *node)
{
	/* rows have InvalidBlockNumber */
	return pairingheap_container(GISTSearchItem, phNode, node)->blkno;
}

static void
gist_issue_pages(LaScan *ls)
{
	issue_queued_pages(ls, la_gist_scan(ls->scan)->queue, gist_page_of);
}

static BlockNumber
spgist_page_of(pairingheap_node *node)
{
	SpGistSearchItem *item = pairingheap_container(SpGistSearchItem, phNode, node);

	if (item->isLeaf || !ItemPointerIsValid(&item->heapPtr))
		return InvalidBlockNumber;
	return ItemPointerGetBlockNumberNoCheck(&item->heapPtr);
}

static void
spgist_issue_pages(LaScan *ls)
{
	issue_queued_pages(ls, la_spgist_scan(ls->scan)->scanQueue, spgist_page_of);
}

static int
spgist_rows_on_page(LaScan *ls)
{
	SpGistScanOpaque so = la_spgist_scan(ls->scan);

	return so->nPtrs - so->iPtr;
}

const LaMethod *
la_method_of(Oid am)
{
	static const LaMethod hash = {
		.locate = hash_locate,
		.kill = hash_kill,
		.issue_pages = hash_issue_pages
	};
	static const LaMethod gist = {
		.locate = gist_locate,
		.kill = gist_kill,
		.take_killed = gist_take_killed,
		.return_killed = gist_return_killed,
		.rows_on_page = gist_rows_on_page,
		.issue_pages = gist_issue_pages,
		.sets_distances = true
	};
	static const LaMethod spgist = {
		.rows_on_page = spgist_rows_on_page,
		.issue_pages = spgist_issue_pages,
		.sets_distances = true
	};
	static const LaMethod unknown = {0};

	switch (am)
	{
		case HASH_AM_OID:
			return &hash;
		case GIST_AM_OID:
			return &gist;
		case SPGIST_AM_OID:
			return &spgist;
		default:
			return &unknown;
	}
}
