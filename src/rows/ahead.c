/*
 * ahead.c
 *	  The blocks that rows to come will need, read ahead of their turn.
 *
 *	source --> [ row | row | row | row | row | row ] --> the server writes or reads the row,
 *	            tail    ^             ^        ^ head     or repeats a plan for it
 *	             first stage's    they are     second stage's blocks are visited,
 *	             leaf pages are   searched     the row is handed over
 *	             found, issued
 *
 * A row has visits, each of a block of an index or a table.  Those of the second stage are what
 * the server will need at last: the leaf page of each index that gets an entry, or the heap blocks
 * of the rows that a key finds.  The first stage is for keys that have to be looked up before that
 * is known: in the index that decides about a conflict, in that of a toast table, or in those that
 * a plan searches.  Most writes have no first stage.
 *
 * Behaviours
 *	PASS	Nothing is known of rows.  The caller compares two numbers for each.
 *	TURN	When a row's turn comes, its blocks are visited first: read into shared buffers, timed,
 *		and released.  With enable_btree_insert, inserts are told which leaf pages these are.  The
 *		server may need fewer of those of the second stage, or fail before it comes to them: one
 *		that cannot be read is left to it.
 *	DEFERRED	Where an inner page of an index is not cached, its read is started, and the leaf
 *		page looked for again when the row is half as far away, and issued without the window.
 *	PIPELINE	The second stage may stay in the nearest part of the rows (`nearer`), where they are
 *		few, or as a lot of it searches leaf pages in one go, whose reads are to be done by then.
 *	LOT		To start the read of each scattered leaf page takes more of the processor's time than a
 *		fast disk needs for it.  So, as soon as waits are proven, the windows issue lots of them in
 *		the order of the index (window/lot.c), for thousands of rows, if the source has as many.
 *	SKIPPED	A row may prove to have no turn.  Where three of four do, look-ahead ends for a while.
 *
 * Memory.  A row takes about 100 bytes here and 64 for each visit in its window, and its source
 * copies it.  Each relation that is visited may have scan_memory, but not more than
 * MEMORY_RELATIONS of them.  The ring doubles as long as the rows of the new half will have room.
 *
 * Invariants
 *	- These are hints: where a page is split, or a row changed, a block was read in vain.
 *	- A window gets the visits that its producer named (`foreseen`), in that order, and no others.
 *	- No buffer is pinned and no lock held when a row is fetched or handed over.
 *
 * src/rows/ahead.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "base/guc.h"
#include "rows/ahead.h"
#include "window/config.h"
#include "window/history.h"
#include "window/issue.h"

#define MAX_MATCHES		128		/* of a key, on its leaf page */
#define FIRST_ROWS		128		/* known ahead; a power of 2 */
#define MOST_ROWS		8192
#define FIRST_VISITS	4		/* of a row */
#define MEMORY_RELATIONS 4		/* that count for the memory's limit */
#define LEAST_NEAR		32		/* rows; see PIPELINE */
#define NO_ROW			PG_UINT64_MAX
#define DOUBT_ROWS		64		/* see SKIPPED */
#define DOUBT_SHARE		4		/* one of so many is to have its turn */

typedef struct Position
{
	uint64		row;
	int			visit;
} Position;

typedef struct Stage
{
	LaAhead    *ahead;
	bool		first;
	LaReads		reads;
	Position	next;			/* to be foreseen */
	Position	current;		/* being visited */
} Stage;

struct LaAhead
{
	LaRowSource source;
	LaBudget	budget;
	MemoryContext keys;			/* of the key that is being searched for */
	BlockNumber block;			/* see la_ahead_set_block() */
	int			nrels;
	Relation	rels[LA_AHEAD_RELATIONS];
	LaDescent  *descents[LA_AHEAD_RELATIONS];
	Stage		first;
	Stage		second;
	bool		reading;		/* through the windows */
	uint64		deferred;		/* none is in state DEFERRED before it */
	uint64		head;			/* the row whose turn is next */
	uint64		tail;			/* the row to be fetched next */
	int			taken;			/* rows known ahead that had their turn */
	int			skipped;		/* ... that had none */
	MemoryContext memory;		/* of the ring and its rows */
	MemoryContext copies;		/* see la_ahead_copies() */
	Size		accounted;		/* what of both was taken from the budget */
	Size		copies_accounted;
	uint64		mask;			/* of the ring's slots */
	LaAheadRow **ring;			/* rows stay where they are when it grows */
	LaCounters	sum;			/* of both stages, see la_ahead_counters() */
};

