/*
 * reprice.c
 *	  The paths of a table, made with other prices for reads.
 *
 * The server makes these paths, those of indexes by create_index_paths(), with all that it knows of
 * clauses, orders, parameters, bitmaps and workers.  While it does, three things are different, and
 * all are put back when it is done, or has failed:
 *
 *	seq_page_cost		is the price of a block in order, of the table or of an index.
 *	random_page_cost	is the price of a read at depth, for TID scans that of one alone.  The
 *						server's cost functions for index, index-only and bitmap scans ask for
 *						both, also those of each access method, so whatever they make of it (how
 *						many pages, which of them in order, what a bitmap makes cheaper, what
 *						workers share) stays theirs.
 *	amcostestimate		of each index, in the planner's description of it, is estimate() below.
 *						It sets both to the prices of the index's pages, calls the one of
 *						the access method, sets them to those of the table's, and adds what its
 *						reads cost more than at depth: the waits before look-ahead begins, and those
 *						of a scan of a few rows.  cost_index() calls it first of all, just before it
 *						prices the reads of the table, and so every path is compared by its
 *						adjusted costs from the start.
 *
 * The price in force for the table's blocks is that of the depth which a bitmap scan reaches, since
 * its cost function calls nothing of ours.  An index scan that looks farther ahead pays less: then
 * estimate() returns a correlation that makes cost_index() charge what is wanted, as that is what
 * it interpolates by, between all pages at random and all in order, and nobody else uses it.  So
 * what is added to an index's cost is never negative, and what is added counts for bitmaps over it,
 * too, which begin with single reads as well.
 *
 * ORDER.  By the same correlation we have an index scan pay for blocks that its rows do not share,
 * although the index is in the table's order by and large (scatter.c).  It is a matter of the
 * index, which some of its leaf pages show (leafsample.c).  They are looked at only if it would
 * make a difference to this path: the correlation is high, and there are many rows.  A bitmap
 * scan reads each block once, and its cost function does not ask for a correlation.
 *
 * AGAIN.  Rows of a scan in no order, or of the scans of a nested loop, return to blocks of before.
 * The server takes these reads to cost nothing where effective_cache_size has the blocks.  But what
 * has left shared buffers meanwhile is copied once more from the operating system's cache, which
 * takes some microseconds: little where a read takes a millisecond, a quarter of one at depth on
 * fast storage, and there may be ten times as many.  Each of them costs seq_page_cost, as what is
 * in memory has the server's prices, but no more than a block in order.
 *
 * REPEATED.  A correlated subquery is executed many times (repeats.c), and its executions share
 * blocks as the scans of a nested loop do, of which the server knows nothing.  Then the prices in
 * force are divided by the executions, so that they are lower than what any path reads in one of
 * them, and the rest is added to the cost of the index, also for indexes that have bitmap scans
 * only: so a bitmap scan pays for the blocks of the table as an index scan does.  Look-ahead does
 * not go on from one execution to the next, unless enable_subplan is on.
 *
 * WORKERS.  The inner side of a nested loop is the same path whether one process runs the loop or
 * several, each with its share of the outer rows.  The planner divides its cost among these as if
 * each had the storage alone.  So, where there may be workers, the paths are made once more with
 * what a block costs one of as many processes as there may be.  Inner paths that were made before
 * are said not to be parallel-safe: a serial join takes these, and one in workers the others.  Of
 * the second ones that are not inner paths none costs less, so none stays.
 *
 * NESTED.  Estimates may call functions that plan statements of their own.  The planner's hook
 * takes all of this back for them (la_reprice_suspend).
 *
 * SETTINGS.  The two settings are written behind the back of the server's own code for it, as often
 * as prices change.  Before that they are set to what they are at a level of its own, as by
 * a function's SET clause.  So whatever ends the level, also an error, puts the true values back,
 * and a function with a SET clause of its own, which saves and restores what it finds here, does
 * no harm.  A value that is not what was written last has been set by a function that an estimate
 * has called: it is left alone, and is stock's price from then on.
 *
 * OTHER ACCESS METHODS.  What the server does not come with has its own idea of what its pages
 * cost: it sees stock's prices, and nothing is added.  The table's blocks are priced as for others.
 *
 * Invariants: no cost becomes infinite, not a number, or negative by what is added here, and the
 * startup cost stays at or below the total cost.
 *
 * src/plancost/reprice.c
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "catalog/pg_am_d.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/rel.h"

#include "plancost/plancost_int.h"

/* Sums that should be equal may differ by so much. */
#define NEGLIGIBLE	1e-6

