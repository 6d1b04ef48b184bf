/*
 * insert_location.h
 *	  Where a new entry of a stock btree index belongs.
 *
 * src/write/insert_location.h
 */
#ifndef LA_INSERT_LOCATION_H
#define LA_INSERT_LOCATION_H

#include "storage/block.h"
#include "storage/buf.h"
#include "storage/off.h"
#include "utils/rel.h"

#include "btree/searchkey.h"

typedef struct LaInsertLocation LaInsertLocation;

extern LaInsertLocation *la_insertlocation_create(Relation index, Relation heap);
extern LaSearchKey *la_insertlocation_key(LaInsertLocation *p);
extern Buffer la_insertlocation_find(LaInsertLocation *p, BlockNumber expected, Size size,
									 OffsetNumber *position);

#endif							/* LA_INSERT_LOCATION_H */
