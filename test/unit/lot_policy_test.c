/*
 * lot_policy_test.c
 *	  Decisions of the lot policy, on simulated scans.
 *
 * A scan visits blocks of a table of so many blocks; nothing of it is cached.  Lots are
 * collected, counted and visited as lot.c does.
 *
 * test/unit/lot_policy_test.c
 */
#include <stdlib.h>

#include "simulation.h"
#include "window/lot_policy.h"

#define LIMIT		16384

/* The block of a scan's nth visit. */
typedef long (*Pattern) (long n);

typedef struct Lots
{
	LaIoPolicy	io;
	LaLotPolicy lots;
	long		collected;		/* visits of all lots so far */
	int			nlots;
	int			largest;
	double		most_wasted;	/* visits foreseen and not made, divided by those made */
	int			evicted_above;	/* blocks of a larger lot are evicted, unless 0 */
	int			room;			/* visits that the producer can foresee, unless 0 */
} Lots;

static long
random_block(long n)
{
	return (long) ((unsigned long) (n + 1) * 0x9E3779B97F4A7C15UL >> 24) % 200000;
}

/* The same in a table that is much larger. */
static long
sparse_block(long n)
{
	return (long) ((unsigned long) (n + 1) * 0x9E3779B97F4A7C15UL >> 16) % 100000000;
}

/* Every second block, in the order of the table. */
static long
dense_block(long n)
{
	return n * 2;
}

/* Order of the table, but for one row in ten. */
static long
nearly_clustered_block(long n)
{
	return n % 10 == 0 ? random_block(n) : n / 10;
}

static int
compare(const void *a, const void *b)
{
	long		x = *(const long *) a,
				y = *(const long *) b;

	return x < y ? -1 : x > y;
}

/* What lot.c counts when it issues the blocks of these visits. */
static LaLotResult
issue(const LaLotPolicy *p, Pattern block, long first, int n, int wanted)
{
	static long blocks[LIMIT];
	LaLotResult r = {.visits = n,.blocks = n,.limited = n < wanted};

	for (int i = 0; i < n; i++)
		blocks[i] = block(first + i);
	qsort(blocks, n, sizeof(long), compare);
	for (int i = 0; i < n; i++)
	{
		if (i > 0 && blocks[i] == blocks[i - 1])
			continue;
		r.uncached++;
		if (i > 0 && blocks[i] - blocks[i - 1] <= p->near_gap)
			r.close++;
	}
	return r;
}

static void
begin(Lots *s, bool read_to_end, double read_us)
{
	LaIoPolicyConfig config = io_defaults;

	*s = (Lots) {0};
	config.read_to_end = config.end_is_certain = read_to_end;
	la_io_policy_init(&s->io, &config);
	la_lot_policy_init(&s->lots, LIMIT, read_us);
	la_io_policy_on_miss(&s->io);
	for (int i = 0; i < 8; i++)
		la_io_policy_on_visit(&s->io, s->io.state == LA_ARMED ? LA_VISIT_ISSUED : LA_VISIT_MISS,
							  DISK_US);
	for (int i = 0; i < 32; i++)
		la_lot_policy_on_issue(&s->lots);
}

/* Make so many visits.  Lots are collected when the previous one is begun. */
static void
scan(Lots *s, Pattern block, long nvisits)
{
	LaIoPolicy *io = &s->io;
	long		lot_first = 0,	/* of the last lot */
				lot_end = 0;
	int			previous = 0;	/* visits of the one before */
	LaLotResult issued = {0};

	for (long n = 0; n < nvisits; n++)
	{
		int			size;

		la_io_policy_on_visit(io, io->state == LA_ARMED ? LA_VISIT_ISSUED : LA_VISIT_MISS,
							  io->state == LA_ARMED ? OS_CACHE_US : DISK_US);
		if (n >= lot_first - previous && n < lot_first)
			la_lot_policy_on_visit(&s->lots, s->evicted_above > 0 &&
								   previous > s->evicted_above);
		la_lot_policy_on_issue(&s->lots);
		if (n < lot_first)
			continue;
		if (issued.visits > 0)
			la_lot_policy_on_lot(&s->lots, io, &issued);
		issued.visits = 0;
		if ((size = la_lot_policy_size(&s->lots, io)) == 0)
			continue;
		previous = n < lot_end ? (int) (lot_end - lot_first) : 0;
		lot_first = n > lot_end ? n : lot_end;
		lot_end = lot_first + (s->room > 0 ? la_min(size, la_max(s->room - previous, 1)) : size);
		s->nlots++;
		s->collected += lot_end - lot_first;
		s->largest = la_max(s->largest, (int) (lot_end - lot_first));
		s->most_wasted = la_max(s->most_wasted, (double) (lot_end - n) / io->length.total);
		issued = issue(&s->lots, block, lot_first, (int) (lot_end - lot_first), size);
	}
}

