/*
 * replay_stats.c
 *	  Figures of recovery, in shared memory: written by the startup process, read by sessions.
 *
 * The figures are of the recovery that is under way, or of the last one since the server
 * started; pg_stat_lookahead_reset() leaves them.  All are atomic variables with one writer, so
 * a record costs some additions, and nobody takes a lock.  Those that a session reads are of
 * slightly different moments.
 *
 * AVERAGES are kept as the system's load is: over 1, 5 and 15 minutes, of which the older ones
 * count less.  The startup process computes them a few times per second while it replays.  When
 * it waits, it cannot; so a session that reads them goes on from the last moment, with what has
 * come since.
 *
 * WHAT IT WAITS FOR at the moment is taken from the startup process's wait event, which is there
 * while a wait goes on.  The sums of waits are the replay loop's own (replay.c).
 *
 * BYTES BEHIND are counted from the end of WAL on the server that sends it, as the WAL receiver
 * knows it, or from what has been received if that is more.  Without a WAL receiver they are
 * unknown: who restores an archive does not know where it ends.
 *
 * src/replay/replay_stats.c
 */
#include "postgres.h"

#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "replication/walreceiver.h"
#include "storage/proc.h"
#include "storage/spin.h"
#include "utils/pg_lsn.h"
#include "utils/wait_event.h"

#include "base/base.h"
#include "replay/replay_int.h"

#define NS_IN_MS 1e6
#define NS_IN_S 1e9

LaReplayShared *la_replay_shared = NULL;

static const char *const state_names[] = {
	[LA_REPLAY_NONE] = NULL,
	[LA_REPLAY_CRASH] = "crash recovery",
	[LA_REPLAY_ARCHIVE] = "archive recovery",
	[LA_REPLAY_STANDBY] = "standby",
	[LA_REPLAY_ENDED] = "ended",
};

static const char *const cause_names[LA_REPLAY_CAUSES] = {
	[LA_REPLAY_PROCESSOR] = "processor",
	[LA_REPLAY_WAL] = "wal",
	[LA_REPLAY_READS] = "reads",
	[LA_REPLAY_CONFLICT] = "conflict",
	[LA_REPLAY_PAUSE] = "pause",
};

static const char *const depth_by_names[] = {
	[LA_REPLAY_BY_DEFAULT] = "default",
	[LA_REPLAY_BY_SETTING] = "setting",
	[LA_REPLAY_BY_CALIBRATION] = "calibration",
	[LA_REPLAY_BY_LEARNING] = "learning",
	[LA_REPLAY_BY_MEMORY] = "memory",
	[LA_REPLAY_BY_WASTE] = "waste",
};

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_stat_get_lookahead_replay(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_stat_get_lookahead_replay);

void
la_replay_stats_init(void)
{
	la_shmem_register("pg_lookahead replay", sizeof(LaReplayShared), NULL,
					  (void **) &la_replay_shared);
}

/* Nanoseconds of a clock that all processes share and nobody sets. */
uint64
la_replay_now(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (uint64) (INSTR_TIME_GET_DOUBLE(now) * NS_IN_S);
}

/* ---- averages -------------------------------------------------------------------- */

/* How far the WAL goes that is known to the WAL receiver; invalid: there has been none. */
static XLogRecPtr
end_of_wal(void)
{
	XLogRecPtr	received;
	XLogRecPtr	sent;

	SpinLockAcquire(&WalRcv->mutex);
	received = WalRcv->flushedUpto;
	sent = WalRcv->latestWalEnd;
	SpinLockRelease(&WalRcv->mutex);
	return Max(received, sent);
}

/* What the averages are of, as sums since the beginning. */
static void
get_sums(const LaReplayShared *s, uint64 *sums)
{
	LaReplayShared *w = unconstify(LaReplayShared *, s);

	sums[LA_REPLAY_AVERAGE_BYTES] = pg_atomic_read_u64(&w->c[LA_REPLAY_WAL_BYTES]);
	sums[LA_REPLAY_AVERAGE_RECORDS] = pg_atomic_read_u64(&w->c[LA_REPLAY_RECORDS]);
	sums[LA_REPLAY_AVERAGE_BLOCKS] = pg_atomic_read_u64(&w->c[LA_REPLAY_BLOCKS]);
	sums[LA_REPLAY_AVERAGE_ARRIVED] = end_of_wal();
	sums[LA_REPLAY_AVERAGE_WAITED] = pg_atomic_read_u64(&w->wait_ns[LA_REPLAY_WAL]);
}

