/*
 * postings.h
 *	  Leaf pages of GIN posting trees that a scan is going to read.
 *
 * src/bitmap/postings.h
 */
#ifndef LA_POSTINGS_H
#define LA_POSTINGS_H

#include "storage/bufpage.h"

#include "bitmap/bitmap_int.h"

typedef struct LaPostings LaPostings;

extern Size la_postings_size(void);
extern LaPostings *la_postings_create(LaBitmapScan *bs);
extern void la_postings_begin(LaPostings *p);
extern void la_postings_see_row(LaPostings *p);
extern bool la_postings_is_gin(Page page);
extern BlockNumber la_postings_first_child(Page page);

#endif							/* LA_POSTINGS_H */
