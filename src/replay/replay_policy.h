/*
 * replay_policy.h
 *	  What recovery's figures mean, and what is known of how far it is to read ahead.
 *
 * See replay_policy.c, and replay_depth.c and replay_trial.c for who decides.
 *
 * src/replay/replay_policy.h
 */
#ifndef LA_REPLAY_POLICY_H
#define LA_REPLAY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* The server's own limit of maintenance_io_concurrency. */
#define LA_REPLAY_MAX_DEPTH		1000

/* A share of the time: replay waits for reads. */
#define LA_REPLAY_WAITING		0.03

/* How many blocks that were advised say whether advice is wasted. */
#define LA_REPLAY_ADVISED_ENOUGH	64

/* Averages over 1, 5 and 15 minutes. */
#define LA_REPLAY_SPANS			3

/* What some records have cost, and what became of the blocks that were advised for them. */
typedef struct LaReplayWindow
{
	double		elapsed_us;
	double		wait_us;		/* of that, in records that waited for a read */
	double		write_us;		/* ... in others that waited, as they bring
								 * pages and have to write others back */
	uint64_t	reads;
	uint64_t	advised;		/* blocks whose reads were started early */
	uint64_t	wasted;			/* of these, not read after all */
	uint64_t	references;		/* blocks that the records name */
	uint64_t	images;			/* ... and bring whole */
	uint64_t	wal_bytes;
} LaReplayWindow;

/* Why the server is to read ahead, or not. */
typedef enum LaReplayMode
{
	LA_REPLAY_AHEAD,			/* it does */
	LA_REPLAY_FROM_MEMORY,		/* it does not, as reads come from memory, or
								 * to see whether they do */
	LA_REPLAY_COMPARE,			/* it does by turns, to see which is faster */
	LA_REPLAY_IN_VAIN			/* it does not, as that was faster */
} LaReplayMode;

/* A comparison, and what the last one has shown (replay_trial.c). */
typedef struct LaReplayComparison
{
	LaReplayWindow sums[2];		/* without advice, and with it */
	int			windows;		/* so far */
	bool		began_with;		/* advice in the first of them? */
	bool		settling;		/* since the last change */

	double		held_us;		/* time since the last one */
	double		again_us;		/* so long until the next one */
	int			same;			/* so many in succession had the same result */
	int			in_vain_so_far; /* ... and it was that advice is in vain */
	double		wait_us;		/* for reads, without advice, per block that
								 * was named */
	double		wasted;			/* share of what was advised */
	LaReplayWindow lately;		/* what was advised of late, and wasted */
} LaReplayComparison;

typedef struct LaReplayPolicy
{
	bool		advise;			/* is the server to read ahead at all? */
	int			depth;			/* reads in flight, at most */

	/* replay_depth.c */
	int			base;			/* the server's default, below which the depth
								 * never is */
	int			best;			/* the depth that further ones are compared
								 * with */
	double		best_wait_us;	/* a read's wait at that depth */
	double		best_time_us;	/* the time of a block that was named */
	int			in_vain;		/* steps beyond it that brought nothing */
	int			ceiling;		/* a depth of this climb that brought nothing,
								 * or 0 */
	bool		climbing;
	bool		steep;			/* no step has been in vain so far */
	int			descended_from; /* the last change was a try to do with less
								 * than this; 0: it was not */
	int			unsettled;		/* so many reads may have been started at
								 * another depth */
	int			pause;			/* windows to let pass before the next step
								 * upwards */
	int			next_pause;
	int			calm;			/* windows without waits in succession */
	int			patience;		/* so many before a try with less */
	LaReplayWindow sum;			/* of windows too short to say something */

	/* replay_trial.c */
	LaReplayMode mode;
	double		windows_us;		/* all windows so far */
	uint64_t	quiet;			/* reads that were hardly waited for, in
								 * succession */
	double		quiet_us;		/* how long they were since the last trial */
	double		trial_after_us; /* so long, before there is a trial without
								 * advice */
	int			in_trouble;		/* trials that have lost time, in succession */
	double		loss_us;		/* of the trial: what it has lost, less what
								 * it has saved */
	double		balance_us;		/* the same, with a limit to what counts as
								 * saved */
	LaReplayComparison comparison;

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
