/*
 * replay_depth.c
 *	  How far recovery is to read ahead: pure functions.
 *
 * The server's own look-ahead in recovery has one number that decides how far it goes: so many
 * reads may be in flight, and it looks at four times as many block references to find them.
 * What is needed is what the storage can do, reads per second times the time of a read, and more
 * where many references find their block in memory.
 *
 * CLIMB.  The depth begins at the server's default, or at the knee of the calibrated storage
 * where that is deeper.  While replay waits for reads for more than a small share of its time,
 * it is multiplied: by four, until a step has been in vain for the first time, and by two from
 * then on.  A step was in vain if a read is waited for about as long as before: the storage is
 * at its limit then.  After one by four, the depth between is tried; after two others, or one
 * with which a read is waited for much longer, the depth goes back to the best one.  The next
 * try comes later each time.  What counts is the wait of a read, since the rate of replay
 * changes with what is in the WAL.  To it belongs what other records wait for pages to be written
 * back, as these stand in line behind the reads.
 *
 * WASTE.  Where blocks that are advised are then not read, more depth means more of them, and a
 * read may be waited for less only because something else is waited for more, by records that
 * write back a page, for example.  There a step is judged by the time of a block that is named
 * instead.  That is so whatever the reason: an image ahead (replay_trial.c), or a record ahead that
 * reads the block, too.
 *
 * DESCEND.  When nothing has been late for long, half of the depth is tried, as pages that are
 * read too early may be gone before their turn, and others use the disk, too.  If that brings
 * back waits, it is undone, and the next try comes later.  It is never less than the server's
 * default.
 *
 * The reads that may have been started at another depth say nothing and are left out.
 *
 * src/replay/replay_depth.c
 */
#include <math.h>
#include <string.h>

#include "replay/replay_depth.h"
#include "window/scan_length.h"

/* replay hardly waits: a share of the time */
#define CALM_SHARE		0.005

/* one of so many that were advised was wasted */
#define ONE_WASTED		8

/* a step was not in vain if a read is waited for this share less */
#define GAIN_SHARE		0.10
#define STEPS_IN_VAIN	2

/* ... and, where advice is wasted, replay is this share faster */
#define TIME_SHARE		0.05
#define MAX_WASTEFUL	256

/* one that makes a read's wait so much longer is the last */
#define LOSS_SHARE		0.25

/* windows */
#define FIRST_PAUSE		16
#define MAX_PAUSE		4096
#define FIRST_PATIENCE	64
#define MAX_PATIENCE	65536
#define WINDOW_READS	256
#define STEEP_READS		64
#define WASTEFUL_READS	512
#define SETTLE_READS	32
#define FEW_READS		16

void
la_replay_policy_init(LaReplayPolicy *p, int base)
{
	memset(p, 0, sizeof(*p));
	p->advise = true;
	p->base = la_max(base, 1);
	p->depth = la_min(p->base, LA_REPLAY_MAX_DEPTH);
	p->steep = true;
	p->next_pause = FIRST_PAUSE;
	p->patience = FIRST_PATIENCE;
}

/* Climb again, from another depth. */
void
la_replay_policy_restart(LaReplayPolicy *p, int depth)
{
	la_replay_policy_unsettle(p);
	p->depth = la_min(depth, LA_REPLAY_MAX_DEPTH);
	p->climbing = false;
	p->steep = true;
	p->in_vain = p->ceiling = 0;
	p->descended_from = 0;
	p->calm = 0;
	p->pause = 0;
	p->next_pause = FIRST_PAUSE;
}

/* Reads have been started otherwise than they are from now on. */
void
la_replay_policy_unsettle(LaReplayPolicy *p)
{
	p->unsettled = la_max(p->unsettled, la_max(p->depth, SETTLE_READS));
	memset(&p->sum, 0, sizeof(p->sum));
}

/* The depth changes.  Returns true. */
static bool
set_depth(LaReplayPolicy *p, int depth)
{
	la_replay_policy_unsettle(p);
	p->depth = depth;
	p->calm = 0;
	return true;
}

/* The storage is known to need that depth.  True: the depth has changed. */
bool
la_replay_policy_suggest(LaReplayPolicy *p, int depth)
{
	depth = la_min(depth, LA_REPLAY_MAX_DEPTH);
	if (depth <= p->depth)
		return false;
	p->climbing = false;
	p->descended_from = 0;
	return set_depth(p, depth);
}

/* ---- windows --------------------------------------------------------------------- */

void
la_replay_window_add(LaReplayWindow *sum, const LaReplayWindow *w)
{
	sum->elapsed_us += w->elapsed_us;
	sum->wait_us += w->wait_us;
	sum->write_us += w->write_us;
	sum->reads += w->reads;
	sum->advised += w->advised;
	sum->wasted += w->wasted;
	sum->references += w->references;
	sum->images += w->images;
	sum->wal_bytes += w->wal_bytes;
}

/* Was a share of what was advised not read that is worth a look? */
static bool
is_wasteful(const LaReplayWindow *w)
{
	return w->wasted > 0 && w->wasted * ONE_WASTED >= w->advised;
}

/*
 * ... and may the storage have read it all the same?  Only what an image brings is read in vain.  A
 * block that is advised again before the record that reads it is in memory already, or being read.
 */
bool
la_replay_window_reads_in_vain(const LaReplayWindow *w)
{
	return w->images > 0 && is_wasteful(w);
}

/*
 * Does the window say something of the depth?  Enough reads were started at it then; or they have
 * been waited for so much longer than before the step that it need not go on.  Reads of blocks that
 * nobody comes for are reads, too, if there are others among them.
 */
