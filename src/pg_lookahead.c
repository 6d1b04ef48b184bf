/*
 * pg_lookahead.c
 *	  Starts reads before the executor asks for them.
 *
 * This is the table of contents: base/ defines the settings and statistics of all rooms,
 * and each feature room installs its hooks, unless the running minor release differs in
 * what the room relies on from the one that the library was built for (base/minor.c).
 * plancost/ calls functions of the planner, and replay/ those of recovery, that are the same in
 * all of them; logical replication looks ahead where writes may.
 * src/README.md describes the rooms.
 *
 * src/pg_lookahead.c
 */
#include "postgres.h"

#include "fmgr.h"

#include "attach/attach.h"
#include "base/base.h"
#include "bitmap/bitmap.h"
#include "hashjoin/hashjoin.h"
#include "indexbuild/indexbuild.h"
#include "nestloop/nestloop.h"
#include "plancost/plancost.h"
#include "replay/replay.h"
#include "scan/scan.h"
#include "toast/toast.h"
#include "window/window.h"
#include "write/write.h"

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "pg_lookahead",.version = "1.1.0");
#else
PG_MODULE_MAGIC;
#endif

PGDLLEXPORT void _PG_init(void);

static const struct
{
	LaRoom		room;
	void		(*init) (void);
	bool		needs_attach;	/* is called for plan nodes by attach/ */
}			rooms[] = {
	{LA_ROOM_SCAN, la_scan_init, true},
	{LA_ROOM_NESTLOOP, la_nestloop_init, true},
	{LA_ROOM_NESTLOOP, la_subplan_init, true},
	{LA_ROOM_HASHJOIN, la_hashjoin_init, true},
	{LA_ROOM_INDEXBUILD, la_build_init, false},
	{LA_ROOM_WRITE, la_insert_init, true},
	{LA_ROOM_BITMAP, la_bitmap_init, true},
	{LA_ROOM_TOAST, la_toast_init, true},
};

void
_PG_init(void)
{
	bool		attach = false;

	la_base_init();
	la_history_init();
	la_share_init();
	la_storage_init();
	for (int i = 0; i < (int) lengthof(rooms); i++)
		attach |= rooms[i].needs_attach && la_minor_allows(rooms[i].room);
	if (attach)
		la_attach_init();
	for (int i = 0; i < (int) lengthof(rooms); i++)
	{
		if (la_minor_allows(rooms[i].room))
			rooms[i].init();
	}
	la_plancost_init();
	la_replay_init();
	la_apply_init();
}