/* ORDER: what would make no difference */
#define LOW_CORRELATION	0.3
#define FEW_READS		16

/* Blocks of a table, or of an index, that an index path reads in all its scans together. */
typedef struct Blocks
{
	double		first;			/* from storage */
	double		again;			/* from the operating system's cache, later */
} Blocks;

/* Of a table. */
typedef struct Reads
{
	Blocks		scattered;		/* if the index says nothing of the table's
								 * order */
	Blocks		ordered;		/* if it has that order */
} Reads;

static LaReprice *active = NULL;	/* while index paths are made */

/* then: */
static LaPagePrices stock;		/* as the session has them */
static LaPagePrices written;	/* what was written there last */

/* ---- prices in force ------------------------------------------------------------ */

/* SETTINGS */
static void
notice_changes(void)
{
	if (random_page_cost != written.random)
		stock.random = random_page_cost;
	if (seq_page_cost != written.sequential)
		stock.sequential = seq_page_cost;
}

static void
put_prices(LaPagePrices prices)
{
	random_page_cost = written.random = prices.random;
	seq_page_cost = written.sequential = prices.sequential;
}

/* What others have set stays. */
static void
take_back_prices(void)
{
	if (random_page_cost == written.random)
		random_page_cost = stock.random;
	if (seq_page_cost == written.sequential)
		seq_page_cost = stock.sequential;
}

/* WORKERS */
static const LaPrices *
prices_of(const LaReprice *r, const LaPriced *priced)
{
	return r->in_workers ? &priced->shared : &priced->prices;
}

/* At this depth, if they are adjusted. */
static double
price_of(const LaReprice *r, const LaPriced *priced, double depth)
{
	return priced->adjusted ? la_prices_at(prices_of(r, priced), depth) : stock.random;
}

/* REPEATED: in force.  What a path reads in an execution more than by this price is added. */
static double
price_in_force(const LaReprice *r, const LaPriced *priced, double depth)
{
	double		price = price_of(r, priced, depth);

	return priced->adjusted ? price / r->repeats : price;
}

static LaPagePrices
page_prices(const LaReprice *r, const LaPriced *priced, double depth)
{
	LaPagePrices p = {price_in_force(r, priced, depth),
		priced->adjusted ? prices_of(r, priced)->sequential : stock.sequential
	};

	return p;
}

/* A bitmap scan does not reach farther than this, by our account. */
static double
table_depth(const LaReprice *r)
{
	return Min(r->bitmap_distance, r->reach.distance);
}

static double
table_price(const LaReprice *r)
{
	return price_in_force(r, &r->table, table_depth(r));
}

/*
 * All scans of a path, in all executions, where look-ahead goes on from one to the next; AGAIN.
 */
static double
scans_price(const LaReprice *r, const LaPriced *priced, Blocks blocks, double loops)
{
	double		apart = (r->over_outer_rows ? 1.0 : Max(loops, 1.0)) *
		(r->over_repeats ? 1.0 : r->repeats);

	return la_prices_scan(prices_of(r, priced), &r->reach, blocks.first / apart) * apart +
		blocks.again * Min(stock.sequential, prices_of(r, priced)->sequential);
}

/* ---- what index paths read ------------------------------------------------------- */

/* Of the blocks with its rows, those that it reads. */
static double
share_read(const IndexPath *path)
{
	return path->path.pathtype == T_IndexOnlyScan ? 1.0 - path->indexinfo->rel->allvisfrac : 1.0;
}

