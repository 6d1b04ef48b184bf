/*
 * plancost.c
 *	  Plans by what reads cost on this storage: pg_lookahead.adjust_costs.
 *
 * random_page_cost is one price for all random reads.  On real storage a read that is waited for
 * alone may cost ten times as much as one of many in flight, so that neither a scan of three rows
 * nor one of ten thousand is priced right.  With adjust_costs, and where the storage has been
 * calibrated (window/storage.c), index scans, inner index scans of nested loops, index-only and
 * bitmap scans are priced by the depth that they will reach, and sequential scans by the measured
 * sequential rate, all in the unit of what the processor takes (prices.c).  Nothing else of a path
 * changes: not its rows, not what it costs the processor.
 *
 * How.  The server has made all paths of a table when set_rel_pathlist_hook is called, and has
 * thrown away those that were not cheap enough by stock's prices.  So the paths are made again, by
 * the server's functions (remake()), those of indexes with other prices (reprice.c).  It is what
 * set_plain_rel_pathlist() does.  Joins and all that is above them choose among these paths, so
 * there is nothing to do for them.
 *
 *		set_rel_pathlist_hook
 *			is_eligible()		a table, and storage that is known?
 *			residency.c			which share of it is in memory?
 *			prices.c			what do its reads cost?
 *			reprice.c			its paths
 *		planner_hook
 *			mark.c				EXPLAIN: "Look-Ahead Costs: adjusted"
 *
 * Behaviours:
 *	OFF			With adjust_costs or pg_lookahead.enable off, the hooks return at once, and plans
 *				and costs are stock's.
 *	UNKNOWN		So they are for tables on storage that has not been calibrated, whose
 *				calibration or cpu_tuple_cost makes no prices (prices.c), of other access methods
 *				than heap, and for temporary ones.
 *	SEQUENTIAL	The operating system reads ahead of a sequential scan, so most of the shorter of
 *				both times, for reads and for the processor, is taken off (prices.c).
 *	RESIDENT	What is in memory costs what stock says.  The share of a table, and of each index,
 *				that is there is found out when the statement is planned (residency.c), and only
 *				the rest has other prices: a table in memory has stock's costs, exactly.  Where
 *				the share cannot be found out, it is all or nothing: have scans of one of the
 *				table's indexes found that reads are served by the operating system's cache
 *				(window/history.c)?  pg_lookahead.force, which is for tests, takes nothing to be
 *				in memory.
 *	TABLESPACE	A tablespace with a random_page_cost or seq_page_cost of its own, of whatever
 *				value, has been priced by the administrator, and stock's costs stay.
 *				effective_io_concurrency of a tablespace limits the depth there, as when scans are
 *				executed (window/config.c).
 *	REACH		An index scan reaches max_distance, after miss_threshold waits, if
 *				enable_index_scan is on.  Repeated scans of a nested loop are as one, if
 *				enable_nestloop is on; whether the loop will be one that looks ahead is not known
 *				yet.  A bitmap scan reaches max_distance before 18, and then the server's
 *				effective_io_concurrency, or one for each of its I/O workers.  Without look-ahead
 *				in index scans, bitmap scans are priced as if they had none either.  A query with a
 *				LIMIT, or of a cursor, may be left early, so its scans reach their depth step by
 *				step.
 *	REPEATED	Of a subquery that depends on the query around it the executions share blocks
 *				(repeats.c, reprice.c).  A sequential scan in it reads the table once, and then
 *				from the operating system's cache, if effective_cache_size has it.
 *	WORKERS		Where there may be workers, inner index paths are made for serial joins, and at
 *				higher prices for those in workers, which share the storage (reprice.c).
 *	OTHERS		Hooks of libraries that were loaded before are called afterwards, and add their
 *				paths to adjusted ones.  One of a library that was loaded later may have added
 *				paths already, or taken some away that would not be right: then all paths of the
 *				table are left as they are.  That nothing was changed shows when they are made
 *				once more with stock's prices.
 *
 * Limits.  A plan in the plan cache keeps its costs, as with the server's own settings.  Paths
 * that the server makes later of these, of partitions for parameters of others
 * (reparameterize_path()), have stock's prices.  How often an inner scan is repeated is the
 * server's guess: it goes by the tables that the parameters come from, not by the join of them, so
 * an inner scan may still be priced as if more of its blocks were found in memory than will be.
 *
 * Invariants: tables are locked by the planner, and nothing else is locked.  Which rows a path
 * returns, and in which order, is the server's.
 *
 * src/plancost/plancost.c
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_tablespace_d.h"
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "storage/bufmgr.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

#include "base/base.h"
#include "base/compat.h"
#include "plancost/plancost.h"
#include "plancost/plancost_int.h"
#include "window/window.h"

#ifdef LA_HAVE_AIO
#include "storage/aio.h"
#include "storage/io_worker.h"
#endif

StaticAssertDecl(LA_PRICE_DEPTHS == LA_STORAGE_DEPTHS, "prices are not of the measured depths");

static set_rel_pathlist_hook_type prev_pathlist_hook = NULL;
static planner_hook_type prev_planner_hook = NULL;

/* Has the statement that is being planned a table with adjusted costs? */
static bool adjusted = false;

