/*
 * insert_location.h
 *	  The place of a new entry in a stock btree index.
 *
 * The room's own; see insert_location.c.
 *
 * src/write/insert_location.h
 */
#ifndef LA_INSERT_LOCATION_H
#define LA_INSERT_LOCATION_H

#include "btree/searchkey.h"
#include "storage/buf.h"
#include "storage/off.h"
#include "utils/rel.h"

typedef struct LaInsertLocation LaInsertLocation;

extern LaInsertLocation *la_insertlocation_create(Relation index, Relation heap);
extern LaSearchKey *la_insertlocation_key(LaInsertLocation *p);
extern Buffer la_insertlocation_find(LaInsertLocation *p, Size size, OffsetNumber *position);

#endif							/* LA_INSERT_LOCATION_H */
