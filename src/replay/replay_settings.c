/*
 * replay_settings.c
 *	  The server's own settings of its look-ahead in recovery, in the startup process.
 *
 * maintenance_io_concurrency is how many reads the server keeps in flight ahead of replay, and
 * recovery_prefetch whether it does so.  Here they are changed as variables of the one process
 * that replays WAL, and the server's look-ahead is told to notice, as it is after a reload of
 * the configuration.  What SHOW and pg_settings say is of other processes, which do not change.
 *
 * WHAT IS SET STAYS.  A setting that comes from anywhere but the server's default is the
 * administrator's, and is left alone, whatever its value.  A reload may make it so, or undo it,
 * in the middle of recovery: the setting's source is asked for each time.  Reset by a reload,
 * the variable has a value that is not ours, which is the default again.
 *
 * The options of a tablespace are not looked at, as the server does not look at them in
 * recovery.
 *
 * wal_decode_buffer_size holds the records that look-ahead has read.  With full-page images, its
 * default of 512 kB are 64 of them, fewer than any depth needs.  It can only be set when the
 * server starts, and its default is raised then.
 *
 * src/replay/replay_settings.c
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogprefetcher.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"

#include "base/compat.h"
#include "replay/replay_int.h"

#define DECODE_BUFFER "4MB"

static struct config_generic *depth_setting = NULL;
static struct config_generic *advice_setting = NULL;

/* What the variables were before they were ours, and what we have made them. */
static int	depth_before;
static int	depth_ours;
static int	advice_before;
static int	advice_ours;

static bool
is_default(const struct config_generic *setting)
{
	return setting != NULL && setting->source <= PGC_S_DYNAMIC_DEFAULT;
}

/* While the library is preloaded.  A value that has been set has precedence over this one. */
void
la_replay_settings_raise_decode_buffer(void)
{
	SetConfigOption("wal_decode_buffer_size", DECODE_BUFFER, PGC_POSTMASTER,
					PGC_S_DYNAMIC_DEFAULT);
}

/* Recovery begins. */
void
la_replay_settings_begin(void)
{
	depth_setting = la_find_setting("maintenance_io_concurrency");
	advice_setting = la_find_setting("recovery_prefetch");
	depth_before = depth_ours = maintenance_io_concurrency;
	advice_before = advice_ours = recovery_prefetch;
}

/* Notice that a reload has changed the variables. */
static void
notice_reload(void)
{
	if (maintenance_io_concurrency != depth_ours)
		depth_before = depth_ours = maintenance_io_concurrency;
	if (recovery_prefetch != advice_ours)
		advice_before = advice_ours = recovery_prefetch;
}

/* How many reads are in flight without us. */
int
la_replay_settings_base(void)
{
	notice_reload();
	return depth_before;
}

/* May the depth be ours?  With 0 there is no support for advice on this platform. */
bool
la_replay_settings_depth_is_ours(void)
{
	notice_reload();
	return is_default(depth_setting) && depth_before > 0 && !la_direct_io();
}

bool
la_replay_settings_advice_is_ours(void)
{
	notice_reload();
	return is_default(advice_setting) && !la_direct_io();
}

/* Does the server read ahead now? */
bool
la_replay_settings_advises(void)
{
	return recovery_prefetch != RECOVERY_PREFETCH_OFF && maintenance_io_concurrency > 0 &&
		!la_direct_io();
}

/*
 * Have the server keep so many reads in flight, and read ahead or not, as far as that has not been
 * set.
 */
void
la_replay_settings_apply(int depth, bool advise)
{
	int			old_depth = maintenance_io_concurrency;
	int			old_advice = recovery_prefetch;

	if (la_replay_settings_depth_is_ours())
		maintenance_io_concurrency = depth_ours = depth;
	if (la_replay_settings_advice_is_ours())
		recovery_prefetch = advice_ours = advise ? advice_before : RECOVERY_PREFETCH_OFF;
	if (maintenance_io_concurrency != old_depth || recovery_prefetch != old_advice)
		XLogPrefetchReconfigure();
}

/* As if we had not been there.  What a reload has set meanwhile stays. */
void
la_replay_settings_put_back(void)
{
	notice_reload();
	if (maintenance_io_concurrency == depth_before && recovery_prefetch == advice_before)
		return;
	if (is_default(depth_setting))
		maintenance_io_concurrency = depth_ours = depth_before;
	if (is_default(advice_setting))
		recovery_prefetch = advice_ours = advice_before;
	XLogPrefetchReconfigure();
}
