/*
 * pages.c
 *	  Writing the pages of a new index, past shared buffers.
 *
 *		la_pages_take()  -> a page's memory, to be filled
 *		la_pages_write() -> WAL, checksum, file      (any order, each block once)
 *		la_pages_end()   -> the file is, or will be, on disk
 *
 * Behaviours
 *	A. From 17 on, the server writes in bulk itself (storage/bulk_write.h): it logs pages
 *	   in groups, fills gaps and sees to it that the file is synced.  All is left to it.
 *	B. Before, each page is logged and written as it comes.  Blocks of which it is not
 *	   the turn yet are written as zeros, not logged, and overwritten when they come;
 *	   upper pages of a btree and its metapage have lower numbers than pages that are
 *	   finished before them.
 *	C. What is logged is synced here, before 17: a checkpoint that begins during the build
 *	   does not know of the file, and recovery that starts from it would not replay the
 *	   earlier pages.  What is not logged is either synced or logged as a whole
 *	   by the server at commit (wal_level = minimal), or is emptied by recovery.  Like
 *	   stock before 17, nothing here makes a clean shutdown sync an unlogged index.
 *
 * Invariants
 *	- The index's file is new and empty at the begin, and nobody else sees it.  So after an
 *	  error there is nothing to undo: the transaction drops the file.
 *	- Memory is the memory context's that was current at the begin.
 *
 * src/indexbuild/pages.c
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

#include "indexbuild/pages.h"

struct LaPages
{
	Relation	index;
#ifdef LA_BULK_WRITE
	BulkWriteState *bulk;
#else
	MemoryContext context;
	bool		log;
	BlockNumber blocks;			/* that the file has */
	Page		zeros;			/* a page of them, if it was needed */
	Page		spare;			/* memory of a page that was written */
#endif
};

LaPages *
la_pages_begin(Relation index)
{
	LaPages    *pages;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));

	pages = palloc0(sizeof(LaPages));
	pages->index = index;
#ifdef LA_BULK_WRITE
	pages->bulk = smgr_bulk_start_rel(index, MAIN_FORKNUM);
#else
	pages->context = CurrentMemoryContext;
	pages->log = RelationNeedsWAL(index);
#endif
	return pages;
}

#ifdef LA_BULK_WRITE

/*
 * Memory for a page.  What is in it is undefined.
 */
Page
la_pages_take(LaPages *pages)
{
	return (Page) smgr_bulk_get_buf(pages->bulk);
}

/*
 * The page is written, now or later, and is not the caller's any more.
 */
void
la_pages_write(LaPages *pages, BlockNumber block, Page page)
{
	smgr_bulk_write(pages->bulk, block, (BulkWriteBuffer) page, true);
}

void
la_pages_end(LaPages *pages)
{
	smgr_bulk_finish(pages->bulk);
	pfree(pages);
}

#else

Page
la_pages_take(LaPages *pages)
{
	Page		page = pages->spare;

	pages->spare = NULL;
	return page ? page : (Page) la_alloc_page(pages->context);
}

static void
extend(LaPages *pages, Page page)
{
	/* the file may have been closed by an invalidation since the last time */
	smgrextend(RelationGetSmgr(pages->index), MAIN_FORKNUM, pages->blocks,
			   (char *) page, true);
	pages->blocks++;
}

void
la_pages_write(LaPages *pages, BlockNumber block, Page page)
{
	if (pages->log)
		log_newpage(&la_rel_locator(pages->index), MAIN_FORKNUM, block, page,
					true);

	while (pages->blocks < block)
	{
		if (!pages->zeros)
		{
			pages->zeros = (Page) la_alloc_page(pages->context);
			memset(pages->zeros, 0, BLCKSZ);
		}
		extend(pages, pages->zeros);
	}

	PageSetChecksumInplace(page, block);
	if (block == pages->blocks)
		extend(pages, page);
	else
		smgrwrite(RelationGetSmgr(pages->index), MAIN_FORKNUM, block,
				  (char *) page, true);

	/* at most one is kept: finished pages come one by one */
	if (pages->spare)
		pfree(page);
	else
		pages->spare = page;
}

void
la_pages_end(LaPages *pages)
{
	if (pages->log)
		smgrimmedsync(RelationGetSmgr(pages->index), MAIN_FORKNUM);
	if (pages->spare)
		pfree(pages->spare);
	if (pages->zeros)
		pfree(pages->zeros);
	pfree(pages);
}

#endif
