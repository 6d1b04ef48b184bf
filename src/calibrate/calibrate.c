/*
 * calibrate.c
 *	  SQL functions that measure the storage of a tablespace.
 *
 * In SQL (sql/), pg_lookahead_calibrate() claims the tablespace, deletes what the extension's
 * table has of it, and inserts the rows that are measured here:
 *
 *		pattern		depth			blocks of a request		for
 *		random		1, 2, ... 256	1						the knee, the time of a read
 *		neighbours	1 and the knee	2, 4, 8, 16				what a further block costs
 *		sequential	2, 4, more		16						what a sequential block costs
 *		memory		1				1						what a tuple costs (processor.c)
 *
 * ROUNDS.  Random reads are measured at all depths, and then twice again; the row of a depth is
 * that of its median rate.  What disturbs the storage for a moment would else be taken for what
 * it can do at one depth.
 *
 * The same figures are set in window/storage.c, for the policies and the planner.  That is done at
 * once, not when the transaction commits: the storage is what it is.
 *
 * SEQUENTIAL scans have the kernel read ahead for them, so that is measured with as many requests
 * in flight as make what it reads ahead (diskload.c), if that is more than four.
 *
 * BUSY is what is measured while others use the device (diskload.c), or what differed between
 * rounds, which is how a busy host, a limit on bursts, or a cache shows.
 *
 * MEMORY.  Some file systems open a file for direct reads, and serve them from memory.  Then the
 * device has read less than was asked for, which is an error: what was measured would make plans
 * as if the storage were as fast as memory.
 *
 * Nothing is left behind by an error, a cancel, or the end of the process: files are closed by the
 * server (blockfiles.c), after requests in flight have been waited for.
 *
 * A standby cannot write the table.  The function below may be called there on its own.
 *
 * src/calibrate/calibrate.c
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_tablespace_d.h"
#include "catalog/pg_type_d.h"
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/array.h"

#include "base/base.h"
#include "calibrate/calibrate_int.h"
#include "calibrate/curve.h"
#include "window/window.h"

#define ROUNDS				3
#define RANDOM_SECONDS		0.12	/* for each depth and round */
#define NEIGHBOURS_SECONDS	0.12
#define SEQUENTIAL_SECONDS	0.25

#define NEIGHBOURS			4	/* 2, 4, 8 and 16 blocks */
#define MAX_SEQUENTIAL_DEPTH	64

#define LOCK_KIND			3	/* SQL's advisory locks have 1 and 2 */

/* of what is read, what the device has read at least */
#define DEVICE_SHARE		0.5

/* When is the storage busy? */
#define MAX_SPREAD			0.5 /* of the rates of a depth: la_curve_spread() */
#define OTHERS_SHARE		0.2 /* of what is read here */
#define OTHERS_BYTES		(1024 * 1024)	/* ... and at least */

