/*
 * probebatch.c
 *	  Outer rows, taken ahead, and what their look-ups are going to read.
 *
 *	outer child --> other batch:   [ row | row | ... | row ]   buckets fetched, then the first
 *						 |									   row of each chain
 *						 v	they change places
 *					current batch: [ row | row | ... | row ] --> joined one by one
 *
 * A look-up waits for memory twice: for the bucket, and for a row of its chain.  While the rows
 * of one batch are joined, both are fetched into the CPU's cache for the next batch.
 *
 * Behaviours
 *	One by one: where outer rows must not be taken early, or the table fits into the cache, no
 *		row is taken ahead.  It is looked up and joined while it is in the outer child's slot.
 *	Copies: rows of a batch are copied into slots of the outer child's own kind.  What is copied
 *		is the columns that are needed, if all of them are by value, or if the row lies in one
 *		of the PROBE_BATCH_PINS buffers that the batch keeps pinned, as far as the budget
 *		allows; otherwise the row.  Nothing is kept pinned where not all rows will be taken, as
 *		in a cursor: VACUUM would wait for it.
 *	Bounded: a batch ends at a row with which its copies exceed a quarter of scan_memory.
 *	Slow start: where the join may end before all rows are taken, batches begin with one row,
 *		and double; the first one is joined before another is taken.
 *	Deferred counts: EXPLAIN ANALYZE counts a row of the outer child when it is joined, not when
 *		it is taken.
 *	Filter first: where outer rows without a match are not returned, and the buckets are few
 *		enough to be in a cache of the CPU, filter bits are tested as soon as a row is taken, and
 *		rows that cannot match are not copied.
 *	Shared tables: in front of a parallel hash join (shared.c), rows that cannot match are
 *		returned, too, and counted by the instrumentation of the outer child itself.  Rows
 *		that are to be inserted into a shared table have only their buckets fetched.
 *
 * Source: two buffers, Munro, "Hash joins: hiding memory latency" (2019), seeds.
 *
 * src/hashjoin/probebatch.c
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/xact.h"
#include "executor/instrument.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"

#include "attach/attach.h"
#include "base/base.h"
#include "hashjoin/hashjoin_int.h"
#include "window/window.h"

/*
 * Filter first: how large the buckets may be, in sizes of the CPU's own cache.  Copies of
 * columns by value cost less.
 */
#define FILTER_FIRST_CACHES_BY_REFERENCE	8
#define FILTER_FIRST_CACHES_BY_VALUE		2

#define TUPLE_DATA_OFFSET	40	/* may lie in the next cache line */

/* ---- may rows be taken ahead? ---------------------------------------- */

/*
 * The reason why rows must not be taken, and their hash values computed, before their turn, or
 * NULL.  (For a shared table hash values are computed twice.)
 */
static const char *
refuses_rows(LaProbeBatches *b)
{
	HashJoin   *plan = (HashJoin *) b->table.node->js.ps.plan;
	List	   *keys = b->inserts ? ((Hash *) b->table.hash->ps.plan)->hashkeys :
		plan->hashkeys;
	const char *refused = la_runahead_refuses_reading(b->takes_all,
													  b->table.node->js.ps.state);

	if (refused != NULL)
		return refused;
	if (!b->takes_all && la_early_reads_may_fail())
		return "not all rows may be read, and old snapshots expire";
	refused = la_runahead_refuses_expression(&b->ahead, (Node *) keys);
	if (refused == NULL)
		refused = la_runahead_refuses_hashing(&b->ahead, plan->hashoperators);
	return refused != NULL ? refused : la_runahead_refuses_outer(&b->ahead);
}

/* In a rescan, it is checked again only if takes_all has changed. */
static bool
may_run_ahead(LaProbeBatches *b)
{
	const char *refused;

	if (b->judged && b->judged_takes_all == b->takes_all)
		return b->judged_may;
	refused = refuses_rows(b);
	if (refused != NULL && !b->judged)
		la_stats_refuse(b->table.node->js.ps.state, LA_KIND_HASH_JOIN, InvalidOid,
						InvalidOid, refused);
	b->judged = true;
	b->judged_takes_all = b->takes_all;
	b->judged_may = refused == NULL;
	return b->judged_may;
}

/* ---- taking rows ----------------------------------------------------- */

/*
 * The next outer row that can match, and how many before it cannot.  NULL at the end of the
 * outer side or, unless "until_match", when PROBE_BATCH_ROWS rows in succession cannot.
 */