static bool
is_enough(const LaReplayPolicy *p, const LaReplayWindow *w)
{
	bool		wasteful = la_replay_window_reads_in_vain(w);
	int			enough = la_max(2 * p->depth, wasteful ? WASTEFUL_READS :
								p->steep ? STEEP_READS : WINDOW_READS);
	uint64_t	reads = w->reads;

	if (wasteful && (p->unsettled > 0 || reads >= FEW_READS) && w->advised > reads)
		reads = w->advised;
	if (p->unsettled > 0)
		return reads >= (uint64_t) p->unsettled;
	if (reads >= (uint64_t) enough)
		return true;
	return p->climbing && w->wait_us > enough * p->best_wait_us * (1.0 + LOSS_SHARE);
}

/* Is the window long enough for the depth, or to see that advice is wasted? */
bool
la_replay_policy_window_full(const LaReplayPolicy *p, const LaReplayWindow *w)
{
	LaReplayWindow both = p->sum;

	la_replay_window_add(&both, w);
	if (w->advised >= LA_REPLAY_ADVISED_ENOUGH && la_replay_window_reads_in_vain(w))
		return true;
	return is_enough(p, &both);
}

/* ---- decisions ------------------------------------------------------------------- */

static double
time_per_reference(const LaReplayWindow *w)
{
	return w->references > 0 ? w->elapsed_us / (double) w->references : 0;
}

static double
waits_per_read(const LaReplayWindow *w)
{
	return (w->wait_us + w->write_us) / (double) w->reads;
}

/* What the last step has changed, as a share of what was before: less is better. */
static double
change(const LaReplayPolicy *p, const LaReplayWindow *w)
{
	return is_wasteful(w) ? time_per_reference(w) / p->best_time_us :
		waits_per_read(w) / p->best_wait_us;
}

/* Was it a gain? */
static bool
has_gained(const LaReplayPolicy *p, const LaReplayWindow *w)
{
	return change(p, w) < 1.0 - (is_wasteful(w) ? TIME_SHARE : GAIN_SHARE);
}

/* Was it a loss? */
static bool
has_lost(const LaReplayPolicy *p, const LaReplayWindow *w)
{
	return change(p, w) > 1.0 + (is_wasteful(w) ? TIME_SHARE : LOSS_SHARE);
}

/* The depth after a step upwards; 0: there is none. */
static int
next_step(LaReplayPolicy *p, int most)
{
	int			depth;

	if (p->in_vain >= STEPS_IN_VAIN)
		return 0;
	if (p->in_vain > 0 && p->steep)
	{
		/* what is between the best depth and the one that was in vain? */
		p->ceiling = p->depth;
		depth = p->best * 2;
	}
	else
		depth = p->depth * (p->steep ? 4 : 2);
	if (p->in_vain > 0)
		p->steep = false;
	depth = la_min(depth, most);
	if (depth <= p->best || (p->ceiling > 0 && depth >= p->ceiling))
		return 0;
	return depth;
}

/* Replay waits in spite of a step upwards, or before the first one. */
static bool
climb(LaReplayPolicy *p, const LaReplayWindow *w)
{
	int			depth;

	if (!p->climbing || has_gained(p, w))
	{
		p->best = p->depth;
		p->best_wait_us = waits_per_read(w);
		p->best_time_us = time_per_reference(w);
		p->in_vain = 0;
	}
	else if (has_lost(p, w) && !p->steep)
		p->in_vain += STEPS_IN_VAIN;
	else
		p->in_vain++;
	p->climbing = true;

	depth = next_step(p, is_wasteful(w) ?
					  la_max(p->base, MAX_WASTEFUL) : LA_REPLAY_MAX_DEPTH);
	if (depth > 0)
		return set_depth(p, depth);
	p->climbing = false;
	p->ceiling = 0;
	p->in_vain = 0;
	p->pause = p->next_pause;
	p->next_pause = la_min(p->next_pause * 2, MAX_PAUSE);
	return p->depth != p->best && set_depth(p, p->best);
}

/* Replay waits.  True: the depth has changed. */
static bool
waiting(LaReplayPolicy *p, const LaReplayWindow *w)
{
	p->calm = 0;
	if (p->descended_from > 0)
	{
		int			depth = p->descended_from;

		p->descended_from = 0;
		p->patience = la_min(p->patience * 2, MAX_PATIENCE);
		return set_depth(p, depth);
	}
	if (p->pause > 0)
	{
		p->pause--;
		return false;
	}
	return climb(p, w);
}

/* Replay does not wait, or hardly.  True: the depth has changed. */
static bool
keeping_up(LaReplayPolicy *p, bool calm)
{
	p->climbing = false;
	p->ceiling = 0;
	p->in_vain = 0;
	p->descended_from = 0;
	p->calm = calm ? p->calm + 1 : 0;
	if (p->calm < p->patience || p->depth <= p->base)
		return false;
	p->descended_from = p->depth;
	return set_depth(p, la_max(p->depth / 2, p->base));
}

/* Some records have been replayed while the server read ahead.  True: the depth has changed. */
bool
la_replay_policy_window(LaReplayPolicy *p, const LaReplayWindow *w)
{
	LaReplayWindow sum;
	double		share;

	la_replay_window_add(&p->sum, w);
	if (p->sum.reads == 0 || !is_enough(p, &p->sum))
		return false;
	sum = p->sum;
	memset(&p->sum, 0, sizeof(p->sum));
	if (p->unsettled > 0)
	{
		p->unsettled = 0;
		return false;
	}
	share = sum.elapsed_us > 0 ? sum.wait_us / sum.elapsed_us : 0;
	if (share >= LA_REPLAY_WAITING ||
		(p->climbing && !has_gained(p, &sum)))
		return waiting(p, &sum);
	return keeping_up(p, share < CALM_SHARE);
}
