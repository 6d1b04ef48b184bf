/*
 * attach.h
 *	  Finding the plan nodes that can look ahead.
 *
 * src/attach/attach.h
 */
#ifndef LA_ATTACH_H
#define LA_ATTACH_H

#include "access/itup.h"
#include "nodes/execnodes.h"

/* Row addresses of a scan that another room has found in advance. */
typedef struct LaTidSource
{
	void	   *arg;

	/*
	 * Called when the scan starts or is rescanned.  Sets all its row
	 * addresses, in the order of the index, which remain valid until the next
	 * rescan, or returns false if they are not known.
	 */
	bool		(*begin) (void *arg, ItemPointer *tids, int *ntids);
} LaTidSource;

/* Lets a scan take its rows from the source where it can; false if it never can. */
typedef bool (*la_tidsource_function) (PlanState *scan, const LaTidSource *source);

/* A row that an index scan will return. */
typedef struct LaIndexRow
{
	ItemPointerData tid;
	IndexTuple	tuple;			/* of an index-only scan, valid for the moment */
} LaIndexRow;

/*
 * The rows, at most max of them, that an index scan will return behind its current one, as far as
 * they are known without a read.  Returns their number.
 */
typedef int (*la_rows_to_come_function) (PlanState *scan, LaIndexRow *rows, int max);

/*
 * Offers a node to its room.  "limited" is true if a Limit above counts the node's rows.
 * Returns true if the room will ask later what is wanted of the node (demand.h).
 */
typedef bool (*la_attach_function) (PlanState *planstate, bool limited);

extern void la_attach_init(void);
extern void la_attach_register(NodeTag tag, la_attach_function function);
extern void la_attach_register_subplans(la_attach_function function);
extern bool la_attach_is_registered(NodeTag tag);
extern void la_attach_register_tidsource(la_tidsource_function function);
extern bool la_attach_tidsource(PlanState *scan, const LaTidSource *source);
extern void la_attach_register_rows_to_come(la_rows_to_come_function function);
extern int	la_attach_rows_to_come(PlanState *scan, LaIndexRow *rows, int max);

#endif							/* LA_ATTACH_H */
