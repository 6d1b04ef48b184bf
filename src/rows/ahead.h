/*
 * ahead.h
 *	  The blocks that rows to come will need, read ahead of their turn.
 *
 * See ahead.c.
 *
 * src/rows/ahead.h
 */
#ifndef LA_AHEAD_H
#define LA_AHEAD_H

#include "base/budget.h"
#include "rows/rowsource.h"
#include "window/issue.h"
#include "window/reads.h"

/* How to look ahead. */
typedef struct LaAheadConfig
{
	Relation	rel;			/* one of those that are visited, by whose
								 * tablespace reads are configured */
	Oid			known_by;		/* the index for which history.c may know
								 * whether they are waits */
	const EState *estate;		/* of the statement that ends no sooner, or
								 * NULL */
	bool		takes_all;		/* all rows that are known will have their
								 * turn */
	bool		supply_varies;	/* how many are known is not ours to decide */
	LaIssueOrder order;
} LaAheadConfig;

/* Which heap blocks of matches are to be visited: in their order, each once in a row. */
typedef struct LaMatchVisits
{
	int			most;			/* blocks, or with most_more runs of them */
	int			most_more;		/* successive blocks behind a visit's first
								 * one */
	LaMapPage  *map;			/* of an index-only scan, which leaves out
								 * blocks that are all-visible; or NULL */
} LaMatchVisits;

extern LaAhead *la_ahead_create(const LaRowSource *source, const LaAheadConfig *config);
extern int	la_ahead_add_relation(LaAhead *a, Relation rel, LaDescent *descent);
extern LaBudget *la_ahead_budget(LaAhead *a);
extern MemoryContext la_ahead_memory(LaAhead *a);
extern MemoryContext la_ahead_copies(LaAhead *a);
extern void la_ahead_set_block(LaAhead *a, BlockNumber block);
extern void *la_ahead_own(LaAhead *a, uint64 n);
extern LaRowVisit *la_ahead_add_visit(LaAheadRow *row, int rel);
extern LaRowVisit *la_ahead_add_block(LaAheadRow *row, int rel, BlockNumber block);
extern void la_ahead_add_matches(LaAhead *a, LaAheadRow *row, int rel, const LaMatches *matches,
								 const LaMatchVisits *which);
extern bool la_ahead_is_active(const LaAhead *a);
extern bool la_ahead_is_armed(const LaAhead *a);
extern bool la_ahead_has_rows(const LaAhead *a);
extern uint64 la_ahead_next_row(const LaAhead *a);
extern uint64 la_ahead_end_of_rows(const LaAhead *a);
extern const LaAheadRow *la_ahead_row(LaAhead *a, uint64 n);
extern void la_ahead_pass(LaAhead *a, bool missed);
extern int	la_ahead_rest(const LaAhead *a);
extern void la_ahead_pass_rest(LaAhead *a, int rows);
extern bool la_ahead_turn(LaAhead *a);
extern void la_ahead_skip(LaAhead *a);
extern void la_ahead_close_others(LaAhead *a);
extern void la_ahead_clear(LaAhead *a);
extern void la_ahead_refuse(LaAhead *a);
extern const LaCounters *la_ahead_counters(LaAhead *a);
extern void la_ahead_sum(const LaAhead *a, LaCounters *sum);
extern void la_ahead_forget(LaAhead *a, Oid known_by);
extern void la_ahead_end(LaAhead *a, LaKind kind, Oid heaprelid, Oid known_by);

#endif							/* LA_AHEAD_H */