static TupleTableSlot *
next_outer(LaProbeBatches *b, LaProbeRow *row, bool until_match)
{
	HashJoinState *node = b->table.node;
	ExprContext *econtext = node->js.ps.ps_ExprContext;
	TupleTableSlot *slot = node->hj_FirstOuterTupleSlot;
	uint32		skipped = b->skipped;

	if (!TupIsNull(slot))
		node->hj_FirstOuterTupleSlot = NULL;
	else
		slot = ExecProcNode(b->outer);
	for (; !TupIsNull(slot); slot = ExecProcNode(b->outer))
	{
		econtext->ecxt_outertuple = slot;
		if (la_hash_outer_row(node, econtext, &row->hash))
		{
			node->hj_OuterNotEmpty = true;
			if (!b->filter_first || la_hashtable_chain(&b->table, row->hash) != NULL)
			{
				row->can_match = true;
				row->skipped = skipped;
				b->skipped = 0;
				return slot;
			}
		}
		else if (la_hash_keeps_outer_nulls(node))
			la_nulls_keep(node->hj_HashTable, la_hash_outer_nulls(node), slot);
		skipped++;
		if (!until_match && skipped >= PROBE_BATCH_ROWS)
		{
			b->skipped = skipped;
			return NULL;
		}
	}
	b->eof = true;
	b->skipped = skipped;
	return NULL;
}

/* Shared tables: the next row, whether it can match or not. */
static TupleTableSlot *
next_for_stock(LaProbeBatches *b, LaProbeRow *row)
{
	HashJoinState *node = b->table.node;
	HashState  *hash = b->table.hash;
	ExprContext *econtext = b->inserts ? hash->ps.ps_ExprContext :
		node->js.ps.ps_ExprContext;
	TupleTableSlot *slot = b->exec_outer(b->outer);

	if (TupIsNull(slot))
	{
		b->eof = true;
		return NULL;
	}
	econtext->ecxt_outertuple = slot;
	row->can_match = b->inserts ? la_hash_inner_row(hash, econtext, &row->hash) :
		la_hash_outer_row(node, econtext, &row->hash);
	row->skipped = 0;
	return slot;
}

/* Take the row's key, where it is compared as int4; a null matches nothing. */
static inline void
take_key(const LaProbeBatches *b, LaProbeRow *row, TupleTableSlot *slot)
{
	bool		isnull;

	if (b->table.outer_key == 0)
		return;
	row->key = DatumGetInt32(slot_getattr(slot, b->table.outer_key, &isnull));
	if (isnull)
		row->can_match = false;
}

/*
 * Deferred counts: what EXPLAIN ANALYZE would have counted by now of the outer child's rows
 * if none had been taken ahead.
 *
 * ExecProcNodeInstr() counts a row when it is taken.  fill() takes back what was counted
 * for its batch, and count_rows() adds a row when it is joined; so for a join that ends early
 * EXPLAIN shows no rows that stock would not have taken.  After an error in fill() the count
 * remains too high, but EXPLAIN does not show it.
 */
static double
rows_counted(const LaProbeBatches *b)
{
	/* a row that was taken before the table was built has been counted */
	return b->outer->instrument->tuplecount -
		(TupIsNull(b->table.node->hj_FirstOuterTupleSlot) ? 0 : 1);
}

static void
count_rows(LaProbeBatches *b, double n)
{
	if (b->outer->instrument && !b->table.shared)
		b->outer->instrument->tuplecount += n;
}

/* ---- copies ---------------------------------------------------------- */

/* Is the row in a buffer that the batch keeps pinned?  One pin serves all its rows. */
static bool
share_pin(LaProbeBatches *b, LaProbeBatch *batch, TupleTableSlot *slot)
{
	int			n = batch->npins;
	Buffer		buffer = TTS_IS_BUFFERTUPLE(slot) ?
		((BufferHeapTupleTableSlot *) slot)->buffer : InvalidBuffer;

	if (!BufferIsValid(buffer))
		return false;
	if (n > 0 && batch->pins[n - 1] == buffer)
		return true;
	if (n == PROBE_BATCH_PINS || !b->takes_all || !la_gate_allows_pin(BufferIsLocal(buffer)))
		return false;
	IncrBufferRefCount(buffer);
	la_budget_take_pin(&b->budget, BufferIsLocal(buffer));
	batch->pins[n] = buffer;
	batch->npins = n + 1;
	return true;
}

static void
release_pins(LaProbeBatches *b, LaProbeBatch *batch)
{
	while (batch->npins > 0)
	{
		Buffer		buffer = batch->pins[--batch->npins];

		la_budget_return_pin(&b->budget, BufferIsLocal(buffer));
		ReleaseBuffer(buffer);
	}
}

