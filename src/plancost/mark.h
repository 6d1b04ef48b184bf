/*
 * mark.h
 *	  Plans whose costs were adjusted are marked, and EXPLAIN says so.
 *
 * src/plancost/mark.h
 */
#ifndef LA_MARK_H
#define LA_MARK_H

#include "nodes/plannodes.h"

extern void la_mark_adjusted(PlannedStmt *plan);
extern void la_mark_init(void);

#endif							/* LA_MARK_H */
