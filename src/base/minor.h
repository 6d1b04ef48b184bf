/*
 * minor.h
 *	  Which rooms may work in the minor release that is running.
 *
 * src/base/minor.h
 */
#ifndef LA_MINOR_H
#define LA_MINOR_H

/* In the order of the columns of minor_table.h, and of ROOMS in dev/fingerprint. */
typedef enum LaRoom
{
	LA_ROOM_SCAN,
	LA_ROOM_NESTLOOP,
	LA_ROOM_HASHJOIN,
	LA_ROOM_INDEX_BUILD,
	LA_ROOM_INSERT,
	LA_ROOM_BITMAP
} LaRoom;

#define LA_NUM_ROOMS (LA_ROOM_BITMAP + 1)

extern void la_minor_init(void);
extern bool la_minor_allows(LaRoom room);

#endif							/* LA_MINOR_H */