/*
 * Copy n columns, and no row: a slot of any kind is then read like a virtual one, as long
 * as no later column is asked for.  ExecClearTuple() ends that.
 */
static void
copy_columns(TupleTableSlot *to, TupleTableSlot *from, int n)
{
	memcpy(to->tts_values, from->tts_values, n * sizeof(Datum));
	memcpy(to->tts_isnull, from->tts_isnull, n * sizeof(bool));
	to->tts_nvalid = n;
}

/*
 * The slot refers to the same row.  Copy the columns that the outer child's slot has deformed
 * already, so that they need not be deformed again.
 */
static void
copy_found_columns(TupleTableSlot *to, TupleTableSlot *from)
{
	copy_columns(to, from, from->tts_nvalid);
	to->tts_flags |= from->tts_flags & la_slot_position_flags;
	((HeapTupleTableSlot *) to)->off = ((HeapTupleTableSlot *) from)->off;
}

/* About how long is a row that has been copied as a whole? */
static Size
size_of(TupleTableSlot *slot)
{
	Size		size = 0;

	if (TTS_IS_HEAPTUPLE(slot) || TTS_IS_BUFFERTUPLE(slot))
		return ((HeapTupleTableSlot *) slot)->tuple->t_len;
	if (TTS_IS_MINIMALTUPLE(slot))
		return ((MinimalTupleTableSlot *) slot)->mintuple->t_len;
	for (int i = 0; i < slot->tts_nvalid; i++)
	{
		if (!slot->tts_isnull[i] && TupleDescAttr(slot->tts_tupleDescriptor, i)->attlen == -1)
			size += VARSIZE_ANY(DatumGetPointer(slot->tts_values[i]));
	}
	return size;
}

/* Returns how much memory the copy takes, if that is worth being counted. */
static Size
copy_row(LaProbeBatches *b, LaProbeBatch *batch, TupleTableSlot *to, TupleTableSlot *from)
{
	int			n = b->ncolumns;
	bool		stays = (n >= 0 && b->by_value) || share_pin(b, batch, from);

	if (!TTS_EMPTY(to))
		ExecClearTuple(to);
	if (n >= 0 && stays)
	{
		slot_getsomeattrs(from, n);
		copy_columns(to, from, n);
		to->tts_flags &= ~TTS_FLAG_EMPTY;
		return 0;
	}
	ExecCopySlot(to, from);
	if (stays)
	{
		copy_found_columns(to, from);
		return 0;
	}
	ExecMaterializeSlot(to);
	return size_of(to);
}

static void
make_slots(LaProbeBatches *b)
{
	EState	   *estate = b->table.node->js.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	bool		fixed;
	const TupleTableSlotOps *ops = ExecGetResultSlotOps(b->outer, &fixed);

	for (int i = 0; i < 2 * PROBE_BATCH_ROWS; i++)
		b->both[i / PROBE_BATCH_ROWS].slots[i % PROBE_BATCH_ROWS] =
			la_alloc_table_slot(&estate->es_tupleTable, ExecGetResultType(b->outer),
								fixed ? ops : &TTSOpsVirtual);
	MemoryContextSwitchTo(old);
}

static void
clear_slots(LaProbeBatches *b)
{
	if (b->both[0].slots[0] == NULL)
		return;
	for (int i = 0; i < 2 * PROBE_BATCH_ROWS; i++)
		ExecClearTuple(b->both[i / PROBE_BATCH_ROWS].slots[i % PROBE_BATCH_ROWS]);
	release_pins(b, &b->both[0]);
	release_pins(b, &b->both[1]);
}

/* ---- batches --------------------------------------------------------- */

static inline void
fetch_tuple(HashJoinTuple tuple)
{
	la_prefetch(tuple);
	la_prefetch((char *) tuple + TUPLE_DATA_OFFSET);
}

/* Read the buckets, which have arrived by now, and fetch the first row of each chain. */
static void
fetch_candidates(LaProbeBatches *b, LaProbeBatch *batch)
{
	for (int i = 0; i < batch->nrows; i++)
	{
		LaProbeRow *row = &batch->rows[i];

		row->candidate = row->can_match ? la_hashtable_chain(&b->table, row->hash) : NULL;
		if (row->candidate != NULL)
			fetch_tuple(row->candidate);
	}
}

