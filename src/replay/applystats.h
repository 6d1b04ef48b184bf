/*
 * applystats.h
 *	  Figures of apply workers, in shared memory: written by them, read by sessions.
 *
 * src/replay/applystats.h
 */
#ifndef LA_APPLYSTATS_H
#define LA_APPLYSTATS_H

#include "base/counters.h"

/* What a worker counts; in the order of the view's columns. */
typedef enum LaApplyCounter
{
	LA_APPLY_QUEUE_SIZE,		/* these three go down as well */
	LA_APPLY_QUEUED,
	LA_APPLY_QUEUED_BYTES,
	LA_APPLY_MESSAGES,			/* handed over */
	LA_APPLY_CHANGES,			/* of these */
	LA_APPLY_CHANGES_AHEAD,		/* looked at before their turn */
	LA_APPLY_CHANGES_LEFT,		/* ... that nothing was known of */
	LA_APPLY_LOCKED,			/* turns given up for a lock */
	LA_APPLY_ERRORS,			/* of looking ahead */
	LA_APPLY_NUM_COUNTERS
} LaApplyCounter;

/* Is it looking ahead?  As text in the view. */
typedef enum LaApplyState
{
	LA_APPLY_OFF,
	LA_APPLY_PASSIVE,
	LA_APPLY_OBSERVING,
	LA_APPLY_AHEAD
} LaApplyState;

/* Why nothing was known of a change. */
typedef enum LaApplyReason
{
	LA_APPLY_KNOWN,
	LA_APPLY_NO_RELATION,
	LA_APPLY_NOT_SYNCHRONIZED,
	LA_APPLY_NO_TABLE,
	LA_APPLY_NOT_HEAP,
	LA_APPLY_NO_IDENTITY,
	LA_APPLY_NO_INDEX,
	LA_APPLY_NO_PARTITION,
	LA_APPLY_NO_VALUE,
	LA_APPLY_TABLE_LOCKED,
	LA_APPLY_TOO_MANY,
	LA_APPLY_DAMAGED,
	LA_APPLY_FAILED,
	LA_APPLY_NUM_REASONS
} LaApplyReason;

extern void la_applystats_init(void);
extern void la_applystats_begin(Oid subscription);
extern void la_applystats_add(LaApplyCounter counter);
extern void la_applystats_set(LaApplyCounter counter, uint64 value);
extern void la_applystats_set_state(LaApplyState state);
extern void la_applystats_leave(LaApplyReason reason);
extern void la_applystats_set_reads(const LaCounters *counters);
extern void la_applystats_keep_reads(void);

#endif							/* LA_APPLYSTATS_H */