/*
 * So many visits of blocks of a relation, as the server counts those that are read.  AGAIN: others
 * hardly use shared buffers meanwhile, as sequential scans of large tables have few of their own.
 */
static Blocks
blocks_of_visits(PlannerInfo *root, const IndexOptInfo *index, double visits, BlockNumber pages)
{
	Blocks		blocks;

	blocks.first = index_pages_fetched(visits, pages, index->pages, root);
	blocks.again = Max(la_prices_fetches(pages, visits, NBuffers) - blocks.first, 0.0);
	return blocks;
}

static Blocks
blocks_read(Blocks blocks, const IndexPath *path)
{
	Blocks		read = {ceil(blocks.first * share_read(path)), blocks.again * share_read(path)};

	return read;
}

/* As cost_index() counts them. */
static Reads
table_reads(PlannerInfo *root, IndexPath *path, double loops, Selectivity selectivity)
{
	IndexOptInfo *index = path->indexinfo;
	RelOptInfo *rel = index->rel;
	double		rows = clamp_row_est(selectivity * rel->tuples);
	Blocks		in_order = {ceil(selectivity * rel->pages), 0.0};
	Reads		reads;

	if (loops > 1.0)
		in_order = blocks_of_visits(root, index, in_order.first * loops, rel->pages);
	reads.scattered = blocks_read(blocks_of_visits(root, index, rows * loops, rel->pages), path);
	reads.ordered = blocks_read(in_order, path);
	return reads;
}

/* ORDER: look at leaf pages, once for all paths. */
static void
find_scatter(LaPricedIndex *index)
{
	Relation	rel;

	if (index->has_scatter)
		return;
	index->has_scatter = true;
	if (index->index->relam != BTREE_AM_OID || index->index->hypothetical)
		return;
	rel = index_open(index->index->indexoid, NoLock);
	la_leaf_sample(rel, &index->scatter);
	index_close(rel, NoLock);
}

/*
 * ORDER: a correlation by which the path pays for as many blocks as it reads in each of its scans,
 * though it be in the table's order.
 */
static double
true_correlation(LaPricedIndex *index, const IndexPath *path, Reads reads, double loops,
				 Selectivity selectivity, double correlation)
{
	RelOptInfo *rel = index->index->rel;
	double		ordered = selectivity * rel->pages;
	double		difference = reads.scattered.first / loops - ordered * share_read(path);
	double		more;

	if (fabs(correlation) < LOW_CORRELATION || !(difference > FEW_READS))
		return correlation;
	find_scatter(index);
	more = la_scatter_reads(&index->scatter, selectivity * rel->tuples, ordered) - ordered;
	return correlation * sqrt(1.0 - Min(more * share_read(path) / difference, 1.0));
}

/*
 * Have the path pay what its reads of the table cost: more by its index's cost, less by the
 * correlation.  charged is what it pays for: one execution; all is what there is in all of them.
 * Returns what was added.
 */
static double
settle_table(const LaReprice *r, Reads charged, Reads all, double loops, double *total,
			 double *correlation)
{
	double		ordered_share = *correlation * *correlation;
	double		price = table_price(r);
	double		scattered_charge = charged.scattered.first * price / loops;
	double		ordered_charge = charged.ordered.first * price / loops;
	double		executions = loops * r->repeats;
	double		wanted = (1.0 - ordered_share) *
		scans_price(r, &r->table, all.scattered, loops) / executions;
	double		difference;

	if (loops == 1.0 && charged.ordered.first >= 1.0)
		/* the first is read at random, the others are in order */
		ordered_charge = price + (charged.ordered.first - 1.0) * seq_page_cost;
	if (executions > 1.0)
		wanted += ordered_share * scans_price(r, &r->table, all.ordered, loops) / executions;
	else if (charged.ordered.first >= 1.0)
		wanted += ordered_share * (price_of(r, &r->table, 1.0) + ordered_charge - price);
	difference = wanted - scattered_charge - ordered_share * (ordered_charge - scattered_charge);
	if (difference > NEGLIGIBLE && isfinite(difference))
	{
		*total += difference;
		return difference;
	}
	if (difference < -NEGLIGIBLE && scattered_charge > ordered_charge)
	{
		ordered_share -= difference / (scattered_charge - ordered_charge);
		*correlation = sqrt(Min(ordered_share, 1.0));
	}
	return 0.0;
}

