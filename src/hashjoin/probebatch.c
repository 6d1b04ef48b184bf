/*
 * probebatch.c
 *	  Outer rows, taken ahead, and what their look-ups are going to read.
 *
 *	outer child --> probes[1]: [ row | row | ... | row ]   buckets fetched, then the
 *					  |                                    first row of each chain
 *					  v  change places
 *					probes[0]: [ row | row | ... | row ] --> joined one by one
 *
 * What a look-up waits for is memory: the bucket, then a row of its chain.  While the
 * rows of one batch are joined, both are on their way to the CPU's cache for the next
 * batch.
 *
 * Behaviours
 *	A. Where outer rows must not be taken early, or the table is small, none are: a row is
 *	   looked up and joined, while it is in the outer child's slot.
 *	B. Rows of a batch are copied into slots of the outer child's own kind: the columns
 *	   that are needed, if these are all by value, or lie in one of the MAX_PINS buffers
 *	   that the batch keeps pinned, as long as the budget allows; otherwise the row.
 *	C. Where not all rows may be taken, batches begin with one row, and double; the first
 *	   one is joined before another is taken.
 *	D. EXPLAIN ANALYZE counts a row of the outer child when it is joined, not when it
 *	   is taken.
 *	E. Where outer rows without a match are of no use, and the buckets are few enough to
 *	   be in a cache of the CPU, they are asked at once, by their filter bits, and
 *	   rows that cannot match are not copied.
 *	F. The table is ours (hashtable.c), or a shared one (shared.c): then rows that cannot match
 *	   are handed on, too, and counted by the node's own instrumentation.  While a shared
 *	   table is built, the "outer rows" are those of the Hash, of which only buckets are
 *	   fetched.
 *
 * Source: two buffers, Munro, "Hash joins: hiding memory latency" (2019), seeds.
 *
 * src/hashjoin/probebatch.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/instrument.h"
#include "executor/nodeHash.h"
#include "storage/bufmgr.h"

#include "base/guc.h"
#include "hashjoin/hashjoin_int.h"
#include "window/issue.h"

/* Behaviour E: sizes of the CPU's own cache; copying values costs less. */
#define OF_REFERENCES	8
#define OF_VALUES		2

#define INTO_TUPLE		40		/* a row's data begin, and may end in another
								 * cache line */

/* ---- the table ------------------------------------------------------- */

static inline const void *
bucket_of(const LaHashJoin *join, uint32 hash)
{
	if (join->shared)
		return &join->shared_buckets[hash & join->mask];
	return &join->buckets[hash & join->mask];
}

static inline HashJoinTuple
candidate_of(const LaHashJoin *join, uint32 hash)
{
	uint64		word;

	if (join->shared)
		return la_hash_shared_tuple(join, hash);
	word = (uint64) join->buckets[hash & join->mask];
	if (!join->filtered)
		return (HashJoinTuple) word;
	return (word & filter_bit(hash)) != 0 ? (HashJoinTuple) (word & POINTER_BITS) : NULL;
}

/* ---- rows ------------------------------------------------------------ */

/*
 * The next outer row that could match, and how many could not before it; NULL if there is
 * none, or if so many could not that who is not patient gives up for now.
 */
static TupleTableSlot *
next_outer(LaHashJoin *join, Probe *p, bool patient)
{
	HashJoinState *node = join->node;
	ExprContext *econtext = node->js.ps.ps_ExprContext;
	TupleTableSlot *slot = node->hj_FirstOuterTupleSlot;
	uint32		skipped = join->skipped;

	if (!TupIsNull(slot))
		node->hj_FirstOuterTupleSlot = NULL;
	else
		slot = ExecProcNode(join->outer);
	for (; !TupIsNull(slot); slot = ExecProcNode(join->outer))
	{
		econtext->ecxt_outertuple = slot;
		if (la_hash_outer_row(node, econtext, &p->hash))
		{
			node->hj_OuterNotEmpty = true;
			if (!join->test_first || candidate_of(join, p->hash) != NULL)
			{
				p->wanted = true;
				p->skipped = skipped;
				join->skipped = 0;
				return slot;
			}
		}
		else
			la_nulls_keep_outer(join, slot);
		skipped++;
		if (!patient && skipped >= BATCH)
		{
			join->skipped = skipped;
			return NULL;
		}
	}
	join->eof = true;
	join->skipped = skipped;
	return NULL;
}

/* Behaviour F: the next row, whatever it is. */
static TupleTableSlot *
next_shared(LaHashJoin *join, Probe *p)
{
	HashJoinState *node = join->node;
	ExprContext *econtext = join->building ? join->hash->ps.ps_ExprContext :
		node->js.ps.ps_ExprContext;
	TupleTableSlot *slot = join->takeover.below(join->outer);

	if (TupIsNull(slot))
	{
		join->eof = true;
		return NULL;
	}
	econtext->ecxt_outertuple = slot;
	p->wanted = join->building ? la_hash_inner_row(join->hash, econtext, &p->hash) :
		la_hash_outer_row(node, econtext, &p->hash);
	p->skipped = 0;
	return slot;
}

