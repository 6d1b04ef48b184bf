/*
 * explain.c
 *	  Look-ahead in EXPLAIN (ANALYZE).
 *
 * Lines are printed below nodes that looked ahead, only with ANALYZE, and only while
 * pg_lookahead.explain is on, so that EXPLAIN without ANALYZE is the same with and without
 * the extension.  The first line has the words that PostgreSQL 19 uses for its own
 * prefetching in EXPLAIN (ANALYZE, IO); the second names the categories of
 * pg_stat_lookahead.  As usual, the text format omits empty values, and the structured
 * formats print them always.
 *
 * The figures are those of the process that prints; what parallel workers did is only in
 * pg_stat_lookahead.  Before 18, the server has no hook for this; there
 * pg_lookahead_last_statement() returns the same figures.
 *
 * src/base/explain.c
 */
#include "postgres.h"

#include "base/compat.h"
#include "base/explain.h"
#include "base/guc.h"

#ifdef LA_HAVE_EXPLAIN_HOOK
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

#define MAX_SOURCES 8

static la_explain_source sources[MAX_SOURCES];
static int	nsources = 0;

void
la_explain_register(la_explain_source source)
{
	if (nsources >= MAX_SOURCES)
		elog(ERROR, "too many sources of look-ahead figures");
	sources[nsources++] = source;
}

#ifdef LA_HAVE_EXPLAIN_HOOK

static explain_per_node_hook_type prev_per_node_hook = NULL;

/* What became of foreseen blocks. */
static const struct
{
	LaCounter	counter;
	const char *word;			/* in the text format */
	const char *label;			/* in the others */
}			figures[] = {
	{LA_BLOCKS_ISSUED, "issued", "Look-Ahead Blocks Issued"},
	{LA_BLOCKS_ON_TIME, "on-time", "Look-Ahead Blocks On Time"},
	{LA_BLOCKS_LATE, "late", "Look-Ahead Blocks Late"},
	{LA_BLOCKS_WASTED, "wasted", "Look-Ahead Blocks Wasted"},
	{LA_BLOCKS_EVICTED, "evicted", "Look-Ahead Blocks Evicted"},
	{LA_BLOCKS_CACHED, "cached", "Look-Ahead Blocks Cached"},
	{LA_BLOCKS_SKIPPED_RECENT, "recent", "Look-Ahead Blocks Skipped Recent"},
	{LA_BLOCKS_SKIPPED_SEQUENTIAL, "sequential", "Look-Ahead Blocks Skipped Sequential"},
	{LA_LEAF_PAGES_ISSUED, "leaf-pages", "Look-Ahead Leaf Pages Issued"}
};

static void
print_text(const int64 *c, double avg, ExplainState *es)
{
	ExplainIndentText(es);
	appendStringInfo(es->str, "Prefetch: avg=%.2f max=" INT64_FORMAT
					 " capacity=" INT64_FORMAT "\n",
					 avg, c[LA_DISTANCE_MAX], c[LA_DISTANCE_CAPACITY]);
	ExplainIndentText(es);
	appendStringInfo(es->str, "Look-Ahead Blocks: foreseen=" INT64_FORMAT,
					 c[LA_BLOCKS_FORESEEN]);
	for (int i = 0; i < (int) lengthof(figures); i++)
	{
		if (c[figures[i].counter] != 0)
			appendStringInfo(es->str, " %s=" INT64_FORMAT, figures[i].word,
							 c[figures[i].counter]);
	}
	appendStringInfoChar(es->str, '\n');
}

static void
print_structured(const int64 *c, double avg, ExplainState *es)
{
	ExplainPropertyFloat("Average Prefetch Distance", NULL, avg, 2, es);
	ExplainPropertyInteger("Max Prefetch Distance", NULL, c[LA_DISTANCE_MAX], es);
	ExplainPropertyInteger("Prefetch Capacity", NULL, c[LA_DISTANCE_CAPACITY], es);
	ExplainPropertyInteger("Look-Ahead Blocks Foreseen", NULL, c[LA_BLOCKS_FORESEEN], es);
	for (int i = 0; i < (int) lengthof(figures); i++)
		ExplainPropertyInteger(figures[i].label, NULL, c[figures[i].counter], es);
}

static void
explain_node(PlanState *planstate, List *ancestors, const char *relationship,
			 const char *plan_name, ExplainState *es)
{
	if (prev_per_node_hook)
		prev_per_node_hook(planstate, ancestors, relationship, plan_name, es);

	if (!es->analyze || !la_explain)
		return;

	for (int i = 0; i < nsources; i++)
	{
		const LaCounters *n = sources[i] (planstate);
		double		avg;

		if (n == NULL || n->c[LA_SCANS_ACTIVATED] == 0)
			continue;
		avg = n->c[LA_DISTANCE_SAMPLES] == 0 ? 0.0 :
			(double) n->c[LA_DISTANCE_SUM] / n->c[LA_DISTANCE_SAMPLES];
		if (es->format == EXPLAIN_FORMAT_TEXT)
			print_text(n->c, avg, es);
		else
			print_structured(n->c, avg, es);
	}
}

void
la_explain_init(void)
{
	prev_per_node_hook = explain_per_node_hook;
	explain_per_node_hook = explain_node;
}

#else							/* !LA_HAVE_EXPLAIN_HOOK */

void
la_explain_init(void)
{
}

#endif							/* LA_HAVE_EXPLAIN_HOOK */