/* What its pages of the index cost more than it pays for them. */
static double
index_waits(const LaReprice *r, const LaPriced *priced, PlannerInfo *root, IndexPath *path,
			double loops, double pages)
{
	const IndexOptInfo *index = path->indexinfo;
	double		executions = loops * r->repeats;
	Blocks		charged = {pages, 0.0};
	Blocks		all = charged;
	double		more;

	if (loops > 1.0)
		charged = blocks_of_visits(root, index, Max(pages, 1.0) * loops, index->pages);
	if (executions > 1.0)
		all = blocks_of_visits(root, index, Max(pages, 1.0) * executions, index->pages);
	more = scans_price(r, priced, all, loops) / executions -
		charged.first * price_in_force(r, priced, r->reach.distance) / loops;
	return more > NEGLIGIBLE && isfinite(more) ? more : 0.0;
}

/* ---- in place of amcostestimate --------------------------------------------------- */

static LaPricedIndex *
find_index(LaReprice *r, const IndexOptInfo *index)
{
	for (int i = 0; i < r->nindexes; i++)
	{
		if (r->indexes[i].index == index)
			return &r->indexes[i];
	}
	return NULL;
}

/* The access method's own, for an index that somebody has copied. */
static amcostestimate_function
estimate_of(const IndexOptInfo *index)
{
	return GetIndexAmRoutineByAmId(index->relam, false)->amcostestimate;
}

static bool
is_of_server(const IndexOptInfo *index)
{
	switch (index->relam)
	{
		case BTREE_AM_OID:
		case HASH_AM_OID:
		case GIST_AM_OID:
		case GIN_AM_OID:
		case SPGIST_AM_OID:
		case BRIN_AM_OID:
			return true;
		default:
			return false;
	}
}

static void
estimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
		 Selectivity *selectivity, double *correlation, double *pages)
{
	LaReprice  *r = active;
	LaPricedIndex *index = find_index(r, path->indexinfo);
	bool		known = index != NULL && is_of_server(path->indexinfo);
	double		loops = Max(loop_count, 1.0);
	double		more = 0.0,
				first = 0.0;

	notice_changes();
	put_prices(known ? page_prices(r, &index->pages, r->reach.distance) : stock);
	(index != NULL ? index->estimate : estimate_of(path->indexinfo))
		(root, path, loop_count, startup, total, selectivity, correlation, pages);
	notice_changes();
	put_prices(page_prices(r, &r->table, table_depth(r)));
	if (!known)
		return;

	if (index->pages.adjusted)
	{
		more = index_waits(r, &index->pages, root, path, loops, *pages);
		*total += more;
		first = price_of(r, &index->pages, 1.0) - price_of(r, &index->pages, r->reach.distance);
	}

	/* others have bitmap scans only: REPEATED */
	if (r->table.adjusted && (path->indexinfo->amhasgettuple || r->repeats > 1.0))
	{
		Reads		charged = table_reads(root, path, loops, *selectivity);
		Reads		all = charged;

		if (r->repeats > 1.0)
			all = table_reads(root, path, loops * r->repeats, *selectivity);
		*correlation = true_correlation(index, path, charged, loops, *selectivity,
										*correlation);
		more += settle_table(r, charged, all, loops, total, correlation);
		if (charged.scattered.first > 0.0)
			first += price_of(r, &r->table, 1.0) - table_price(r);
	}

	/* the first row is not there before the first reads are */
	if (loops == 1.0 && r->repeats == 1.0)
		*startup += Max(Min(first, more), 0.0);
}