/* An average as it is after some more seconds with some more of it. */
static double
rate_after(LaReplayShared *s, int average, int span, uint64 sum, double seconds)
{
	uint64		before = pg_atomic_read_u64(&s->at_tick[average]);
	double		amount = sum > before ? (double) (sum - before) : 0;

	return la_replay_rate(la_double_of(pg_atomic_read_u64(&s->rates[average][span])), span,
						  amount, seconds);
}

/* By the startup process, a few times per second while it replays. */
void
la_replay_stats_tick(uint64 now)
{
	LaReplayShared *s = la_replay_shared;
	double		seconds = (double) (now - pg_atomic_read_u64(&s->tick)) / NS_IN_S;
	uint64		sums[LA_REPLAY_AVERAGES];

	get_sums(s, sums);
	for (int i = 0; i < LA_REPLAY_AVERAGES; i++)
	{
		/* what had arrived before the first moment has not come since */
		if (i == LA_REPLAY_AVERAGE_ARRIVED && pg_atomic_read_u64(&s->at_tick[i]) == 0)
			pg_atomic_write_u64(&s->at_tick[i], sums[i]);
		for (int span = 0; span < LA_REPLAY_SPANS; span++)
			pg_atomic_write_u64(&s->rates[i][span],
								la_bits_of(rate_after(s, i, span, sums[i], seconds)));
		pg_atomic_write_u64(&s->at_tick[i], sums[i]);
	}
	pg_atomic_write_u64(&s->tick, now);
}

/* ---- begin and end --------------------------------------------------------------- */

/* A recovery begins; what is known of the one before is forgotten. */
void
la_replay_stats_begin(LaReplayState state, uint64 now)
{
	LaReplayShared *s = la_replay_shared;

	la_shmem_reset_counters(s, sizeof(LaReplayShared));
	pg_atomic_write_u64(&s->begin, now);
	pg_atomic_write_u64(&s->tick, now);
	pg_atomic_write_u64(&s->at_tick[LA_REPLAY_AVERAGE_ARRIVED], end_of_wal());
	pg_atomic_write_u64(&s->started, (uint64) GetCurrentTimestamp());
	pg_atomic_write_u64(&s->pid, (uint64) MyProcPid);
	pg_atomic_write_u64(&s->state, state);
}

/* Figures are kept again.  The time in which they were not belongs to nothing that is counted. */
void
la_replay_stats_resume(uint64 off_since, uint64 now)
{
	LaReplayShared *s = la_replay_shared;

	pg_atomic_write_u64(&s->begin, pg_atomic_read_u64(&s->begin) + (now - off_since));
	pg_atomic_write_u64(&s->idle_since, 0);
	pg_atomic_write_u64(&s->tick, now);
	pg_atomic_write_u64(&s->at_tick[LA_REPLAY_AVERAGE_ARRIVED], end_of_wal());
}

void
la_replay_stats_end(void)
{
	LaReplayShared *s = la_replay_shared;
	uint64		now = la_replay_now();

	la_replay_stats_tick(now);
	pg_atomic_write_u64(&s->idle_since, 0);
	pg_atomic_write_u64(&s->end, now);
	pg_atomic_write_u64(&s->ended, (uint64) GetCurrentTimestamp());
	pg_atomic_write_u64(&s->pid, 0);
	pg_atomic_write_u64(&s->state, LA_REPLAY_ENDED);
}

static double
seconds_of(LaReplayCause cause)
{
	return (double) pg_atomic_read_u64(&la_replay_shared->wait_ns[cause]) / NS_IN_S;
}

