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
 *	PASS	Nothing is known of rows.  The caller compares two numbers for each, and calls
 *		la_ahead_next(), or rests as long as misses would be ignored.
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
 *	TOGETHER	To observe is to make visits twice.  A first stage that has seen no waits is not
 *		observed any longer than the second one, if that has had reads: they were none either.
 *	SHARED LEAF	Successive visits of the first stage to the same leaf page are one for its window.
 *	TOUCHED	Where nothing has to be read, a policy whose visits are rows tries whether
 *		aheadtouch.c makes them faster, and keeps it if so.
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

#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "base/base.h"
#include "rows/rows.h"
#include "rows/rows_int.h"
#include "window/window.h"

#define MEMORY_RELATIONS 4		/* that count for the memory's limit */
#define DOUBT_ROWS		64		/* see SKIPPED */
#define DOUBT_SHARE		4		/* one of so many is to have its turn */

/* ---- creation -------------------------------------------------------------- */

static void
init_stage(LaAhead *a, LaAheadStage *stage, bool first, const LaAheadConfig *how)
{
	Relation	rel = first && how->first_rel != NULL ? how->first_rel : how->rel;
	LaIoPolicyConfig config = la_config_reads(rel, how->takes_all, how->known_by);

	if (a->identity != 0)
	{
		LaHistoryDemand demand = la_history_demand(a->identity);

		config.read_to_end = demand.to_end;
		config.early_visits = first || demand.to_end ? 0 : demand.early_visits;
	}
	config.costly_to_observe = true;
	config.kernel_reads_near = true;
	config.order = how->order;
	config.supply_varies = how->supply_varies;
	stage->ahead = a;
	stage->first = first;
	stage->foreseen_leaf = LA_NO_BLOCK;
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
	a->ring = MemoryContextAllocZero(a->memory, LA_AHEAD_FIRST_ROWS * sizeof(LaAheadRow *));
	a->mask = LA_AHEAD_FIRST_ROWS - 1;
	a->copies = GenerationContextCreate(CurrentMemoryContext, "pg_lookahead copied rows",
										ALLOCSET_SMALL_MINSIZE, ALLOCSET_SMALL_INITSIZE,
										ALLOCSET_SMALL_MAXSIZE);
	a->deferred = LA_AHEAD_NO_ROW;
	a->max_rels = config->nrels > 0 ? config->nrels : LA_AHEAD_RELATIONS;
	a->rels = palloc(a->max_rels * sizeof(Relation));
	a->descents = palloc(a->max_rels * sizeof(LaDescent *));
	a->identity = config->takes_all ? 0 : config->identity;
	a->may_touch = config->touch != NULL;
	if (a->may_touch)
		la_cache_policy_init(&a->touch, config->touch);
	init_stage(a, &a->first, true, config);
	init_stage(a, &a->second, false, config);
	la_stats_open(&a->second.reads.counters, config->estate);
	a->second.reads.counters.c[LA_SCANS_ATTACHED] = 1;
	return a;
}

static bool
create_window(LaAhead *a, LaAheadStage *stage)
{
	LaProducer	producer = {stage, la_ahead_next_visit, la_ahead_restart};
	Size		size = la_window_size(a->rels, a->max_rels, &stage->reads.policy);

	if (stage->reads.window != NULL)
		return true;
	if (!la_budget_has(&a->budget, size))
		return false;
	la_budget_take(&a->budget, size);
	stage->reads.window = la_window_create(a->rels, a->max_rels, producer,
										   &stage->reads.policy, NULL,
										   &stage->reads.counters, &a->budget);
	return true;
}

/*
 * Add a table, or an index with the descent that is to search it, if it has one.  All are
 * temporary, or none.  Returns its number, or -1 if there is no room.
 */
int
la_ahead_add_relation(LaAhead *a, Relation rel, LaDescent *descent)
{
	int			n = a->nrels;

	if (n >= a->max_rels)
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
	return (char *) la_ahead_row_at(a, n) + MAXALIGN(sizeof(LaAheadRow));
}