/* Behaviour D. */
static void
count_rows(LaHashJoin *join, double n)
{
	if (join->outer->instrument && !join->shared)
		join->outer->instrument->tuplecount += n;
}

/*
 * A reference to a row in a buffer; the columns that were found already need not be found
 * again.
 */
static void
copy_found_columns(TupleTableSlot *to, TupleTableSlot *from)
{
	int			n = from->tts_nvalid;

	memcpy(to->tts_values, from->tts_values, n * sizeof(Datum));
	memcpy(to->tts_isnull, from->tts_isnull, n * sizeof(bool));
	to->tts_nvalid = n;
	to->tts_flags |= from->tts_flags & la_slot_position_flags;
	((HeapTupleTableSlot *) to)->off = ((HeapTupleTableSlot *) from)->off;
}

/*
 * Is the row in a buffer that the batch keeps pinned?  One pin is enough for all rows in
 * it.
 */
static bool
share_pin(LaHashJoin *join, int which, TupleTableSlot *slot)
{
	Buffer	   *pins = join->pins[which];
	int			n = join->npins[which];
	Buffer		buffer = TTS_IS_BUFFERTUPLE(slot) ?
		((BufferHeapTupleTableSlot *) slot)->buffer : InvalidBuffer;

	if (!BufferIsValid(buffer))
		return false;
	if (n > 0 && pins[n - 1] == buffer)
		return true;
	if (n == MAX_PINS || !la_budget_has_pin(BufferIsLocal(buffer)))
		return false;
	IncrBufferRefCount(buffer);
	la_budget_take_pin(&join->budget, BufferIsLocal(buffer));
	pins[n] = buffer;
	join->npins[which] = n + 1;
	return true;
}

static void
release_pins(LaHashJoin *join, int which)
{
	while (join->npins[which] > 0)
	{
		Buffer		buffer = join->pins[which][--join->npins[which]];

		la_budget_return_pin(&join->budget, BufferIsLocal(buffer));
		ReleaseBuffer(buffer);
	}
}

/* Behaviour B. */
static void
copy_row(LaHashJoin *join, int which, TupleTableSlot *to, TupleTableSlot *from)
{
	int			n = join->attributes;
	bool		stays = (n >= 0 && join->by_value) || share_pin(join, which, from);

	if (!TTS_EMPTY(to))
		ExecClearTuple(to);
	if (n >= 0 && stays)
	{
		slot_getsomeattrs(from, n);
		memcpy(to->tts_values, from->tts_values, n * sizeof(Datum));
		memcpy(to->tts_isnull, from->tts_isnull, n * sizeof(bool));
		to->tts_nvalid = n;
		to->tts_flags &= ~TTS_FLAG_EMPTY;
		return;
	}
	ExecCopySlot(to, from);
	if (!stays)
		ExecMaterializeSlot(to);
	else
		copy_found_columns(to, from);
}

/* The row's key, where it is compared here; false if it is null, which matches nothing. */
static bool
take_key(const LaHashJoin *join, Probe *p, TupleTableSlot *slot)
{
	bool		isnull;

	p->key = DatumGetInt32(slot_getattr(slot, join->outer_key, &isnull));
	return !isnull;
}

/* ---- batches --------------------------------------------------------- */

static void
clear_slots(LaHashJoin *join)
{
	if (!join->have_slots)
		return;
	for (int i = 0; i < 2 * BATCH; i++)
		ExecClearTuple(join->slots[i / BATCH][i % BATCH]);
	release_pins(join, 0);
	release_pins(join, 1);
}

static void
fill(LaHashJoin *join, int which)
{
	Probe	   *probes = join->probes[which];
	LaNodeInstrumentation *instrument = join->shared ? NULL : join->outer->instrument;
	double		counted;
	int			n = 0;

	release_pins(join, which);

	/* a rescan that is still to be done ends a loop, and begins a count */
	if (!join->shared && join->outer->chgParam != NULL)
		ExecReScan(join->outer);
	counted = instrument ? instrument->tuplecount : 0;

	/* the row that told whether there is any has been counted */
	if (!join->shared && !TupIsNull(join->node->hj_FirstOuterTupleSlot))
		counted -= 1;
	while (n < join->batch && !join->eof)
	{
		Probe	   *p = &probes[n];
		TupleTableSlot *slot = join->shared ? next_shared(join, p) :
			next_outer(join, p, n == 0 || join->takes_all);

		if (slot == NULL)
			break;
		if (join->outer_key != 0 && !take_key(join, p, slot))
			p->wanted = false;
		if (p->wanted)
			la_prefetch(bucket_of(join, p->hash));
		p->slot = join->slots[which][n];
		copy_row(join, which, p->slot, slot);
		n++;
	}
	join->count[which] = n;
	if (instrument)
		instrument->tuplecount = counted;
	if (join->building)
		return;
	for (int i = 0; i < n; i++)
	{
		Probe	   *p = &probes[i];

		p->candidate = p->wanted ? candidate_of(join, p->hash) : NULL;
		if (p->candidate == NULL)
			continue;
		la_prefetch(p->candidate);
		la_prefetch((char *) p->candidate + INTO_TUPLE);
	}
}