static bool next_visit(void *arg, LaForeseen *visit);
static void restart(void *arg);

static inline LaAheadRow *
row_at(LaAhead *a, uint64 n)
{
	return a->ring[n & a->mask];
}

static inline Position
start_of(uint64 row)
{
	Position	p = {row, 0};

	return p;
}

static inline bool
is_before(Position a, Position b)
{
	return a.row < b.row || (a.row == b.row && a.visit < b.visit);
}

/* ---- creation -------------------------------------------------------------- */

static void
init_stage(LaAhead *a, Stage *stage, bool first, const LaAheadConfig *how)
{
	LaIoPolicyConfig config = la_config_reads(how->rel, how->takes_all, how->known_by);

	config.costly_to_observe = true;
	config.kernel_reads_near = true;
	config.order = how->order;
	config.supply_varies = how->supply_varies;
	stage->ahead = a;
	stage->first = first;
	stage->reads.rels = a->rels;
	la_io_policy_init(&stage->reads.policy, &config);
}

/* Created in the current memory context.  NULL if the budget has no room. */
LaAhead *
la_ahead_create(const LaRowSource *source, const LaAheadConfig *config)
{
	LaBudget	budget = {.limit = (Size) la_scan_memory * 1024};
	LaAhead    *a;

	if (!la_budget_has(&budget, sizeof(LaAhead)))
		return NULL;
	a = palloc0(sizeof(LaAhead));
	a->budget = budget;
	la_budget_take(&a->budget, sizeof(LaAhead));
	a->source = *source;
	a->keys = AllocSetContextCreate(CurrentMemoryContext, "pg_lookahead keys",
									ALLOCSET_SMALL_SIZES);
	a->memory = AllocSetContextCreate(CurrentMemoryContext, "pg_lookahead rows",
									  ALLOCSET_DEFAULT_SIZES);
	a->ring = MemoryContextAllocZero(a->memory, FIRST_ROWS * sizeof(LaAheadRow *));
	a->mask = FIRST_ROWS - 1;
	a->copies = GenerationContextCreate(CurrentMemoryContext, "pg_lookahead copied rows",
										ALLOCSET_SMALL_MINSIZE, ALLOCSET_SMALL_INITSIZE,
										ALLOCSET_SMALL_MAXSIZE);
	a->deferred = NO_ROW;
	init_stage(a, &a->first, true, config);
	init_stage(a, &a->second, false, config);
	la_stats_open(&a->second.reads.counters, config->estate);
	a->second.reads.counters.c[LA_SCANS_ATTACHED] = 1;
	return a;
}

static bool
create_window(LaAhead *a, Stage *stage)
{
	LaProducer	producer = {stage, next_visit, restart};
	Size		size = la_window_size(a->rels, LA_AHEAD_RELATIONS, &stage->reads.policy);

	if (stage->reads.window != NULL)
		return true;
	if (!la_budget_has(&a->budget, size))
		return false;
	la_budget_take(&a->budget, size);
	stage->reads.window = la_window_create(a->rels, LA_AHEAD_RELATIONS, producer,
										   &stage->reads.policy, NULL,
										   &stage->reads.counters, &a->budget);
	return true;
}

/*
 * Add a table, or an index with the descent that is to search it, if it has one.  Neither is
 * temporary.  Returns its number, or -1 if there is no room.
 */
int
la_ahead_add_relation(LaAhead *a, Relation rel, LaDescent *descent)
{
	int			n = a->nrels;

	if (n >= LA_AHEAD_RELATIONS)
		return -1;
	a->rels[n] = rel;
	a->descents[n] = descent;
	if (n == 0 && (!create_window(a, &a->first) || !create_window(a, &a->second)))
	{
		la_ahead_refuse(a);
		return -1;
	}
	la_window_set_relation(a->first.reads.window, n, rel);
	la_window_set_relation(a->second.reads.window, n, rel);
	a->nrels++;
	a->budget.limit = (Size) la_scan_memory * 1024 * Min(a->nrels, MEMORY_RELATIONS);
	return n;
}

LaBudget *
la_ahead_budget(LaAhead *a)
{
	return &a->budget;
}

/* Where sources keep what stays when rows have passed. */
MemoryContext
la_ahead_memory(LaAhead *a)
{
	return a->memory;
}

/* Where sources copy rows to.  A copy is freed before those that were made later, or soon after. */
MemoryContext
la_ahead_copies(LaAhead *a)
{
	return a->copies;
}

