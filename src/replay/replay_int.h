/*
 * replay_int.h
 *	  What the files of this room share.
 *
 * src/replay/replay_int.h
 */
#ifndef LA_REPLAY_INT_H
#define LA_REPLAY_INT_H

#include "access/htup.h"
#include "executor/tuptable.h"
#include "nodes/bitmapset.h"
#include "port/atomics.h"
#include "utils/rel.h"

#include "base/base.h"
#include "btree/btree.h"
#include "replay/applymessage.h"
#include "replay/applyqueue.h"
#include "replay/replay_policy.h"
#include "rows/rows.h"

/* ---- applyahead: what the changes in the queue will need, read ahead of their turn ---- */

extern void la_applyahead_begin(const LaApplyQueue *queue);
extern void la_applyahead_end(void);
extern void la_applyahead_stop(void);
extern void la_applyahead_pass(const char *data, size_t length);
extern bool la_applyahead_wants(void);
extern void la_applyahead_look(void);

/* ---- applylock: locks of a turn, none of which is waited for ---- */

extern void la_applylock_begin(void);
extern bool la_applylock_take(Oid relid);
extern void la_applylock_release_all(void);
extern bool la_applylock_ran_out(void);

/* ---- applyremote: tables as the publisher describes them ---- */

typedef struct LaApplyRemote
{
	uint32		id;				/* hash key */
	MemoryContext context;		/* of what follows */
	const char *schema;
	const char *name;
	char		identity;		/* of pg_class.relreplident */
	int			ncolumns;
	const char **columns;		/* names */
} LaApplyRemote;

extern const LaApplyRemote *la_applyremote_find(uint32 id);
extern bool la_applyremote_is_known(const LaApplyRelation *relation);
extern void la_applyremote_note(const LaApplyRelation *relation);
extern int	la_applyremote_column(const LaApplyRemote *remote, const char *name);
extern void la_applyremote_forget_all(void);

/* ---- applystats ---- */

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

/* ---- applyrows ---- */

extern void la_applyrows_begin(const LaApplyQueue *queue);
extern void la_applyrows_forget(void);
extern void la_applyrows_publish(void);
extern LaAhead *la_applyrows_ahead(void);
extern bool la_applyrows_are_outdated(void);
extern bool la_applyrows_were_locked(void);
extern void la_applyrows_pass(char action, LaApplyReader message, bool *in_stream);
extern bool la_applyrows_have_turn(uint64 position);
extern void la_applyrows_catch_up(bool in_stream);
extern LaApplyReason la_applyrows_begin_with(const LaApplyChange *m);
extern bool la_applyrows_open(void);
extern void la_applyrows_take_fewer(void);
extern void la_applyrows_take_more(void);
extern void la_applyrows_close(void);
extern bool la_applyrows_exist(void);
extern uint64 la_applyrows_first(void);
extern void la_applyrows_turn(void);
extern void la_applyrows_clear(void);

/* ---- applyscan: the order of messages: what one of them says of the following ones ---- */

#define LA_APPLY_NOWHERE	UINT64_MAX

typedef enum LaApplyNote
{
	LA_APPLY_NOT_PASSED,		/* wait until it is handed over */
	LA_APPLY_NOTED,
	LA_APPLY_NOTED_OTHER		/* a table is described otherwise than before */
} LaApplyNote;

extern bool la_applyscan_is_change(char action);
extern LaApplyNote la_applyscan_note(char action, LaApplyReader body, bool is_free,
									 bool *in_stream);
extern uint64_t la_applyscan_next_change(const LaApplyQueue *queue, bool in_stream);

/* ---- applytable ---- */

typedef struct LaApplyTable
{
	Oid			relid;
	LaApplyReason refused;		/* or LA_APPLY_KNOWN */
	bool		is_partitioned;
	int			rows;			/* changes that are known ahead */
	bool		is_open;
	Relation	heap;			/* as they were when the table was created */
	int			nindexes;
	Relation	indexes[LA_TARGET_INDEXES];
	Oid			index_oids[LA_TARGET_INDEXES];

	LaTarget   *target;			/* NULL: no index needs anything for a new row */
	Bitmapset  *unknown;		/* columns that the publisher does not send,
								 * or that are not read here: by number minus
								 * FirstLowInvalidHeapAttributeNumber */

	/* the index that finds a row which is changed, and the table */
	LaDescent  *identity;		/* NULL: there is none */
	int			nkeys;
	AttrNumber	keys[INDEX_MAX_KEYS];
	int			identity_rel;	/* their numbers in LaAhead */
	int			heap_rel;

	struct LaApplyColumns *columns; /* how they are read */
	TupleTableSlot *slot;		/* that rows are formed in */
	TupleTableSlot *row_slot;	/* that formed rows are looked at in */
	int			heap_only;		/* updates in a row that needed no index */
} LaApplyTable;

extern Relation la_applytable_open_relation(Oid relid);
extern Oid	la_applytable_oid(const LaApplyRemote *remote);
extern LaApplyTable *la_applytable_create(LaAhead *ahead, const LaApplyRemote *remote,
										  Relation heap);
extern bool la_applytable_open(LaApplyTable *t);
extern void la_applytable_close(LaApplyTable *t);
extern bool la_applytable_read(LaApplyTable *t, LaApplyTuple row, bool *has_unchanged);
extern Oid	la_applytable_partition(LaApplyTable *t);
extern bool la_applytable_set_identity(LaApplyTable *t, TupleTableSlot *row);
extern void la_applytable_learn(LaApplyTable *t, ItemPointer tid, MinimalTuple row);
extern bool la_applytable_is_heap_only(const LaApplyTable *t);

/* ---- replay_settings ---- */

extern void la_replay_settings_raise_decode_buffer(void);
extern void la_replay_settings_begin(void);
extern int	la_replay_settings_base(void);
extern bool la_replay_settings_depth_is_ours(void);
extern bool la_replay_settings_advice_is_ours(void);
extern bool la_replay_settings_advises(void);
extern void la_replay_settings_apply(int depth, bool advise);
extern void la_replay_settings_put_back(void);

/* ---- replay_stats ---- */

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

/*
 * One process writes, so that a counter is read and written, not added to.  Others only show them,
 * each by itself: nothing follows from the order in which they see two of them change.
 */
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

#endif							/* LA_REPLAY_INT_H */
