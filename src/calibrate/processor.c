/*
 * processor.c
 *	  What the processor takes for tuples.
 *
 * Reads are priced in the unit of what a tuple costs (plancost/prices.c), so the time of one is
 * needed.  It is that of a query with a sequential scan, a condition that all rows fulfil, and an
 * aggregate, over a catalog that is in memory once the first execution has read it: pg_proc, which
 * has some thousand rows in every database, and which hardly anything changes.  It goes through the
 * server's executor, as will the queries that are planned by it.
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
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "calibrate/curve.h"
#include "calibrate/processor.h"

#define QUERY			"SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc " \
						"WHERE pronargs OPERATOR(pg_catalog.>=) 0"
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

/* Execute the query repeatedly; returns its number of rows. */
static int64
measure_executions(LaTimes *times)
{
	SPIPlanPtr	plan;
	int64		rows = 0;

	SPI_connect();
	plan = SPI_prepare(QUERY, 0, NULL);
	while (times->sum_us < SECONDS * 1e6 || times->count < LEAST_TIMES)
	{
		double		before = processor_us();
		bool		is_null;

		CHECK_FOR_INTERRUPTS();
		if (SPI_execute_plan(plan, NULL, NULL, true, 0) != SPI_OK_SELECT || SPI_processed != 1)
			elog(ERROR, "could not count rows of a catalog");
		rows = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
										   &is_null));
		SPI_freetuptable(SPI_tuptable);
		la_times_add(times, processor_us() - before);
	}
	SPI_finish();
	return Max(rows, 1);
}

/* Microseconds for each row; and what it means in blocks of the catalog. */
double
la_processor_measure(LaReadResult *blocks)
{
	LaTimes    *times = palloc0(sizeof(LaTimes));
	BlockNumber nblocks = blocks_of_catalog();
	int64		rows = measure_executions(times);
	double		median_us = la_times_quantile(times, 0.5);

	blocks->average_us = la_times_average(times) / nblocks;
	blocks->median_us = median_us / nblocks;
	blocks->p99_us = la_times_quantile(times, 0.99) / nblocks;
	blocks->requests_per_s = 1e6 / blocks->average_us;
	blocks->bytes = 0;
	pfree(times);
	return median_us / rows;
}