static void
fill(LaProbeBatches *b, LaProbeBatch *batch)
{
	bool		shared = b->table.shared;
	bool		counts = !shared && b->outer->instrument;
	double		counted;
	Size		bytes = 0;
	int			n = 0;

	release_pins(b, batch);

	/* as ExecProcNode() would; a rescan begins a new count */
	if (!shared && b->outer->chgParam != NULL)
		ExecReScan(b->outer);
	counted = counts ? rows_counted(b) : 0;
	while (n < b->batch_rows && !b->eof && bytes <= (Size) la_scan_memory * (1024 / 4))
	{
		LaProbeRow *row = &batch->rows[n];
		TupleTableSlot *slot = shared ? next_for_stock(b, row) :
			next_outer(b, row, n == 0 || b->takes_all);

		if (slot == NULL)
			break;
		take_key(b, row, slot);
		if (row->can_match)
			la_prefetch(la_hashtable_bucket(&b->table, row->hash));
		row->slot = batch->slots[n];
		bytes += copy_row(b, batch, row->slot, slot);
		n++;
	}
	batch->nrows = n;
	if (counts)
		b->outer->instrument->tuplecount = counted;
	if (!b->inserts)
		fetch_candidates(b, batch);
}

/*
 * The first row of each chain has arrived.  Where it is not the one that is looked for, or
 * not the only one, the next is wanted.
 */
static void
fetch_further(LaProbeBatches *b, LaProbeBatch *batch)
{
	for (int i = 0; i < batch->nrows; i++)
	{
		LaProbeRow *row = &batch->rows[i];
		HashJoinTuple next;

		if (row->candidate == NULL)
			continue;
		next = row->candidate->next.unshared;
		if (row->candidate->hashvalue != row->hash)
			row->candidate = next;
		else if (b->table.node->js.single_match)
			continue;
		if (next != NULL)
			fetch_tuple(next);
	}
}

/* One by one: the row stays in the outer child's slot. */
static LaProbeRow *
next_single(LaProbeBatches *b)
{
	LaProbeRow *row = &b->current->rows[0];

	row->slot = b->eof ? NULL : next_outer(b, row, true);
	if (row->slot == NULL)
		return NULL;
	take_key(b, row, row->slot);
	row->candidate = row->can_match ? la_hashtable_chain(&b->table, row->hash) : NULL;
	return row;
}

/* The batch that is not current. */
static inline LaProbeBatch *
other_batch(LaProbeBatches *b)
{
	return b->current == &b->both[0] ? &b->both[1] : &b->both[0];
}

/* All rows of the current batch have been joined.  Returns false if there are no others. */
static bool
change_batches(LaProbeBatches *b)
{
	LaProbeBatch *done = b->current;
	LaProbeBatch *next = other_batch(b);
	bool		first = done->nrows == 0;

	/* at the beginning there was none to be joined meanwhile */
	if (next->nrows == 0)
		fill(b, next);
	done->nrows = 0;
	b->position = 0;
	if (next->nrows == 0)
	{
		count_rows(b, b->skipped);
		b->skipped = 0;
		clear_slots(b);
		return false;
	}

	/* slow start: one row may be all that is wanted */
	if (!first || b->takes_all)
	{
		b->batch_rows = Min(2 * b->batch_rows, PROBE_BATCH_ROWS);
		fill(b, done);
	}
	if (!b->table.shared)
		fetch_further(b, next);
	b->current = next;
	return true;
}

/* The next row to be joined; NULL at the end of the outer side. */
LaProbeRow *
la_probebatch_next(LaProbeBatches *b)
{
	LaProbeRow *row;

	if (b->batch_rows == 0)
		return next_single(b);
	if (b->position == b->current->nrows && !change_batches(b))
		return NULL;
	row = &b->current->rows[b->position++];
	count_rows(b, 1.0 + row->skipped);
	return row;
}

/* The n-th row behind the one that was returned last, if it is known; n > 0. */
const LaProbeRow *
la_probebatch_peek(LaProbeBatches *b, int n)
{
	const LaProbeBatch *other = other_batch(b);
	int			i = b->position + n - 1;

	if (i < b->current->nrows)
		return &b->current->rows[i];
	i -= b->current->nrows;
	return i < other->nrows ? &other->rows[i] : NULL;
}

/* ---- beginning and end ----------------------------------------------- */

/*
 * How many columns of an outer row are needed once its hash value is known, and are all of
 * them by value?  (A column before the last needed one that is not needed is copied, too,
 * and never looked at.)
 */
