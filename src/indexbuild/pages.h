/*
 * pages.h
 *	  Writing the pages of a new index, past shared buffers.
 *
 * See pages.c.
 *
 * src/indexbuild/pages.h
 */
#ifndef LA_PAGES_H
#define LA_PAGES_H

#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

typedef struct LaPages LaPages;

extern LaPages *la_pages_begin(Relation index);
extern Page la_pages_take(LaPages *pages);
extern void la_pages_write(LaPages *pages, BlockNumber block, Page page);
extern void la_pages_end(LaPages *pages);

#endif							/* LA_PAGES_H */
