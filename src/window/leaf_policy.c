/*
 * leaf_policy.c
 *	  How many index leaf pages a scan reads ahead.
 *
 * Where heap blocks are cached, or are not visited, a scan waits for its leaf pages.  Whether these
 * waits are long, how far to look ahead and when to stop is the same question as for heap blocks,
 * so there is an io policy of their own.  Its visits are the scan's steps from a leaf page to the
 * next one (btree/leafahead.c).  The behaviours EVIDENCE, RAMP, QUIET, CONTROLS, LENGTH, HISTORY
 * and FORCE are those of io_policy.c.  Different are:
 *
 *	TIMED	A step is some hundred rows, so each one is timed.  The first wait leads to OBSERVE and
 *		counts there; fast reads do not end PASS.  With known_slow it arms, and nothing is assumed.
 *	FIRST ROW	The page of a scan's first row was found by a descent.  If its reads were waits,
 *		enough of them or known to be, so are those of the leaf pages to come: ARMED.
 *	NEXT	The page of the next block of the file is left to the kernel, as in an index that was
 *		just built, and having to wait for it is no evidence.
 *	DEMAND	No more pages are foreseen than the rows wanted of the scan are likely to cover.
 *	LEAP	A scan with an array of values may go on elsewhere than on the next page, and what was
 *		foreseen is wasted.  Then at most MOST_AFTER_LEAP pages are foreseen, a number that doubles
 *		with each issued page visited; LEAPS_ENOUGH leaps without one end ARMED, with a hold-off.
 *
 * src/window/leaf_policy.c
 */
#include <string.h>

#include "window/leaf_policy.h"

#define MOST_AFTER_LEAP		2
#define MOST				(1 << 20)
#define LEAPS_ENOUGH		4

void
la_leaf_policy_init(LaLeafPolicy *p, const LaIoPolicyConfig *config)
{
	la_io_policy_init(&p->io, config);
	p->most = MOST;
	p->misled = 0;
	if (!config->advice_works)
		la_io_policy_disable(&p->io);
}

/* TIMED, NEXT: in state PASS. */
static void
on_passive_step(LaLeafPolicy *p, LaVisitResult result, double us)
{
	LaIoPolicy *io = &p->io;

	io->length.total++;
	if (result != LA_VISIT_HIT && result != LA_VISIT_NEXT_MISS && us >= io->config.min_read_us)
		la_io_policy_on_miss(io);
	io->assumed = false;
	if (io->state == LA_OBSERVE)
	{
		/* it counts the visit again */
		io->length.total--;
		la_io_policy_on_visit(io, result, us);
	}
}

/* FIRST ROW: it has taken so many reads, which were waits.  Is the policy armed for that? */
bool
la_leaf_policy_on_first_row(LaLeafPolicy *p, int64_t reads)
{
	LaIoPolicy *io = &p->io;

	if (io->state != LA_PASS || io->length.scans > 0 ||
		(reads < io->config.miss_threshold && !io->config.known_slow))
		return false;
	la_io_policy_on_wait(io);
	return io->state == LA_ARMED;
}

/* The scan has come to another leaf page.  us: how long the read took, 0 for a hit. */
void
la_leaf_policy_on_step(LaLeafPolicy *p, LaVisitResult result, double us)
{
	if (p->io.state == LA_PASS)
	{
		on_passive_step(p, result, us);
		return;
	}
	la_io_policy_on_visit(&p->io, result, us);
	if (result == LA_VISIT_ISSUED)
	{
		p->misled = 0;
		p->most = la_min(p->most * 2, MOST);
	}
}

/* LEAP: the scan has not gone where pages were foreseen.  wasted: how many had been issued. */
void
la_leaf_policy_on_leap(LaLeafPolicy *p, int wasted)
{
	if (wasted == 0 || p->io.state != LA_ARMED || p->io.config.force)
		return;
	la_leaf_policy_be_careful(p);
	if (++p->misled < LEAPS_ENOUGH)
		return;
	p->misled = 0;
	la_io_policy_hold_off(&p->io);
}

/* LEAP: the scan may leap, or has done so. */
void
la_leaf_policy_be_careful(LaLeafPolicy *p)
{
	if (!p->io.config.force)
		p->most = MOST_AFTER_LEAP;
}

/*
 * How many pages to foresee behind the current one.  rows: so many are wanted that are not on this
 * page.
 */
int
la_leaf_policy_pages_ahead(const LaLeafPolicy *p, int64_t rows, int rows_per_page)
{
	int			pages = la_min(la_io_policy_visits_ahead(&p->io), p->most);

	if (rows <= 0)
		return 0;
	return (int) la_min((int64_t) pages, (rows - 1) / la_max(rows_per_page, 1) + 1);
}
