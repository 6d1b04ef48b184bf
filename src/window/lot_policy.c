/*
 * lot_policy.c
 *	  Are blocks issued in the order of the table rather than in that of the scan?
 *
 * A lot is a number of foreseen visits whose blocks are issued in the order of the table: a
 * block that several of them visit once, neighbours by one request.  (Geoghegan calls it a "mini
 * bitmap index scan".)  The rows are still returned in the order of the index, and while those
 * of one lot are, the next lot is issued, so neither the storage nor the scan waits for the other
 * (lot.c).
 *
 *			need order ----- a lot of FIRST_SIZE ----> merges enough? --yes--> a larger one,
 *				^						^						|			up to the limit
 *				|						+---- pause, doubling <-no-----------------+
 *				+---------------------------------------------+
 *
 * Behaviours:
 *	PROBE		Whether blocks of the scan are neighbours shows when a lot has been sorted.  That of
 *				the first lot says little about larger ones: of rows in random order a larger lot
 *				has more that are neighbours.  So pairs are counted that are as close as neighbours
 *				will be in a lot of the largest size.  Where fewer than one in WORTHWHILE is, blocks
 *				are issued in the order of need, and the next probe comes later each time.  Where
 *				there are more than MANY_VISITS to each block that is not cached, and more than that
 *				where reads take long, time goes by in these visits, and the kernel's read-ahead
 *				does for the reads (NEAR in io_policy.c).  Blocks that are left to it are no
 *				reason for a probe, unless it is too slow (DISTANT there): PROBE_AFTER have to be
 *				issued in the order of need.
 *	TABLE		The leaf pages of a write (LA_ORDER_OF_TABLE) need no neighbours.  A session that
 *				writes is bound by the processor, and starting the sorted reads takes less of its
 *				time: measured on keys of which one in six had a neighbour, 3.1 s instead of 3.5 s.
 *	RAMP		There is no lot until the io policy has ramped up.  In a scan that is read to its
 *				end, lots become GROWTH_TO_END times as large each time.  In others they double, and
 *				have no more than a quarter of the visits that the scan has made.  So a scan that is
 *				ended early has wasted at most half as many reads as it has used.  A LIMIT bounds
 *				the visits that there are.  So do the leaf pages that may be kept, for the rows of
 *				two lots: when they cut a lot short, the limit becomes half of what they had room
 *				for.  Lots of fewer than LEAST_SIZE blocks are not worth it.
 *	SUPPLY		Changes of a stream arrive as they are made (supply_varies).  A lot that is cut
 *				short says nothing of later ones, so the limit doubles with each that is not, and
 *				lots do not end: one of the few changes that are there is issued at once.
 *	MODEST		Where the administrator has set max_distance, for all or for the tablespace, below
 *				LEAST_DISTANCE, the storage is not to be filled with requests: no lots.
 *	GAP			A request costs the storage about as much as reading some more blocks with it: it
 *				is the larger share the slower a single read is.  One gap block for each
 *				GAP_US of it, as far as that is known.
 *	DENSE		Where a lot has one in DENSE of the blocks between its first and its last one,
 *				it costs no more to read them all: by large requests, which take a fraction of
 *				the processor's and the storage's time.  So up to DENSE_GAP blocks in between
 *				are read as well, from PostgreSQL 17 on, where a request may have several blocks.
 *	EVICTED		If blocks have to be read again when their rows come, the window is larger than
 *				the memory that is left for it.  Where one in EVICTED_SHARE is, lots become half as
 *				large.
 *
 * src/window/lot_policy.c
 */
#include <string.h>

#include "window/lot_policy.h"

#define FIRST_SIZE		128
#define LEAST_SIZE		32
#define LEAST_DISTANCE	16
#define PROBE_AFTER		32
#define SHORT_SCAN		2048
#define WORTHWHILE		8
#define MANY_VISITS		16
#define DEMAND_SHARE	4
#define GROWTH			2
#define GROWTH_TO_END	4
#define GAP_US			100.0
#define GAP_LAST		16
#define DENSE			4
#define DENSE_GAP		12
#define EVICTED_SHARE	8
#define PAUSE_FIRST		4096
#define PAUSE_LAST		(1 << 20)

static void
set_size(LaLotPolicy *p, int size)
{
	p->size = la_min(size, p->limit);
	p->near_gap = (1 + p->gap) * la_max(p->limit / la_max(p->size, 1), 1);
}

/* limit: blocks of a lot at most.  read_us: how long a read takes, or 0 if not known. */
void
la_lot_policy_init(LaLotPolicy *p, int limit, double read_us)
{
	memset(p, 0, sizeof(*p));
	p->first_limit = limit;
	p->gap = (int) la_min(read_us / GAP_US, GAP_LAST);
	p->pause = PAUSE_FIRST;
	la_lot_policy_restart(p);
}

