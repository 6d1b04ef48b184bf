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
#include "btree/descent.h"
#include "window/reads.h"

#define LA_AHEAD_RELATIONS	512 /* of the tables and indexes of a statement */
#define LA_ROW_VISITS		96	/* of one row, at most */

typedef enum LaRowVisitState
{
	ROW_VISIT_FRESH,			/* the leaf page of the row's key in an index */
	ROW_VISIT_DEFERRED,			/* ... for which an inner page is being read */
	ROW_VISIT_KNOWN,			/* the block is known */
	ROW_VISIT_NONE				/* there is none */
} LaRowVisitState;

typedef struct LaRowVisit
{
	BlockNumber block;
	uint16		rel;			/* see la_ahead_add_relation() */
	uint8		item;			/* the source's own: which of the row's keys */
	uint8		state;			/* a LaRowVisitState */
	bool		foreseen;		/* by its stage's window */
} LaRowVisit;

/* The visits of a row: those of the first stage, and those of the second. */
typedef struct LaAheadRow
{
	uint8		nfirst;
	uint8		nvisits;		/* of both */
	uint8		room;			/* for visits */
	bool		planned;		/* those of the first stage are there */
	bool		located;		/* ... and of the second */
	LaRowVisit *visits;
} LaAheadRow;

/* Where rows come from.  They are numbered from 0, and numbers are not used again. */
typedef struct LaRowSource
{
	void	   *arg;
	Size		own_size;		/* see la_ahead_own() */
	uint8		nearer;			/* the second stage stays in the nearest of so
								 * many parts of the rows; 0: see PIPELINE */

	/* makes row n known, the next one; false if it cannot be known now */
	bool		(*fetch) (void *arg, uint64 n);

	/*
	 * Names the row's visits: of the first stage, or of the second if there
	 * is no first.  A row that needs no first stage, where others do, sets
	 * `located`, and its visits are of the second.
	 */
	void		(*plan) (void *arg, uint64 n, LaAheadRow *row);

	/*
	 * Sets the key of a row's visit in the index's descent, or its block with
	 * la_ahead_set_block() where there is none; false if the row has no key.
	 */
	bool		(*set_key) (void *arg, uint64 n, const LaRowVisit *visit);

	/*
	 * Names the row's visits of the second stage, given what its visit of the
	 * first stage has found.  Called for each of those until it returns true;
	 * NULL without a first stage.
	 */
	bool		(*locate) (void *arg, uint64 n, LaAheadRow *row,
						   const LaMatches *matches, bool last);
} LaRowSource;

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

typedef struct LaAhead LaAhead;

extern LaAhead *la_ahead_create(const LaRowSource *source, const LaAheadConfig *config);
extern int	la_ahead_add_relation(LaAhead *a, Relation rel, LaDescent *descent);
extern LaBudget *la_ahead_budget(LaAhead *a);
extern MemoryContext la_ahead_memory(LaAhead *a);
extern MemoryContext la_ahead_copies(LaAhead *a);
extern void la_ahead_set_block(LaAhead *a, BlockNumber block);
extern void *la_ahead_own(LaAhead *a, uint64 n);
extern LaRowVisit *la_ahead_add_visit(LaAheadRow *row, int rel);
extern bool la_ahead_is_active(const LaAhead *a);
extern bool la_ahead_is_armed(const LaAhead *a);
extern bool la_ahead_has_rows(const LaAhead *a);
extern uint64 la_ahead_next_row(const LaAhead *a);
extern uint64 la_ahead_end_of_rows(const LaAhead *a);
extern const LaAheadRow *la_ahead_row(LaAhead *a, uint64 n);
extern void la_ahead_pass(LaAhead *a, bool missed);
extern bool la_ahead_turn(LaAhead *a);
extern void la_ahead_skip(LaAhead *a);
extern void la_ahead_clear(LaAhead *a);
extern void la_ahead_refuse(LaAhead *a);
extern const LaCounters *la_ahead_counters(LaAhead *a);
extern void la_ahead_sum(const LaAhead *a, LaCounters *sum);
extern void la_ahead_forget(LaAhead *a, Oid known_by);
extern void la_ahead_end(LaAhead *a, LaKind kind, Oid heaprelid, Oid known_by);

#endif							/* LA_AHEAD_H */
