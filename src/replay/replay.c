/*
 * replay.c
 *	  Recovery: how far the server reads ahead, and what it waits for.
 *
 * The server reads ahead of replay by itself: it decodes records before their turn and advises
 * the kernel of their blocks.  What it leaves is how far that should go, which is a setting
 * whose default suits no storage in particular, and whether it is worth its system calls.  This
 * decides on both while WAL is replayed, from what the records have waited for, and keeps
 * figures of it.
 *
 * WHERE IT STANDS.  The server calls functions of its resource managers through a table: one
 * when redo begins, one for each record, one when redo ends.  The library puts its own in front
 * of the first and the last of one resource manager while it is preloaded; all processes inherit
 * these, and only the one that recovers ever calls them.  When redo begins, that process
 * exchanges the functions for records in its own table, and when redo ends, it puts them back.
 *
 *		redo begins --> begin_redo(): figures, settings, the table
 *		each record --> redo_record() --> the server's own rm_redo
 *		redo ends   --> end_redo(): the table and settings as they were; a line in the log
 *
 * A RECORD is passed on as it came.  Nothing is allocated and no error raised; one that rm_redo
 * raises passes through, as nothing has to be undone.  No lock is taken but spinlocks, for some
 * instructions: a few times per second that of the WAL receiver (replay_stats.c), and before hot
 * standby, after a long time between two records, that of recovery's state.  A record that is
 * damaged does not come so far.
 *
 * TIME.  The clock is read before each record, and after those of which something is to be
 * known: that have read blocks, that may wait for a session on a standby, or with which the WAL
 * decoded so far ends.  So a wait between two records is one for WAL, or a pause, and which of
 * these it was says the time at which the WAL has arrived.
 *
 * A WAIT is one only if the process has slept, which the kernel counts.  On a machine that has
 * more to do than it can, the process is often stopped for milliseconds, in records that read
 * from memory, and between records.
 *
 * A BLOCK counts as advised if the server was reading ahead when it decoded the record, and did
 * not find it in shared buffers, nor will it be overwritten as a whole, nor was it among the
 * last few. The record that reads it says whether it came on time.
 *
 * src/replay/replay.c
 */
#include "postgres.h"

#ifndef WIN32
#include <sys/resource.h>
#endif

#include "access/heapam_xlog.h"
#include "access/nbtxlog.h"
#include "access/rmgr.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogreader.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "catalog/pg_tablespace_d.h"
#include "catalog/storage_xlog.h"
#include "commands/dbcommands_xlog.h"
#include "executor/instrument.h"
#include "miscadmin.h"

#include "base/base.h"
#include "base/compat.h"
#include "replay/replay.h"
#include "replay/replay_depth.h"
#include "replay/replay_int.h"
#include "replay/replay_policy.h"
#include "replay/replay_trial.h"
#include "window/window.h"

#define NS_IN_US		1000
#define NS_IN_MS		(1000 * 1000)
#define TICK_NS			((uint64) 250 * NS_IN_MS)

/* nothing shorter between two records is looked at */
#define GAP_NS			((uint64) 1 * NS_IN_MS)

/* ... without the time at which the last record ended */
#define LONG_GAP_NS		((uint64) 100 * NS_IN_MS)

/* as many blocks as the server remembers so as not to advise them again */
#define RECENT			4

typedef struct Recent
{
	LaRelFileLocator locator;
	BlockNumber block;
} Recent;

static void (*prev_startup) (void) = NULL;
static void (*prev_cleanup) (void) = NULL;
static void (*stock_redo[RM_MAX_ID + 1]) (XLogReaderState *record);

static bool counting = false;	/* figures are kept, and settings may be ours */
static LaReplayPolicy policy;
static LaReplayDepthBy depth_by;
static LaReplayWindow window;
static uint64 window_begin;
static uint64 off_since;		/* when figures were last not kept */
static uint64 entry;			/* when the last record began; 0: not known */
static uint64 leave;			/* when it ended; 0: not known */
static bool last_decoded;		/* no record was decoded behind it */
static long sleeps;				/* of the process, when that was last asked */
static XLogRecPtr last_end;		/* where the last record ends */
static XLogRecPtr switched_at;	/* records decoded by then: before advice was
								 * turned on or off */
static Oid	known_tablespace;	/* whose storage has been asked for */
static Recent recent[RECENT];
static int	next_recent;

/* ---- who decides ------------------------------------------------------------------ */

