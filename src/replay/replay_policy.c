/*
 * replay_policy.c
 *	  How far recovery is to read ahead, and what its figures mean: pure functions.
 *
 * The server's own look-ahead in recovery has one number that decides how far it goes: so many
 * reads may be in flight, and it looks at four times as many block references to find them.
 * What is needed is what the storage can do, reads per second times the time of a read, and more
 * where many references find their block in memory.
 *
 * CLIMB.  The depth begins at the server's default, or at the knee of the calibrated storage
 * where that is deeper.  While replay waits for reads for more than a small share of its time,
 * it is doubled.  A step was in vain if a read is waited for about as long as before: the
 * storage is at its limit then, and after two of them the depth goes back to the best one; after
 * the first, if a read is waited for much longer.  The next try comes later each time.  What
 * counts is the wait of a read, since the rate of replay changes with what is in the WAL.
 *
 * DESCEND.  When nothing has been late for long, half of the depth is tried, as pages that are
 * read too early may be gone before their turn, and others use the disk, too.  If that brings
 * back waits, it is undone, and the next try comes later.  It is never less than the server's
 * default.
 *
 * A window whose reads were started at another depth says nothing and is left out.
 *
 * MEMORY.  Advice costs a system call for each block, which is lost where the operating system
 * has all of them.  Reads that are not late cannot tell why they are not.  So there are trials:
 * the server does not read ahead, and an account is kept of the time that reads have then been
 * waited for and of the system calls that were saved.  When more has been lost than a small share
 * of the time, the trial ends, and the next one comes when so much time has passed that even what
 * this one has lost is such a share; later each time, if trials go on losing.  A trial that has
 * saved more than it has lost goes on, and a slow read now and then does not end it.
 *
 * src/replay/replay_policy.c
 */
#include <math.h>
#include <string.h>

#include "replay/replay_policy.h"

/* shares of the time: replay waits for reads; it hardly does */
#define WAITING_SHARE	0.03
#define CALM_SHARE		0.005

/* a step was not in vain if a read is waited for this share less */
#define GAIN_SHARE		0.10
#define STEPS_IN_VAIN	2

/* one that makes it so much more is the last */
#define LOSS_SHARE		0.25

/* windows */
#define FIRST_PAUSE		16
#define MAX_PAUSE		4096
#define FIRST_PATIENCE	64
#define MAX_PATIENCE	65536
#define WINDOW_READS	256

/* a block's advice, about, where the operating system has the block already */
#define ADVICE_US		1.0

/* windows that hardly wait before a trial without advice; the share of the time that it may cost */
#define QUIET_WINDOWS	4
#define TRIAL_SHARE		0.01
#define MAX_TRIAL_LOSS	3000.0
#define MAX_SAVED		20000.0
#define MAX_BETWEEN		2e7
#define MAX_TROUBLE		8

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

static int
min_int(int a, int b)
{
	return a < b ? a : b;
}

static int
max_int(int a, int b)
{
	return a > b ? a : b;
}

/* ---- depth ----------------------------------------------------------------------- */

void
la_replay_policy_init(LaReplayPolicy *p, int base)
{
	memset(p, 0, sizeof(*p));
	p->advise = true;
	p->base = max_int(base, 1);
	p->depth = min_int(p->base, LA_REPLAY_MAX_DEPTH);
	p->next_pause = FIRST_PAUSE;
	p->patience = FIRST_PATIENCE;
}

/* The depth changes, and what is being read was started at the old one.  Returns true. */
static bool
set_depth(LaReplayPolicy *p, int depth)
{
	p->depth = depth;
	p->unsettled = true;
	p->calm = 0;
	return true;
}

/* The storage is known to need that depth.  True: the depth has changed. */
bool
la_replay_policy_suggest(LaReplayPolicy *p, int depth)
{
	depth = min_int(depth, LA_REPLAY_MAX_DEPTH);
	if (depth <= p->depth)
		return false;
	p->climbing = false;
	p->descended_from = 0;
	return set_depth(p, depth);
}

/*
 * Is the window long enough?  Enough reads were started at its depth then; or they have been waited
 * for so much longer than before the step that it need not go on.
 */
bool
la_replay_policy_window_full(const LaReplayPolicy *p, const LaReplayWindow *w)
{
	int			reads = max_int(WINDOW_READS, 2 * p->depth);

	if (w->reads >= (uint64_t) reads)
		return true;
	return p->climbing && w->wait_us > reads * p->best_wait_us * (1.0 + LOSS_SHARE);
}

