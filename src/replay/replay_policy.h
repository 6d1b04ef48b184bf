/*
 * replay_policy.h
 *	  How far recovery is to read ahead, and what its figures mean: pure functions.
 *
 * See replay_policy.c.
 *
 * src/replay/replay_policy.h
 */
#ifndef LA_REPLAY_POLICY_H
#define LA_REPLAY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* The server's own limit of maintenance_io_concurrency. */
#define LA_REPLAY_MAX_DEPTH		1000

/* Averages over 1, 5 and 15 minutes. */
#define LA_REPLAY_SPANS			3

/* What a number of reads has cost, between two calls of la_replay_policy_window(). */
typedef struct LaReplayWindow
{
	double		elapsed_us;
	double		wait_us;		/* of that, in records that waited for a read */
	uint64_t	reads;
} LaReplayWindow;

typedef struct LaReplayPolicy
{
	bool		advise;			/* is the server to read ahead at all? */
	int			depth;			/* reads in flight, at most */

	int			base;			/* the server's default, below which the depth
								 * never is */
	int			best;			/* the depth that further ones are compared
								 * with */
	double		best_wait_us;	/* a read's wait at that depth */
	int			in_vain;		/* steps beyond it that brought nothing */
	bool		climbing;
	int			descended_from; /* the last change was a try to do with less
								 * than this; 0: it was not */
	bool		unsettled;		/* reads of the window were started at another
								 * depth */
	int			pause;			/* windows to let pass before the next step
								 * upwards */
	int			next_pause;
	int			calm;			/* windows without waits in succession */
	int			patience;		/* so many before a try with less */

	double		windows_us;		/* all windows so far */
	int			quiet;			/* windows that hardly waited, in succession */
	double		quiet_us;		/* how long they were since the last trial */
	double		trial_after_us; /* so long, before there is a trial without
								 * advice */
	int			in_trouble;		/* trials that have lost time, in succession */
	double		loss_us;		/* of the trial: what it has lost, less what
								 * it has saved */
	double		balance_us;		/* the same, with a limit to what counts as
								 * saved */

	double		read_us;		/* a read that was waited for, about; 0: not
								 * known */
} LaReplayPolicy;

/* What recovery is in the way of, or what is in its way. */
typedef enum LaReplayCause
{
	LA_REPLAY_PROCESSOR,
	LA_REPLAY_WAL,
	LA_REPLAY_READS,
	LA_REPLAY_CONFLICT,
	LA_REPLAY_PAUSE
} LaReplayCause;

#define LA_REPLAY_CAUSES (LA_REPLAY_PAUSE + 1)

/* What is known of a time between two records, in microseconds. */
typedef struct LaReplayGap
{
	double		us;
	bool		slept;			/* the process has waited for something */
	bool		had_wal;		/* there were decoded records */
	double		arrived_us;		/* so long ago the last WAL came; < 0: not
								 * known */
	double		delayed_us;		/* so long ago a delay ended that was asked
								 * for; < 0: none */
	bool		may_pause;		/* sessions can ask for a pause */
} LaReplayGap;

extern void la_replay_policy_init(LaReplayPolicy *p, int base);
extern bool la_replay_policy_suggest(LaReplayPolicy *p, int depth);
extern bool la_replay_policy_window_full(const LaReplayPolicy *p, const LaReplayWindow *w);
extern bool la_replay_policy_window(LaReplayPolicy *p, const LaReplayWindow *w);
extern bool la_replay_policy_trial(LaReplayPolicy *p, const LaReplayWindow *w);
extern bool la_replay_policy_without(LaReplayPolicy *p, uint64_t reads, double wait_us);
extern void la_replay_policy_waited(LaReplayPolicy *p, uint64_t reads, double us);

extern int	la_replay_knee(const double *random_us, int ndepths);
extern LaReplayCause la_replay_redo_cause(double us, uint64_t reads, double min_read_us,
										  double read_us, bool may_conflict);
extern void la_replay_split_gap(const LaReplayGap *gap, double *wal_us, double *pause_us);
extern double la_replay_rate(double rate, int span, double amount, double seconds);
extern double la_replay_rate_shown(double rate, int span, double age);
extern double la_replay_catch_up(double behind, double replayed, double waited,
								 double arriving);
extern LaReplayCause la_replay_event_cause(const char *type, const char *event);

#endif							/* LA_REPLAY_POLICY_H */