/* Behaviour A. */
static Probe *
next_single(LaHashJoin *join)
{
	Probe	   *p = &join->probes[0][0];

	p->slot = join->eof ? NULL : next_outer(join, p, true);
	if (p->slot == NULL)
		return NULL;
	if (join->outer_key != 0 && !take_key(join, p, p->slot))
		p->wanted = false;
	p->candidate = p->wanted ? candidate_of(join, p->hash) : NULL;
	return p;
}

/* No row is left. */
static void
end_of_rows(LaHashJoin *join)
{
	count_rows(join, join->skipped);
	join->skipped = 0;
	clear_slots(join);
}

/*
 * The first row of each chain has arrived.  Where it is not the one that is looked
 * for, or not the only one, the next is wanted.
 */
static void
look_further(LaHashJoin *join, int which)
{
	for (int i = 0; i < join->count[which]; i++)
	{
		Probe	   *p = &join->probes[which][i];
		HashJoinTuple next;

		if (p->candidate == NULL)
			continue;
		next = p->candidate->next.unshared;
		if (p->candidate->hashvalue != p->hash)
			p->candidate = next;
		else if (join->node->js.single_match)
			continue;
		if (next != NULL)
		{
			la_prefetch(next);
			la_prefetch((char *) next + INTO_TUPLE);
		}
	}
}

/* The batch is joined: the other one, if there is one, takes its place. */
static bool
change_batches(LaHashJoin *join)
{
	int			other = 1 - join->current;
	bool		first = join->count[join->current] == 0;

	/* at the beginning there is none to be joined meanwhile */
	if (join->count[other] == 0)
		fill(join, other);
	join->count[join->current] = 0;
	join->position = 0;
	if (join->count[other] == 0)
	{
		end_of_rows(join);
		return false;
	}

	/* one row may be all that is wanted */
	if (!first || join->takes_all)
	{
		join->batch = Min(2 * join->batch, BATCH);
		fill(join, join->current);
	}
	if (!join->shared)
		look_further(join, other);
	join->current = other;
	return true;
}

/*
 * The next row to be joined, or NULL.
 */
Probe *
la_probebatch_next(LaHashJoin *join)
{
	Probe	   *p;

	if (join->batch == 0)
		return next_single(join);
	if (join->position == join->count[join->current] && !change_batches(join))
		return NULL;
	p = &join->probes[join->current][join->position++];
	count_rows(join, 1.0 + p->skipped);
	return p;
}

/* ---- beginning and end ----------------------------------------------- */

static void
make_slots(LaHashJoin *join)
{
	EState	   *estate = join->node->js.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	bool		fixed;
	const TupleTableSlotOps *ops = ExecGetResultSlotOps(join->outer, &fixed);

	for (int i = 0; i < 2 * BATCH; i++)
		join->slots[i / BATCH][i % BATCH] =
			la_alloc_table_slot(&estate->es_tupleTable,
								ExecGetResultType(join->outer),
								fixed ? ops : &TTSOpsVirtual);
	join->have_slots = true;
	MemoryContextSwitchTo(old);
}

/*
 * The table is there, and outer rows are going to be looked up.
 */
void
la_probebatch_prepare(LaHashJoin *join)
{
	bool		ahead = join->early;

	if (ahead && !join->have_slots)
		make_slots(join);
	join->takes_all = la_hash_takes_all(join);
	join->test_first = !join->shared && join->filtered && !fill_outer(join->node) &&
		((Size) join->mask + 1) * sizeof(HashJoinTuple) <=
		la_hash_cache_size() * (join->by_value ? OF_VALUES : OF_REFERENCES);
	join->batch = !ahead ? 0 : join->takes_all ? BATCH : 1;
	if (ahead)
		join->counters.c[LA_SCANS_ACTIVATED]++;
}

/*
 * Forget the rows: the join is rescanned, or ends.
 */
void
la_probebatch_clear(LaHashJoin *join)
{
	clear_slots(join);
	join->count[0] = join->count[1] = 0;
	join->current = join->position = 0;
	join->skipped = 0;
	join->eof = false;
}