/* Into the server's log, when recovery has ended. */
void
la_replay_stats_log(void)
{
	LaReplayShared *s = la_replay_shared;
	double		elapsed = Max((double) (pg_atomic_read_u64(&s->end) -
										pg_atomic_read_u64(&s->begin)) / NS_IN_S, 1e-6);
	double		mb = (double) pg_atomic_read_u64(&s->c[LA_REPLAY_WAL_BYTES]) / (1024 * 1024);
	uint64		records = pg_atomic_read_u64(&s->c[LA_REPLAY_RECORDS]);
	uint64		blocks = pg_atomic_read_u64(&s->c[LA_REPLAY_BLOCKS]);

	if (records == 0)
		return;
	ereport(LOG,
			(errmsg("pg_lookahead: replayed %.1f MB of WAL in %.3f s: %.1f MB/s, "
					"%.0f records/s, %.0f blocks/s",
					mb, elapsed, mb / elapsed, (double) records / elapsed,
					(double) blocks / elapsed),
			 errdetail("Waited %.3f s for reads, %.3f s for WAL, %.3f s for conflicts, "
					   "%.3f s paused.  "
					   "Blocks: %llu read, %llu advised, %llu on time, %llu late, %llu wasted.  "
					   "Depth: %u, by %s.",
					   seconds_of(LA_REPLAY_READS), seconds_of(LA_REPLAY_WAL),
					   seconds_of(LA_REPLAY_CONFLICT), seconds_of(LA_REPLAY_PAUSE),
					   (unsigned long long) pg_atomic_read_u64(&s->c[LA_REPLAY_BLOCKS_READ]),
					   (unsigned long long) pg_atomic_read_u64(&s->c[LA_REPLAY_ADVISED]),
					   (unsigned long long) pg_atomic_read_u64(&s->c[LA_REPLAY_ON_TIME]),
					   (unsigned long long) pg_atomic_read_u64(&s->c[LA_REPLAY_LATE]),
					   (unsigned long long) pg_atomic_read_u64(&s->c[LA_REPLAY_WASTED]),
					   (unsigned int) pg_atomic_read_u64(&s->depth),
					   depth_by_names[pg_atomic_read_u64(&s->depth_by)])));
}

/* ---- the view -------------------------------------------------------------------- */

/* What the startup process waits for now. */
static LaReplayCause
current_cause(uint64 pid)
{
	PGPROC	   *proc = pid == 0 ? NULL : AuxiliaryPidGetProc((int) pid);
	uint32		event = proc == NULL ? 0 : proc->wait_event_info;

	if (event == 0)
		return LA_REPLAY_PROCESSOR;
	return la_replay_event_cause(pgstat_get_wait_event_type(event),
								 pgstat_get_wait_event(event));
}

static void
put_behind(LaSqlRow *row, LaReplayShared *s, const double *per_second)
{
	XLogRecPtr	replayed = GetXLogReplayRecPtr(NULL);
	XLogRecPtr	end = end_of_wal();
	double		behind = end > replayed ? (double) (end - replayed) : 0;
	double		seconds = la_replay_catch_up(behind, per_second[LA_REPLAY_AVERAGE_BYTES],
											 per_second[LA_REPLAY_AVERAGE_WAITED] / NS_IN_S,
											 per_second[LA_REPLAY_AVERAGE_ARRIVED]);

	la_sqlrow_put(row, LSNGetDatum(replayed));
	if (end == InvalidXLogRecPtr || pg_atomic_read_u64(&s->state) == LA_REPLAY_ENDED)
	{
		la_sqlrow_put_unless(row, true, (Datum) 0);
		la_sqlrow_put_unless(row, true, (Datum) 0);
		return;
	}
	la_sqlrow_put_count(row, (int64) behind);
	la_sqlrow_put_unless(row, seconds < 0, Float8GetDatum(seconds * 1000.0));
}

/* Milliseconds of the causes, with the wait that goes on; and what is left of all the time. */
static void
put_times(LaSqlRow *row, LaReplayShared *s, const uint64 *wait_ns, uint64 now)
{
	double		elapsed = (double) (now - pg_atomic_read_u64(&s->begin));
	double		waited = 0;

	for (int i = LA_REPLAY_WAL; i < LA_REPLAY_CAUSES; i++)
		waited += (double) wait_ns[i];
	la_sqlrow_put(row, Float8GetDatum(Max(elapsed - waited, 0) / NS_IN_MS));
	for (int i = LA_REPLAY_WAL; i < LA_REPLAY_CAUSES; i++)
		la_sqlrow_put(row, Float8GetDatum((double) wait_ns[i] / NS_IN_MS));
	for (int i = LA_REPLAY_WAL; i < LA_REPLAY_CAUSES; i++)
		la_sqlrow_put_count(row, (int64) pg_atomic_read_u64(&s->waits[i]));
}