/* ---- prices -------------------------------------------------------------------- */

/* Of which tablespace it was looked up last whether it has prices of its own. */
static struct
{
	bool		valid;
	Oid			tablespace;
	bool		priced;
}			last_tablespace;

static void
forget_tablespace(Datum arg, int cacheid, uint32 hashvalue)
{
	last_tablespace.valid = false;
}

/*
 * Is one of the two costs set, whatever its value?  get_tablespace_page_costs() does not tell the
 * session's from equal ones.
 */
static bool
look_up_own_prices(Oid tablespace)
{
	HeapTuple	tuple = SearchSysCache1(TABLESPACEOID, ObjectIdGetDatum(tablespace));
	Datum		options;
	bool		is_null;
	bool		priced = false;

	if (!HeapTupleIsValid(tuple))
		return false;
	options = SysCacheGetAttr(TABLESPACEOID, tuple, Anum_pg_tablespace_spcoptions, &is_null);
	if (!is_null)
	{
		TableSpaceOpts *o = (TableSpaceOpts *) tablespace_reloptions(options, false);

		/* what is not set is negative */
		priced = o != NULL && (o->random_page_cost >= 0 || o->seq_page_cost >= 0);
	}
	ReleaseSysCache(tuple);
	return priced;
}

static bool
has_own_prices(Oid tablespace)
{
	static bool listening = false;
	bool		priced;

	if (!OidIsValid(tablespace))
		tablespace = MyDatabaseTableSpace;
	if (last_tablespace.valid && last_tablespace.tablespace == tablespace)
		return last_tablespace.priced;
	if (!listening)
	{
		CacheRegisterSyscacheCallback(TABLESPACEOID, forget_tablespace, (Datum) 0);
		listening = true;
	}
	/* the look-up may fail, or call forget_tablespace() */
	last_tablespace.tablespace = InvalidOid;
	last_tablespace.valid = true;
	priced = look_up_own_prices(tablespace);
	last_tablespace.priced = priced;
	last_tablespace.tablespace = tablespace;
	return priced;
}

/* What the planner takes for what calibrate/processor.c measures: a condition and an aggregate. */
static double
tuple_price(void)
{
	return cpu_tuple_cost + 2 * cpu_operator_cost;
}

/* TABLESPACE, UNKNOWN.  False: stock's costs. */
static bool
find_prices(Oid tablespace, LaPrices *prices)
{
	LaStorage	storage;

	return la_storage_get(tablespace, &storage) && !has_own_prices(tablespace) &&
		la_prices_make(prices, storage.random_us, storage.sequential_us,
					   la_prices_unit(storage.tuple_us, tuple_price()));
}

/* RESIDENT, where it cannot be found out. */
static double
remembered_share(const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		if (la_history_known_fast(lfirst_node(IndexOptInfo, lc)->indexoid))
			return 1.0;
	}
	return 0.0;
}

/* How many processes run the part of a plan that is for workers, if there are as many as may be. */
static double
parallel_processes(void)
{
	return max_parallel_workers_per_gather + (parallel_leader_participation ? 1 : 0);
}

/* By what the planner then divides, as it supposes the leader to have other work, too. */
static double
parallel_divisor(void)
{
	double		leader = 1.0 - 0.3 * max_parallel_workers_per_gather;

	return max_parallel_workers_per_gather +
		(parallel_leader_participation ? Max(leader, 0.0) : 0.0);
}

/*
 * The prices of a table's blocks, or of an index's.  The planner's number of blocks may be more
 * than there are: of a small table that has never been vacuumed it supposes 10.
 */
