/*
 * leaf_policy_test.c
 *	  Decisions of the leaf policy, on simulated scans.
 *
 * test/unit/leaf_policy_test.c
 */
#include "simulation.h"
#include "window/leaf_policy.h"

#define ALL_ROWS INT64_MAX
#define ROWS 300

static void
steps(LaLeafPolicy *p, LaVisitResult result, double us, int n)
{
	for (int i = 0; i < n; i++)
		la_leaf_policy_on_step(p, result, us);
}

static int
ahead(const LaLeafPolicy *p)
{
	return la_leaf_policy_pages_ahead(p, ALL_ROWS, ROWS);
}

static LaLeafPolicy
fresh(void)
{
	LaLeafPolicy p;

	la_leaf_policy_init(&p, &io_defaults);
	return p;
}

static LaLeafPolicy
armed(void)
{
	LaLeafPolicy p = fresh();

	steps(&p, LA_VISIT_MISS, DISK_US, 2);
	return p;
}

/* Reads of a scan's first row, which were waits. */
static void
test_first_row(void)
{
	LaIoPolicyConfig config = io_defaults;
	LaLeafPolicy p = fresh();

	check("one wait for the first row does not arm",
		  !la_leaf_policy_on_first_row(&p, 1) && !la_leaf_policy_is_armed(&p));
	check("two do", la_leaf_policy_on_first_row(&p, 2) && la_leaf_policy_is_armed(&p));
	check("and are remembered", p.io.verdict == LA_READS_SLOW);
	check("with two pages ahead", ahead(&p) == 2);
	check("once", !la_leaf_policy_on_first_row(&p, 2));

	config.known_slow = true;
	la_leaf_policy_init(&p, &config);
	check("one does where reads are known to be slow", la_leaf_policy_on_first_row(&p, 1));

	config.advice_works = false;
	la_leaf_policy_init(&p, &config);
	check("none where advice does not work", !la_leaf_policy_on_first_row(&p, 2));

	p = fresh();
	steps(&p, LA_VISIT_HIT, 0, 3);
	la_io_policy_rescan(&p.io, false);
	check("nor of a later scan", !la_leaf_policy_on_first_row(&p, 2));
}

static void
test_arming(void)
{
	LaLeafPolicy p = fresh();

	steps(&p, LA_VISIT_MISS, DISK_US, 1);
	check("one wait does not arm", !la_leaf_policy_is_armed(&p));
	steps(&p, LA_VISIT_MISS, DISK_US, 1);
	check("two waits arm", la_leaf_policy_is_armed(&p));
	check("with two pages ahead", ahead(&p) == 2);

	p = fresh();
	steps(&p, LA_VISIT_HIT, 0, 100000);
	check("cached pages do not arm", !la_leaf_policy_is_armed(&p));
	steps(&p, LA_VISIT_MISS, OS_CACHE_US, 100000);
	check("nor do fast reads", !la_leaf_policy_is_armed(&p));
	steps(&p, LA_VISIT_NEXT_MISS, DISK_US, 100000);
	check("nor waits for the next block", !la_leaf_policy_is_armed(&p));
	steps(&p, LA_VISIT_MISS, DISK_US, 2);
	check("waits still do", la_leaf_policy_is_armed(&p));

	p = fresh();
	for (int i = 0; i < 1000; i++)
		steps(&p, i % 100 == 0 ? LA_VISIT_MISS : LA_VISIT_NEXT_MISS, DISK_US, 1);
	check("one wait in a hundred pages in order does", la_leaf_policy_is_armed(&p));
}

static void
test_configuration(void)
{
	LaIoPolicyConfig config = io_defaults;
	LaLeafPolicy p;

	config.force = true;
	la_leaf_policy_init(&p, &config);
	check("force arms", la_leaf_policy_is_armed(&p) && ahead(&p) == 4 * 64);
	la_leaf_policy_on_leap(&p, 10);
	steps(&p, LA_VISIT_HIT, 0, 100000);
	check("for good", la_leaf_policy_is_armed(&p) && ahead(&p) == 4 * 64);
	config.advice_works = false;
	la_leaf_policy_init(&p, &config);
	steps(&p, LA_VISIT_MISS, DISK_US, 100);
	check("not where reads cannot be started",
		  !la_leaf_policy_is_armed(&p) && !la_leaf_policy_is_enabled(&p));

	config = io_defaults;
	config.miss_threshold = 0;
	la_leaf_policy_init(&p, &config);
	steps(&p, LA_VISIT_MISS, DISK_US, 1);
	check("a threshold of zero arms at once", la_leaf_policy_is_armed(&p));

	config = io_defaults;
	config.known_slow = true;
	la_leaf_policy_init(&p, &config);
	steps(&p, LA_VISIT_MISS, DISK_US, 1);
	check("known waits arm at the first one", la_leaf_policy_is_armed(&p));
	config.read_to_end = true;
	la_leaf_policy_init(&p, &config);
	steps(&p, LA_VISIT_MISS, DISK_US, 1);
	check("which was timed, so that it is not only assumed", ahead(&p) == 64);

	config = io_defaults;
	config.read_to_end = true;
	la_leaf_policy_init(&p, &config);
	steps(&p, LA_VISIT_MISS, DISK_US, 2);
	check("a scan read to its end begins at max_distance", ahead(&p) == 64);
}

