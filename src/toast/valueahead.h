/*
 * valueahead.h
 *	  The out-of-line values of rows that a scan will come to, read ahead.
 *
 * src/toast/valueahead.h
 */
#ifndef LA_VALUEAHEAD_H
#define LA_VALUEAHEAD_H

#include "storage/bufmgr.h"
#include "utils/snapshot.h"

#include "attach/follow.h"
#include "base/counters.h"
#include "toast/columns.h"
#include "toast/values.h"

/* A scan whose rows may have such values. */
typedef struct LaValueScan
{
	PlanState  *node;			/* or NULL: there is no plan */
	Relation	table;
	TupleDesc	desc;			/* of its rows; NULL: the table's */
	Snapshot	snapshot;
	bool		versions;		/* see LaValueRows */
	bool		may_skip;		/* rows may be passed over that are known; ids
								 * ascend */
	BufferAccessStrategy *strategy; /* or NULL */
	LaToastColumns columns;		/* none: those of the node, which is a
								 * ScanState */
	LaComing	coming;

	/*
	 * the values of the n-th row behind the current one, which is known;
	 * NULL: they are looked for in the table
	 */
	void		(*find) (void *arg, int n, LaRowValues *values);
	MemoryContext context;		/* as long as the scan lives */
} LaValueScan;

extern bool la_valueahead_is_possible(Relation table);
extern LaFollower *la_valueahead_create(const LaValueScan *scan);
extern const LaCounters *la_valueahead_counters(const PlanState *node);

#endif							/* LA_VALUEAHEAD_H */
