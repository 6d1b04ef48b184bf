/*
 * coming.c
 *	  The rows that an index scan will come to, for a room that follows it.
 *
 * Where nbtree owns the position, these are the rest of the leaf page, in currPos; where leaf.c
 * does, the rest of its batches.  An entry's identity is its leaf page and its place there, which
 * both have alike.  Nothing is read or taken over for it.
 *
 * A heap block that is not cached may be read ahead of its visit once it is in the nearer half of
 * what the window has foreseen: its read was started a while ago then.
 *
 * src/scan/coming.c
 */
#include "postgres.h"

#include "access/nbtree.h"

#include "attach/attach.h"
#include "scan/scan_int.h"

/* LaComing.peek, where nbtree owns the position */
static bool
peek_current_page(LaScan *ls, int n, LaComingRow *row)
{
	BTScanPos	pos = &la_bt_opaque(ls)->currPos;
	int			item = ScanDirectionIsForward(ls->last_dir) ? pos->itemIndex + n :
		pos->itemIndex - n;

	if (!BTScanPosIsValid(*pos) || item < pos->firstItem || item > pos->lastItem)
		return false;
	la_leafbatch_coming(pos, item, row);
	row->may_read = n == 0;
	return true;
}

/* LaComing.peek */
static bool
peek(void *arg, int n, LaComingRow *row)
{
	LaScan	   *ls = arg;

	bool		known;

	if (n > 0 && n > la_scan_rows_wanted(ls, ls->last_dir))
		return false;
	if (ls->owner == NULL)
		known = peek_current_page(ls, n, row);
	else
		known = ls->owner == &la_leaf_ops && la_leaf_peek(ls, n, row);
	if (known && ItemPointerGetBlockNumberNoCheck(&row->tid) == la_scan_heap_block(ls))
		row->buffer = la_scan_heap(ls)->xs_cbuf;
	return known;
}

/* The scan is attached: offer it to the room that may follow it. */
void
la_coming_follow(LaScan *ls, ScanState *node)
{
	LaComing	coming = {ls, peek};

	if (ls->kind == LA_KIND_INDEX_SCAN && ls->ahead.ops == &la_leaf_ops)
		ls->follower = la_follow_scan(node, &coming);
}
