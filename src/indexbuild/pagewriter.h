/*
 * pagewriter.h
 *	  Writing the pages of a new index, bypassing shared buffers.
 *
 * src/indexbuild/pagewriter.h
 */
#ifndef LA_PAGEWRITER_H
#define LA_PAGEWRITER_H

#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

typedef struct LaPageWriter LaPageWriter;

extern LaPageWriter *la_pagewriter_begin(Relation index);
extern Page la_pagewriter_get_page(LaPageWriter *w);
extern void la_pagewriter_write(LaPageWriter *w, BlockNumber block, Page page);
extern void la_pagewriter_end(LaPageWriter *w);

#endif							/* LA_PAGEWRITER_H */