static void
test_worth(void)
{
	Lots		s;

	begin(&s, true, DISK_US);
	scan(&s, dense_block, 200000);
	check("lots of blocks that are neighbours grow up to the limit", s.largest == LIMIT);
	check("and hold nearly all visits", s.collected > 195000);

	begin(&s, true, DISK_US);
	scan(&s, nearly_clustered_block, 200000);
	check("as do those of rows that are nearly clustered", s.largest == LIMIT);

	begin(&s, true, DISK_US);
	scan(&s, dense_block, 20000);
	scan(&s, sparse_block, 100000);
	check("a probe of scattered blocks is as exact after a large lot",
		  s.lots.near_gap == LIMIT / 128);

	begin(&s, true, DISK_US);
	scan(&s, sparse_block, 1000000);
	check("scattered blocks are issued in the order of need", s.largest == 128);
	check("but for a probe now and then", s.nlots > 2 && s.nlots < 12);

	begin(&s, true, DISK_US);
	la_lot_policy_restart(&s.lots);
	s.io.config.expected = 1000;
	scan(&s, nearly_clustered_block, 1);
	check("a short scan that is read to its end begins with a lot", s.nlots == 1);
	begin(&s, true, DISK_US);
	la_lot_policy_restart(&s.lots);
	s.io.config.expected = 100000;
	scan(&s, nearly_clustered_block, 31);
	check("a long one does not", s.nlots == 0);
	begin(&s, false, DISK_US);
	la_lot_policy_restart(&s.lots);
	s.io.config.expected = 1000;
	scan(&s, nearly_clustered_block, 31);
	check("one that may be left does not", s.nlots == 0);

	begin(&s, true, DISK_US);
	s.io.config.order = LA_ORDER_OF_TABLE;
	scan(&s, sparse_block, 200000);
	check("those of a write in the order of the table all the same", s.largest == LIMIT);
}

static void
test_demand(void)
{
	Lots		s;

	begin(&s, false, DISK_US);
	scan(&s, dense_block, 100000);
	check("where the demand is not known, at most half of what was used is wasted",
		  s.most_wasted <= 0.5);
	check("and lots are used all the same", s.collected > 80000);

	begin(&s, false, DISK_US);
	s.io.config.read_to_end = true;
	scan(&s, dense_block, 100000);
	check("the same where earlier scans were read to their end", s.most_wasted <= 0.5);

	begin(&s, false, DISK_US);
	scan(&s, dense_block, 500);
	check("no lot in a scan that has made few visits", s.nlots == 0);
}

static void
test_memory(void)
{
	Lots		s;

	begin(&s, true, DISK_US);
	s.evicted_above = 2000;
	scan(&s, dense_block, 400000);
	check("lots whose blocks are evicted become smaller", s.lots.limit <= 2048);
	check("but not without end", s.lots.limit >= 512);

	begin(&s, true, DISK_US);
	s.room = 3000;
	scan(&s, dense_block, 100000);
	check("two lots find room in what can be foreseen", s.lots.limit <= 1500);
	check("and are not much smaller", s.lots.limit >= 500);

	begin(&s, true, DISK_US);
	s.room = 200;
	scan(&s, dense_block, 100000);
	check("none where there is room for few rows only", s.nlots < 12);
	la_lot_policy_restart(&s.lots);
	for (int i = 0; i < 32; i++)
		la_lot_policy_on_issue(&s.lots);
	s.room = 0;
	s.lots.again_at = 0;
	scan(&s, dense_block, 100000);
	check("the next scan tries again", s.largest == LIMIT);

	begin(&s, true, DISK_US);
	la_lot_policy_init(&s.lots, 30, DISK_US);
	check("no lot before blocks were issued in the order of need",
		  la_lot_policy_size(&s.lots, &s.io) == 0);
	scan(&s, dense_block, 10000);
	check("nor where the limit is too small", s.nlots == 0);
}

