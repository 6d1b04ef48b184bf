/*
 * replay_policy.c
 *	  What recovery's figures mean: pure functions.
 *
 * What a record, or a time between two records, was spent for; averages; and what is known of
 * storage.  How far to read ahead is decided in replay_depth.c, and whether to do so at all in
 * replay_trial.c.
 *
 * src/replay/replay_policy.c
 */
#include <math.h>
#include <string.h>

#include "replay/replay_policy.h"

/* a throughput this near to the best one is as good */
#define KNEE_SHARE		1.05

/* one that takes so many times as long as others was not (only) a read */
#define LONG_READS		20.0
#define MIN_LONG_US		1000.0

/* ... without others to compare it with */
#define LONG_READ_US	100000.0

/* weight of the last read in what one takes */
#define READ_WEIGHT		0.05

/* a shorter time between two records is no wait; nor, if nothing else tells, a pause */
#define WAIT_US			1000.0
#define PAUSE_US		100000.0

static const double span_seconds[LA_REPLAY_SPANS] = {60, 300, 900};

/* ---- what is known of storage, and causes --------------------------------------- */

/* The first depth, 1, 2, 4, ..., with nearly the best throughput; given times per read. */
int
la_replay_knee(const double *random_us, int ndepths)
{
	double		best = random_us[0];

	for (int i = 1; i < ndepths; i++)
		best = fmin(best, random_us[i]);
	for (int i = 0; i < ndepths; i++)
	{
		if (random_us[i] <= best * KNEE_SHARE)
			return 1 << i;
	}
	return 1;
}

/* A record that can wait for nothing but reads has waited for some. */
void
la_replay_policy_waited(LaReplayPolicy *p, uint64_t reads, double us)
{
	double		read_us = us / (double) reads;

	p->read_us += (read_us - p->read_us) * (p->read_us > 0 ? READ_WEIGHT : 1);
}

/* What a record that took so long has waited for; read_us is what others waited for a read. */
LaReplayCause
la_replay_redo_cause(double us, uint64_t reads, double min_read_us, double read_us,
					 bool may_conflict)
{
	double		long_us = read_us > 0 ? fmax(read_us * LONG_READS, MIN_LONG_US) : LONG_READ_US;

	if (reads > 0 && us < reads * min_read_us)
		return LA_REPLAY_PROCESSOR;
	if (reads > 0 && (!may_conflict || us < reads * long_us))
		return LA_REPLAY_READS;
	if (may_conflict && us >= WAIT_US)
		return LA_REPLAY_CONFLICT;
	return LA_REPLAY_PROCESSOR;
}

/*
 * What a time between two records was spent for.  A process that has not slept has waited for
 * nothing but the processor.  If WAL has arrived in that time, what comes before was a wait for
 * WAL; after that there can be a delay or a pause that was asked for.  A delay is known to the
 * millisecond.  Of a pause nothing is left when it is over, but that it was long.
 */
void
la_replay_split_gap(const LaReplayGap *gap, double *wal_us, double *pause_us)
{
	double		rest = gap->us;
	bool		delayed = gap->delayed_us >= 0 && gap->delayed_us < gap->us;

	*wal_us = *pause_us = 0;
	if (gap->us < WAIT_US || !gap->slept)
		return;
	if (gap->arrived_us >= 0 && gap->arrived_us < gap->us)
		rest = gap->arrived_us;
	else if (!gap->had_wal && gap->arrived_us < 0 && !delayed)
		rest = 0;
	if (gap->us - rest >= WAIT_US)
		*wal_us = gap->us - rest;
	if (rest >= PAUSE_US ? delayed || gap->may_pause : delayed && rest >= WAIT_US)
		*pause_us = rest;
}

/* What the startup process waits for, by the names of pg_stat_activity; NULL: for nothing. */
LaReplayCause
la_replay_event_cause(const char *type, const char *event)
{
	static const struct
	{
		const char *event;
		LaReplayCause cause;
	}			causes[] = {
		{"RecoveryWalStream", LA_REPLAY_WAL},
		{"RecoveryWalAll", LA_REPLAY_WAL},
		{"RecoveryRetrieveRetryInterval", LA_REPLAY_WAL},
		{"RestoreCommand", LA_REPLAY_WAL},
		{"WALRead", LA_REPLAY_WAL},
		{"WalRead", LA_REPLAY_WAL},
		{"DataFileRead", LA_REPLAY_READS},
		{"DataFilePrefetch", LA_REPLAY_READS},
		{"AioIoCompletion", LA_REPLAY_READS},
		{"RecoveryConflictSnapshot", LA_REPLAY_CONFLICT},
		{"RecoveryConflictTablespace", LA_REPLAY_CONFLICT},
		{"RecoveryPause", LA_REPLAY_PAUSE},
		{"RecoveryApplyDelay", LA_REPLAY_PAUSE},
	};

	if (type == NULL || event == NULL)
		return LA_REPLAY_PROCESSOR;
	if (strcmp(type, "Lock") == 0 || strcmp(type, "BufferPin") == 0 || strcmp(type, "Buffer") == 0)
		return LA_REPLAY_CONFLICT;
	for (int i = 0; i < (int) (sizeof(causes) / sizeof(causes[0])); i++)
	{
		if (strcmp(event, causes[i].event) == 0)
			return causes[i].cause;
	}
	return LA_REPLAY_PROCESSOR;
}

/* ---- rates ----------------------------------------------------------------------- */

/* An average per second that forgets what is older than its span, after some more seconds. */
double
la_replay_rate(double rate, int span, double amount, double seconds)
{
	double		kept;

	if (seconds <= 0)
		return rate;
	kept = exp(-seconds / span_seconds[span]);
	return rate * kept + amount / seconds * (1.0 - kept);
}

/* The same without the time before its beginning, when there was nothing to average. */
double
la_replay_rate_shown(double rate, int span, double age)
{
	return age > 0 ? rate / (1.0 - exp(-age / span_seconds[span])) : 0;
}

/*
 * Seconds until replay has caught up with what arrives meanwhile; negative: it will not, or nothing
 * is known.  replayed and arriving are bytes per second, waited the share of the time in which
 * replay had nothing to do.
 */
double
la_replay_catch_up(double behind, double replayed, double waited, double arriving)
{
	double		able;

	if (behind <= 0)
		return 0;
	if (!(waited < 0.99) || !(replayed > 0))
		return -1;
	able = replayed / (1.0 - fmax(waited, 0));
	return able > arriving ? behind / (able - arriving) : -1;
}