/* For LaRowSource.set_key: the block of the row in a relation that has no descent. */
void
la_ahead_set_block(LaAhead *a, BlockNumber block)
{
	a->block = block;
}

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
	v->recent = InvalidBuffer;
	v->offset = FirstOffsetNumber;
	v->state = ROW_VISIT_FRESH;
	v->foreseen = false;
	v->more = 0;
	return v;
}

/* The same, of a block that is known. */
LaRowVisit *
la_ahead_add_block(LaAheadRow *row, int rel, BlockNumber block)
{
	LaRowVisit *v = la_ahead_add_visit(row, rel);

	if (v != NULL)
	{
		v->block = block;
		v->state = ROW_VISIT_KNOWN;
	}
	return v;
}

/* For LaRowSource.locate: the heap blocks of what has been found. */
void
la_ahead_add_matches(LaAhead *a, LaAheadRow *row, int rel, const LaMatches *matches,
					 const LaMatchVisits *which)
{
	BlockNumber seen = InvalidBlockNumber;
	LaRowVisit *v = NULL;
	int			n = 0;

	for (int i = 0; i < matches->count; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumberNoCheck(&matches->tids[i]);
		bool		follows = block == seen + 1 && seen != InvalidBlockNumber;

		if (block == seen)
			continue;
		seen = block;
		if (v != NULL && follows && v->more < which->most_more)
		{
			v->more++;
			continue;
		}
		if (n++ >= which->most)
			break;
		v = NULL;
		if (which->map != NULL && la_issue_all_visible(a->rels[rel], block, which->map, &a->budget))
			continue;
		v = la_ahead_add_block(row, rel, block);
		if (v == NULL)
			break;
		v->offset = ItemPointerGetOffsetNumberNoCheck(&matches->tids[i]);
	}
}

/* ---- what the caller does for each row --------------------------------------- */

/* Are the reads of rows observed, or made ahead? */
bool
la_ahead_is_active(const LaAhead *a)
{
	return a->first.reads.policy.state != LA_PASS || a->second.reads.policy.state != LA_PASS;
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
	return la_ahead_row_at(a, n);
}

/* Behaviour PASS: the server is done with a row; missed: a block was read for it. */
static void
pass(LaAhead *a, bool missed)
{
	LaIoPolicy *first = &a->first.reads.policy;
	LaIoPolicy *second = &a->second.reads.policy;

	la_io_policy_stop(first);
	la_io_policy_on_pass(second, missed);
	if (a->source.locate != NULL)
		la_io_policy_on_pass(first, second->state != LA_PASS);
}

/* Behaviour TOUCHED: the same, for the trial. */
static void
pass_touched(LaAhead *a, bool missed)
{
	if (missed)
		la_cache_policy_on_read(&a->touch);
	else
		la_cache_policy_on_hit(&a->touch, true);
	if (la_cache_policy_clock_due(&a->touch))
		la_cache_policy_on_clock(&a->touch, la_issue_clock_us());
}

/*
 * The server is done with a row, if there was one; missed: a block was read for it.  Returns true
 * if the next one is to be passed to la_ahead_turn().
 */
bool
la_ahead_next(LaAhead *a, bool missed)
{
	bool		active = la_ahead_is_active(a);

	if (a->may_touch && !la_ahead_is_armed(a))
		pass_touched(a, missed || active);
	if (!active)
		pass(a, missed);
	return a->head < a->tail || la_ahead_is_active(a) ||
		(a->may_touch && la_cache_policy_is_armed(&a->touch));
}

/* Behaviour PASS: of so many rows nothing need be known, not even whether a block was read. */
int
la_ahead_rest(const LaAhead *a)
{
	if (la_ahead_is_active(a) || la_ahead_has_rows(a))
		return 0;
	return la_io_policy_rest(&a->second.reads.policy);
}

/* So many have been passed. */
void
la_ahead_pass_rest(LaAhead *a, int rows)
{
	la_io_policy_on_rest(&a->first.reads.policy, rows);
	la_io_policy_on_rest(&a->second.reads.policy, rows);
}

