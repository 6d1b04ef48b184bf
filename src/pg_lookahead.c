/*
 * pg_lookahead.c
 *	  Starts what the server will need before it asks for it.
 *
 * The table of contents: each room installs its own settings, hooks and
 * registrations.  src/README.md describes them.
 *
 * src/pg_lookahead.c
 */
#include "postgres.h"

#include "fmgr.h"

#include "attach/attach.h"
#include "base/accessmethod.h"
#include "base/compat.h"
#include "base/explain.h"
#include "base/guc.h"
#include "base/reset.h"
#include "base/stats.h"
#include "btree/build.h"
#include "btree/insert.h"
#include "hashjoin/hashjoin.h"
#include "nestloop/nestloop.h"
#include "scan/scan.h"
#include "window/history.h"

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "pg_lookahead",.version = "0.2.0");
#else
PG_MODULE_MAGIC;
#endif

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	la_guc_init();
	la_am_init();
	la_reset_init();
	la_stats_init();
	la_history_init();
	la_explain_init();
	la_attach_init();
	la_scan_init();
	la_nestloop_init();
	la_hashjoin_init();
	la_build_init();
	la_insert_init();
}
