/*
 * bitmappages.c
 *	  The pages that a bitmap heap scan will come to.
 *
 * A bitmap names them all, in the order of the table.  The scan has an iterator over it, and here
 * is one more, as the server has two of them in earlier releases: it begins when pages are first
 * asked for, and ends before the scan frees the bitmap, that is when the scan is rescanned or ends.
 *
 * The bitmap of a parallel scan is in shared memory, and which of its pages a process will come to
 * is not known.
 *
 * src/toast/bitmappages.c
 */
#include "postgres.h"

#include "base/compat_bitmap.h"
#include "toast/toast_int.h"

struct LaBitmapPages
{
	BitmapHeapScanState *node;
	MemoryContext context;		/* lives as long as the scan */
	LaTbmIterator *iterator;	/* or NULL */
	bool		at_end;
	LaBitmapPage page;			/* where the iterator is */
};

LaBitmapPages *
la_bitmappages_create(BitmapHeapScanState *node, MemoryContext context)
{
	LaBitmapPages *pages = MemoryContextAlloc(context, sizeof(LaBitmapPages));

	pages->node = node;
	pages->context = context;
	pages->iterator = NULL;
	pages->at_end = false;
	return pages;
}

/* The first one behind this block, which is not before that of the last call; or NULL. */
const LaBitmapPage *
la_bitmappages_after(LaBitmapPages *pages, BlockNumber block)
{
	LaBitmapPage *page = &pages->page;

	if (pages->node->pstate != NULL || pages->node->tbm == NULL)
		return NULL;
	if (pages->iterator == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(pages->context);

		pages->iterator = la_tbm_begin(pages->node->tbm);
		MemoryContextSwitchTo(old);
		pages->at_end = !la_tbm_next(pages->iterator, &page->block, page->offsets, &page->n);
	}
	while (!pages->at_end && page->block <= block)
		pages->at_end = !la_tbm_next(pages->iterator, &page->block, page->offsets, &page->n);
	return pages->at_end ? NULL : page;
}

/* Has the server advised the kernel of a page so many pages away, and some time ago? */
bool
la_bitmappages_is_advised(const LaBitmapPages *pages, int distance)
{
	return distance < la_bitmap_pages_advised(pages->node) / 2;
}

/* The scan begins anew, or ends. */
void
la_bitmappages_restart(LaBitmapPages *pages)
{
	if (pages->iterator != NULL)
		la_tbm_end(pages->iterator);
	pages->iterator = NULL;
}