typedef struct Calibration
{
	LaReader   *reader;
	const LaBlockFiles *files;
	LaSqlRow	row;
	double		iops[LA_STORAGE_DEPTHS];
	double		sequential_blocks_per_s;
	double		extra_block_us;
	double		tuple_us;
	/* what makes it busy */
	int			unsteady;		/* depths */
	double		others_bytes;	/* in patterns where they were many */
	/* where the device counts */
	double		read_bytes;		/* as was asked for */
	double		device_bytes;	/* as the device has read and written */
} Calibration;

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_lookahead_claim_tablespace(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_lookahead_measure_storage(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_lookahead_storage_in_use(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_lookahead_forget_storage(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_lookahead_knee(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_lookahead_claim_tablespace);
PG_FUNCTION_INFO_V1(pg_lookahead_measure_storage);
PG_FUNCTION_INFO_V1(pg_lookahead_storage_in_use);
PG_FUNCTION_INFO_V1(pg_lookahead_forget_storage);
PG_FUNCTION_INFO_V1(pg_lookahead_knee);

/* ---- one pattern ------------------------------------------------------------------ */

/* Make requests of a pattern.  Returns whether others used the device. */
static bool
measure(Calibration *c, const LaReadPattern *pattern, LaMeasured *result)
{
	int64		before = la_disk_bytes(c->files->device);
	int64		after;
	double		others = 0;
	bool		busy;			/* with others */

	la_reader_measure(c->reader, pattern, result);
	after = la_disk_bytes(c->files->device);
	if (before >= 0 && after >= 0)
	{
		others = (double) (after - before - result->bytes);
		c->read_bytes += result->bytes;
		c->device_bytes += after - before;
	}
	busy = others > OTHERS_BYTES && others > OTHERS_SHARE * result->bytes;
	if (busy)
		c->others_bytes += others;
	return busy;
}

/* tuple_us: 0 where none is measured. */
static void
put_row(Calibration *c, const char *name, const LaReadPattern *pattern,
		const LaMeasured *result, bool busy, double tuple_us)
{
	LaSqlRow   *row = &c->row;

	la_sqlrow_put_text(row, name);
	la_sqlrow_put(row, Int32GetDatum(pattern->depth));
	la_sqlrow_put(row, Int32GetDatum(pattern->blocks));
	la_sqlrow_put(row, Float8GetDatum(result->requests_per_s));
	la_sqlrow_put(row, Float8GetDatum(result->requests_per_s * pattern->blocks));
	la_sqlrow_put(row, Float8GetDatum(result->average_us / 1000.0));
	la_sqlrow_put(row, Float8GetDatum(result->median_us / 1000.0));
	la_sqlrow_put(row, Float8GetDatum(result->p99_us / 1000.0));
	la_sqlrow_put(row, BoolGetDatum(busy));
	la_sqlrow_put_unless(row, tuple_us == 0.0, Float8GetDatum(tuple_us));
	la_sqlrow_end(row);
}

/* Measure a pattern and return a row of it; the result is the requests per second. */
static double
measure_row(Calibration *c, const char *name, const LaReadPattern *pattern)
{
	LaMeasured	result;
	bool		busy = measure(c, pattern, &result);

	put_row(c, name, pattern, &result, busy, 0.0);
	return result.requests_per_s;
}

/* ---- all of them ------------------------------------------------------------------ */

static int
compare_results(const void *a, const void *b)
{
	double		x = ((const LaMeasured *) a)->requests_per_s,
				y = ((const LaMeasured *) b)->requests_per_s;

	return (x > y) - (x < y);
}

/* What has been measured at a depth in all rounds: its row, and its rate. */
static void
conclude_depth(Calibration *c, int place, LaMeasured *results, bool busy)
{
	LaReadPattern pattern = {.depth = 1 << place,.blocks = 1};
	double		rates[ROUNDS];

	qsort(results, ROUNDS, sizeof(LaMeasured), compare_results);
	for (int round = 0; round < ROUNDS; round++)
		rates[round] = results[round].requests_per_s;
	if (la_curve_spread(rates, ROUNDS) > MAX_SPREAD)
	{
		c->unsteady++;
		busy = true;
	}
	c->iops[place] = rates[ROUNDS / 2];
	put_row(c, "random", &pattern, &results[ROUNDS / 2], busy, 0.0);
}

static void
measure_random(Calibration *c)
{
	LaMeasured	results[LA_STORAGE_DEPTHS][ROUNDS];
	bool		busy[LA_STORAGE_DEPTHS] = {false};

	for (int round = 0; round < ROUNDS; round++)
	{
		for (int i = 0; i < LA_STORAGE_DEPTHS; i++)
		{
			LaReadPattern pattern = {.depth = 1 << i,.blocks = 1,.seconds = RANDOM_SECONDS};

			busy[i] |= measure(c, &pattern, &results[i][round]);
		}
	}
	for (int i = 0; i < LA_STORAGE_DEPTHS; i++)
		conclude_depth(c, i, results[i], busy[i]);
}

/* Requests of several blocks; returns what a further one costs, in microseconds. */
static double
measure_neighbours(Calibration *c, int place)
{
	double		blocks[NEIGHBOURS + 1] = {1};
	double		us[NEIGHBOURS + 1] = {1e6 / c->iops[place]};

	for (int i = 1; i <= NEIGHBOURS; i++)
	{
		LaReadPattern pattern = {.depth = 1 << place,.blocks = 1 << i,
		.seconds = NEIGHBOURS_SECONDS};

		blocks[i] = pattern.blocks;
		us[i] = 1e6 / measure_row(c, "neighbours", &pattern);
	}
	return la_curve_slope(blocks, us, NEIGHBOURS + 1);
}

static void
measure_sequential_at(Calibration *c, int depth)
{
	LaReadPattern pattern = {.sequential = true,.depth = depth,
	.blocks = LA_MAX_REQUEST_BLOCKS,.seconds = SEQUENTIAL_SECONDS};
	double		blocks_per_s = pattern.blocks * measure_row(c, "sequential", &pattern);

	c->sequential_blocks_per_s = Max(c->sequential_blocks_per_s, blocks_per_s);
}

static void
measure_sequential(Calibration *c)
{
	int			ahead = la_disk_read_ahead(c->files->device) / (LA_MAX_REQUEST_BLOCKS * BLCKSZ);

	measure_sequential_at(c, 2);
	measure_sequential_at(c, 4);
	if (ahead > 4)
		measure_sequential_at(c, Min(ahead, MAX_SEQUENTIAL_DEPTH));
}

static void
measure_processor(Calibration *c)
{
	LaReadPattern pattern = {.sequential = true,.depth = 1,.blocks = 1};
	LaMeasured	result;

	c->tuple_us = la_processor_measure(&result);
	put_row(c, "memory", &pattern, &result, false, c->tuple_us);
}

static void
measure_all(Calibration *c)
{
	LaKnee		knee;
	int			place;

	la_reader_use(c->reader, c->files);
	measure_random(c);
	la_curve_knee(c->iops, LA_STORAGE_DEPTHS, &knee);
	/* the view pg_lookahead_storage looks for the same depth */
	place = la_curve_place(knee.depth);
	c->extra_block_us = measure_neighbours(c, 0);
	if (place > 0)
		c->extra_block_us = measure_neighbours(c, place);
	measure_sequential(c);
	measure_processor(c);
}

/* Tell the policies. */
static void
set_storage(const Calibration *c, Oid tablespace)
{
	LaStorage	storage;

	for (int i = 0; i < LA_STORAGE_DEPTHS; i++)
		storage.random_us[i] = 1e6 / c->iops[i];
	storage.sequential_us = 1e6 / c->sequential_blocks_per_s;
	storage.extra_block_us = c->extra_block_us;
	storage.tuple_us = c->tuple_us;
	la_storage_set(tablespace, &storage);
}

static void
warn_if_busy(const Calibration *c, Oid tablespace)
{
	char	   *name = get_tablespace_name(tablespace);

	if (c->others_bytes == 0 && c->unsteady == 0)
		return;
	ereport(WARNING,
			(errmsg("the storage of tablespace \"%s\" was busy while it was measured",
					name ? name : "?"),
			 c->others_bytes > 0 ?
			 errdetail("Others have read and written %.0f MB meanwhile.",
					   c->others_bytes / (1024 * 1024)) :
			 errdetail("The rate of reads was not steady at %d of %d depths.",
					   c->unsteady, LA_STORAGE_DEPTHS),
			 errhint("Measure again at a quiet time, after a CHECKPOINT.")));
}

/* ---- SQL functions ---------------------------------------------------------------- */

/*
 * Nobody else may measure it until the end of the transaction.  Of the locks that one session
 * keeps from others, a standby gives only advisory ones.  The last number tells it from SQL's.
 */
static void
lock_tablespace(Oid tablespace)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, InvalidOid, TableSpaceRelationId, tablespace, LOCK_KIND);
	if (LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("tablespace \"%s\" is being measured by another session",
						get_tablespace_name(tablespace))));
}

/* The tablespace of that name, or the database's, which is then measured by nobody else. */
Datum
pg_lookahead_claim_tablespace(PG_FUNCTION_ARGS)
{
	Oid			tablespace = MyDatabaseTableSpace;

	PreventCommandIfReadOnly("pg_lookahead_calibrate()");
	if (!PG_ARGISNULL(0))
		tablespace = get_tablespace_oid(NameStr(*PG_GETARG_NAME(0)), false);
	if (tablespace == GLOBALTABLESPACE_OID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("tablespace \"pg_global\" is not measured by itself"),
				 errhint("Measure \"pg_default\", which is beside it.")));
	lock_tablespace(tablespace);
	PG_RETURN_OID(tablespace);
}

