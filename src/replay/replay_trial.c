/*
 * replay_trial.c
 *	  Whether recovery is to read ahead at all: pure functions.
 *
 * MEMORY.  Advice costs a system call for each block, which is lost where the operating system
 * has all of them.  Reads that are not late cannot tell why they are not.  So there are trials:
 * the server does not read ahead, and an account is kept of the time that reads have then been
 * waited for and of the system calls that were saved.  When more has been lost than a small share
 * of the time, the trial ends, and the next one comes when so much time has passed that even what
 * this one has lost is such a share; later each time, if trials go on losing.  A trial that has
 * saved more than it has lost goes on, and a slow read now and then does not end it.  A trial comes
 * as soon as some blocks have been advised in vain, if nothing waits: redo begins with empty
 * buffers, and as long as these are filled by images it neither reads nor writes.
 *
 * WASTE.  The server advises blocks of which a record that is still ahead of replay brings a
 * full-page image, for the records behind that one.  By their turn these blocks are in shared
 * buffers.  Each is a read that replay without advice does not make, and the storage, which has to
 * write back the pages that images bring, makes all of them.  Whether the reads that come on time
 * are worth it depends on the storage, and no account of waits can say so.  Where a share of what
 * is advised is wasted, there are images, and replay waits, the two ways are compared: windows with
 * and without advice, interleaved so that WAL that changes steadily favours neither (as it was, the
 * other one twice, as it was), and each long enough to mean something.  Without images, blocks are
 * wasted only as a record ahead reads them, too, which costs no read.
 *
 * What a window has done is measured in blocks that its records name and in bytes of WAL, half of
 * it by each, since images are many bytes and other records many blocks.  A great difference
 * decides at once, a smaller one after more windows; after the last the faster way wins, unless
 * they are as good as equal.  What records decoded in the other mode have cost is left out, and so
 * is the beginning of a window with advice, in which the server looks at all that is
 * ahead, and a lead has to be gained first.
 *
 * The result holds for so long that the time lost in the comparison is a small share of it, and
 * longer each time that it is the same.  It is doubted earlier if the WAL has changed: if without
 * advice reads are waited for longer, per block that is named, as when there are few images left
 * in a checkpoint's cycle; or if with advice more is wasted.  Then it is compared again, which
 * ends at once where nothing is wasted any more.
 *
 * src/replay/replay_trial.c
 */
#include <math.h>
#include <string.h>

#include "replay/replay_depth.h"
#include "replay/replay_trial.h"

/* a block's advice, about, where the operating system has the block already */
#define ADVICE_US		1.0

/* before a trial without advice: reads hardly waited for, or in vain; and what it may cost */
#define QUIET_READS		1024
#define QUIET_WASTED	64
#define TRIAL_SHARE		0.01
#define MAX_TRIAL_LOSS	3000.0
#define MAX_SAVED		20000.0
#define MAX_BETWEEN		2e7
#define MAX_TROUBLE		8

/* a window of a comparison: so long, or so many reads, and so many blocks named */
#define COMPARE_US		20000.0
#define COMPARE_READS	8
#define MAX_COMPARE_US	100000.0
#define COMPARE_BLOCKS	256
#define ENOUGH_READS	16
#define MANY_READS		32

/* ... and no longer than so many times that, whatever it has come to */
#define LONG_WINDOWS	10

/* blocks named that are left out: the server looks at four times as many as it has in flight */
#define SETTLE_BLOCKS	64
#define LOOKS_AT		4

/* by how much one must be faster: at once; after one round of four windows, two, three */
#define ROUNDS			3
#define MARGIN_AT_ONCE	0.40
static const double margins[ROUNDS] = {0.10, 0.05, 0.02};

/* a window that takes so many times as long as with the other way need not go on */
#define MUCH_SLOWER		2.0
#define FEW_READS		8