static void
find_needed_columns(LaProbeBatches *b)
{
	HashJoin   *plan = (HashJoin *) b->table.node->js.ps.plan;
	TupleDesc	desc = ExecGetResultType(b->outer);
	Bitmapset  *columns = NULL;
	int			i = -1;
	int			last = 0;
	bool		by_value = true;

	/* stock may keep the row itself */
	if (b->table.shared && la_hash_keeps_outer_nulls(b->table.node))
		return;
	pull_varattnos((Node *) plan->join.plan.targetlist, OUTER_VAR, &columns);
	pull_varattnos((Node *) plan->join.plan.qual, OUTER_VAR, &columns);
	pull_varattnos((Node *) plan->join.joinqual, OUTER_VAR, &columns);
	pull_varattnos((Node *) plan->hashclauses, OUTER_VAR, &columns);
	if (b->table.shared)		/* stock computes the hash value again */
		pull_varattnos((Node *) plan->hashkeys, OUTER_VAR, &columns);
	while ((i = bms_next_member(columns, i)) >= 0)
	{
		last = i + FirstLowInvalidHeapAttributeNumber;
		if (last <= 0)			/* a system column, or the whole row */
			return;
		by_value &= TupleDescAttr(desc, last - 1)->attbyval;
	}
	b->ncolumns = last;
	b->by_value = by_value;
}

/* Before execution.  *b is zeroed, and in the query's memory context. */
void
la_probebatch_init(LaProbeBatches *b, HashJoinState *node, bool shared, bool inserts)
{
	b->table.node = node;
	b->table.hash = castNode(HashState, innerPlanState(node));
	b->table.shared = shared;
	if (!shared)
		la_hashtable_find_keys(&b->table);
	b->inserts = inserts;
	b->outer = outerPlanState(inserts ? innerPlanState(node) : &node->js.ps);
	b->ahead.join = &node->js.ps;
	b->ahead.outer = b->outer;
	b->current = &b->both[0];
	b->ncolumns = -1;
	if (!inserts)
		find_needed_columns(b);
}

/* An execution of the join begins: its table will be built. */
void
la_probebatch_begin(LaProbeBatches *b)
{
	la_demand_context(&b->table.node->js.ps, &b->ahead.context);
	if (!b->inserts)
	{
		la_stats_open(&b->counters, b->table.node->js.ps.state);
		b->counters.c[LA_SCANS_ATTACHED]++;
	}
	b->prepared = false;
}

/* From the next row on, rows are taken ahead. */
static void
begin_batches(LaProbeBatches *b)
{
	if (b->both[0].slots[0] == NULL)
		make_slots(b);
	b->counters.c[LA_SCANS_ACTIVATED]++;
	b->runs_ahead = true;
	b->batch_rows = b->takes_all ? PROBE_BATCH_ROWS : 1;
}

/* Somebody wants to know rows ahead, although the table fits into the cache. */
void
la_probebatch_run_ahead(LaProbeBatches *b)
{
	b->wants_rows = true;
	if (!b->runs_ahead && may_run_ahead(b))
		begin_batches(b);
}

/*
 * A scan of the outer side begins: the table is there, or if not "usable", cannot be
 * looked up ahead.  Only now it is known how many rows are wanted.
 */
void
la_probebatch_prepare(LaProbeBatches *b, bool usable)
{
	const LaHashTable *table = &b->table;

	b->takes_all = b->inserts ||
		la_runahead_takes_all(&b->ahead.context, table->node->js.ps.state);
	b->runs_ahead = false;
	b->batch_rows = 0;
	if (usable && (!table->fits_in_cache || b->wants_rows || la_force) && may_run_ahead(b))
		begin_batches(b);
	b->filter_first = table->filtered && !la_hash_fills_outer(table->node) &&
		((Size) table->mask + 1) * sizeof(HashJoinTuple) <= la_hashtable_cache_size() *
		(b->by_value ? FILTER_FIRST_CACHES_BY_VALUE : FILTER_FIRST_CACHES_BY_REFERENCE);
	b->prepared = true;
}

/* Forget the rows: the join is rescanned, or ends. */
void
la_probebatch_clear(LaProbeBatches *b)
{
	clear_slots(b);
	b->both[0].nrows = b->both[1].nrows = 0;
	b->current = &b->both[0];
	b->position = 0;
	b->skipped = 0;
	b->eof = b->prepared = false;
}

/* The join's memory is freed. */
void
la_probebatch_end(LaProbeBatches *b)
{
	la_budget_end(&b->budget);
	if (b->counters.c[LA_SCANS_ATTACHED] > 0)
		la_stats_publish(LA_KIND_HASH_JOIN, InvalidOid, InvalidOid, &b->counters);
}
