/*
 * valueahead.c
 *	  The out-of-line values of rows that a scan will come to, read ahead.
 *
 * A row of a table has a pointer in place of a long value, which is stored in chunks in the table's
 * toast table.  The server fetches it when the value is used: a search of the toast index, and the
 * chunks' blocks, one after the other.
 *
 *		scan --> [ row | row | row | row | row | row ] --> filter, target list, client
 *				  ^ known: on cached pages		  ^ current
 *				  |
 *				  +-- value ids --> leaf pages of the toast index --> blocks of the toast table
 *													first stage		second stage  (rows/ahead.c)
 *
 * Nobody tells that a value is fetched.  But the server counts scans of the toast index, so this is
 * known of a row when the next one has its turn.
 *
 * Behaviours
 *	EVIDENCE	As long as no value is fetched, nothing is done, and before FIRST_CHECK rows, or one
 *		that needed a read, not even that is looked at.  Of FIRST_CHECK rows and of four times more,
 *		and so on, it is looked whether one was fetched; if not of IDLE_ROWS, the scan is left alone
 *		for good; nor if IDLE_TURNS rows needed reads, and none of a value.  Once some are fetched,
 *		the rows are passed on until a block is read.  From then on ahead.c decides by what reads
 *		take; where it ignores them for a number of rows, these are not looked at.
 *	DOUBT	Values that were read ahead and are not fetched (a filter on another column, CASE, a
 *		join), or only in part (substr() of values that are not compressed), are waste.  If less
 *		than half of the chunks of MOST_JUDGED rows were fetched, the scan is left alone.
 *	BOUNDED	Where not all rows of the scan will be taken, no more are known than have been, and
 *		below a LIMIT no more than will be wanted at the rate so far.
 *	KNOWN ROWS	A row is known if its page is cached, or if the scan's own look-ahead has started
 *		its read a while ago (LaComingRow.may_read).
 *	LONG VALUES	The blocks of a value follow one another, as a rule: then several of them are one
 *		visit (RUN in window/window.c), whose first one is waited for in stock.  Of the chunks on a
 *		leaf page, the first ones are read ahead, in LA_ROW_VISITS visits.  The others are behind
 *		them, as a rule, where the kernel reads ahead.
 *
 * Invariants
 *	- These are hints: the server fetches the values itself, by its own snapshot.
 *	- Errors are the server's to raise (base/attempt.c).  After one, the scan is left alone.
 *	- No lock is held and, but for reads in flight under direct I/O, no buffer pinned when a row is
 *	  returned.
 *
 * src/toast/valueahead.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/catalog.h"
#include "catalog/pg_type.h"
#include "lib/ilist.h"
#include "utils/memutils.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "btree/btree.h"
#include "rows/rows.h"
#include "toast/toast_int.h"
#include "window/window.h"

#define FIRST_CHECK		8
#define IDLE_ROWS		512
#define IDLE_TURNS		64		/* with reads, but without a value fetched */
#define SELDOM			65536	/* rows until it is looked again */
#define JUDGED_ROWS		32
#define MOST_UNOPENED	64		/* turns that find a lock taken, or a new file */
#define MOST_JUDGED		128		/* the server's loops take 50 rows at a time */

/* What is kept with a row that is known. */
typedef struct KnownRow
{
	uint64		id;				/* see LaComingRow */
	LaRowValues values;
} KnownRow;

typedef struct LaValueAhead
{
	LaFollower	follower;		/* must be first */
	LaValueScan scan;
	EState	   *estate;			/* or NULL */
	LaToastTable toast;
	LaAttemptOwner guard;
	Oid			table;

	/* BOUNDED */
	bool		bounded;
	LaDemandContext demand;
	int64		turns;

	/* EVIDENCE */
	LaToastCounts seen;			/* when the last row was returned */
	bool		any_fetched;
	int			interval;		/* rows between checks */
	int			idle_turns;
	int			unopened;		/* turns without the toast table */
	int			rest;			/* rows that are not looked at */

	/* DOUBT */
	int64		expected;		/* chunks of the last row */
	int64		sum_expected;
	int64		sum_fetched;
	int			judged;			/* rows in these sums */

	MemoryContext context;		/* of all that is made once a block is read */
	LaAhead    *ahead;			/* NULL until then */
	LaDescent  *descent;
	int			index_number;	/* in ahead */
	int			table_number;
	int			most_more;		/* LONG VALUES: blocks behind the first one */
	MemoryContextCallback callback;
	dlist_node	link;			/* in active, if ahead is set */
} LaValueAhead;