static void
test_ramp(void)
{
	LaLeafPolicy p = armed();

	steps(&p, LA_VISIT_ISSUED, OS_CACHE_US, 3);
	check("doubles with each issued page", ahead(&p) == 16);
	steps(&p, LA_VISIT_ISSUED, OS_CACHE_US, 1000);
	check("up to a limit", ahead(&p) == 4 * 64);
	check("no further than rows are wanted",
		  la_leaf_policy_pages_ahead(&p, 0, ROWS) == 0 &&
		  la_leaf_policy_pages_ahead(&p, 1, ROWS) == 1 &&
		  la_leaf_policy_pages_ahead(&p, ROWS, ROWS) == 1 &&
		  la_leaf_policy_pages_ahead(&p, ROWS + 1, ROWS) == 2 &&
		  la_leaf_policy_pages_ahead(&p, 10, 0) == 10);
	la_io_policy_rescan(&p.io, false);
	check("a rescan keeps that", la_leaf_policy_is_armed(&p) && ahead(&p) == 4 * 64);

	p = armed();
	for (int i = 0; i < 20; i++)
	{
		steps(&p, LA_VISIT_HIT, 0, 1);
		la_io_policy_rescan(&p.io, false);
	}
	check("scans of two pages are left alone", !la_leaf_policy_is_armed(&p));

	p = armed();
	for (int i = 0; i < 20; i++)
	{
		steps(&p, LA_VISIT_ISSUED, OS_CACHE_US, 10);
		la_io_policy_rescan(&p.io, true);
	}
	check("scans that are ended early look no further", ahead(&p) < 16);
}

static void
test_stopping(void)
{
	LaLeafPolicy p = armed();

	steps(&p, LA_VISIT_HIT, 0, 1000);
	check("cached pages are tolerated", la_leaf_policy_is_armed(&p));
	steps(&p, LA_VISIT_HIT, 0, 100);
	check("but not for ever", !la_leaf_policy_is_armed(&p));

	p = armed();
	for (int i = 0; i < 1000 && !la_io_policy_control_due(&p.io); i++)
		la_io_policy_on_issue(&p.io);
	check("a control becomes due", la_io_policy_control_due(&p.io));
	for (int i = 0; i < 8; i++)
	{
		la_io_policy_on_control(&p.io);
		steps(&p, LA_VISIT_CONTROL, OS_CACHE_US, 1);
	}
	check("fast controls end it", !la_leaf_policy_is_armed(&p));
	steps(&p, LA_VISIT_MISS, DISK_US, 10);
	check("with a hold-off", !la_leaf_policy_is_armed(&p));
	steps(&p, LA_VISIT_MISS, DISK_US, 100);
	check("that ends", la_leaf_policy_is_armed(&p));
}

static void
test_leaps(void)
{
	LaLeafPolicy p = armed();

	steps(&p, LA_VISIT_ISSUED, OS_CACHE_US, 5);
	la_leaf_policy_on_leap(&p, 0);
	check("a leap that wastes nothing does not count", ahead(&p) == 64);
	la_leaf_policy_on_leap(&p, 20);
	check("after one that does, few pages are foreseen", ahead(&p) == 2);
	steps(&p, LA_VISIT_ISSUED, OS_CACHE_US, 2);
	check("more again when they are visited", ahead(&p) == 8);
	for (int i = 0; i < 100; i++)
	{
		la_leaf_policy_on_leap(&p, 2);
		steps(&p, LA_VISIT_ISSUED, OS_CACHE_US, 1);
	}
	check("leaps between visits are tolerated", la_leaf_policy_is_armed(&p));
	for (int i = 0; i < 4; i++)
		la_leaf_policy_on_leap(&p, 2);
	check("four in a row are not", !la_leaf_policy_is_armed(&p));
	la_leaf_policy_on_leap(&p, 2);
	check("a leap when not armed is nothing", p.misled == 0);
}

int
main(void)
{
	test_first_row();
	test_arming();
	test_configuration();
	test_ramp();
	test_stopping();
	test_leaps();
	return report();
}
