/*
 * la_test_functions.c
 *	  Functions that do more than they are declared to do, as some of extensions.
 *
 *	la_test_notice(int)		IMMUTABLE, and raises a notice for each thousand, as crypt() of pgcrypto does
 *	la_test_offset(int)		IMMUTABLE LEAKPROOF, and adds the setting la_test.shift
 *	la_test_run(text)		STABLE, and runs the statement that it is given, as crosstab() of
 *							tablefunc does
 *
 * test/modules/functions/la_test_functions.c
 */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(la_test_notice);
PG_FUNCTION_INFO_V1(la_test_offset);
PG_FUNCTION_INFO_V1(la_test_run);

Datum
la_test_notice(PG_FUNCTION_ARGS)
{
	int32		value = PG_GETARG_INT32(0);

	if (value % 1000 == 0)
		ereport(NOTICE, errmsg("value %d", value));
	PG_RETURN_INT32(value);
}

Datum
la_test_offset(PG_FUNCTION_ARGS)
{
	const char *setting = GetConfigOption("la_test.shift", true, false);

	PG_RETURN_INT32(PG_GETARG_INT32(0) + (setting == NULL ? 0 : atoi(setting)));
}

Datum
la_test_run(PG_FUNCTION_ARGS)
{
	SPI_connect();
	SPI_execute(text_to_cstring(PG_GETARG_TEXT_PP(0)), false, 0);
	SPI_finish();
	PG_RETURN_INT32(0);
}
