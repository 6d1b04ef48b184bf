/*
 * bucket.h
 *	  The page of a hash index where a value's bucket begins.
 *
 * src/rows/bucket.h
 */
#ifndef LA_BUCKET_H
#define LA_BUCKET_H

#include "storage/block.h"
#include "utils/relcache.h"

extern BlockNumber la_bucket_of(Relation index, Datum value);

#endif							/* LA_BUCKET_H */
