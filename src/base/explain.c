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
 * pg_stat_lookahead.
 *
 * Before 18, the server has no hook for this.  There pg_lookahead_last_statement() returns the
 * same figures, and pg_lookahead_explain() has EXPLAIN print a plan and the same lines, with the
 * names of their nodes, below it.
 *
 * src/base/explain.c
 */
#include "postgres.h"

#include "executor/spi.h"
#include "funcapi.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "base/base.h"
#include "base/compat.h"

#ifdef LA_HAVE_EXPLAIN_HOOK
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

#define MAX_SOURCES 16

/* before 16, PG_FUNCTION_INFO_V1 does not make the function itself visible */
extern PGDLLEXPORT Datum pg_lookahead_explain(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(pg_lookahead_explain);

static struct
{
	la_explain_source figures;
	const char *part;			/* words before the labels, or "" */
}			sources[MAX_SOURCES];
static int	nsources = 0;

/* Figures of a part of what a node does, which has lines of its own: "Toast ". */
void
la_explain_register_part(la_explain_source source, const char *part)
{
	if (nsources >= MAX_SOURCES)
		elog(ERROR, "too many sources of look-ahead figures");
	sources[nsources].figures = source;
	sources[nsources++].part = part;
}

void
la_explain_register(la_explain_source source)
{
	la_explain_register_part(source, "");
}

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
	{LA_BLOCKS_NOT_STARTED, "not-started", "Look-Ahead Blocks Not Started"},
	{LA_BLOCKS_CACHED, "cached", "Look-Ahead Blocks Cached"},
	{LA_BLOCKS_SKIPPED_RECENT, "recent", "Look-Ahead Blocks Skipped Recent"},
	{LA_BLOCKS_SKIPPED_SEQUENTIAL, "sequential", "Look-Ahead Blocks Skipped Sequential"},
	{LA_LEAF_PAGES_ISSUED, "leaf-pages", "Look-Ahead Leaf Pages Issued"}
};

static double
average_distance(const int64 *c)
{
	return c[LA_DISTANCE_SAMPLES] == 0 ? 0.0 :
		(double) c[LA_DISTANCE_SUM] / c[LA_DISTANCE_SAMPLES];
}

static void
append_distance(StringInfo str, const int64 *c)
{
	appendStringInfo(str, "Prefetch: avg=%.2f max=" INT64_FORMAT
					 " capacity=" INT64_FORMAT,
					 average_distance(c), c[LA_DISTANCE_MAX], c[LA_DISTANCE_CAPACITY]);
}

static void
append_blocks(StringInfo str, const int64 *c)
{
	appendStringInfo(str, "Look-Ahead Blocks: foreseen=" INT64_FORMAT,
					 c[LA_BLOCKS_FORESEEN]);
	for (int i = 0; i < (int) lengthof(figures); i++)
	{
		if (c[figures[i].counter] != 0)
			appendStringInfo(str, " %s=" INT64_FORMAT, figures[i].word,
							 c[figures[i].counter]);
	}
}

#ifdef LA_HAVE_EXPLAIN_HOOK

static explain_per_node_hook_type prev_per_node_hook = NULL;

static void
print_text(const int64 *c, const char *part, ExplainState *es)
{
	ExplainIndentText(es);
	appendStringInfoString(es->str, part);
	append_distance(es->str, c);
	appendStringInfoChar(es->str, '\n');
	ExplainIndentText(es);
	appendStringInfoString(es->str, part);
	append_blocks(es->str, c);
	appendStringInfoChar(es->str, '\n');
}

static void
print_structured(const int64 *c, const char *part, ExplainState *es)
{
#define label(text) psprintf("%s%s", part, text)
	ExplainPropertyFloat(label("Average Prefetch Distance"), NULL, average_distance(c), 2, es);
	ExplainPropertyInteger(label("Max Prefetch Distance"), NULL, c[LA_DISTANCE_MAX], es);
	ExplainPropertyInteger(label("Prefetch Capacity"), NULL, c[LA_DISTANCE_CAPACITY], es);
	ExplainPropertyInteger(label("Look-Ahead Blocks Foreseen"), NULL, c[LA_BLOCKS_FORESEEN], es);
	for (int i = 0; i < (int) lengthof(figures); i++)
		ExplainPropertyInteger(label(figures[i].label), NULL, c[figures[i].counter], es);
#undef label
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
		const LaCounters *n = sources[i].figures(planstate);

		if (n == NULL || n->c[LA_SCANS_ACTIVATED] == 0)
			continue;
		if (es->format == EXPLAIN_FORMAT_TEXT)
			print_text(n->c, sources[i].part, es);
		else
			print_structured(n->c, sources[i].part, es);
	}
}

/* The lines are in the plan. */
static void
put_nodes(ReturnSetInfo *result, int first)
{
}

void
la_explain_init(void)
{
	prev_per_node_hook = explain_per_node_hook;
	explain_per_node_hook = explain_node;
}

#else							/* !LA_HAVE_EXPLAIN_HOOK */

static void put_line(ReturnSetInfo *result, const char *line);

/* Lines for the nodes of the statement that have ended since there were so many. */
static void
put_nodes(ReturnSetInfo *result, int first)
{
	for (int i = first; la_explain && i < la_stats_last_count(); i++)
	{
		char	   *name;
		const LaCounters *counters = la_stats_last_node(i, &name);
		StringInfoData line;

		if (counters->c[LA_SCANS_ACTIVATED] == 0)
			continue;
		put_line(result, psprintf("Look-Ahead of %s", name));
		initStringInfo(&line);
		appendStringInfoString(&line, "  ");
		append_distance(&line, counters->c);
		put_line(result, line.data);
		resetStringInfo(&line);
		appendStringInfoString(&line, "  ");
		append_blocks(&line, counters->c);
		put_line(result, line.data);
	}
}

void
la_explain_init(void)
{
}

#endif							/* LA_HAVE_EXPLAIN_HOOK */

/* ---- pg_lookahead_explain() ----------------------------------------------------- */

static void
put_line(ReturnSetInfo *result, const char *line)
{
	Datum		value = CStringGetTextDatum(line);
	bool		null = false;

	tuplestore_putvalues(result->setResult, result->setDesc, &value, &null);
}

/* Execute a statement by EXPLAIN (ANALYZE, BUFFERS), and return its lines. */
Datum
pg_lookahead_explain(PG_FUNCTION_ARGS)
{
	char	   *query = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int			first;

	if (list_length(pg_parse_query(query)) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("exactly one statement can be explained at a time")));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);

	first = la_stats_last_count();
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute(psprintf("EXPLAIN (ANALYZE, BUFFERS) %s", query), false, 0) < 0 ||
		SPI_tuptable == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the statement cannot be explained")));
	for (uint64 i = 0; i < SPI_processed; i++)
		put_line(rsinfo, SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1));
	put_nodes(rsinfo, first);
	SPI_finish();
	return (Datum) 0;
}
