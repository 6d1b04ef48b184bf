/*
 * explain.c
 *	  Look-ahead in EXPLAIN (ANALYZE).
 *
 * Behaviours:
 *	A. Lines are printed only under nodes that looked ahead, only with ANALYZE,
 *	   and only when pg_lookahead.explain is on: EXPLAIN without ANALYZE is
 *	   the same with and without the extension.
 *	B. The first line uses the words that PostgreSQL 19 has for its own
 *	   prefetching in EXPLAIN (ANALYZE, IO); the others name the categories of
 *	   pg_stat_lookahead.
 *	C. Text omits empty values, the structured formats print them always.
 *	D. The figures are those of this process; what parallel workers did is in
 *	   pg_stat_lookahead.
 *
 * Servers before 18 have no hook to print from: there,
 * pg_lookahead_last_statement() shows the same figures.
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

#define MAX_SOURCES 8

static la_explain_source sources[MAX_SOURCES];
static int	nsources = 0;
static explain_per_node_hook_type prev_per_node_hook = NULL;

static void
print_text(const LaCounters *n, double avg, ExplainState *es)
{
	static const struct
	{
		LaCounter	counter;
		const char *word;
	}			words[] = {
		{LA_BLOCKS_ISSUED, "issued"},
		{LA_BLOCKS_ON_TIME, "on-time"},
		{LA_BLOCKS_LATE, "late"},
		{LA_BLOCKS_WASTED, "wasted"},
		{LA_BLOCKS_CACHED, "cached"},
		{LA_BLOCKS_SKIPPED_RECENT, "recent"},
		{LA_BLOCKS_SKIPPED_SEQUENTIAL, "sequential"},
		{LA_LEAF_PAGES_ISSUED, "leaf-pages"}
	};

	ExplainIndentText(es);
	appendStringInfo(es->str, "Prefetch: avg=%.2f max=" INT64_FORMAT
					 " capacity=" INT64_FORMAT "\n",
					 avg, n->c[LA_DISTANCE_MAX], n->c[LA_DISTANCE_CAPACITY]);
	ExplainIndentText(es);
	appendStringInfo(es->str, "Look-Ahead Blocks: foreseen=" INT64_FORMAT,
					 n->c[LA_BLOCKS_FORESEEN]);
	for (int i = 0; i < (int) lengthof(words); i++)
	{
		if (n->c[words[i].counter] != 0)
			appendStringInfo(es->str, " %s=" INT64_FORMAT, words[i].word,
							 n->c[words[i].counter]);
	}
	appendStringInfoChar(es->str, '\n');
}

static void
print_structured(const LaCounters *n, double avg, ExplainState *es)
{
	static const struct
	{
		LaCounter	counter;
		const char *label;
	}			labels[] = {
		{LA_DISTANCE_MAX, "Max Prefetch Distance"},
		{LA_DISTANCE_CAPACITY, "Prefetch Capacity"},
		{LA_BLOCKS_FORESEEN, "Look-Ahead Blocks Foreseen"},
		{LA_BLOCKS_ISSUED, "Look-Ahead Blocks Issued"},
		{LA_BLOCKS_ON_TIME, "Look-Ahead Blocks On Time"},
		{LA_BLOCKS_LATE, "Look-Ahead Blocks Late"},
		{LA_BLOCKS_WASTED, "Look-Ahead Blocks Wasted"},
		{LA_BLOCKS_CACHED, "Look-Ahead Blocks Cached"},
		{LA_BLOCKS_SKIPPED_RECENT, "Look-Ahead Blocks Skipped Recent"},
		{LA_BLOCKS_SKIPPED_SEQUENTIAL, "Look-Ahead Blocks Skipped Sequential"},
		{LA_LEAF_PAGES_ISSUED, "Look-Ahead Leaf Pages Issued"}
	};

	ExplainPropertyFloat("Average Prefetch Distance", NULL, avg, 2, es);
	for (int i = 0; i < (int) lengthof(labels); i++)
		ExplainPropertyInteger(labels[i].label, NULL, n->c[labels[i].counter],
							   es);
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
			print_text(n, avg, es);
		else
			print_structured(n, avg, es);
	}
}

void
la_explain_register(la_explain_source source)
{
	if (nsources >= MAX_SOURCES)
		elog(ERROR, "too many sources of look-ahead figures");
	sources[nsources++] = source;
}

void
la_explain_init(void)
{
	prev_per_node_hook = explain_per_node_hook;
	explain_per_node_hook = explain_node;
}

#else							/* !LA_HAVE_EXPLAIN_HOOK */

void
la_explain_register(la_explain_source source)
{
}

void
la_explain_init(void)
{
}

#endif							/* LA_HAVE_EXPLAIN_HOOK */