static void
fill(LaSqlRow *row, LaReplayShared *s)
{
	uint64		state = pg_atomic_read_u64(&s->state);
	bool		ended = state == LA_REPLAY_ENDED;
	LaReplayCause cause = current_cause(pg_atomic_read_u64(&s->pid));
	uint64		now = ended ? pg_atomic_read_u64(&s->end) : la_replay_now();
	uint64		idle_since = pg_atomic_read_u64(&s->idle_since);
	uint64		tick = pg_atomic_read_u64(&s->tick);
	double		seconds = now > tick ? (double) (now - tick) / NS_IN_S : 0;
	double		age = (double) (now - pg_atomic_read_u64(&s->begin)) / NS_IN_S;
	double		shown[LA_REPLAY_AVERAGES][LA_REPLAY_SPANS];
	double		per_second[LA_REPLAY_AVERAGES];
	uint64		wait_ns[LA_REPLAY_CAUSES];
	uint64		sums[LA_REPLAY_AVERAGES];

	for (int i = 0; i < LA_REPLAY_CAUSES; i++)
		wait_ns[i] = pg_atomic_read_u64(&s->wait_ns[i]);
	get_sums(s, sums);
	if (idle_since != 0 && now > idle_since)
	{
		wait_ns[cause == LA_REPLAY_PAUSE ? LA_REPLAY_PAUSE : LA_REPLAY_WAL] += now - idle_since;
		if (cause != LA_REPLAY_PAUSE)
			sums[LA_REPLAY_AVERAGE_WAITED] += now - idle_since;
	}
	for (int i = 0; i < LA_REPLAY_AVERAGES; i++)
	{
		for (int span = 0; span < LA_REPLAY_SPANS; span++)
			shown[i][span] = la_replay_rate_shown(rate_after(s, i, span, sums[i], seconds), span,
												  age);
		per_second[i] = shown[i][0];
	}

	la_sqlrow_put_text(row, state_names[state]);
	la_sqlrow_put_time(row, (TimestampTz) pg_atomic_read_u64(&s->started));
	la_sqlrow_put_time(row, (TimestampTz) pg_atomic_read_u64(&s->ended));
	la_sqlrow_put_text(row, ended ? NULL : cause_names[cause]);
	put_behind(row, s, per_second);
	for (int i = LA_REPLAY_WAL_BYTES; i <= LA_REPLAY_BLOCKS; i++)
		la_sqlrow_put_count(row, (int64) pg_atomic_read_u64(&s->c[i]));
	for (int i = LA_REPLAY_AVERAGE_BYTES; i <= LA_REPLAY_AVERAGE_BLOCKS; i++)
		for (int span = 0; span < LA_REPLAY_SPANS; span++)
			la_sqlrow_put(row, Float8GetDatum(shown[i][span]));
	put_times(row, s, wait_ns, now);
	la_sqlrow_put(row, Int32GetDatum((int32) pg_atomic_read_u64(&s->depth)));
	la_sqlrow_put_text(row, depth_by_names[pg_atomic_read_u64(&s->depth_by)]);
	for (int i = LA_REPLAY_BLOCKS_READ; i <= LA_REPLAY_WASTED; i++)
		la_sqlrow_put_count(row, (int64) pg_atomic_read_u64(&s->c[i]));
}

/* One row; all columns are null where the server has not recovered since it started. */
Datum
pg_stat_get_lookahead_replay(PG_FUNCTION_ARGS)
{
	LaSqlRow	row = {0};

	la_shmem_require();
	if (pg_atomic_read_u64(&la_replay_shared->state) != LA_REPLAY_NONE)
		fill(&row, la_replay_shared);
	return la_sqlrow_datum(&row, fcinfo);
}