/* Tell sessions of the depth. */
static void
show_depth(void)
{
	LaReplayDepthBy by = depth_by;

	if (!la_replay_settings_depth_is_ours())
		by = LA_REPLAY_BY_SETTING;
	if (!policy.advise && la_replay_settings_advice_is_ours())
		by = policy.mode == LA_REPLAY_FROM_MEMORY ? LA_REPLAY_BY_MEMORY : LA_REPLAY_BY_WASTE;
	pg_atomic_write_u64(&la_replay_shared->depth,
						la_replay_settings_advises() ? maintenance_io_concurrency : 0);
	pg_atomic_write_u64(&la_replay_shared->depth_by, by);
}

/* Have the server do what the policy says. */
static void
follow_policy(XLogReaderState *record)
{
	bool		advised = la_replay_settings_advises();

	la_replay_settings_apply(policy.depth, policy.advise);
	if (advised != la_replay_settings_advises() && record != NULL &&
		record->decode_queue_tail != NULL)
		switched_at = record->decode_queue_tail->lsn;
	show_depth();
}

/* The depth that the tablespace's storage needs, if it has been calibrated. */
static void
ask_storage(Oid tablespace)
{
	LaStorage	storage;

	if (tablespace == known_tablespace)
		return;
	known_tablespace = tablespace;
	if (la_storage_get(tablespace, &storage) &&
		la_replay_policy_suggest(&policy, la_replay_knee(storage.random_us, LA_STORAGE_DEPTHS)))
		depth_by = LA_REPLAY_BY_CALIBRATION;
}

static void
begin_policy(void)
{
	la_replay_policy_init(&policy, la_replay_settings_base());
	depth_by = LA_REPLAY_BY_DEFAULT;
	known_tablespace = InvalidOid;
	ask_storage(DEFAULTTABLESPACE_OID);
}

static void
begin_window(uint64 now)
{
	memset(&window, 0, sizeof(window));
	window_begin = now;
}

/* Notice what a reload of the configuration has changed. */
static void
notice_settings(XLogReaderState *record, uint64 now)
{
	bool		wanted = la_enable && la_enable_replay;

	if (wanted != counting)
	{
		counting = wanted;
		if (!wanted)
		{
			off_since = now;
			la_replay_settings_put_back();
			return;
		}
		la_replay_stats_resume(off_since, now);
		begin_policy();
		begin_window(now);
		entry = leave = 0;
		last_end = InvalidXLogRecPtr;
	}
	else if (policy.base != Max(la_replay_settings_base(), 1))
		begin_policy();
	if (counting && !la_replay_settings_advice_is_ours())
		la_replay_policy_no_trials(&policy);
	if (counting)
		follow_policy(record);
}

/* A window is full. */
static void
end_window(XLogReaderState *record, uint64 now)
{
	bool		changed = false;

	if (la_replay_policy_compares(&policy))
		changed = la_replay_policy_compare(&policy, &window);
	else
	{
		if (la_replay_settings_advice_is_ours())
			changed = la_replay_policy_trial(&policy, &window);
		if (policy.mode == LA_REPLAY_AHEAD && la_replay_settings_depth_is_ours() &&
			la_replay_policy_window(&policy, &window))
		{
			depth_by = LA_REPLAY_BY_LEARNING;
			changed = true;
		}
	}
	if (changed)
		follow_policy(record);
	begin_window(now);
}

/* A record is a part of the window, whether or not its time is known. */
static void
add_to_window(uint64 blocks, uint64 images, uint64 wal_bytes)
{
	window.references += blocks;
	window.images += images;
	window.wal_bytes += wal_bytes;
}

/*
 * A record has read blocks while the server did, or did not, read ahead, and has waited for them so
 * long, or not at all.
 */
static void
learn(XLogReaderState *record, uint64 reads, double wait_us, uint64 advised, uint64 wasted,
	  uint64 now)
{
	window.reads += reads;
	window.wait_us += wait_us;
	window.advised += advised;
	window.wasted += wasted;
	window.elapsed_us = (double) (now - window_begin) / NS_IN_US;
	if (policy.mode == LA_REPLAY_FROM_MEMORY)
	{
		if (reads > 0 && la_replay_policy_without(&policy, reads, wait_us))
		{
			begin_window(now);
			follow_policy(record);
		}
	}
	else if (la_replay_policy_compares(&policy) ?
			 la_replay_policy_compare_full(&policy, &window) :
			 la_replay_policy_window_full(&policy, &window))
		end_window(record, now);
}