/* A tablespace that exists, 0 being the database's. */
static Oid
existing(Oid tablespace)
{
	if (!OidIsValid(tablespace))
		tablespace = MyDatabaseTableSpace;
	if (get_tablespace_name(tablespace) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("tablespace with OID %u does not exist", tablespace)));
	return tablespace;
}

/* MEMORY: fail if most of it was read from there. */
static void
check_device(const Calibration *c, Oid tablespace)
{
	if (c->device_bytes >= c->read_bytes * DEVICE_SHARE)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("reads of tablespace \"%s\" do not go to its device",
					get_tablespace_name(tablespace)),
			 errdetail("Of %.0f MB that were read directly, the device has read %.0f MB.",
					   c->read_bytes / (1024 * 1024), c->device_bytes / (1024 * 1024)),
			 errhint("Its file system opens files for direct reads, and serves them from "
					 "memory all the same, so the storage cannot be measured.")));
}

/* After an error, and when the process ends, which runs no PG_FINALLY(). */
static void
destroy_reader(int code, Datum reader)
{
	la_reader_destroy((LaReader *) DatumGetPointer(reader));
}

/* Measure a tablespace, and put a row for each pattern into the result. */
static void
measure_tablespace(Calibration *c, Oid tablespace)
{
	LaBlockFiles *files = palloc0(sizeof(LaBlockFiles));

	c->files = files;
	c->reader = la_reader_create();
	PG_ENSURE_ERROR_CLEANUP(destroy_reader, PointerGetDatum(c->reader));
	{
		la_block_files_open(tablespace, files);
		measure_all(c);
		check_device(c, tablespace);
	}
	PG_END_ENSURE_ERROR_CLEANUP(destroy_reader, PointerGetDatum(c->reader));
	la_reader_destroy(c->reader);
	la_block_files_close(files);
}

