/*
 * aheadrows.c
 *	  The rows that are known ahead, their visits, and what the windows foresee of these.
 *
 * See ahead.c.
 *
 * src/rows/aheadrows.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "rows/rows_int.h"
#include "window/window.h"

#define MAX_MATCHES		128		/* of a key, on its leaf page */
#define MOST_ROWS		8192
#define FIRST_VISITS	4		/* of a row */
#define LEAST_NEAR		32		/* rows; see PIPELINE */

static inline bool
is_before(LaAheadPosition a, LaAheadPosition b)
{
	return a.row < b.row || (a.row == b.row && a.visit < b.visit);
}

/* Replace the ring, all of whose slots have a row, by one twice as large. */
static void
grow_ring(LaAhead *a)
{
	uint64		nslots = 2 * (a->mask + 1);
	LaAheadRow **ring = MemoryContextAllocZero(a->memory, nslots * sizeof(LaAheadRow *));

	for (uint64 n = a->head; n <= a->head + a->mask; n++)
		ring[n & (nslots - 1)] = la_ahead_row_at(a, n);
	pfree(a->ring);
	a->ring = ring;
	a->mask = nslots - 1;
}

/* Are rows to be known ahead? */
bool
la_ahead_is_armed(const LaAhead *a)
{
	return a->first.reads.policy.state == LA_ARMED || a->second.reads.policy.state == LA_ARMED;
}

/* May one more row be known?  The one whose turn it is may always be. */
static bool
has_room(LaAhead *a)
{
	uint64		known = a->tail - a->head;
	Size		used;

	if (known == 0)
		return true;
	if (!la_ahead_is_armed(a) && !a->touching)
		return false;
	used = la_budget_follow(&a->budget, a->memory, &a->accounted) +
		la_budget_follow(&a->budget, a->copies, &a->copies_accounted);
	if (!la_budget_has(&a->budget, 2 * BLCKSZ))
		return false;
	if (known <= a->mask)
		return true;
	if (known == MOST_ROWS || !la_budget_has(&a->budget, used))
		return false;
	grow_ring(a);
	return true;
}

/* The ring's place behind the last row, without visits. */
static LaAheadRow *
clear_place(LaAhead *a)
{
	LaAheadRow **place = &a->ring[a->tail & a->mask];

	if (*place == NULL)
	{
		*place = MemoryContextAllocZero(a->memory, MAXALIGN(sizeof(LaAheadRow)) +
										a->source.own_size);
		(*place)->room = FIRST_VISITS;
		(*place)->visits = MemoryContextAlloc(a->memory, FIRST_VISITS * sizeof(LaRowVisit));
	}
	(*place)->nfirst = (*place)->nvisits = 0;
	(*place)->planned = (*place)->located = false;
	return *place;
}

/*
 * The visits that the source has named are of the first stage.  Their pages will be searched, so
 * each needs a descent; what has none is left out.
 */
static void
begin_first_stage(const LaAhead *a, LaAheadRow *row)
{
	int			n = 0;

	for (int i = 0; i < row->nvisits; i++)
	{
		Assert(a->descents[row->visits[i].rel] != NULL);
		if (a->descents[row->visits[i].rel] != NULL)
			row->visits[n++] = row->visits[i];
	}
	row->nfirst = row->nvisits = n;
}

/* Row n; NULL if it cannot be known now. */
LaAheadRow *
la_ahead_fetch_row(LaAhead *a, uint64 n)
{
	LaAheadRow *row;

	Assert(n >= a->head && n <= a->tail);
	if (n < a->tail)
		row = la_ahead_row_at(a, n);
	else
	{
		if (!has_room(a))
			return NULL;
		row = clear_place(a);
		if (!a->source.fetch(a->source.arg, n))
			return NULL;
		a->tail++;
	}
	if (!row->planned)
	{
		row->planned = true;
		a->source.plan(a->source.arg, n, row);
		if (a->source.locate == NULL)
			row->located = true;
		else if (!row->located)
			begin_first_stage(a, row);
	}
	return row;
}

