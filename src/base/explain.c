/*
 * explain.c
 *	  Look-ahead in EXPLAIN (ANALYZE).
 *
 * Lines are printed below nodes that looked ahead, only with ANALYZE, and only while
 * pg_lookahead.explain is on, so that EXPLAIN without ANALYZE is the same with and without
 * the extension.  The first line has the words that PostgreSQL 19 uses for its own
 * prefetching in EXPLAIN (ANALYZE, IO), and so has the line that is printed with IO only; the last
 * one names the categories of pg_stat_lookahead.  As usual, the text format omits empty values,
 * and the structured formats print them always.
 *
 * What is not known is left out: how many requests were in progress where several blocks were
 * asked for by one, and all of the I/O where the server makes the reads of pages that were advised.
 * A node whose own stream the server describes has other names in front of ours, so that no name
 * is there twice.
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

/* x / n, or 0 if there are none */
static double
average(int64 x, int64 n)
{
	return n == 0 ? 0.0 : (double) x / n;
}

static double
average_distance(const int64 *c)
{
	return average(c[LA_DISTANCE_SUM], c[LA_DISTANCE_SAMPLES]);
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

/* Of each request, or of none, it is known how many were in progress. */
static bool
knows_progress(const int64 *c)
{
	return c[LA_IO_SAMPLES] == c[LA_IO_COUNT];
}

static void
append_requests(StringInfo str, const int64 *c)
{
	appendStringInfo(str, "I/O: count=" INT64_FORMAT " waits=" INT64_FORMAT " size=%.2f",
					 c[LA_IO_COUNT], c[LA_IO_WAITS],
					 average(c[LA_IO_BLOCKS], c[LA_IO_COUNT]));
	if (knows_progress(c))
		appendStringInfo(str, " in-progress=%.2f",
						 average(c[LA_IO_IN_PROGRESS], c[LA_IO_COUNT]));
}

/* part: of the node; stream: the same, in front of the words that the server has too. */
static void
print_text(const int64 *c, const char *part, const char *stream, ExplainState *es)
{
	ExplainIndentText(es);
	appendStringInfoString(es->str, stream);
	append_distance(es->str, c);
	appendStringInfoChar(es->str, '\n');
	if (la_explain_io(es) && c[LA_IO_COUNT] > 0)
	{
		ExplainIndentText(es);
		appendStringInfoString(es->str, stream);
		append_requests(es->str, c);
		appendStringInfoChar(es->str, '\n');
	}
	ExplainIndentText(es);
	appendStringInfoString(es->str, part);
	append_blocks(es->str, c);
	appendStringInfoChar(es->str, '\n');
}

#define label(prefix, text) psprintf("%s%s", prefix, text)

static void
print_requests(const int64 *c, const char *stream, ExplainState *es)
{
	ExplainPropertyInteger(label(stream, "I/O Count"), NULL, c[LA_IO_COUNT], es);
	ExplainPropertyInteger(label(stream, "I/O Waits"), NULL, c[LA_IO_WAITS], es);
	ExplainPropertyFloat(label(stream, "Average I/O Size"), NULL,
						 average(c[LA_IO_BLOCKS], c[LA_IO_COUNT]), 3, es);
	if (knows_progress(c))
		ExplainPropertyFloat(label(stream, "Average I/Os In Progress"), NULL,
							 average(c[LA_IO_IN_PROGRESS], c[LA_IO_COUNT]), 3, es);
}

static void
print_structured(const int64 *c, const char *part, const char *stream, ExplainState *es)
{
	bool		was_counted = c[LA_IO_COUNT] > 0 ||
		c[LA_BLOCKS_ISSUED] + c[LA_LEAF_PAGES_ISSUED] == 0;

	ExplainPropertyFloat(label(stream, "Average Prefetch Distance"), NULL,
						 average_distance(c), 3, es);
	ExplainPropertyInteger(label(stream, "Max Prefetch Distance"), NULL, c[LA_DISTANCE_MAX], es);
	ExplainPropertyInteger(label(stream, "Prefetch Capacity"), NULL, c[LA_DISTANCE_CAPACITY], es);
	if (la_explain_io(es) && was_counted)
		print_requests(c, stream, es);
	ExplainPropertyInteger(label(part, "Look-Ahead Blocks Foreseen"), NULL,
						   c[LA_BLOCKS_FORESEEN], es);
	for (int i = 0; i < (int) lengthof(figures); i++)
		ExplainPropertyInteger(label(part, figures[i].label), NULL, c[figures[i].counter], es);
}

#undef label

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
		const char *part = sources[i].part;
		const char *stream = part[0] == '\0' && la_explain_has_stream(planstate, es) ?
			"Look-Ahead " : part;

		if (n == NULL || n->c[LA_SCANS_ACTIVATED] == 0)
			continue;
		if (es->format == EXPLAIN_FORMAT_TEXT)
			print_text(n->c, part, stream, es);
		else
			print_structured(n->c, part, stream, es);
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