/* depths with which advice that was in vain is compared again: 1, 4 and 16 times the default */
#define DEPTHS			3
#define DEEPEST			256

/* between comparisons */
#define MIN_BETWEEN		5e5

/* waits per block, or a share wasted, that have grown so much after such a part of that time */
#define GROWN			1.5
#define GROWN_PART		0.25
#define MUCH_GROWN		3.0
#define MUCH_GROWN_PART	0.0625
#define MORE_WASTED		0.25

/* ---- memory ---------------------------------------------------------------------- */

/* The time until the next trial, after so much was lost. */
static double
time_between(double loss_us, int times)
{
	return fmin(loss_us / TRIAL_SHARE * (1 << times), MAX_BETWEEN);
}

/* Has the server read ahead for so long without waits that it is time to do without? */
static bool
is_quiet(LaReplayPolicy *p, const LaReplayWindow *w)
{
	if (w->wait_us >= w->elapsed_us * LA_REPLAY_WAITING)
	{
		p->quiet = 0;
		return false;
	}
	p->quiet += w->reads;
	if (la_replay_window_reads_in_vain(w))
		p->quiet += w->wasted * (QUIET_READS / QUIET_WASTED);
	p->quiet_us += w->elapsed_us;
	return p->quiet >= QUIET_READS && p->quiet_us >= p->trial_after_us;
}

