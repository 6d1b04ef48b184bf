/*
 * calibrate.c
 *	  SQL functions that measure the storage of a tablespace.
 *
 * In SQL (sql/), pg_lookahead_calibrate() claims the tablespace, deletes what the extension's
 * table has of it, and inserts the rows that are measured here:
 *
 *		pattern		depth			blocks of a request		for
 *		random		1, 2, ... 256	1						the knee, and the time of a read at
 *															each depth
 *		random		1, once more							is it what it was?  (no row)
 *		neighbours	1 and the knee	2, 4, 8, 16				what a further block costs
 *		sequential	2, 4			16						what a block costs a sequential scan
 *
 * The same figures are set in window/storage.c, for the policies and the planner.  That is done at
 * once, not when the transaction commits: the storage is what it is.
 *
 * BUSY is what is measured while others use the device (diskload.c), or while the rate of reads
 * was not steady; and reads one at a time, if they were faster or slower at the end than at the
 * beginning, which is how a busy host, a limit on bursts, or a cache shows.
 *
 * Nothing is left behind by an error or a cancel: files are closed by the server (blockfiles.c),
 * and requests in flight are waited for.
 *
 * A standby cannot write the table.  The function below may be called there on its own.
 *
 * src/calibrate/calibrate.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_tablespace_d.h"
#include "catalog/pg_type_d.h"
#include "commands/tablespace.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "tcop/utility.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "calibrate/blockfiles.h"
#include "calibrate/curve.h"
#include "calibrate/directread.h"
#include "calibrate/diskload.h"
#include "window/storage.h"

#define RANDOM_SECONDS		0.33
#define AGAIN_SECONDS		0.25
#define NEIGHBOURS_SECONDS	0.12
#define SEQUENTIAL_SECONDS	0.25

#define NEIGHBOURS			4	/* 2, 4, 8 and 16 blocks */

#define COLUMNS				9

/* When is the storage busy? */
#define MAX_SPREAD			0.5 /* of the rate within a pattern */
#define MAX_CHANGE			1.3 /* of the time of a read, between begin and
								 * end */
#define OTHERS_SHARE		0.2 /* of what is read here */
#define OTHERS_BYTES		(1024 * 1024)	/* ... and at least */