/* Those of all scans that have an LaAhead. */
static dlist_head active = DLIST_STATIC_INIT(active);

static inline KnownRow *
known(LaValueAhead *v, uint64 n)
{
	return la_ahead_own(v->ahead, n);
}

/* ---- LaRowSource ------------------------------------------------------------- */

static bool
fetch(void *arg, uint64 n)
{
	LaValueAhead *v = arg;
	KnownRow   *row = known(v, n);
	int			distance = (int) (n - la_ahead_next_row(v->ahead));
	LaComingRow coming;

	if (v->bounded && distance > 0 && !la_force &&
		!la_runahead_may_fetch(&v->demand, v->estate, distance, v->turns))
		return false;
	if (!v->scan.coming.peek(v->scan.coming.arg, distance, &coming))
		return false;
	if (v->scan.find != NULL)
		v->scan.find(v->scan.coming.arg, distance, &row->values);
	else if (!la_values_find(&v->scan.rows, &coming, &row->values))
		return false;
	row->id = coming.id;
	return true;
}

static void
plan_visits(void *arg, uint64 n, LaAheadRow *row)
{
	LaValueAhead *v = arg;

	for (int i = 0; i < known(v, n)->values.n; i++)
	{
		LaRowVisit *visit = la_ahead_add_visit(row, v->index_number);

		visit->item = i;
	}
}

static bool
set_key(void *arg, uint64 n, const LaRowVisit *visit)
{
	LaValueAhead *v = arg;

	la_descent_set(v->descent, 0, ObjectIdGetDatum(known(v, n)->values.ids[visit->item]));
	return true;
}

/* The blocks of the chunks, which are in the order of the value as a rule. */
static bool
locate(void *arg, uint64 n, LaAheadRow *row, const LaMatches *matches, bool last)
{
	LaValueAhead *v = arg;
	LaMatchVisits which = {.most = LA_ROW_VISITS,.most_more = v->most_more};

	la_ahead_add_matches(v->ahead, row, v->table_number, matches, &which);
	return last;
}

/* ---- begin and end ----------------------------------------------------------- */

/* May values of this table be read ahead at all? */
bool
la_valueahead_is_possible(Relation table)
{
	return la_enable && la_enable_toast && pgstat_track_counts &&
		OidIsValid(table->rd_rel->reltoastrelid) &&
		la_gate_is_heap(table) &&
		!RelationUsesLocalBuffers(table) && !IsCatalogRelation(table) &&
		la_gate_allows_searches();
}

static void
on_end(void *arg)
{
	LaValueAhead *v = arg;

	dlist_delete(&v->link);
	la_ahead_end(v->ahead, LA_KIND_TOAST, v->table, v->toast.index);
}