static bool
set_key(LaAhead *a, uint64 n, const LaRowVisit *v)
{
	MemoryContext old;
	bool		result;

	a->block = InvalidBlockNumber;
	MemoryContextReset(a->keys);
	old = MemoryContextSwitchTo(a->keys);
	result = a->source.set_key(a->source.arg, n, v);
	MemoryContextSwitchTo(old);
	return result;
}

static inline uint64
leaf_of(const LaRowVisit *v)
{
	return la_block_id(v->rel, v->block);
}

/* Behaviour SHARED LEAF: is the visit of the same leaf page as the one before it? */
static inline bool
is_shared(const LaAheadStage *stage, const LaRowVisit *v)
{
	return stage->first && leaf_of(v) == stage->foreseen_leaf;
}

/* Find the leaf page of a visit.  Returns false if it is not known. */
bool
la_ahead_find_leaf(LaAhead *a, uint64 n, LaRowVisit *v, bool may_wait)
{
	LaDescentResult result = LA_DESCENT_NOTHING;

	if (v->state >= ROW_VISIT_KNOWN)
		return v->state == ROW_VISIT_KNOWN;
	if (set_key(a, n, v))
	{
		v->block = a->block;
		result = a->descents[v->rel] == NULL ? LA_DESCENT_FOUND :
			la_descent_find_leaf(a->descents[v->rel], may_wait, &v->block);
	}
	v->state = result == LA_DESCENT_FOUND ? ROW_VISIT_KNOWN :
		result == LA_DESCENT_PENDING ? ROW_VISIT_DEFERRED : ROW_VISIT_NONE;
	if (result == LA_DESCENT_PENDING)
		a->deferred = Min(a->deferred, n);
	return result == LA_DESCENT_FOUND;
}

/*
 * Visit a block of the row, into *buffer, pinned, or for the server only if that is NULL.
 * Returns false if there is none.
 */
bool
la_ahead_visit(LaAheadStage *stage, uint64 n, int i, Buffer *buffer)
{
	LaAhead    *a = stage->ahead;
	LaRowVisit *v = &la_ahead_row_at(a, n)->visits[i];
	LaAheadPosition here = {n, i};

	if (!la_ahead_find_leaf(a, n, v, true))
		return false;
	stage->current = here;
	if (!is_before(here, stage->next))
	{
		/* ahead of the window's producer, which continues behind it */
		stage->next = here;
		stage->next.visit++;
		v->foreseen = !is_shared(stage, v);
		stage->foreseen_leaf = leaf_of(v);
	}
	if (v->foreseen)
		la_reads_visit(&stage->reads, v->rel, v->block, true, buffer);
	else
	{
		(void) la_issue_read(a->rels[v->rel], v->block, InvalidBuffer, false, false, buffer);
		if (stage->first)
			la_reads_no_visit(&stage->reads);
	}
	return true;
}

/* Search the leaf page, pinned, for the row's key, and release it. */
bool
la_ahead_search_leaf(LaAhead *a, uint64 n, LaAheadRow *row, int i, Buffer buffer)
{
	int			rel = row->visits[i].rel;
	ItemPointerData tids[MAX_MATCHES];
	LaMatches	matches = {tids, MAX_MATCHES, 0, false};
	OffsetNumber position;

	if (!set_key(a, n, &row->visits[i]))
		ReleaseBuffer(buffer);
	else if (la_descent_search_leaf(a->descents[rel], &buffer, &position))
	{
		la_descent_matches(a->descents[rel], buffer, position,
						   !TransactionStartedDuringRecovery(), &matches);
		_bt_relbuf(a->rels[rel], buffer);
	}
	return a->source.locate(a->source.arg, n, row, &matches, i == row->nfirst - 1);
}

/* The visits of the second stage are known without this one of the first. */
static void
leave_out(LaAhead *a, uint64 n, int i)
{
	LaAheadPosition here = {n, i};
	LaAheadPosition behind = {n, i + 1};
	Buffer		buffer = InvalidBuffer;

	if (!is_before(here, a->first.next))
		a->first.next = behind;
	else if (la_ahead_row_at(a, n)->visits[i].foreseen && la_ahead_visit(&a->first, n, i, &buffer))
		ReleaseBuffer(buffer);	/* the window expects it */
}

