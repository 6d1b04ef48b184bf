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
 * has all of them.  Reads that are not late cannot tell why they are not, so after many of them
 * there is a trial: the server does not read ahead, and as long as its reads are fast it goes on
 * like this.  A few slow reads among them end that at once, and the next trial comes later each
 * time.
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

/* fast reads before a trial without advice */
#define FIRST_TRIAL		1024
#define MAX_TRIAL		(1 << 20)

/* without advice: a slow read raises the alarm, fast ones quieten it */
#define ALARM_SLOW		16
#define ALARM_LIMIT		48

/* a throughput this near to the best one is as good */
#define KNEE_SHARE		1.05

/* one that takes so much longer was not (only) a read */
#define LONG_READ_US	100000.0

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
	p->trial_after = FIRST_TRIAL;
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
	p->descending = false;
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
	if (p->descending)
	{
		p->descending = false;
		p->patience = min_int(p->patience * 2, MAX_PATIENCE);
		return set_depth(p, min_int(p->depth * 2, LA_REPLAY_MAX_DEPTH));
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
	p->descending = false;
	p->calm = calm ? p->calm + 1 : 0;
	if (p->calm < p->patience || p->depth <= p->base)
		return false;
	p->descending = true;
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

/* Reads are to be looked at again while the server reads ahead. */
static bool
end_trial(LaReplayPolicy *p)
{
	p->advise = true;
	p->fast_reads = 0;
	p->alarm = 0;
	p->unsettled = true;
	if (p->trial_after < MAX_TRIAL)
		p->trial_after *= 2;
	return true;
}

/*
 * A block has been read.  While the server is not to read ahead, the caller leaves out those whose
 * reads were started before.  True: whether it is to read ahead has changed.
 */
bool
la_replay_policy_read(LaReplayPolicy *p, bool slow)
{
	if (p->advise)
	{
		p->fast_reads = slow ? 0 : p->fast_reads + 1;
		if (p->fast_reads < p->trial_after)
			return false;
		p->advise = false;
		p->alarm = 0;
		return true;
	}
	p->alarm = slow ? p->alarm + ALARM_SLOW : max_int(p->alarm - 1, 0);
	return p->alarm >= ALARM_LIMIT && end_trial(p);
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

/* What a record that took so long has waited for. */
LaReplayCause
la_replay_redo_cause(double us, uint64_t reads, double min_read_us, bool may_conflict)
{
	if (reads > 0 && us < reads * min_read_us)
		return LA_REPLAY_PROCESSOR;
	if (reads > 0 && (!may_conflict || us < reads * LONG_READ_US))
		return LA_REPLAY_READS;
	if (may_conflict && us >= 1000.0)
		return LA_REPLAY_CONFLICT;
	return LA_REPLAY_PROCESSOR;
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
