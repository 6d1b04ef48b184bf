/*
 * unplanned.h
 *	  Statements that scan a table without a plan.
 *
 * src/toast/unplanned.h
 */
#ifndef LA_TOAST_UNPLANNED_H
#define LA_TOAST_UNPLANNED_H

#include "access/relscan.h"
#include "utils/rel.h"

/* The scan has begun: have it followed. */
typedef void (*la_unplanned_follow) (TableScanDesc scan);

extern void la_unplanned_init(void);
extern bool la_unplanned_expect(Relation rel, la_unplanned_follow follow);
extern void la_unplanned_cancel(void);

#endif							/* LA_TOAST_UNPLANNED_H */