/* The server is to read ahead again. */
static void
end_trial(LaReplayPolicy *p)
{
	p->mode = LA_REPLAY_AHEAD;
	p->advise = true;
	la_replay_policy_unsettle(p);
	p->quiet = 0;
	p->quiet_us = 0;
	p->trial_after_us = 0;
	if (p->loss_us <= 0)
	{
		p->in_trouble = 0;
		return;
	}
	p->trial_after_us = time_between(p->loss_us, p->in_trouble);
	if (p->in_trouble < MAX_TROUBLE)
		p->in_trouble++;
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

/* ---- waste ----------------------------------------------------------------------- */

static double
ratio(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

/* Which share of what was advised was not read? */
static double
wasted_share(const LaReplayWindow *w)
{
	return ratio((double) w->wasted, (double) w->advised);
}

/* Does replay wait for the storage? */
static bool
waits(const LaReplayWindow *w)
{
	return w->wait_us + w->write_us >= w->elapsed_us * LA_REPLAY_WAITING;
}

/*
 * Is it time to compare?  While nothing waits, reads may come from memory, which the other trial
 * finds out; only if they do not is this one needed, too.
 */
static bool
is_doubtful(LaReplayPolicy *p, const LaReplayWindow *w)
{
	LaReplayComparison *c = &p->comparison;
	double		share;

	c->held_us += w->elapsed_us;
	if (c->lately.advised >= LA_REPLAY_ADVISED_ENOUGH)
	{
		c->lately.advised /= 2;
		c->lately.wasted /= 2;
		c->lately.images /= 2;
	}
	la_replay_window_add(&c->lately, w);
	if (c->lately.advised < LA_REPLAY_ADVISED_ENOUGH ||
		!la_replay_window_reads_in_vain(&c->lately))
		return false;
	share = wasted_share(&c->lately);
	if (!waits(w) && p->in_trouble == 0)
		return false;
	if (share >= c->wasted + MORE_WASTED && c->held_us >= c->again_us * MUCH_GROWN_PART)
	{
		/* the depth was found for something else */
		if (p->depth > p->base)
			la_replay_policy_restart(p, p->base);
		return true;
	}
	return c->held_us >= c->again_us;
}

/* Compare.  The first windows are with advice, or without, as it is. */
static void
begin_comparison(LaReplayPolicy *p)
{
	LaReplayComparison *c = &p->comparison;

	memset(c->sums, 0, sizeof(c->sums));
	c->windows = 0;
	c->began_with = p->advise;
	c->settling = false;
	p->mode = LA_REPLAY_COMPARE;
}

/* What share of all that the comparison has replayed is in this? */
static double
amount(const LaReplayComparison *c, const LaReplayWindow *w)
{
	LaReplayWindow all = c->sums[0];

	la_replay_window_add(&all, &c->sums[1]);
	return (ratio((double) w->references, (double) all.references) +
			ratio((double) w->wal_bytes, (double) all.wal_bytes)) / 2;
}

/* So many times as long it takes without advice; 0: not known. */
static double
times_without(const LaReplayComparison *c)
{
	double		with = ratio(c->sums[1].elapsed_us, amount(c, &c->sums[1]));
	double		without = ratio(c->sums[0].elapsed_us, amount(c, &c->sums[0]));

	return ratio(without, with);
}

/* The time that the slower way has taken longer. */
static double
lost(const LaReplayComparison *c, double times)
{
	if (times <= 0)
		return 0;
	if (times > 1)
		return c->sums[0].elapsed_us * (1 - 1 / times);
	return c->sums[1].elapsed_us * (1 - times);
}

/* The comparison is over.  True: the server is to do otherwise than it does. */
static bool
end_comparison(LaReplayPolicy *p, bool advise)
{
	LaReplayComparison *c = &p->comparison;
	bool		changed = p->advise != advise;

	c->same = advise == c->began_with ? c->same + (c->same < MAX_TROUBLE) : 0;
	c->again_us = fmax(time_between(lost(c, times_without(c)), c->same), MIN_BETWEEN);
	c->held_us = 0;
	c->wait_us = ratio(c->sums[0].wait_us, (double) c->sums[0].references);
	c->wasted = wasted_share(&c->sums[1]);
	memset(&c->lately, 0, sizeof(c->lately));
	c->in_vain_so_far = advise ? 0 : c->in_vain_so_far + 1;
	p->mode = advise ? LA_REPLAY_AHEAD : LA_REPLAY_IN_VAIN;
	p->advise = advise;
	p->quiet = 0;
	la_replay_policy_unsettle(p);
	return changed;
}

/* The other way, or the same one again. */
static bool
next_window(LaReplayPolicy *p)
{
	LaReplayComparison *c = &p->comparison;
	int			place = c->windows % 4;
	bool		advise = place == 1 || place == 2 ? !c->began_with : c->began_with;

	if (p->advise == advise)
		return false;
	p->advise = advise;
	c->settling = true;
	return true;
}

/*
 * Advice was in vain, and is compared again.  Perhaps the depth was too small, so that others come
 * by turns.  What the last window without advice has shown counts.  Returns true.
 */
static bool
compare_again(LaReplayPolicy *p, const LaReplayWindow *w)
{
	int			times = 1 << 2 * ((p->comparison.in_vain_so_far - 1) % DEPTHS);

	begin_comparison(p);
	if (p->base * times <= DEEPEST)
		la_replay_policy_restart(p, p->base * times);
	la_replay_window_add(&p->comparison.sums[0], w);
	p->comparison.windows = 1;
	return next_window(p);
}

/* A window of the comparison is full.  True: the server is to do otherwise than it does. */
static bool
compare(LaReplayPolicy *p, const LaReplayWindow *w)
{
	LaReplayComparison *c = &p->comparison;
	double		times;
	double		margin = MARGIN_AT_ONCE;

	if (c->settling)
	{
		c->settling = false;
		return false;
	}
	la_replay_window_add(&c->sums[p->advise], w);
	c->windows++;
	if (c->sums[1].references > 0 && !la_replay_window_reads_in_vain(&c->sums[1]))
		return end_comparison(p, true);
	times = times_without(c);
	if (c->windows % 4 == 0)
		margin = margins[c->windows / 4 - 1];
	if (times > 0 && (times > 1 + margin || times < 1 / (1 + margin)))
		return end_comparison(p, times > 1);
	if (c->windows == 4 * ROUNDS)
		return end_comparison(p, c->began_with);
	return next_window(p);
}

/* A window without advice, which has been found to be the faster way.  Is that to be doubted? */
static bool
has_grown(LaReplayPolicy *p, const LaReplayWindow *w)
{
	LaReplayComparison *c = &p->comparison;
	double		wait_us = ratio(w->wait_us, (double) w->references);

	c->held_us += w->elapsed_us;
	if (c->held_us >= c->again_us)
		return true;
	if (w->wait_us < w->elapsed_us * LA_REPLAY_WAITING || w->reads < FEW_READS)
		return false;
	if (wait_us >= c->wait_us * MUCH_GROWN)
		return c->held_us >= c->again_us * MUCH_GROWN_PART;
	return wait_us >= c->wait_us * GROWN && c->held_us >= c->again_us * GROWN_PART;
}

/* Are windows those of a comparison, or of the time after it in which the server does without? */
bool
la_replay_policy_compares(const LaReplayPolicy *p)
{
	return p->mode == LA_REPLAY_COMPARE || p->mode == LA_REPLAY_IN_VAIN;
}

/* Does the window take so much longer than the other way that it need not go on? */
static bool
is_hopeless(const LaReplayPolicy *p, const LaReplayWindow *w)
{
	const LaReplayWindow *other = &p->comparison.sums[!p->advise];

	return p->mode == LA_REPLAY_COMPARE && w->reads >= FEW_READS && other->references > 0 &&
		w->elapsed_us * amount(&p->comparison, other) >
		MUCH_SLOWER * other->elapsed_us * amount(&p->comparison, w);
}

/* Is it long enough? */
bool
la_replay_policy_compare_full(const LaReplayPolicy *p, const LaReplayWindow *w)
{
	double		us = fmax(COMPARE_US, fmin(p->read_us * COMPARE_READS, MAX_COMPARE_US));

	if (w->elapsed_us >= us * LONG_WINDOWS)
		return true;
	if (p->mode == LA_REPLAY_COMPARE && p->comparison.settling)
		return w->references >= SETTLE_BLOCKS &&
			(!p->advise || w->references >= (uint64_t) (p->depth * LOOKS_AT));
	if (p->mode == LA_REPLAY_IN_VAIN)
		return w->reads >= MANY_READS && w->elapsed_us >= us;
	if (w->elapsed_us >= us && (w->references >= COMPARE_BLOCKS || w->reads >= ENOUGH_READS))
		return true;
	return w->elapsed_us >= us / 4 && is_hopeless(p, w);
}

/* Such a window is over.  True: the server is to read ahead, or to do so no more. */
bool
la_replay_policy_compare(LaReplayPolicy *p, const LaReplayWindow *w)
{
	if (p->mode == LA_REPLAY_COMPARE)
		return compare(p, w);
	return has_grown(p, w) && compare_again(p, w);
}

/* ---- both ------------------------------------------------------------------------ */

/*
 * A window has passed while the server reads ahead.  True: it is to do without, for a trial.  It
 * may also be that a comparison begins, with more such windows.
 */
bool
la_replay_policy_trial(LaReplayPolicy *p, const LaReplayWindow *w)
{
	p->windows_us += w->elapsed_us;
	if (is_doubtful(p, w))
	{
		begin_comparison(p);
		return false;
	}
	if (!is_quiet(p, w) || (la_replay_window_reads_in_vain(w) && waits(w)))
		return false;
	p->mode = LA_REPLAY_FROM_MEMORY;
	p->advise = false;
	p->loss_us = p->balance_us = 0;
	return true;
}

/* It is not ours to decide any more whether the server reads ahead. */
void
la_replay_policy_no_trials(LaReplayPolicy *p)
{
	if (p->mode == LA_REPLAY_AHEAD)
		return;
	p->mode = LA_REPLAY_AHEAD;
	p->advise = true;
	la_replay_policy_unsettle(p);
}
