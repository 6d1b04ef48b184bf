/*
 * la_test_downlinks.c
 *	  What src/btree/downlinks.c delivers, against the leaf pages that a scan comes to.
 *
 * The module contains downlinks.c itself (see Makefile), so nothing of it has to be exported for
 * tests.
 *
 *	la_test_downlinks(query, seed, meanwhile)
 *		Executes the query, which must be an index or index-only scan, row by row.  Whenever the scan
 *		has come to another leaf page, that page is sought, and a random number of pages is asked
 *		for.  `meanwhile` is a statement that is executed after that, if it is not empty; then pages
 *		may be split and deleted, and only what does not depend on that is checked.  Returns
 *
 *		pages		that the scan has come to
 *		delivered	pages
 *		wrong		delivered pages that are not the next ones of the leaf level, and the first one
 *		missed		pages that the scan has come to, but that were not delivered before, although
 *					all that were asked for were
 *		beyond		pages delivered behind the last one of the scan
 *
 * test/modules/downlinks/la_test_downlinks.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/relscan.h"
#include "common/pg_prng.h"
#include "executor/execdesc.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "btree/btree_int.h"
#include "window/window.h"

PG_MODULE_MAGIC;

/* The gate is not here: all that is compared in this test may be. */
const char *
la_gate_refuses_comparison(Oid function, Oid type)
{
	return NULL;
}

bool
la_collation_is_silent(Oid collation)
{
	return true;
}

PG_FUNCTION_INFO_V1(la_test_downlinks);

#define MOST_AHEAD 500

typedef struct Test
{
	Relation	index;
	LaDownlinks *downlinks;
	bool		changing;		/* the index, meanwhile */

	BlockNumber *chain;			/* all leaf pages in the scan's direction */
	int			nchain;
	int			at;				/* where in the chain the scan is */

	BlockNumber ahead[2 * MOST_AHEAD];	/* delivered, not yet come to */
	int			nahead;
	bool		exhausted;		/* no more are known */

	int			pages;
	int			delivered;
	int			wrong;
	char	   *first_wrong;
	int			missed;
} Test;

/* What downlinks.c takes from the window: reads cannot be started here. */
LaIssueResult
la_issue_block(Relation rel, BlockNumber block, Buffer *recent)
{
	*recent = InvalidBuffer;
	return LA_ISSUE_STARTED;
}

bool
la_issue_exists(Relation rel, BlockNumber block, BlockNumber *known_size)
{
	return block < RelationGetNumberOfBlocks(rel);
}

static void
read_chain(Test *t, ScanDirection dir)
{
	Relation	index = t->index;
	Buffer		buffer = _bt_get_endpoint(index, 0, false
#if PG_VERSION_NUM < 170000
										  ,NULL
#endif
		);

	t->chain = palloc(RelationGetNumberOfBlocks(index) * sizeof(BlockNumber));
	t->nchain = 0;
	while (BufferIsValid(buffer))
	{
		BTPageOpaque opaque = BTPageGetOpaque(BufferGetPage(buffer));

		if (!P_IGNORE(opaque))
			t->chain[t->nchain++] = BufferGetBlockNumber(buffer);
		if (P_RIGHTMOST(opaque))
		{
			_bt_relbuf(index, buffer);
			break;
		}
		buffer = _bt_relandgetbuf(index, buffer, opaque->btpo_next, BT_READ);
	}
	for (int i = 0; ScanDirectionIsBackward(dir) && i < t->nchain / 2; i++)
	{
		BlockNumber other = t->chain[i];

		t->chain[i] = t->chain[t->nchain - 1 - i];
		t->chain[t->nchain - 1 - i] = other;
	}
}

static int
place_in_chain(Test *t, BlockNumber page)
{
	for (int i = 0; i < t->nchain; i++)
	{
		if (t->chain[i] == page)
			return i;
	}
	return -1;
}

static void
complain(Test *t, char *what)
{
	t->wrong++;
	if (t->first_wrong == NULL)
		t->first_wrong = what;
}

/* Was the page delivered?  If so, forget it and those before it. */
static bool
take_delivered(Test *t, BlockNumber page)
{
	for (int i = 0; i < t->nahead; i++)
	{
		if (t->ahead[i] != page)
			continue;
		t->nahead -= i + 1;
		memmove(t->ahead, t->ahead + i + 1, t->nahead * sizeof(BlockNumber));
		return true;
	}
	return false;
}