/* ---- a record --------------------------------------------------------------------- */

/* Has the process slept since this was last asked?  Where the kernel does not count it: perhaps. */
static bool
has_slept(void)
{
#ifndef WIN32
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_nvcsw > 0)
	{
		long		before = sleeps;

		sleeps = usage.ru_nvcsw;
		return usage.ru_nvcsw != before;
	}
#endif
	return true;
}

static void
count_wait(LaReplayCause cause, uint64 ns, uint64 now)
{
	la_replay_add(&la_replay_shared->waits[cause], 1);
	la_replay_add(&la_replay_shared->wait_ns[cause], ns);

	/* that was no time in which reads could be waited for */
	if (cause != LA_REPLAY_READS)
		window_begin = Min(window_begin + ns, now);
}

/* How long ago a delay ended that the record had to wait for, in microseconds; negative: none. */
static double
delay_before(XLogReaderState *record, TimestampTz now)
{
	uint8		info = XLogRecGetInfo(record) & XLOG_XACT_OPMASK;
	const xl_xact_commit *commit;

	if (recovery_min_apply_delay <= 0 || !ArchiveRecoveryRequested ||
		XLogRecGetRmid(record) != RM_XACT_ID ||
		(info != XLOG_XACT_COMMIT && info != XLOG_XACT_COMMIT_PREPARED))
		return -1;
	commit = (const xl_xact_commit *) XLogRecGetData(record);
	return (double) (now - TimestampTzPlusMilliseconds(commit->xact_time,
													   recovery_min_apply_delay));
}

/* How long ago WAL came last, in microseconds; negative: not known. */
static double
arrival(double gap_us, TimestampTz now)
{
	TimestampTz arrived;
	bool		streaming;
	double		us;

	GetXLogReceiptTime(&arrived, &streaming);
	us = (double) (now - arrived);

	/* of a file it is known when it was opened, and not when its end was read */
	return streaming || us < gap_us ? Max(us, 0) : -1;
}

/* There was a long time before a record, or before the end of redo (record is NULL). */
static void
count_gap(XLogReaderState *record, uint64 ns, bool had_wal, uint64 now)
{
	TimestampTz moment = GetCurrentTimestamp();
	LaReplayGap gap;
	double		wal_us;
	double		pause_us;

	gap.us = (double) ns / NS_IN_US;
	gap.slept = has_slept();
	gap.had_wal = had_wal;
	/* (at the end of redo, what was waited for has not come) */
	gap.arrived_us = record == NULL && !had_wal ? 0 : arrival(gap.us, moment);
	gap.delayed_us = record != NULL ? delay_before(record, moment) : -1;
	gap.may_pause = HotStandbyActive();
	la_replay_split_gap(&gap, &wal_us, &pause_us);
	if (wal_us > 0)
		count_wait(LA_REPLAY_WAL, (uint64) (wal_us * NS_IN_US), now);
	if (pause_us > 0)
		count_wait(LA_REPLAY_PAUSE, (uint64) (pause_us * NS_IN_US), now);
}

/* The time since the last record; had_wal: others were there, even if they were not decoded. */
static void
count_time_since_last(XLogReaderState *record, bool had_wal, uint64 now)
{
	if (leave != 0 && now - leave >= GAP_NS)
		count_gap(record, now - leave, had_wal || !last_decoded, now);
	else if (leave == 0 && entry != 0 && now - entry >= LONG_GAP_NS)
		count_gap(record, now - entry, true, now);
}

/* Before the record.  Whether the wait before it was one says the clock. */
static void
before_record(XLogReaderState *record)
{
	uint64		now = la_replay_now();

	count_time_since_last(record, false, now);
	if (leave != 0)
		pg_atomic_write_u64(&la_replay_shared->idle_since, 0);
	entry = now;
	leave = 0;
	if (now - pg_atomic_read_u64(&la_replay_shared->tick) < TICK_NS)
		return;
	la_replay_stats_tick(now);
	if (ArchiveRecoveryRequested)
		pg_atomic_write_u64(&la_replay_shared->state,
							StandbyMode ? LA_REPLAY_STANDBY : LA_REPLAY_ARCHIVE);
	notice_settings(record, now);
}