typedef struct Calibration
{
	LaReader   *reader;
	const LaBlockFiles *files;
	ReturnSetInfo *rows;
	double		iops[LA_STORAGE_DEPTHS];
	double		knee;
	double		sequential_blocks_per_s;
	double		extra_block_us;
	/* what makes it busy */
	int			unsteady;		/* patterns */
	double		others_bytes;	/* in patterns where they were many */
	double		first_us;		/* of a read, at the beginning */
	double		last_us;		/* ... and the end */
} Calibration;

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_lookahead_claim_tablespace(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_lookahead_measure_storage(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_lookahead_storage_in_use(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_lookahead_forget_storage(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_lookahead_claim_tablespace);
PG_FUNCTION_INFO_V1(pg_lookahead_measure_storage);
PG_FUNCTION_INFO_V1(pg_lookahead_storage_in_use);
PG_FUNCTION_INFO_V1(pg_lookahead_forget_storage);

/* ---- one pattern ------------------------------------------------------------------ */

/* Make requests of a pattern.  Returns whether the storage was busy. */
static bool
measure(Calibration *c, const LaReadPattern *pattern, LaReadResult *result)
{
	int64		before = la_disk_bytes(c->files->device);
	int64		after;
	double		others = 0;
	bool		busy;

	la_reader_measure(c->reader, pattern, result);
	after = la_disk_bytes(c->files->device);
	if (before >= 0 && after >= 0)
		others = (double) (after - before - result->bytes);
	busy = others > OTHERS_BYTES && others > OTHERS_SHARE * result->bytes;
	if (busy)
		c->others_bytes += others;
	else if (result->spread > MAX_SPREAD)
	{
		c->unsteady++;
		busy = true;
	}
	return busy;
}

static void
put_row(Calibration *c, const char *name, const LaReadPattern *pattern,
		const LaReadResult *result, bool busy)
{
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS] = {0};
	int			n = 0;

	values[n++] = CStringGetTextDatum(name);
	values[n++] = Int32GetDatum(pattern->depth);
	values[n++] = Int32GetDatum(pattern->blocks);
	values[n++] = Float8GetDatum(result->requests_per_s);
	values[n++] = Float8GetDatum(result->requests_per_s * pattern->blocks);
	values[n++] = Float8GetDatum(result->average_us / 1000.0);
	values[n++] = Float8GetDatum(result->median_us / 1000.0);
	values[n++] = Float8GetDatum(result->p99_us / 1000.0);
	values[n++] = BoolGetDatum(busy);
	Assert(n == COLUMNS);
	tuplestore_putvalues(c->rows->setResult, c->rows->setDesc, values, nulls);
}

/* Measure a pattern and return a row of it; the result is the requests per second. */
static double
measure_row(Calibration *c, const char *name, const LaReadPattern *pattern)
{
	LaReadResult result;
	bool		busy = measure(c, pattern, &result);

	put_row(c, name, pattern, &result, busy);
	return result.requests_per_s;
}

/* ---- all of them ------------------------------------------------------------------ */

static void
measure_random(Calibration *c)
{
	LaReadPattern one = {.depth = 1,.blocks = 1,.seconds = RANDOM_SECONDS};
	LaReadResult first,
				last;
	bool		busy = measure(c, &one, &first);

	c->iops[0] = first.requests_per_s;
	for (int i = 1; i < LA_STORAGE_DEPTHS; i++)
	{
		LaReadPattern many = {.depth = 1 << i,.blocks = 1,.seconds = RANDOM_SECONDS};

		c->iops[i] = measure_row(c, "random", &many);
	}
	one.seconds = AGAIN_SECONDS;
	busy |= measure(c, &one, &last);
	c->first_us = first.average_us;
	c->last_us = last.average_us;
	busy |= c->first_us > MAX_CHANGE * c->last_us || c->last_us > MAX_CHANGE * c->first_us;
	put_row(c, "random", &one, &first, busy);
	c->knee = la_curve_knee(c->iops, LA_STORAGE_DEPTHS);
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
measure_sequential(Calibration *c)
{
	for (int depth = 2; depth <= 4; depth *= 2)
	{
		LaReadPattern pattern = {.sequential = true,.depth = depth,
		.blocks = LA_MAX_REQUEST_BLOCKS,.seconds = SEQUENTIAL_SECONDS};
		double		blocks_per_s = pattern.blocks * measure_row(c, "sequential", &pattern);

		c->sequential_blocks_per_s = Max(c->sequential_blocks_per_s, blocks_per_s);
	}
}

static void
measure_all(Calibration *c)
{
	int			place;

	la_reader_use(c->reader, c->files);
	measure_random(c);
	place = la_curve_knee_place(c->iops, LA_STORAGE_DEPTHS);
	c->extra_block_us = measure_neighbours(c, 0);
	if (place > 0)
		c->extra_block_us = measure_neighbours(c, place);
	measure_sequential(c);
}

/* Tell the policies. */
static void
set_storage(const Calibration *c, Oid tablespace)
{
	LaStorage	storage = {.calibrated = true};

	for (int i = 0; i < LA_STORAGE_DEPTHS; i++)
		storage.random_us[i] = 1e6 / c->iops[i];
	storage.sequential_us = 1e6 / c->sequential_blocks_per_s;
	storage.extra_block_us = c->extra_block_us;
	la_storage_set(tablespace, &storage);
}

static void
warn_if_busy(const Calibration *c, Oid tablespace)
{
	char	   *name = get_tablespace_name(tablespace);
	bool		changed = c->first_us > MAX_CHANGE * c->last_us ||
		c->last_us > MAX_CHANGE * c->first_us;

	if (c->others_bytes == 0 && c->unsteady == 0 && !changed)
		return;
	ereport(WARNING,
			(errmsg("the storage of tablespace \"%s\" was busy while it was measured",
					name ? name : "?"),
			 c->others_bytes > 0 ?
			 errdetail("Others have read and written %.0f MB meanwhile.",
					   c->others_bytes / (1024 * 1024)) :
			 changed ?
			 errdetail("A read took %.3f ms at the beginning, and %.3f ms at the end.",
					   c->first_us / 1000.0, c->last_us / 1000.0) :
			 errdetail("The rate of reads was not steady in %d of the measurements.",
					   c->unsteady),
			 errhint("Measure again at a quiet time, after a CHECKPOINT.")));
}

/* ---- SQL functions ---------------------------------------------------------------- */

/* Nobody else may measure it until the end of the transaction. */
static void
lock_tablespace(Oid tablespace)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, TableSpaceRelationId, tablespace, 0);
	if (LockAcquire(&tag, ShareUpdateExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
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

/* Measure a tablespace, and put a row for each pattern into the result. */
static void
measure_tablespace(Calibration *c, Oid tablespace)
{
	LaBlockFiles *files = palloc0(sizeof(LaBlockFiles));

	c->files = files;
	c->reader = la_reader_create();
	PG_TRY();
	{
		la_block_files_open(tablespace, files);
		measure_all(c);
	}
	PG_FINALLY();
	{
		la_reader_destroy(c->reader);
	}
	PG_END_TRY();
	la_block_files_close(files);
}

Datum
pg_lookahead_measure_storage(PG_FUNCTION_ARGS)
{
	Oid			tablespace = existing(PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0));
	Calibration c = {.rows = (ReturnSetInfo *) fcinfo->resultinfo};

	InitMaterializedSRF(fcinfo, 0);
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
	Datum		values[4];
	bool		nulls[4] = {0};
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	for (int i = 0; i < LA_STORAGE_DEPTHS; i++)
		us[i] = Float8GetDatum(storage.random_us[i]);
	values[0] = BoolGetDatum(calibrated);
	values[1] = PointerGetDatum(construct_array(us, LA_STORAGE_DEPTHS, FLOAT8OID,
												sizeof(float8), FLOAT8PASSBYVAL,
												TYPALIGN_DOUBLE));
	values[2] = Float8GetDatum(storage.sequential_us);
	values[3] = Float8GetDatum(storage.extra_block_us);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

Datum
pg_lookahead_forget_storage(PG_FUNCTION_ARGS)
{
	la_storage_forget();
	PG_RETURN_VOID();
}