/* Ask for pages until so many are ahead. */
static void
ask(Test *t, BlockNumber page, int most)
{
	while (t->nahead < most)
	{
		BlockNumber block = la_downlinks_next(t->downlinks);
		int			expected = t->at + t->nahead + 1;

		t->exhausted = block == InvalidBlockNumber;
		if (t->exhausted)
			return;
		t->delivered++;
		if (!t->changing && (expected >= t->nchain || t->chain[expected] != block))
			complain(t, psprintf("page %u after %d others behind page %u, expected %d", block,
								 t->nahead, page,
								 expected >= t->nchain ? -1 : (int) t->chain[expected]));
		t->ahead[t->nahead++] = block;
	}
}

static void
come_to(Test *t, BlockNumber page, ScanDirection dir)
{
	bool		was_exhausted = t->exhausted;
	bool		known = take_delivered(t, page);

	if (t->pages > 0 && was_exhausted && !known)
		t->missed++;
	t->pages++;
	if (random() % 50 == 0)
	{
		la_downlinks_restart(t->downlinks);
		known = false;
	}
	if (!known)
		t->nahead = 0;
	if (!la_downlinks_seek(t->downlinks, page, dir))
	{
		t->exhausted = t->changing;
		if (t->nchain > 1 && !t->changing)
			complain(t, psprintf("nothing known behind page %u", page));
		la_downlinks_restart(t->downlinks);
		t->nahead = 0;
		return;
	}
	if (!t->changing)
		t->at = place_in_chain(t, page);
	t->exhausted = false;
	ask(t, page, random() % (random() % 2 ? 4 : MOST_AHEAD));
}

static IndexScanDesc
scan_of(PlanState *ps)
{
	while (ps && !IsA(ps, IndexScanState) && !IsA(ps, IndexOnlyScanState))
		ps = outerPlanState(ps);
	if (ps == NULL)
		elog(ERROR, "the query is not an index scan");
	return IsA(ps, IndexScanState) ? ((IndexScanState *) ps)->iss_ScanDesc :
		((IndexOnlyScanState *) ps)->ioss_ScanDesc;
}

static void
run(Test *t, const char *query, const char *meanwhile)
{
	SPIPlanPtr	plan = SPI_prepare(query, 0, NULL);
	Portal		portal = plan ? SPI_cursor_open(NULL, plan, NULL, NULL, false) : NULL;
	BlockNumber page = InvalidBlockNumber;
	ScanDirection dir = NoMovementScanDirection;

	if (portal == NULL)
		elog(ERROR, "cannot execute: %s", query);
	for (;;)
	{
		IndexScanDesc scan;
		BTScanOpaque so;

		SPI_cursor_fetch(portal, true, 1);
		SPI_freetuptable(SPI_tuptable);
		if (SPI_processed == 0)
			break;
		scan = scan_of(portal->queryDesc->planstate);
		so = (BTScanOpaque) scan->opaque;
		if (so->currPos.currPage == page)
			continue;
		page = so->currPos.currPage;
		if (t->downlinks == NULL)
		{
			Plan	   *p = portal->queryDesc->planstate->plan;

			while (!IsA(p, IndexScan) && !IsA(p, IndexOnlyScan))
				p = outerPlan(p);
			dir = IsA(p, IndexScan) ? ((IndexScan *) p)->indexorderdir :
				((IndexOnlyScan *) p)->indexorderdir;
			t->index = scan->indexRelation;
			t->downlinks = la_downlinks_create(t->index, scan, CurrentMemoryContext);
			read_chain(t, dir);
		}
		come_to(t, page, dir);
		if (t->changing)
			SPI_execute(meanwhile, false, 0);
	}
	if (t->downlinks)
		la_downlinks_free(t->downlinks);
	SPI_cursor_close(portal);
}

Datum
la_test_downlinks(PG_FUNCTION_ARGS)
{
	Test		t = {0};
	TupleDesc	desc;
	Datum		values[6];
	bool		nulls[6] = {false};
	char	   *meanwhile = text_to_cstring(PG_GETARG_TEXT_PP(2));
	MemoryContext caller = CurrentMemoryContext;

	get_call_result_type(fcinfo, NULL, &desc);
	srandom(PG_GETARG_INT32(1));
	t.changing = meanwhile[0] != '\0';
	SPI_connect();
	run(&t, text_to_cstring(PG_GETARG_TEXT_PP(0)), meanwhile);
	values[0] = Int32GetDatum(t.pages);
	values[1] = Int32GetDatum(t.delivered);
	values[2] = Int32GetDatum(t.wrong);
	nulls[3] = t.first_wrong == NULL;
	if (!nulls[3])
	{
		MemoryContext old = MemoryContextSwitchTo(caller);

		values[3] = CStringGetTextDatum(t.first_wrong);
		MemoryContextSwitchTo(old);
	}
	values[4] = Int32GetDatum(t.missed);
	values[5] = Int32GetDatum(t.nahead);
	SPI_finish();
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}