/* Was the block among the last few?  From now on it is. */
static bool
is_recent(const DecodedBkpBlock *block)
{
	for (int i = 0; i < RECENT; i++)
	{
		if (recent[i].block == block->blkno &&
			memcmp(&recent[i].locator, &la_block_locator(block), sizeof(LaRelFileLocator)) == 0)
			return true;
	}
	recent[next_recent].block = block->blkno;
	recent[next_recent].locator = la_block_locator(block);
	next_recent = (next_recent + 1) % RECENT;
	return false;
}

/*
 * How many blocks of a record had to be read, so far as could be seen when it was decoded?  How
 * many does it name, and how many of these does it bring whole?
 */
static int
count_blocks(const DecodedXLogRecord *record, int *blocks, int *images, Oid *tablespace)
{
	int			to_read = 0;

	for (int i = 0; i <= record->max_block_id; i++)
	{
		const DecodedBkpBlock *block = &record->blocks[i];

		if (!block->in_use)
			continue;
		(*blocks)++;
		*images += block->has_image;
		if (block->forknum != MAIN_FORKNUM || block->has_image ||
			(block->flags & BKPBLOCK_WILL_INIT) != 0 || is_recent(block) ||
			BufferIsValid(block->prefetch_buffer))
			continue;
		*tablespace = la_block_locator(block).la_tablespace;
		to_read++;
	}
	return to_read;
}

/* Records so frequent and simple that their time is of interest only if they read. */
static bool
is_simple(XLogReaderState *record)
{
	switch (XLogRecGetRmid(record))
	{
		case RM_HEAP_ID:
		case RM_XACT_ID:
		case RM_CLOG_ID:
			return true;
		case RM_BTREE_ID:
			return (XLogRecGetInfo(record) & ~XLR_INFO_MASK) <= XLOG_BTREE_INSERT_META;
		default:
			return false;
	}
}

/* Records of which it is known that they wait for no session. */
static bool
never_conflicts(XLogReaderState *record)
{
	uint8		info = XLogRecGetInfo(record) & ~XLR_INFO_MASK;

	switch (XLogRecGetRmid(record))
	{
		case RM_XLOG_ID:
		case RM_GIN_ID:
		case RM_BRIN_ID:
		case RM_SEQ_ID:
		case RM_MULTIXACT_ID:
		case RM_LOGICALMSG_ID:
			return true;
		case RM_HEAP2_ID:
			return (info & XLOG_HEAP_OPMASK) == XLOG_HEAP2_MULTI_INSERT ||
				(info & XLOG_HEAP_OPMASK) == XLOG_HEAP2_LOCK_UPDATED;
		case RM_DBASE_ID:
			return info != XLOG_DBASE_DROP;
		case RM_SMGR_ID:
			return info == XLOG_SMGR_CREATE;
		default:
			return is_simple(record);
	}
}

/* Was the server reading ahead when it decoded the record? */
static bool
was_advised(XLogReaderState *record)
{
	bool		advises = la_replay_settings_advises();

	return record->ReadRecPtr > switched_at ? advises : !advises;
}

static void
count_reads(XLogReaderState *record, uint64 reads, int to_read, Oid tablespace, uint64 now)
{
	LaReplayShared *s = la_replay_shared;
	uint64		ns = now - entry;
	double		us = (double) ns / NS_IN_US;
	bool		may_conflict = InHotStandby && !never_conflicts(record);
	LaReplayCause cause = la_replay_redo_cause(us, reads, la_min_read_time * 1000.0,
											   policy.read_us, may_conflict);
	bool		slow;
	bool		advised = was_advised(record);
	uint64		early = advised ? to_read : 0;
	uint64		came = Min(reads, early);

	/* (with a limit of 0 every read is a wait) */
	if (cause != LA_REPLAY_PROCESSOR && (reads == 0 || la_min_read_time > 0) && !has_slept())
		cause = LA_REPLAY_PROCESSOR;
	if (reads == 0 && cause == LA_REPLAY_PROCESSOR && us >= la_min_read_time * 1000.0 &&
		has_slept())
		window.write_us += us;
	if (cause != LA_REPLAY_PROCESSOR)
		count_wait(cause, ns, now);
	slow = cause == LA_REPLAY_READS;
	if (slow && !may_conflict)
		la_replay_policy_waited(&policy, reads, us);
	la_replay_add(&s->c[LA_REPLAY_ADVISED], early);
	la_replay_add(&s->c[slow ? LA_REPLAY_LATE : LA_REPLAY_ON_TIME], came);
	la_replay_add(&s->c[LA_REPLAY_WASTED], early - came);
	la_replay_add(&s->c[LA_REPLAY_BLOCKS_READ], reads);
	if (slow && OidIsValid(tablespace) && tablespace != known_tablespace)
	{
		int			depth = policy.depth;

		ask_storage(tablespace);
		if (policy.depth != depth)
			follow_policy(record);
	}

	/* what was decoded in another way than now is of no window */
	if (advised != policy.advise)
		begin_window(now);
	else
		learn(record, reads, slow ? us : 0, early, early - came, now);
}