/* The scan starts over, or goes on elsewhere. */
void
la_lot_policy_restart(LaLotPolicy *p)
{
	p->limit = p->first_limit;
	set_size(p, FIRST_SIZE);
	p->until_probe = PROBE_AFTER;
	p->last_blocks = p->nissued = p->nevicted = 0;
}

/* A block was issued in the order of need. */
void
la_lot_policy_on_issue(LaLotPolicy *p)
{
	if (p->until_probe > 0)
		p->until_probe--;
}

/* PROBE: is it time for one?  Lots that follow each other are. */
static bool
is_due(const LaLotPolicy *p, const LaIoPolicy *io)
{
	return p->until_probe == 0 || io->kernel_is_slow ||
		(p->again_at == 0 && io->config.end_is_certain &&
		 io->config.order == LA_ORDER_BY_PROBE &&
		 io->config.expected > 0 && io->config.expected <= SHORT_SCAN);
}

/* How many blocks shall the next lot have?  0: issue blocks in the order of need. */
int
la_lot_policy_size(LaLotPolicy *p, const LaIoPolicy *io)
{
	int64_t		size = p->size;

	if (io->state != LA_ARMED || !io->for_reads || io->assumed ||
		!is_due(p, io) || io->config.order == LA_ORDER_OF_NEED ||
		io->config.max_distance < LEAST_DISTANCE ||
		io->length.total < p->again_at ||
		io->ahead < io->config.max_distance)
		return 0;

	/* RAMP; the visit that is being made is not yet counted */
	if (!io->config.end_is_certain && !io->config.force)
		size = la_min(size, la_scan_length_visits(&io->length) / DEMAND_SHARE);
	if (io->early_visits > 0)
		size = la_min(size, la_io_policy_visits_ahead(io));
	return size < la_min(la_max(p->limit, LEAST_SIZE), FIRST_SIZE) ? 0 : (int) size;
}

/*
 * GAP, DENSE: how many blocks between two of a lot are read with them?  nbetween: blocks from the
 * lot's first one to its last one.
 */
int
la_lot_policy_gap(const LaLotPolicy *p, int nblocks, uint64_t nbetween)
{
	return nblocks >= LEAST_SIZE && nbetween <= (uint64_t) nblocks * DENSE ?
		la_max(p->gap, DENSE_GAP) : p->gap;
}

/* Blocks are issued in the order of need again. */
static void
stop(LaLotPolicy *p, const LaIoPolicy *io)
{
	set_size(p, FIRST_SIZE);
	p->until_probe = PROBE_AFTER;
	p->again_at = io->length.total + p->pause;
	p->pause = la_min(p->pause * 2, PAUSE_LAST);
}

/* RAMP, SUPPLY, EVICTED: is the limit too large?  The lot before this one has just been visited. */
static void
check_limit(LaLotPolicy *p, const LaIoPolicy *io, const LaLotResult *r)
{
	if (p->nevicted > FIRST_SIZE / EVICTED_SHARE && p->nevicted > p->nissued / EVICTED_SHARE)
		p->limit = la_min(p->limit, p->last_blocks / 2);
	if (r->limited)
		p->limit = la_min(p->limit, (p->last_blocks + r->blocks) / 2);
	else if (io->config.supply_varies)
		p->limit = la_min(p->limit * 2, p->first_limit);
	if (io->config.supply_varies)
		p->limit = la_max(p->limit, la_min(p->first_limit, LEAST_SIZE));
	p->last_blocks = r->blocks;
	p->nissued = p->nevicted = 0;
}

/* All blocks of a lot were issued. */
void
la_lot_policy_on_lot(LaLotPolicy *p, const LaIoPolicy *io, const LaLotResult *r)
{
	check_limit(p, io, r);

	/* PROBE; a lot of cached blocks says nothing */
	if (p->limit < LEAST_SIZE)
		stop(p, io);
	else if (io->config.force || r->uncached < LEAST_SIZE / 2)
		set_size(p, p->size * GROWTH);
	else if ((r->close * WORTHWHILE >= r->uncached || io->config.order == LA_ORDER_OF_TABLE) &&
			 r->uncached * MANY_VISITS * (1 + p->gap) >= r->visits)
	{
		set_size(p, p->size * (io->config.end_is_certain ? GROWTH_TO_END : GROWTH));
		p->pause = PAUSE_FIRST;
		p->until_probe = 0;
	}
	else
		stop(p, io);
}

/* A visit to a block that was issued as part of a lot; evicted: it had to be read again. */
void
la_lot_policy_on_visit(LaLotPolicy *p, bool evicted)
{
	p->nissued++;
	if (evicted)
		p->nevicted++;
}