/* So many visits can be foreseen now. */
static void
begin_supply(Lots *s, bool varies, int room)
{
	begin(s, true, DISK_US);
	s->io.config.order = LA_ORDER_OF_TABLE;
	s->io.config.supply_varies = varies;
	s->room = room;
}

/* Visits that can be foreseen are few, and many later. */
static void
scan_growing_supply(Lots *s, bool varies)
{
	begin_supply(s, varies, 40);
	scan(s, sparse_block, 1000);
	s->largest = 0;
	s->room = 0;
	scan(s, sparse_block, 200000);
}

static void
test_supply(void)
{
	Lots		s;

	scan_growing_supply(&s, false);
	check("few visits that can be foreseen make small lots", s.largest < 128);
	scan_growing_supply(&s, true);
	check("but not for good where the supply varies", s.largest == LIMIT);

	begin_supply(&s, true, 3);
	scan(&s, sparse_block, 1000);
	check("lots of what there is do not end", s.nlots > 200);
	check("and are not asked to be smaller than is worth it", s.lots.limit >= 32);

	begin_supply(&s, true, 3000);
	scan(&s, dense_block, 100000);
	check("two lots find room also where the supply varies", s.collected > 90000);
	check("and are of about the same size", s.nlots < 150);
}

static void
test_gap(void)
{
	LaLotPolicy p;

	la_lot_policy_init(&p, LIMIT, 0.0);
	check("no gap where reads are not known", p.gap == 0);
	la_lot_policy_init(&p, LIMIT, DISK_US);
	check("none on a fast disk", p.gap == 0);
	la_lot_policy_init(&p, LIMIT, 1000.0);
	check("some blocks where a read takes a millisecond", p.gap == 10);
	la_lot_policy_init(&p, LIMIT, 1000000.0);
	check("never many", p.gap == 16);
	la_lot_policy_init(&p, LIMIT, 100.0 - 1e-9);
	check("a dense lot is read with what is in between", la_lot_policy_gap(&p, 128, 4 * 128) > 0);
	check("... but not one of few blocks", la_lot_policy_gap(&p, 8, 8) == 0);
	check("... nor one with more in between", la_lot_policy_gap(&p, 128, 4 * 128 + 1) == 0);
	la_lot_policy_init(&p, LIMIT, 1000.0);
	check("where reads take long, a gap is worth while anyway",
		  la_lot_policy_gap(&p, 128, 1 << 20) == 10);
}

static void
test_states(void)
{
	Lots		s;

	begin(&s, true, DISK_US);
	s.io.ahead = 2;
	check("no lot before the ramp", la_lot_policy_size(&s.lots, &s.io) == 0);
	s.io.ahead = 64;
	check("one after it", la_lot_policy_size(&s.lots, &s.io) == 128);
	s.io.assumed = true;
	check("none while waits are only assumed", la_lot_policy_size(&s.lots, &s.io) == 0);
	s.io.assumed = false;
	s.io.config.order = LA_ORDER_OF_NEED;
	check("none in nested loops", la_lot_policy_size(&s.lots, &s.io) == 0);
	s.io.config.order = LA_ORDER_BY_PROBE;
	s.io.config.max_distance = 8;
	check("none where few reads may be in flight", la_lot_policy_size(&s.lots, &s.io) == 0);
	s.io.config.max_distance = 64;
	s.io.early_visits = 100 * LA_SIXTEENTHS;
	check("none in scans that are ended early", la_lot_policy_size(&s.lots, &s.io) == 0);
}

int
main(void)
{
	test_worth();
	test_demand();
	test_memory();
	test_supply();
	test_gap();
	test_states();
	return report();
}