/* Replay waits in spite of a step upwards, or before the first one. */
static bool
climb(LaReplayPolicy *p, double wait_us)
{
	if (!p->climbing || wait_us < p->best_wait_us * (1.0 - GAIN_SHARE))
	{
		p->best = p->depth;
		p->best_wait_us = wait_us;
		p->in_vain = 0;
	}
	else
		p->in_vain += wait_us > p->best_wait_us * (1.0 + LOSS_SHARE) ? STEPS_IN_VAIN : 1;
	p->climbing = true;

	if (p->in_vain >= STEPS_IN_VAIN || p->depth >= LA_REPLAY_MAX_DEPTH)
	{
		p->climbing = false;
		p->pause = p->next_pause;
		p->next_pause = min_int(p->next_pause * 2, MAX_PAUSE);
		return p->depth != p->best && set_depth(p, p->best);
	}
	return set_depth(p, min_int(p->depth * 2, LA_REPLAY_MAX_DEPTH));
}

/* Replay waits.  True: the depth has changed. */
static bool
waiting(LaReplayPolicy *p, double wait_us)
{
	p->calm = 0;
	if (p->descended_from > 0)
	{
		int			depth = p->descended_from;

		p->descended_from = 0;
		p->patience = min_int(p->patience * 2, MAX_PATIENCE);
		return set_depth(p, depth);
	}
	if (p->pause > 0)
	{
		p->pause--;
		return false;
	}
	return climb(p, wait_us);
}

/* Replay does not wait, or hardly.  True: the depth has changed. */
static bool
keeping_up(LaReplayPolicy *p, bool calm)
{
	p->climbing = false;
	p->descended_from = 0;
	p->calm = calm ? p->calm + 1 : 0;
	if (p->calm < p->patience || p->depth <= p->base)
		return false;
	p->descended_from = p->depth;
	return set_depth(p, max_int(p->depth / 2, p->base));
}

/* A number of reads has been made while the server was to read ahead.  True: the depth changed. */
bool
la_replay_policy_window(LaReplayPolicy *p, const LaReplayWindow *w)
{
	double		share = w->elapsed_us > 0 ? w->wait_us / w->elapsed_us : 0;

	if (w->reads == 0)
		return false;
	if (p->unsettled)
	{
		p->unsettled = false;
		return false;
	}
	if (share >= WAITING_SHARE)
		return waiting(p, w->wait_us / (double) w->reads);
	return keeping_up(p, share < CALM_SHARE);
}

/* ---- memory ---------------------------------------------------------------------- */

/* A window has passed while the server reads ahead.  True: it is to do without, for a trial. */
bool
la_replay_policy_trial(LaReplayPolicy *p, const LaReplayWindow *w)
{
	p->windows_us += w->elapsed_us;
	if (w->wait_us >= w->elapsed_us * WAITING_SHARE)
	{
		p->quiet = 0;
		return false;
	}
	p->quiet++;
	p->quiet_us += w->elapsed_us;
	if (p->quiet < QUIET_WINDOWS || p->quiet_us < p->trial_after_us)
		return false;
	p->advise = false;
	p->loss_us = p->balance_us = 0;
	return true;
}

/* The server is to read ahead again. */
static void
end_trial(LaReplayPolicy *p)
{
	p->advise = true;
	p->unsettled = true;
	p->quiet = 0;
	p->quiet_us = 0;
	p->trial_after_us = 0;
	if (p->loss_us <= 0)
	{
		p->in_trouble = 0;
		return;
	}
	p->trial_after_us = fmin(p->loss_us / TRIAL_SHARE * (1 << p->in_trouble), MAX_BETWEEN);
	p->in_trouble = min_int(p->in_trouble + 1, MAX_TROUBLE);
}

/*
 * Blocks have been read during a trial, and perhaps waited for; the caller leaves out those whose
 * reads were started before.  True: the trial is over.
 */
bool
la_replay_policy_without(LaReplayPolicy *p, uint64_t reads, double wait_us)
{
	double		loss = wait_us - (double) reads * ADVICE_US;

	p->loss_us += loss;
	p->balance_us = fmax(p->balance_us + loss, -MAX_SAVED);
	if (p->balance_us <= fmin(p->windows_us * TRIAL_SHARE, MAX_TRIAL_LOSS))
		return false;
	end_trial(p);
	return true;
}

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