/*
 * What the source keeps with row n, which is known or being fetched: own_size bytes, zero at first
 * and then what a row has left that had the place before.
 */
void *
la_ahead_own(LaAhead *a, uint64 n)
{
	return (char *) row_at(a, n) + MAXALIGN(sizeof(LaAheadRow));
}

/* For LaRowSource.set_key: the block of the row in a relation that has no descent. */
void
la_ahead_set_block(LaAhead *a, BlockNumber block)
{
	a->block = block;
}

/* ---- rows ------------------------------------------------------------------ */

/* For LaRowSource.plan and .locate.  NULL if there is no room. */
LaRowVisit *
la_ahead_add_visit(LaAheadRow *row, int rel)
{
	LaRowVisit *v;

	if (row->nvisits >= LA_ROW_VISITS)
		return NULL;
	if (row->nvisits == row->room)
	{
		row->room = Min(2 * row->room, LA_ROW_VISITS);
		row->visits = repalloc(row->visits, row->room * sizeof(LaRowVisit));
	}
	v = &row->visits[row->nvisits++];
	v->rel = rel;
	v->item = 0;
	v->block = InvalidBlockNumber;
	v->state = ROW_VISIT_FRESH;
	v->foreseen = false;
	return v;
}

/* Replace the ring, all of whose slots have a row, by one twice as large. */
static void
grow_ring(LaAhead *a)
{
	uint64		nslots = 2 * (a->mask + 1);
	LaAheadRow **ring = MemoryContextAllocZero(a->memory, nslots * sizeof(LaAheadRow *));

	for (uint64 n = a->head; n <= a->head + a->mask; n++)
		ring[n & (nslots - 1)] = row_at(a, n);
	pfree(a->ring);
	a->ring = ring;
	a->mask = nslots - 1;
}

/* Is there memory for one more row?  There always is for the one whose turn it is. */
static bool
has_room(LaAhead *a)
{
	uint64		known = a->tail - a->head;
	Size		used;

	if (known == 0)
		return true;
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

/* Row n; NULL if it cannot be known now. */
static LaAheadRow *
fetch_row(LaAhead *a, uint64 n)
{
	LaAheadRow *row;

	Assert(n >= a->head && n <= a->tail);
	if (n < a->tail)
		row = row_at(a, n);
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
			row->nfirst = row->nvisits;
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

/* Find the leaf page of a visit.  Returns false if it is not known. */
static bool
find_leaf(LaAhead *a, uint64 n, LaRowVisit *v, bool may_wait)
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
static bool
visit(Stage *stage, uint64 n, int i, Buffer *buffer)
{
	LaAhead    *a = stage->ahead;
	LaRowVisit *v = &row_at(a, n)->visits[i];
	Position	here = {n, i};

	if (!find_leaf(a, n, v, true))
		return false;
	stage->current = here;
	if (!is_before(here, stage->next))
	{
		/* ahead of the window's producer, which continues behind it */
		stage->next = here;
		stage->next.visit++;
		v->foreseen = true;
	}
	if (v->foreseen)
		la_reads_visit(&stage->reads, v->rel, v->block, true, buffer);
	else
		(void) la_issue_read(a->rels[v->rel], v->block, InvalidBuffer, false, false, buffer);
	return true;
}

/* Search the leaf page, pinned, for the row's key, and release it. */
static bool
search_leaf(LaAhead *a, uint64 n, LaAheadRow *row, int i, Buffer buffer)
{
	int			rel = row->visits[i].rel;
	ItemPointerData tids[MAX_MATCHES];
	LaMatches	matches = {tids, MAX_MATCHES, 0, false};
	OffsetNumber position;

	if (!set_key(a, n, &row->visits[i]))
		ReleaseBuffer(buffer);
	else if (la_descent_search_leaf(a->descents[rel], &buffer, &position))
	{
		la_descent_matches(a->descents[rel], buffer, position, true, &matches);
		_bt_relbuf(a->rels[rel], buffer);
	}
	return a->source.locate(a->source.arg, n, row, &matches, i == row->nfirst - 1);
}

/* The visits of the second stage are known without this one of the first. */
static void
leave_out(LaAhead *a, uint64 n, int i)
{
	Position	here = {n, i};
	Position	behind = {n, i + 1};
	Buffer		buffer = InvalidBuffer;

	if (!is_before(here, a->first.next))
		a->first.next = behind;
	else if (row_at(a, n)->visits[i].foreseen && visit(&a->first, n, i, &buffer))
		ReleaseBuffer(buffer);	/* the window expects it */
}

/* Make the visits of the first stage, so that those of the second are known. */
static void
locate(LaAhead *a, uint64 n, LaAheadRow *row)
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
		else if (visit(&a->first, n, i, &buffer))
			known = search_leaf(a, n, row, i, buffer);
		else
			known = a->source.locate(a->source.arg, n, row, &none, i == row->nfirst - 1);
	}
}

