/*
 * replay_stats.h
 *	  Figures of recovery, in shared memory: written by the startup process, read by sessions.
 *
 * src/replay/replay_stats.h
 */
#ifndef LA_REPLAY_STATS_H
#define LA_REPLAY_STATS_H

#include "port/atomics.h"

#include "replay/replay_policy.h"

typedef enum LaReplayCounter
{
	LA_REPLAY_WAL_BYTES,
	LA_REPLAY_RECORDS,
	LA_REPLAY_BLOCKS,
	LA_REPLAY_BLOCKS_READ,
	LA_REPLAY_ADVISED,
	LA_REPLAY_ON_TIME,
	LA_REPLAY_LATE,
	LA_REPLAY_WASTED
} LaReplayCounter;

#define LA_REPLAY_COUNTERS (LA_REPLAY_WASTED + 1)

/* Of these there are averages: bytes, records, blocks, bytes that arrive, waiting for WAL. */
typedef enum LaReplayAverage
{
	LA_REPLAY_AVERAGE_BYTES,
	LA_REPLAY_AVERAGE_RECORDS,
	LA_REPLAY_AVERAGE_BLOCKS,
	LA_REPLAY_AVERAGE_ARRIVED,
	LA_REPLAY_AVERAGE_WAITED
} LaReplayAverage;

#define LA_REPLAY_AVERAGES (LA_REPLAY_AVERAGE_WAITED + 1)

typedef enum LaReplayState
{
	LA_REPLAY_NONE,
	LA_REPLAY_CRASH,
	LA_REPLAY_ARCHIVE,
	LA_REPLAY_STANDBY,
	LA_REPLAY_ENDED
} LaReplayState;

/* Who decides on the depth. */
typedef enum LaReplayDepthBy
{
	LA_REPLAY_BY_DEFAULT,
	LA_REPLAY_BY_SETTING,
	LA_REPLAY_BY_CALIBRATION,
	LA_REPLAY_BY_LEARNING,
	LA_REPLAY_BY_MEMORY,
	LA_REPLAY_BY_WASTE
} LaReplayDepthBy;

/* One process writes, so that a counter is read and written, not added to. */
typedef struct LaReplayShared
{
	pg_atomic_uint64 c[LA_REPLAY_COUNTERS];
	pg_atomic_uint64 waits[LA_REPLAY_CAUSES];
	pg_atomic_uint64 wait_ns[LA_REPLAY_CAUSES];
	pg_atomic_uint64 idle_since;	/* monotonic ns: nothing to replay; 0: not
									 * so */

	pg_atomic_uint64 tick;		/* monotonic ns of the following figures */
	pg_atomic_uint64 at_tick[LA_REPLAY_AVERAGES];
	pg_atomic_uint64 rates[LA_REPLAY_AVERAGES][LA_REPLAY_SPANS];	/* bits of doubles */

	pg_atomic_uint64 begin;		/* monotonic ns */
	pg_atomic_uint64 end;		/* the same, or 0 */
	pg_atomic_uint64 started;	/* a TimestampTz */
	pg_atomic_uint64 ended;		/* a TimestampTz, or 0 */
	pg_atomic_uint64 state;		/* a LaReplayState */
	pg_atomic_uint64 pid;		/* of the startup process, or 0 */
	pg_atomic_uint64 depth;
	pg_atomic_uint64 depth_by;	/* a LaReplayDepthBy */
} LaReplayShared;

extern LaReplayShared *la_replay_shared;

static inline void
la_replay_add(pg_atomic_uint64 *counter, uint64 n)
{
	pg_atomic_write_u64(counter, pg_atomic_read_u64(counter) + n);
}

extern void la_replay_stats_init(void);
extern uint64 la_replay_now(void);
extern void la_replay_stats_begin(LaReplayState state, uint64 now);
extern void la_replay_stats_resume(uint64 off_since, uint64 now);
extern void la_replay_stats_tick(uint64 now);
extern void la_replay_stats_end(void);
extern void la_replay_stats_log(void);

#endif							/* LA_REPLAY_STATS_H */
