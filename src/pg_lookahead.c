/*
 * pg_lookahead.c
 *	  Starts what the server will need before it asks for it.
 *
 * The table of contents: each room installs its own hooks and registrations,
 * unless the server is of another minor release than the one that the library
 * was built for, and differs in what the room relies on (base/minor.c).
 * src/README.md describes the rooms.
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
#include "base/minor.h"
#include "base/reset.h"
#include "base/stats.h"
#include "indexbuild/build_hooks.h"
#include "write/insert_hooks.h"
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

static const struct
{
	LaRoom		room;
	void		(*init) (void);
	bool		attaches;		/* to plan nodes, by attach/ */
}			rooms[] = {
	{LA_ROOM_SCAN, la_scan_init, true},
	{LA_ROOM_NESTLOOP, la_nestloop_init, true},
	{LA_ROOM_HASHJOIN, la_hashjoin_init, true},
	{LA_ROOM_INDEX_BUILD, la_build_init, false},
	{LA_ROOM_INSERT, la_insert_init, true},
};

void
_PG_init(void)
{
	bool		attached = false;

	la_guc_init();
	la_am_init();
	la_reset_init();
	la_stats_init();
	la_history_init();
	la_explain_init();
	la_minor_init();
	for (int i = 0; i < (int) lengthof(rooms); i++)
	{
		if (!la_minor_allows(rooms[i].room))
			continue;
		if (rooms[i].attaches && !attached)
			la_attach_init();
		attached |= rooms[i].attaches;
		rooms[i].init();
	}
}