/* Relations of which no visit is known may be closed until one is. */
void
la_ahead_close_others(LaAhead *a)
{
	if (a->nrels == 0)
		return;
	la_window_forget_waits(a->first.reads.window);
	la_window_forget_waits(a->second.reads.window);
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
catch_up(LaAhead *a, LaAheadStage *stage)
{
	if (stage->next.row < a->head)
		stage->next = la_ahead_start_of(a->head);
}

static void
visit_row(LaAhead *a, uint64 n, LaAheadRow *row)
{
	bool		visited = false;

	la_ahead_locate(a, n, row);
	for (int i = row->nfirst; i < row->nvisits; i++)
		visited |= la_ahead_visit(&a->second, n, i, NULL);
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

/* TOGETHER: end what is observed of the first stage, if there is no reason to go on. */
static void
observe_together(LaAhead *a)
{
	const LaIoPolicy *second = &a->second.reads.policy;
	LaIoPolicy *first = &a->first.reads.policy;

	if (first->state == LA_OBSERVE && first->slow == 0 &&
		second->state == LA_PASS && second->first_read > 0)
		la_io_policy_stop(first);
}

/* Visits from this one on will not be made. */
static void
skip_visits(LaAheadStage *stage, const LaAheadRow *row, int from, int end)
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
	const LaAheadRow *row = la_ahead_row_at(a, a->head);

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

/* Behaviour TOUCHED. */
static void
touch(LaAhead *a)
{
	bool		armed = a->may_touch && la_cache_policy_is_armed(&a->touch);

	if (armed && !a->touching)
		a->second.reads.counters.c[LA_SCANS_ACTIVATED]++;
	a->touching = armed;
	if (armed)
		la_ahead_touch_rows(a);
}

/*
 * Behaviour TURN: it is the turn of the next row, whose number is la_ahead_next_row().
 * Returns false if there is none.
 */
bool
la_ahead_turn(LaAhead *a)
{
	bool		was_known = a->head < a->tail;
	LaAheadRow *row = la_ahead_fetch_row(a, a->head);

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
		observe_together(a);
	}
	else
	{
		stop_reading(a);
		touch(a);
	}
	a->head++;
	return true;
}

/* Forget all rows that are known: the source continues elsewhere, or there are no more. */
void
la_ahead_clear(LaAhead *a)
{
	clear_windows(a);
	a->reading = false;
	a->deferred = LA_AHEAD_NO_ROW;
	a->head = a->tail;
	a->first.next = a->second.next = la_ahead_start_of(a->head);
	a->first.foreseen_leaf = LA_NO_BLOCK;
}

/* Nothing had to be read where reads were presumed: back to PASS, and no row is known. */
void
la_ahead_pause(LaAhead *a)
{
	if (a->second.reads.policy.config.force)
		return;
	la_io_policy_stop(&a->first.reads.policy);
	la_io_policy_stop(&a->second.reads.policy);
	la_ahead_clear(a);
}

/* The rows end, of which so many were taken: how far was it read, the first time? */
void
la_ahead_note_demand(const LaAhead *a, int64 taken, bool at_end)
{
	const LaScanLength *length = &a->second.reads.policy.length;

	if (a->identity != 0 && taken > 0 && length->scans == 0)
		la_history_note_demand(a->identity, la_scan_length_visits(length), !at_end);
}

/* The same, and they begin anew. */
void
la_ahead_rescan(LaAhead *a, int64 taken, bool at_end)
{
	la_ahead_note_demand(a, taken, at_end);
	if (taken > 0)
	{
		la_io_policy_rescan(&a->first.reads.policy, !at_end);
		la_io_policy_rescan(&a->second.reads.policy, !at_end);
		if (a->may_touch)
			la_cache_policy_rescan(&a->touch);
	}
	la_ahead_clear(a);
}

/* Never touch cached pages. */
void
la_ahead_refuse_touch(LaAhead *a)
{
	la_cache_policy_disable(&a->touch);
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
	la_counters_add_reads(&a->sum, &a->first.reads.counters);
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
	la_history_note(known_by, a->second.reads.policy.verdict != LA_READS_UNKNOWN ?
					a->second.reads.policy.verdict : a->first.reads.policy.verdict,
					LA_CACHE_UNKNOWN);
}

/* The same for what belongs to a statement. */
void
la_ahead_end(LaAhead *a, LaKind kind, Oid heaprelid, Oid known_by)
{
	la_stats_publish(kind, heaprelid, InvalidOid, la_ahead_counters(a));
	la_ahead_forget(a, known_by);
}