/* With the toast table open. */
static void
create_ahead(LaValueAhead *v)
{
	LaRowSource source = {
		.arg = v,
		.own_size = sizeof(KnownRow),
		.nearer = 2,
		.fetch = fetch,
		.plan = plan_visits,
		.set_key = set_key,
		.locate = locate
	};
	LaAheadConfig config = {
		.rel = v->toast.index_rel,
		.known_by = v->toast.index,
		.estate = v->estate,
		.takes_all = true,
		.supply_varies = true,	/* with the pages that are there already */
		.order = LA_ORDER_OF_TABLE
	};
	MemoryContext old;

	/* the rows of a sort are bounded by its room */
	v->bounded = v->scan.node != NULL && v->scan.find == NULL;
	if (v->bounded)
	{
		la_demand_context(v->scan.node, &v->demand);
		config.takes_all = la_runahead_takes_all(&v->demand, v->estate);
	}
	v->context = AllocSetContextCreate(v->scan.context, "pg_lookahead toast", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(v->context);
	v->descent = la_descent_create(v->toast.index_rel, v->toast.table_rel);
	v->ahead = la_ahead_create(&source, &config);
	if (v->ahead != NULL)
	{
		dlist_push_head(&active, &v->link);
		v->callback.func = on_end;
		v->callback.arg = v;
		MemoryContextRegisterResetCallback(v->context, &v->callback);
		if (la_descent_add_column(v->descent, OIDOID, InvalidOid))
		{
			v->index_number = la_ahead_add_relation(v->ahead, v->toast.index_rel, v->descent);
			v->table_number = la_ahead_add_relation(v->ahead, v->toast.table_rel, NULL);
			if (!la_aio_is_needed(v->toast.table_rel) &&
				(la_smgr_prefetches_ranges || !la_share_is_limited()))
				v->most_more = LA_RUN_BLOCKS - 1;
		}
		else
			la_ahead_refuse(v->ahead);
	}
	MemoryContextSwitchTo(old);
}

/* LaFollower.clear, under guard */
static void
forget_rows(void *arg)
{
	la_ahead_clear(((LaValueAhead *) arg)->ahead);
}

static void
follower_clear(LaFollower *follower)
{
	LaValueAhead *v = (LaValueAhead *) follower;

	v->expected = 0;
	if (v->ahead != NULL && la_ahead_has_rows(v->ahead))
		(void) la_attempt_read_with(&v->guard, forget_rows, v);
	la_attempt_rest(&v->guard);
}

static void
follower_end(LaFollower *follower)
{
	LaValueAhead *v = (LaValueAhead *) follower;

	if (v->ahead != NULL)
		(void) la_attempt_read_with(&v->guard, forget_rows, v);
	la_attempt_end(&v->guard);
}

/* ---- turns ------------------------------------------------------------------- */

/* From now on, what is fetched is known.  Under guard. */
static void
find_index(void *arg)
{
	la_toasttable_find_index(&((LaValueAhead *) arg)->toast);
}

static bool
begin(LaValueAhead *v)
{
	if (v->scan.rows.columns.n == 0 &&
		!la_toastcolumns_of_scan(&v->scan.rows.columns, (ScanState *) v->scan.node))
		return false;
	if (!la_attempt_read_with(&v->guard, find_index, v) || !OidIsValid(v->toast.index))
		return false;
	v->seen = la_toasttable_counts(&v->toast);
	return true;
}

/* Behaviour EVIDENCE: are values fetched?  Returns false if there is no hope. */
static bool
has_hope(LaValueAhead *v, bool fetched)
{
	if (fetched)
	{
		v->any_fetched = true;
		v->idle_turns = 0;
		v->follower.countdown = SELDOM;
		return true;
	}
	if (v->follower.attends)
		return true;
	if (++v->idle_turns > (v->any_fetched ? IDLE_ROWS : IDLE_TURNS))
		return false;
	if (v->follower.countdown > 0)
		return true;
	if (!v->any_fetched && v->interval >= IDLE_ROWS)
		return false;
	v->interval = v->any_fetched ? SELDOM : v->interval * 4;
	v->follower.countdown = v->interval;
	return true;
}

/* Behaviour DOUBT.  fetched: chunks, since the last row was returned */
static bool
is_worthwhile(LaValueAhead *v, int64 fetched)
{
	v->sum_fetched += fetched;
	if (v->expected == 0)
		return true;
	v->sum_expected += v->expected;
	v->expected = 0;
	if (++v->judged < JUDGED_ROWS)
		return true;
	if (v->sum_fetched < v->sum_expected / 2)
		return v->judged < MOST_JUDGED;
	v->sum_expected = v->sum_fetched = 0;
	v->judged = 0;
	return true;
}

/* With the toast table open: the current row has its turn.  Under guard. */
static void
take_turn(LaValueAhead *v)
{
	LaComingRow current;
	uint64		n = la_ahead_next_row(v->ahead);

	if (!v->scan.coming.peek(v->scan.coming.arg, 0, &current))
	{
		la_ahead_clear(v->ahead);
		return;
	}
	while (v->scan.may_skip && la_ahead_has_rows(v->ahead) && known(v, n)->id < current.id)
	{
		la_ahead_skip(v->ahead);
		n = la_ahead_next_row(v->ahead);
	}
	if (la_ahead_has_rows(v->ahead) && known(v, n)->id != current.id)
	{
		la_ahead_clear(v->ahead);
		n = la_ahead_next_row(v->ahead);
	}
	v->turns++;
	if (la_ahead_turn(v->ahead))
		v->expected = known(v, n)->values.chunks;
}

static void
work(void *arg)
{
	LaValueAhead *v = arg;

	if (!la_toasttable_open(&v->toast))
	{
		v->unopened++;
		if (v->ahead != NULL)
			la_ahead_clear(v->ahead);
		return;
	}
	if (v->ahead == NULL)
		create_ahead(v);
	if (v->ahead != NULL && (la_ahead_is_active(v->ahead) || la_ahead_has_rows(v->ahead)))
		take_turn(v);
	la_toasttable_close(&v->toast);
}

/* The next rows need not be looked at, as reads have been no waits. */
static void
rest(LaValueAhead *v)
{
	v->rest = la_ahead_rest(v->ahead);
	v->follower.rests = v->rest > 0;
	if (v->follower.rests)
		v->follower.countdown = v->rest;
}

/* They have been returned. */
static void
end_rest(LaValueAhead *v)
{
	la_ahead_pass_rest(v->ahead, v->rest);
	v->seen = la_toasttable_counts(&v->toast);
	v->expected = 0;
	v->follower.rests = false;
	v->follower.countdown = SELDOM;
}

/* Have the current row, and those that are known behind it, be looked at. */
static bool
look(LaValueAhead *v, bool fetched, bool missed)
{
	if (v->ahead == NULL && !(fetched && (missed || la_force)))
		return true;
	if (v->ahead == NULL || la_ahead_next(v->ahead, fetched && missed))
	{
		if (!la_attempt_read_with(&v->guard, work, v) || v->ahead == NULL ||
			v->unopened > MOST_UNOPENED)
			return false;
	}
	v->follower.attends = la_ahead_is_active(v->ahead) || la_ahead_has_rows(v->ahead);
	rest(v);
	return true;
}

/* LaFollower.turn */
static bool
follower_turn(LaFollower *follower)
{
	LaValueAhead *v = (LaValueAhead *) follower;
	bool		missed = la_issue_blocks_read() != follower->seen_reads;
	LaToastCounts now;
	bool		fetched;
	bool		goes_on;

	if (follower->rests)
	{
		end_rest(v);
		return true;
	}
	if (!OidIsValid(v->toast.index))
	{
		goes_on = begin(v);
		follower->countdown = v->interval = la_force ? 1 : FIRST_CHECK;
	}
	else
	{
		now = la_toasttable_counts(&v->toast);
		fetched = now.values > v->seen.values;
		goes_on = is_worthwhile(v, now.chunks - v->seen.chunks) && has_hope(v, fetched) &&
			look(v, fetched, missed);
		v->seen = now;
	}
	if (!goes_on)
		follower_end(follower);
	return goes_on;
}

/* Follow a scan that is possible. */
LaFollower *
la_valueahead_create(const LaValueScan *scan)
{
	LaValueAhead *v = MemoryContextAllocZero(scan->context, sizeof(LaValueAhead));

	v->follower.turn = follower_turn;
	v->follower.clear = follower_clear;
	v->follower.end = follower_end;
	v->scan = *scan;
	v->estate = scan->node == NULL ? NULL : scan->node->state;
	v->table = RelationGetRelid(scan->rows.table);
	v->scan.rows.toast_table = v->toast.table = scan->rows.table->rd_rel->reltoastrelid;
	v->follower.countdown = la_force ? 0 : FIRST_CHECK;
	v->follower.seen_reads = la_issue_blocks_read();
	return &v->follower;
}

/* Of a node's scan that has looked at values, for EXPLAIN; else NULL. */
const LaCounters *
la_valueahead_counters(const PlanState *node)
{
	dlist_iter	iter;

	dlist_foreach(iter, &active)
	{
		LaValueAhead *v = dlist_container(LaValueAhead, link, iter.cur);

		if (v->scan.node == node)
			return la_ahead_counters(v->ahead);
	}
	return NULL;
}