/* Behaviour DEFERRED: look again for leaf pages of rows that are half as far away. */
static void
search_deferred(LaAhead *a)
{
	uint64		end = a->head + (a->tail - a->head) / 2;

	if (a->deferred == NO_ROW)
		return;
	for (a->deferred = Max(a->deferred, a->head); a->deferred < end; a->deferred++)
	{
		LaAheadRow *row = row_at(a, a->deferred);

		for (int i = 0; row->planned && i < row->nvisits; i++)
		{
			LaRowVisit *v = &row->visits[i];

			if (v->state != ROW_VISIT_DEFERRED)
				continue;
			CHECK_FOR_INTERRUPTS();
			if (find_leaf(a, a->deferred, v, true))
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
static bool
next_visit(void *arg, LaForeseen *foreseen)
{
	Stage	   *stage = arg;
	LaAhead    *a = stage->ahead;
	Position   *next = &stage->next;
	uint64		from = stage->first ? Max(a->second.next.row, a->head) : a->head;

	/* rows have at least one visit, as a rule */
	search_deferred(a);
	while (next->row < from + 1 + la_window_reach(stage->reads.window))
	{
		LaAheadRow *row = fetch_row(a, next->row);
		int			end;

		if (row == NULL || (!stage->first && is_far_enough(a, row)))
			return false;
		if (!stage->first)
			locate(a, next->row, row);
		next->visit = Max(next->visit, stage->first ? 0 : row->nfirst);
		end = stage->first ? row->nfirst : row->nvisits;
		while (next->visit < end)
		{
			LaRowVisit *v = &row->visits[next->visit++];

			v->foreseen = find_leaf(a, next->row, v, false);
			if (!v->foreseen)
				continue;
			foreseen->rel = v->rel;
			foreseen->block = v->block;
			foreseen->offset = FirstOffsetNumber;
			return true;
		}
		*next = start_of(next->row + 1);
	}
	return false;
}

/* The window starts over behind the visit that is being made. */
static void
restart(void *arg)
{
	Stage	   *stage = arg;

	stage->next = stage->current;
	stage->next.visit++;
}

/* ---- what the caller does for each row --------------------------------------- */

/* Are rows to be passed to la_ahead_turn(), instead of la_ahead_pass()? */
bool
la_ahead_is_active(const LaAhead *a)
{
	return a->first.reads.policy.state != LA_PASS || a->second.reads.policy.state != LA_PASS;
}

/* Are rows to be known ahead? */
bool
la_ahead_is_armed(const LaAhead *a)
{
	return a->first.reads.policy.state == LA_ARMED || a->second.reads.policy.state == LA_ARMED;
}

bool
la_ahead_has_rows(const LaAhead *a)
{
	return a->head < a->tail;
}

/* The number of the row whose turn is next. */
uint64
la_ahead_next_row(const LaAhead *a)
{
	return a->head;
}

/* The number behind those of the rows that are known. */
uint64
la_ahead_end_of_rows(const LaAhead *a)
{
	return a->tail;
}

/* A row that is known, or whose turn it was last. */
const LaAheadRow *
la_ahead_row(LaAhead *a, uint64 n)
{
	return row_at(a, n);
}

/* Behaviour PASS: a row has been written; missed: a block was read for it. */
void
la_ahead_pass(LaAhead *a, bool missed)
{
	LaIoPolicy *first = &a->first.reads.policy;
	LaIoPolicy *second = &a->second.reads.policy;

	la_io_policy_stop(first);
	la_io_policy_on_pass(second, missed);
	if (a->source.locate != NULL)
		la_io_policy_on_pass(first, second->state != LA_PASS);
}

static void
clear_windows(LaAhead *a)
{
	if (a->nrels == 0)
		return;
	la_window_clear(a->first.reads.window);
	la_window_clear(a->second.reads.window);
}

/* Clear the windows when they are no longer used: what they hold gets stale. */
static void
stop_reading(LaAhead *a)
{
	if (!a->reading)
		return;
	a->reading = false;
	clear_windows(a);
}

/* Have the producers skip rows that were handed over. */
static void
catch_up(LaAhead *a, Stage *stage)
{
	if (stage->next.row < a->head)
		stage->next = start_of(a->head);
}

static void
visit_row(LaAhead *a, uint64 n, LaAheadRow *row)
{
	bool		visited = false;

	locate(a, n, row);
	for (int i = row->nfirst; i < row->nvisits; i++)
		visited |= visit(&a->second, n, i, NULL);
	if (row->nfirst == 0)
		la_reads_no_visit(&a->first.reads);
	if (!visited)
		la_reads_no_visit(&a->second.reads);
}

/* Behaviour SKIPPED: a row that was known has had its turn, or none. */
static void
note_turn(LaAhead *a, bool taken)
{
	if (taken)
		a->taken++;
	else
		a->skipped++;
	if (a->taken + a->skipped < DOUBT_ROWS)
		return;
	if (a->skipped > (DOUBT_SHARE - 1) * a->taken && !a->second.reads.policy.config.force)
	{
		la_io_policy_hold_off(&a->first.reads.policy);
		la_io_policy_hold_off(&a->second.reads.policy);
	}
	a->taken /= 2;
	a->skipped /= 2;
}

/* Visits from this one on will not be made. */
static void
skip_visits(Stage *stage, const LaAheadRow *row, int from, int end)
{
	for (int i = from; i < end; i++)
	{
		const LaRowVisit *v = &row->visits[i];

		if (v->foreseen)
			la_window_skip(stage->reads.window, v->rel, v->block);
	}
}

/* The next row, which is known, will not have a turn. */
void
la_ahead_skip(LaAhead *a)
{
	const LaAheadRow *row = row_at(a, a->head);

	if (a->nrels > 0)
	{
		if (!row->located)
			skip_visits(&a->first, row, 0, row->nfirst);
		skip_visits(&a->second, row, row->nfirst, row->nvisits);
	}
	a->head++;
	note_turn(a, false);
	catch_up(a, &a->first);
	catch_up(a, &a->second);
}

/*
 * Behaviour TURN: it is the turn of the next row, whose number is la_ahead_next_row().
 * Returns false if there is none.
 */
bool
la_ahead_turn(LaAhead *a)
{
	bool		was_known = a->head < a->tail;
	LaAheadRow *row = fetch_row(a, a->head);

	if (row == NULL)
		return false;
	if (was_known)
		note_turn(a, true);
	catch_up(a, &a->first);
	catch_up(a, &a->second);
	if (la_ahead_is_active(a))
	{
		if (la_ahead_is_armed(a) && !a->reading)
		{
			a->second.reads.counters.c[LA_SCANS_ACTIVATED]++;
			a->reading = true;
		}
		visit_row(a, a->head, row);
	}
	else
		stop_reading(a);
	a->head++;
	return true;
}

/* Forget all rows that are known: the source continues elsewhere, or there are no more. */
void
la_ahead_clear(LaAhead *a)
{
	clear_windows(a);
	a->reading = false;
	a->deferred = NO_ROW;
	a->head = a->tail;
	a->first.next = a->second.next = start_of(a->head);
}

/* Never look ahead. */
void
la_ahead_refuse(LaAhead *a)
{
	la_io_policy_disable(&a->first.reads.policy);
	la_io_policy_disable(&a->second.reads.policy);
}

const LaCounters *
la_ahead_counters(LaAhead *a)
{
	a->sum = a->second.reads.counters;
	a->sum.c[LA_LEAF_PAGES_ISSUED] = a->first.reads.counters.c[LA_BLOCKS_ISSUED];
	la_counters_add_times(&a->sum, &a->first.reads.counters);
	return &a->sum;
}

/* All counters of both stages. */
void
la_ahead_sum(const LaAhead *a, LaCounters *sum)
{
	for (int i = 0; i < LA_NUM_COUNTERS; i++)
		sum->c[i] = a->first.reads.counters.c[i] + a->second.reads.counters.c[i];
	sum->statement = NULL;
}

/* Its memory is freed. */
void
la_ahead_forget(LaAhead *a, Oid known_by)
{
	la_budget_end(&a->budget);
	la_history_note(known_by, a->second.reads.policy.verdict, LA_CACHE_UNKNOWN);
}

/* The same for what belongs to a statement. */
void
la_ahead_end(LaAhead *a, LaKind kind, Oid heaprelid, Oid known_by)
{
	la_stats_publish(kind, heaprelid, InvalidOid, la_ahead_counters(a));
	la_ahead_forget(a, known_by);
}