static LaPriced
price(Relation rel, BlockNumber blocks, const RelOptInfo *table, double repeats)
{
	LaPriced	priced = {false};
	double		share;

	if (!find_prices(rel->rd_rel->reltablespace, &priced.prices))
		return priced;
	blocks = Min(blocks, RelationGetNumberOfBlocks(rel));
	share = la_force ? 0.0 : la_residency(rel, blocks);
	if (share == LA_RESIDENCY_UNKNOWN)
		share = remembered_share(table);
	if (share < 1.0)
	{
		priced.shared = priced.prices;
		la_prices_share(&priced.shared, parallel_processes(), parallel_divisor());
		la_prices_blend(&priced.prices, 1.0 - share, random_page_cost, seq_page_cost);
		la_prices_blend(&priced.shared, 1.0 - share, random_page_cost, seq_page_cost);
		/* REPEATED */
		if (blocks <= (BlockNumber) effective_cache_size)
		{
			la_prices_repeat(&priced.prices, repeats, seq_page_cost);
			la_prices_repeat(&priced.shared, repeats, seq_page_cost);
		}
		priced.adjusted = true;
	}
	return priced;
}

static void
price_indexes(RelOptInfo *rel, LaReprice *r)
{
	ListCell   *lc;

	r->indexes = palloc0(list_length(rel->indexlist) * sizeof(LaPricedIndex));
	foreach(lc, rel->indexlist)
	{
		LaPricedIndex *i = &r->indexes[r->nindexes++];

		i->index = lfirst_node(IndexOptInfo, lc);
		i->estimate = (amcostestimate_function) i->index->amcostestimate;

		/* one that does not exist is priced as if it were like the table */
		if (i->index->hypothetical)
			i->pages = r->table;
		else
		{
			Relation	index = index_open(i->index->indexoid, NoLock);

			i->pages = price(index, i->index->pages, rel, r->repeats);
			index_close(index, NoLock);
		}
	}
}

/* WORKERS: is there a table in the query that is large enough for some? */
static bool
may_have_workers(PlannerInfo *root)
{
	if (max_parallel_workers_per_gather == 0)
		return false;
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		RelOptInfo *rel = root->simple_rel_array[i];

		if (rel != NULL && IS_SIMPLE_REL(rel) && rel->rtekind == RTE_RELATION &&
			rel->consider_parallel &&
			compute_parallel_worker(rel, rel->pages, -1, max_parallel_workers_per_gather) > 0)
			return true;
	}
	return false;
}

/* REACH */
static void
find_reach(PlannerInfo *root, Relation table, LaReprice *r)
{
	LaIoPolicyConfig config = la_config_reads(table, true, InvalidOid);
	int			concurrency = get_tablespace_io_concurrency(table->rd_rel->reltablespace);
	int			distance = la_share_most(config.max_distance);
	int			raised = la_enable_bitmap_scan ? distance : 0;

	r->reach.distance = la_enable_index_scan && config.advice_works ? distance : 1;
	r->reach.waits = Max(config.miss_threshold, 1);
	r->reach.ramps = root->tuple_fraction > 0.0 || root->limit_tuples > 0.0;
	r->bitmap_distance = Max(la_bitmap_distance(concurrency, raised), 1);
	r->over_outer_rows = la_enable_nestloop;
	r->over_repeats = la_enable_subplan;
	r->may_share = may_have_workers(root);
}

/* False: stock's costs. */
static bool
find_all_prices(PlannerInfo *root, RelOptInfo *rel, Oid relid, LaReprice *r)
{
	Relation	table = table_open(relid, NoLock);
	bool		any = false;

	if (table->rd_tableam == GetHeapamTableAmRoutine() && !RelationUsesLocalBuffers(table))
	{
		r->repeats = la_repeats(root);
		r->table = price(table, rel->pages, rel, r->repeats);
		find_reach(root, table, r);
		price_indexes(rel, r);
		any = r->table.adjusted;
		for (int i = 0; i < r->nindexes; i++)
			any |= r->indexes[i].pages.adjusted;
	}
	table_close(table, NoLock);
	return any;
}

/* ---- paths --------------------------------------------------------------------- */

/* prices: NULL for stock's. */
static Path *
sequential_path(PlannerInfo *root, RelOptInfo *rel, Relids outer, int workers,
				const LaReprice *prices)
{
	Path	   *path = create_seqscan_path(root, rel, outer, workers);

	if (prices != NULL && prices->table.adjusted)
		path->total_cost -= la_prices_hidden(&prices->table.prices, rel->pages,
											 path->total_cost - path->startup_cost);
	return path;
}

