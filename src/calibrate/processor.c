/*
 * processor.c
 *	  What the processor takes for tuples.
 *
 * Reads are priced in the unit of what a tuple costs (plancost/prices.c), so the time of one is
 * needed.  The planner's prices for the work of the processor are not equally right: a tuple of a
 * sequential scan takes less than its price says beside one that is joined or sorted.  So what is
 * measured is a query of which the planner expects some of each: a sequential scan with a
 * condition, a hash join, a sort, and an aggregate, over catalogs that are in memory once the first
 * execution has read them, which have some thousand rows in every database, and which hardly
 * anything changes.  It goes through the server's planner and executor, as will the queries that
 * are planned by it.  Its time, divided by what the planner takes for it with the server's
 * default prices and without reads, is that of a unit of cost; and with that, a tuple of a
 * sequential scan, its condition and its count have their time.
 *
 * Executions are repeated for a twentieth of a second, and the result is their median: the first
 * one reads.  What counts is the time of the processor that this process gets, so that others
 * hardly matter.
 *
 * src/calibrate/processor.c
 */
#include "postgres.h"

#include <time.h>

#include "access/relation.h"
#include "catalog/pg_proc.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/plannodes.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "utils/rel.h"

#include "calibrate/calibrate_int.h"
#include "calibrate/curve.h"

#define QUERY	"SELECT pg_catalog.count(*) FROM (" \
				"SELECT p.proname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_type t " \
				"ON t.oid OPERATOR(pg_catalog.=) p.prorettype " \
				"WHERE p.pronargs OPERATOR(pg_catalog.>=) 0 ORDER BY p.proname OFFSET 0) s"
#define SECONDS			0.05
#define LEAST_TIMES		5

static double
processor_us(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0)
		elog(ERROR, "could not read the time of the processor: %m");
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static BlockNumber
blocks_of_catalog(void)
{
	Relation	rel = relation_open(ProcedureRelationId, AccessShareLock);
	BlockNumber blocks = RelationGetNumberOfBlocks(rel);

	relation_close(rel, AccessShareLock);
	return Max(blocks, 1);
}

/* The query is planned with these, whatever the session has. */
static const struct
{
	const char *name;
	const char *value;
}			settings[] =

{
	{"seq_page_cost", "0"},
	{"random_page_cost", "0"},
	{"cpu_tuple_cost", "0.01"},
	{"cpu_operator_cost", "0.0025"},
	{"enable_seqscan", "on"},
	{"enable_hashjoin", "on"},
	{"enable_sort", "on"},
	{"enable_nestloop", "off"},
	{"enable_mergejoin", "off"},
	{"enable_indexscan", "off"},
	{"enable_indexonlyscan", "off"},
	{"enable_bitmapscan", "off"},
	{"max_parallel_workers_per_gather", "0"},
	{"jit", "off"},
	{"work_mem", "16MB"},
	{"pg_lookahead.adjust_costs", "off"},
};

#define TUPLE_PRICE		0.015	/* of a tuple, a condition and a count, by
								 * these */

/* Returns the level that ends with them. */
static int
open_settings(void)
{
	int			level = NewGUCNestLevel();

	for (int i = 0; i < (int) lengthof(settings); i++)
		(void) set_config_option(settings[i].name, settings[i].value, PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return level;
}

/* What the planner takes for the query, in its unit.  The plan is not saved: nobody owns it. */
static double
planned_cost(SPIPlanPtr plan)
{
	CachedPlan *cached = SPI_plan_get_cached_plan(plan);
	double		cost;

	if (cached == NULL)
		elog(ERROR, "could not plan a query over catalogs");
	cost = linitial_node(PlannedStmt, cached->stmt_list)->planTree->total_cost;
	ReleaseCachedPlan(cached, NULL);
	return cost;
}

static void
execute(SPIPlanPtr plan, LaTimes *times)
{
	double		before = processor_us();

	if (SPI_execute_plan(plan, NULL, NULL, true, 0) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "could not count rows of a catalog");
	SPI_freetuptable(SPI_tuptable);
	la_times_add(times, processor_us() - before);
}

/* Execute the query repeatedly; returns its cost. */
static double
measure_executions(LaTimes *times)
{
	SPIPlanPtr	plan;
	double		cost;
	int			level;

	SPI_connect();
	level = open_settings();
	plan = SPI_prepare(QUERY, 0, NULL);
	cost = planned_cost(plan);
	while (times->sum_us < SECONDS * 1e6 || times->count < LEAST_TIMES)
	{
		CHECK_FOR_INTERRUPTS();
		execute(plan, times);
	}
	AtEOXact_GUC(true, level);
	SPI_finish();
	return Max(cost, 1.0);
}

/* Microseconds for each tuple; and what the query means in blocks of the catalog. */
double
la_processor_measure(LaMeasured *blocks)
{
	LaTimes    *times = palloc0(sizeof(LaTimes));
	BlockNumber nblocks = blocks_of_catalog();
	double		cost = measure_executions(times);
	double		median_us = la_times_quantile(times, 0.5);

	blocks->average_us = la_times_average(times) / nblocks;
	blocks->median_us = median_us / nblocks;
	blocks->p99_us = la_times_quantile(times, 0.99) / nblocks;
	blocks->requests_per_s = 1e6 / blocks->average_us;
	blocks->bytes = 0;
	pfree(times);
	return median_us / cost * TUPLE_PRICE;
}