/* After the record. */
static void
after_record(XLogReaderState *record, uint64 reads)
{
	LaReplayShared *s = la_replay_shared;
	Oid			tablespace = InvalidOid;
	int			blocks = 0;
	int			images = 0;
	int			to_read = count_blocks(record->record, &blocks, &images, &tablespace);
	bool		timed = images > 0 || !is_simple(record);
	uint64		bytes = record->EndRecPtr -
		(XLogRecPtrIsInvalid(last_end) ? record->ReadRecPtr : last_end);
	uint64		now;

	la_replay_add(&s->c[LA_REPLAY_RECORDS], 1);
	la_replay_add(&s->c[LA_REPLAY_BLOCKS], blocks);
	la_replay_add(&s->c[LA_REPLAY_WAL_BYTES], bytes);
	add_to_window(blocks, images, bytes);
	last_end = record->EndRecPtr;
	last_decoded = record->record->next == NULL;
	if (reads == 0 && to_read == 0 && !last_decoded && !timed)
		return;
	now = la_replay_now();
	if (reads > 0 || to_read > 0 || timed)
		count_reads(record, reads, to_read, tablespace, now);
	leave = now;
	if (last_decoded)
		pg_atomic_write_u64(&s->idle_since, now);
}

static void
redo_record(XLogReaderState *record)
{
	RmgrId		rmid = XLogRecGetRmid(record);
	int64		before;

	if (!counting)
	{
		if (la_enable && la_enable_replay)
			notice_settings(record, la_replay_now());
		if (!counting)
		{
			stock_redo[rmid] (record);
			return;
		}
	}
	before_record(record);
	before = pgBufferUsage.shared_blks_read;
	stock_redo[rmid] (record);
	if (counting)
		after_record(record, (uint64) (pgBufferUsage.shared_blks_read - before));
}

/* ---- begin and end ------------------------------------------------------------------ */

static void
begin_redo(void)
{
	uint64		now = la_replay_now();

	if (prev_startup)
		prev_startup();
	if (la_replay_shared == NULL)
		return;
	la_replay_stats_begin(!ArchiveRecoveryRequested ? LA_REPLAY_CRASH :
						  StandbyMode ? LA_REPLAY_STANDBY : LA_REPLAY_ARCHIVE, now);
	la_replay_settings_begin();
	counting = false;
	off_since = now;
	entry = leave = 0;
	(void) has_slept();
	last_end = switched_at = InvalidXLogRecPtr;
	memset(recent, 0, sizeof(recent));
	notice_settings(NULL, now);
	for (int rmid = 0; rmid <= RM_MAX_ID; rmid++)
	{
		stock_redo[rmid] = RmgrTable[rmid].rm_redo;
		if (RmgrIdExists(rmid) && stock_redo[rmid] != NULL)
			RmgrTable[rmid].rm_redo = redo_record;
	}
}

static void
end_redo(void)
{
	if (la_replay_shared != NULL)
	{
		for (int rmid = 0; rmid <= RM_MAX_ID; rmid++)
		{
			if (RmgrTable[rmid].rm_redo == redo_record)
				RmgrTable[rmid].rm_redo = stock_redo[rmid];
		}
		if (counting)
		{
			la_replay_settings_put_back();

			/* at a target it has paused, if so asked, with WAL behind it */
			count_time_since_last(NULL, recoveryTarget != RECOVERY_TARGET_UNSET,
								  la_replay_now());
		}
		la_replay_stats_end();
		if (counting)
			la_replay_stats_log();
		counting = false;
	}
	if (prev_cleanup)
		prev_cleanup();
}

void
la_replay_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	la_replay_stats_init();
	if (la_enable && la_enable_replay)
		la_replay_settings_raise_decode_buffer();
	prev_startup = RmgrTable[RM_XLOG_ID].rm_startup;
	RmgrTable[RM_XLOG_ID].rm_startup = begin_redo;
	prev_cleanup = RmgrTable[RM_XLOG_ID].rm_cleanup;
	RmgrTable[RM_XLOG_ID].rm_cleanup = end_redo;
}