static void
make_sequential_paths(PlannerInfo *root, RelOptInfo *rel, const LaReprice *prices)
{
	Relids		outer = rel->lateral_relids;

	add_path(rel, sequential_path(root, rel, outer, 0, prices));
	if (rel->consider_parallel && outer == NULL)
	{
		int			workers = compute_parallel_worker(rel, rel->pages, -1,
													  max_parallel_workers_per_gather);

		if (workers > 0)
			add_partial_path(rel, sequential_path(root, rel, NULL, workers, prices));
	}
}

/* Make the server's paths for a table; prices: NULL for stock's. */
static void
remake(PlannerInfo *root, RelOptInfo *rel, LaReprice *prices)
{
	rel->pathlist = NIL;
	rel->partial_pathlist = NIL;
	if (prices != NULL)
		la_reprice_paths(root, rel, prices, make_sequential_paths);
	else
	{
		make_sequential_paths(root, rel, NULL);
		create_index_paths(root, rel);
		create_tidscan_paths(root, rel);
	}
}

static bool
has_like(List *paths, const Path *path)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		const Path *other = lfirst(lc);

		if (other->pathtype == path->pathtype && other->param_info == path->param_info &&
			other->startup_cost == path->startup_cost &&
			other->total_cost == path->total_cost && other->rows == path->rows &&
			other->parallel_workers == path->parallel_workers &&
			equal(other->pathkeys, path->pathkeys))
			return true;
	}
	return false;
}

static bool
are_alike(List *paths, List *others)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		if (!has_like(others, lfirst(lc)))
			return false;
	}
	return list_length(paths) == list_length(others);
}

/* OTHERS: with stock's prices, does the server make the paths that are there? */
static bool
are_as_made(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *paths = rel->pathlist;
	List	   *partial = rel->partial_pathlist;
	bool		alike;

	remake(root, rel, NULL);
	alike = are_alike(paths, rel->pathlist) && are_alike(partial, rel->partial_pathlist);
	rel->pathlist = paths;
	rel->partial_pathlist = partial;
	return alike;
}

/* ---- hooks --------------------------------------------------------------------- */

static bool
has_current_of(const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		if (IsA(lfirst_node(RestrictInfo, lc)->clause, CurrentOfExpr))
			return true;
	}
	return false;
}

/* Is it a table whose paths set_plain_rel_pathlist() has made? */
static bool
is_eligible(RelOptInfo *rel, const RangeTblEntry *rte)
{
	return rel->rtekind == RTE_RELATION && IS_SIMPLE_REL(rel) && !rte->inh &&
		(rte->relkind == RELKIND_RELATION || rte->relkind == RELKIND_MATVIEW) &&
		rte->tablesample == NULL && rel->fdwroutine == NULL &&
		!IS_DUMMY_REL(rel) && !has_current_of(rel);
}

/* first: no other library's hook has been called for it. */
static void
adjust(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte, bool first)
{
	LaReprice	prices = {.nindexes = 0};

	if (!find_all_prices(root, rel, rte->relid, &prices))
		return;

	/* OTHERS */
	if (!first && !are_as_made(root, rel))
		return;
	remake(root, rel, &prices);
	adjusted = true;
}

static void
pathlist_hook(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	/* OFF */
	if (la_adjust_costs && la_enable && is_eligible(rel, rte))
		adjust(root, rel, rte, set_rel_pathlist_hook == pathlist_hook);
	if (prev_pathlist_hook)
		prev_pathlist_hook(root, rel, rti, rte);
}

static PlannedStmt *
plan(LA_PLANNER_ARGS)
{
	bool		outer_adjusted = adjusted;
	LaReprice  *outer_prices = la_reprice_suspend();
	PlannedStmt *volatile result = NULL;

	adjusted = false;
	PG_TRY();
	{
		result = prev_planner_hook ? prev_planner_hook(LA_PLANNER_PASS) :
			standard_planner(LA_PLANNER_PASS);
		if (adjusted)
			la_mark_adjusted(result);
	}
	PG_FINALLY();
	{
		adjusted = outer_adjusted;
		la_reprice_resume(outer_prices);
	}
	PG_END_TRY();
	return result;
}

static PlannedStmt *
planner_entry(LA_PLANNER_ARGS)
{
	/* OFF */
	if ((la_adjust_costs && la_enable) || la_reprice_is_active())
		return plan(LA_PLANNER_PASS);
	return prev_planner_hook ? prev_planner_hook(LA_PLANNER_PASS) :
		standard_planner(LA_PLANNER_PASS);
}

void
la_plancost_init(void)
{
	la_mark_init();
	prev_pathlist_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = pathlist_hook;
	prev_planner_hook = planner_hook;
	planner_hook = planner_entry;
}
