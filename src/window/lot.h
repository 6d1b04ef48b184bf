/*
 * lot.h
 *	  Foreseen visits whose blocks are issued in the order of the table.
 *
 * src/window/lot.h
 */
#ifndef LA_LOT_H
#define LA_LOT_H

#include "window/foreseen.h"
#include "window/issue.h"

struct Visit;

extern void la_lot_init(LaWindow *window);
extern void la_lot_clear(LaWindow *window);
extern void la_lot_free(LaWindow *window);
extern bool la_lot_top_up(LaWindow *window);
extern void la_lot_on_read(LaWindow *window, const struct Visit *visit,
						   const LaReadResult *result);

#endif							/* LA_LOT_H */
