/*
 * place.h
 *	  The place of a new entry in a stock btree index.
 *
 * The room's own; see place.c.
 *
 * src/btree/place.h
 */
#ifndef LA_PLACE_H
#define LA_PLACE_H

#include "btree/key.h"
#include "storage/buf.h"
#include "storage/off.h"
#include "utils/rel.h"

typedef struct LaPlaces LaPlaces;

extern LaPlaces *la_places_create(Relation index, Relation heap);
extern LaKey *la_places_key(LaPlaces *p);
extern Buffer la_places_find(LaPlaces *p, Size size, OffsetNumber *position);

#endif							/* LA_PLACE_H */