/* ---- entry points ------------------------------------------------------------------ */

static void
set_at_level(const char *name, double now)
{
	char		value[64];

	snprintf(value, sizeof(value), "%.17g", now);
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/* SETTINGS: open a level for both.  Returns it. */
static int
open_level(void)
{
	int			level = NewGUCNestLevel();

	set_at_level("random_page_cost", random_page_cost);
	set_at_level("seq_page_cost", seq_page_cost);
	return level;
}

static void
begin(LaReprice *r)
{
	active = r;
	for (int i = 0; i < r->nindexes; i++)
		r->indexes[i].index->amcostestimate = estimate;
}

static void
end(LaReprice *r)
{
	for (int i = 0; i < r->nindexes; i++)
		r->indexes[i].index->amcostestimate = r->indexes[i].estimate;
	active = NULL;
}

/* In the server's order, as the first of two paths that cost nearly the same may stay. */
static void
make_in_order(PlannerInfo *root, RelOptInfo *rel, const LaReprice *r,
			  LaMakePaths make_sequential)
{
	if (make_sequential != NULL)
	{
		put_prices(page_prices(r, &r->table, 1.0));
		make_sequential(root, rel, r);
		notice_changes();
	}
	put_prices(page_prices(r, &r->table, table_depth(r)));
	create_index_paths(root, rel);
	if (make_sequential != NULL)
	{
		notice_changes();
		put_prices(page_prices(r, &r->table, 1.0));
		create_tidscan_paths(root, rel);
	}
}

/* make_sequential: NULL for paths of indexes only. */
static void
make_paths(PlannerInfo *root, RelOptInfo *rel, LaReprice *prices, LaMakePaths make_sequential)
{
	int			level;

	stock.random = random_page_cost;
	stock.sequential = seq_page_cost;
	level = open_level();
	begin(prices);
	PG_TRY();
	{
		make_in_order(root, rel, prices, make_sequential);
	}
	PG_FINALLY();
	{
		end(prices);
		take_back_prices();
	}
	PG_END_TRY();
	/* after an error, the end of the (sub)transaction does it */
	AtEOXact_GUC(true, level);
}

/* WORKERS: inner paths made so far are for serial joins. */
static void
leave_to_serial_joins(RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (path->param_info != NULL &&
			(IsA(path, IndexPath) || IsA(path, BitmapHeapPath)))
			path->parallel_safe = false;
	}
}

/* Add the table's paths to it, sequential ones by that function. */
void
la_reprice_paths(PlannerInfo *root, RelOptInfo *rel, LaReprice *prices,
				 LaMakePaths make_sequential)
{
	make_paths(root, rel, prices, make_sequential);
	if (!prices->may_share || !rel->consider_parallel || rel->indexlist == NIL)
		return;
	leave_to_serial_joins(rel);
	prices->in_workers = true;
	make_paths(root, rel, prices, NULL);
}

bool
la_reprice_is_active(void)
{
	return active != NULL;
}

/*
 * NESTED: another statement is planned.  Returns what to resume with, which may be NULL.  A
 * function with a SET clause of its own may be running: then its price stays.
 */
LaReprice *
la_reprice_suspend(void)
{
	LaReprice  *r = active;

	if (r == NULL)
		return NULL;
	end(r);
	r->stock = stock;
	r->written = written;
	r->random_is_as_written = random_page_cost == written.random;
	r->sequential_is_as_written = seq_page_cost == written.sequential;
	take_back_prices();
	return r;
}

/* Also after an error, so it cannot fail. */
void
la_reprice_resume(LaReprice *suspended)
{
	if (suspended == NULL)
		return;
	begin(suspended);
	stock = suspended->stock;
	written = suspended->written;
	/* they may have been set meanwhile */
	if (suspended->random_is_as_written)
	{
		stock.random = random_page_cost;
		random_page_cost = written.random;
	}
	if (suspended->sequential_is_as_written)
	{
		stock.sequential = seq_page_cost;
		seq_page_cost = written.sequential;
	}
}
