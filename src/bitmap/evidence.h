/*
 * evidence.h
 *	  Are the reads of a GIN scan waits?  Pages read, and advised.
 *
 * src/bitmap/evidence.h
 */
#ifndef LA_EVIDENCE_H
#define LA_EVIDENCE_H

#include "storage/buf.h"

#include "bitmap/bitmap_int.h"

extern void la_evidence_begin(LaBitmapScan *bs);
extern void la_evidence_end(LaBitmapScan *bs);
extern bool la_evidence_arms(LaBitmapScan *bs);
extern bool la_evidence_may_read(void);
extern bool la_evidence_is_observing(LaBitmapScan *bs);
extern Buffer la_evidence_read(LaBitmapScan *bs, BlockNumber block);
extern void la_evidence_advise(LaBitmapScan *bs, BlockNumber block);

#endif							/* LA_EVIDENCE_H */