/* Make the visits of the first stage, so that those of the second are known. */
void
la_ahead_locate(LaAhead *a, uint64 n, LaAheadRow *row)
{
	LaMatches	none = {0};
	bool		known = false;

	if (row->located)
		return;
	row->located = true;
	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < row->nfirst; i++)
	{
		Buffer		buffer = InvalidBuffer;

		if (known)
			leave_out(a, n, i);
		else if (la_ahead_visit(&a->first, n, i, &buffer))
			known = la_ahead_search_leaf(a, n, row, i, buffer);
		else
			known = a->source.locate(a->source.arg, n, row, &none, i == row->nfirst - 1);
	}
}

/* Behaviour DEFERRED: look again for leaf pages of rows that are half as far away. */
static void
search_deferred(LaAhead *a)
{
	uint64		end = a->head + (a->tail - a->head) / 2;

	if (a->deferred == LA_AHEAD_NO_ROW)
		return;
	for (a->deferred = Max(a->deferred, a->head); a->deferred < end; a->deferred++)
	{
		LaAheadRow *row = la_ahead_row_at(a, a->deferred);

		for (int i = 0; row->planned && i < row->nvisits; i++)
		{
			LaRowVisit *v = &row->visits[i];

			if (v->state != ROW_VISIT_DEFERRED)
				continue;
			CHECK_FOR_INTERRUPTS();
			if (la_ahead_find_leaf(a, a->deferred, v, true))
				la_descent_issue(a->descents[v->rel], v->block);
		}
	}
}

/* PIPELINE: is this row, the second stage's next one, to wait for reads of the first stage? */
static bool
is_far_enough(const LaAhead *a, const LaAheadRow *row)
{
	uint64		known = a->tail - a->head;
	uint64		near = Max(known / Max(a->source.nearer, 1), Min(known / 2, LEAST_NEAR));

	return a->source.nearer > 0 && !row->located && a->first.reads.policy.state == LA_ARMED &&
		la_window_has_reads(a->first.reads.window) && a->second.next.row > a->head + near;
}

/* A stage's window wants one more visit. */
bool
la_ahead_next_visit(void *arg, LaForeseen *foreseen)
{
	LaAheadStage *stage = arg;
	LaAhead    *a = stage->ahead;
	LaAheadPosition *next = &stage->next;
	uint64		from = stage->first ? Max(a->second.next.row, a->head) : a->head;

	/* rows have at least one visit, as a rule */
	search_deferred(a);
	while (next->row < from + 1 + la_window_reach(stage->reads.window))
	{
		LaAheadRow *row = la_ahead_fetch_row(a, next->row);
		int			end;

		if (row == NULL || (!stage->first && is_far_enough(a, row)))
			return false;
		if (!stage->first)
			la_ahead_locate(a, next->row, row);
		next->visit = Max(next->visit, stage->first ? 0 : row->nfirst);
		end = stage->first ? row->nfirst : row->nvisits;
		while (next->visit < end)
		{
			LaRowVisit *v = &row->visits[next->visit++];

			v->foreseen = la_ahead_find_leaf(a, next->row, v, false) &&
				!is_shared(stage, v);
			if (!v->foreseen)
				continue;
			stage->foreseen_leaf = leaf_of(v);
			foreseen->rel = v->rel;
			foreseen->block = v->block;
			foreseen->more = v->more;
			foreseen->offset = v->offset;
			return true;
		}
		*next = la_ahead_start_of(next->row + 1);
	}
	return false;
}

/* The window starts over behind the visit that is being made. */
void
la_ahead_restart(void *arg)
{
	LaAheadStage *stage = arg;

	const LaAheadRow *row = la_ahead_row_at(stage->ahead, stage->current.row);

	stage->next = stage->current;
	stage->next.visit++;
	stage->foreseen_leaf = leaf_of(&row->visits[stage->current.visit]);
}
