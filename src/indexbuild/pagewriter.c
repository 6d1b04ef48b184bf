/*
 * pagewriter.c
 *	  Writing the pages of a new index, bypassing shared buffers.
 *
 *		la_pagewriter_get_page()	memory for a page, with undefined contents
 *		la_pagewriter_write()		WAL, checksum, file: the page is the writer's again
 *		la_pagewriter_end()			the file is on disk, or the server will see to that
 *
 * Each block is written once, in any order.
 *
 * Behaviours
 *	BULK WRITE	From 17 on the server provides this (storage/bulk_write.h): it logs pages in
 *				groups, fills gaps, and sees to it that the file is synced.
 *	ONE BY ONE	Before 17, each page is logged and written as it comes.  Blocks that it skips are
 *				written as zeros, without WAL, and overwritten later: upper pages and the
 *				metapage of a btree have lower numbers than pages that are finished before.
 *	SYNC		Before 17, a file that is logged is synced here: a checkpoint that begins
 *				during the build does not know of the file, and recovery from it would not
 *				replay the earlier pages.  A file that is not logged is synced or logged by the
 *				server at commit (wal_level = minimal), or reset by recovery (unlogged).  Like
 *				nbtsort.c before 17, this does not make a clean shutdown sync an unlogged index.
 *
 * Invariants
 *	- The index's file is new and empty, and nobody else sees it.  So an error leaves nothing
 *	  to undo: the file is dropped with the transaction.
 *	- Memory is in the memory context of la_pagewriter_begin().
 *
 * src/indexbuild/pagewriter.c
 */
#include "postgres.h"

#include "storage/bufmgr.h"

#include "base/compat.h"
#ifdef LA_BULK_WRITE
#include "storage/bulk_write.h"
#else
#include "access/xloginsert.h"
#include "storage/smgr.h"
#endif

#include "indexbuild/indexbuild_int.h"

static void
check_is_empty(Relation index)
{
	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
}

#ifdef LA_BULK_WRITE			/* ---- behaviour BULK WRITE -------------------- */

struct LaPageWriter
{
	BulkWriteState *bulk;
};

LaPageWriter *
la_pagewriter_begin(Relation index)
{
	LaPageWriter *w = palloc(sizeof(LaPageWriter));

	check_is_empty(index);
	w->bulk = smgr_bulk_start_rel(index, MAIN_FORKNUM);
	return w;
}

Page
la_pagewriter_get_page(LaPageWriter *w)
{
	return (Page) smgr_bulk_get_buf(w->bulk);
}

void
la_pagewriter_write(LaPageWriter *w, BlockNumber block, Page page)
{
	smgr_bulk_write(w->bulk, block, (BulkWriteBuffer) page, true);
}

void
la_pagewriter_end(LaPageWriter *w)
{
	smgr_bulk_finish(w->bulk);
	pfree(w);
}

#else							/* ---- behaviours ONE BY ONE and SYNC ---------- */

struct LaPageWriter
{
	Relation	index;
	MemoryContext context;
	bool		log;
	BlockNumber blocks;			/* of the file, so far */
	Page		zeros;			/* a page of them, once there was a gap */
	Page		spare;			/* memory of a page that was written */
};

LaPageWriter *
la_pagewriter_begin(Relation index)
{
	LaPageWriter *w = palloc0(sizeof(LaPageWriter));

	check_is_empty(index);
	w->index = index;
	w->context = CurrentMemoryContext;
	w->log = RelationNeedsWAL(index);
	return w;
}

Page
la_pagewriter_get_page(LaPageWriter *w)
{
	Page		page = w->spare;

	w->spare = NULL;
	return page ? page : (Page) la_alloc_page(w->context);
}

static void
extend(LaPageWriter *w, Page page)
{
	/* an invalidation may have closed the file meanwhile */
	smgrextend(RelationGetSmgr(w->index), MAIN_FORKNUM, w->blocks, (char *) page, true);
	w->blocks++;
}

void
la_pagewriter_write(LaPageWriter *w, BlockNumber block, Page page)
{
	if (w->log)
		log_newpage(&la_rel_locator(w->index), MAIN_FORKNUM, block, page, true);

	while (w->blocks < block)
	{
		if (!w->zeros)
		{
			w->zeros = (Page) la_alloc_page(w->context);
			memset(w->zeros, 0, BLCKSZ);
		}
		extend(w, w->zeros);
	}

	PageSetChecksumInplace(page, block);
	if (block == w->blocks)
		extend(w, page);
	else
		smgrwrite(RelationGetSmgr(w->index), MAIN_FORKNUM, block, (char *) page, true);

	/* one spare page is enough, since pages are finished one by one */
	if (w->spare)
		pfree(page);
	else
		w->spare = page;
}

void
la_pagewriter_end(LaPageWriter *w)
{
	if (w->log)
		smgrimmedsync(RelationGetSmgr(w->index), MAIN_FORKNUM);
	if (w->spare)
		pfree(w->spare);
	if (w->zeros)
		pfree(w->zeros);
	pfree(w);
}

#endif							/* LA_BULK_WRITE */