Datum
pg_lookahead_measure_storage(PG_FUNCTION_ARGS)
{
	Oid			tablespace = existing(PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0));
	Calibration c = {0};

	lock_tablespace(tablespace);
	la_sqlrow_begin(&c.row, fcinfo);
	measure_tablespace(&c, tablespace);
	set_storage(&c, tablespace);
	warn_if_busy(&c, tablespace);
	return (Datum) 0;
}

/* What the policies go by. */
Datum
pg_lookahead_storage_in_use(PG_FUNCTION_ARGS)
{
	LaStorage	storage;
	bool		calibrated = la_storage_get(PG_GETARG_OID(0), &storage);
	Datum		us[LA_STORAGE_DEPTHS];
	LaSqlRow	row = {0};

	for (int i = 0; i < LA_STORAGE_DEPTHS; i++)
		us[i] = Float8GetDatum(storage.random_us[i]);
	la_sqlrow_put(&row, BoolGetDatum(calibrated));
	la_sqlrow_put(&row, PointerGetDatum(construct_array(us, LA_STORAGE_DEPTHS, FLOAT8OID,
														sizeof(float8), FLOAT8PASSBYVAL,
														TYPALIGN_DOUBLE)));
	la_sqlrow_put(&row, Float8GetDatum(storage.sequential_us));
	la_sqlrow_put(&row, Float8GetDatum(storage.extra_block_us));
	la_sqlrow_put(&row, Float8GetDatum(storage.tuple_us));
	return la_sqlrow_datum(&row, fcinfo);
}

/* The knee of rates at 1, 2, 4, ... */
Datum
pg_lookahead_knee(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(0);
	int			n = ARR_NDIM(array) == 1 ? ARR_DIMS(array)[0] : 0;
	double	   *rates = (double *) ARR_DATA_PTR(array);
	bool		valid = n > 0 && n <= LA_CURVE_MAX && !array_contains_nulls(array);
	LaKnee		knee;
	LaSqlRow	row = {0};

	for (int i = 0; i < n && valid; i++)
		valid = isfinite(rates[i]) && rates[i] > 0;
	if (!valid)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("rates must be 1 to %d positive numbers", LA_CURVE_MAX)));
	la_curve_knee(rates, n, &knee);
	la_sqlrow_put(&row, Float8GetDatum(knee.depth));
	la_sqlrow_put(&row, Float8GetDatum(knee.rate));
	la_sqlrow_put(&row, Float8GetDatum(knee.best_rate));
	return la_sqlrow_datum(&row, fcinfo);
}

Datum
pg_lookahead_forget_storage(PG_FUNCTION_ARGS)
{
	la_storage_forget();
	PG_RETURN_VOID();
}
