/*
 * early.c
 *	  May an index scan read pages of its index before their turn?
 *
 * The gate (attach/gate.c) is asked when a page would be read early for the first time, so that
 * short scans need no answer.  It may depend on how the statement is run: then it is asked again
 * for each rescan, and in each call of ExecutorRun().  A cursor that has been read to its end in
 * one call may turn in the next one, between whose rows a setting may change.  A scan that is
 * refused still has the heap blocks of its current leaf page read ahead (btree); of other access
 * methods it is stock's.
 *
 * src/scan/early.c
 */
#include "postgres.h"

#include "attach/attach.h"
#include "scan/scan_int.h"

bool
la_early_ask(LaScan *ls)
{
	bool		always;
	const char *reason = la_gate_refuses_index_pages(ls->node, ls->scan, &always,
													 &ls->keeps_errors);

	if (reason == NULL)
	{
		ls->pages = always ? LA_PAGES_ALWAYS : LA_PAGES_NOW;
		ls->pages_run = la_statements_run(ls->node->state)->number;
	}
	else
	{
		ls->pages = LA_PAGES_REFUSED;
		la_stats_refuse(ls->node->state, ls->kind, ls->heaprelid, ls->indexrelid, reason);
	}
	return reason == NULL;
}

void
la_early_rescan(LaScan *ls)
{
	if (ls->pages == LA_PAGES_NOW)
		ls->pages = LA_PAGES_UNKNOWN;
}
