/*
 * hashtable.c
 *	  The inner side of a hash join, stored so that it can be looked up without waits.
 *
 *		inner rows --> regions, large, side by side: [chunk|chunk|chunk|...]
 *											 |
 *							all rows are there, their number is known
 *											 v
 *		buckets, of their final number <-- row by row, SPREAD rows after its bucket
 *										   was fetched into the CPU's cache
 *
 * Behaviours
 *	A. Rows, chunks of 32 kB and the number of buckets are what ExecHashTableInsert would
 *	   have made of the same rows, and rows are linked into their chains in the same
 *	   order.  So rows with equal keys are returned in stock's order, and so are
 *	   inner rows without a match; EXPLAIN's figures are the same.
 *	B. Memory is counted as stock counts it.  Where stock would split the table in
 *	   batches, the rows so far are put into a table of stock's, one by one and in
 *	   their order, and stock goes on: it splits at the same row.  Regions are freed
 *	   as they are emptied.
 *	C. A row too large for a chunk ends it in the same way: such tables are not
 *	   where time goes.
 *	D. Where nobody but us walks the chains (no inner row is returned for itself), the
 *	   upper 16 bits of the bucket's pointer are a filter of hash values: most look-ups
 *	   without a match touch no row.
 *	E. Regions and buckets of HUGE_FROM bytes and more ask for huge pages: a look-up in
 *	   many megabytes waits for the address translation, too.
 *
 * Hash join's own structures are used (HashJoinTable, HashJoinTuple), so that rescans,
 * EXPLAIN and the end of the query remain stock's.
 *
 * Source: prefetching with batches, Munro, "Hash joins: hiding memory latency" (2019), seeds;
 * filter bits in pointers: Leis et al., "Morsel-driven parallelism" (2014).
 *
 * src/hashjoin/hashtable.c
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "access/htup_details.h"
#include "executor/executor.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "base/guc.h"
#include "hashjoin/hashjoin_int.h"
#include "window/issue.h"

#define SPREAD			32		/* rows between fetch and use of a bucket */
#define CHUNK_BYTES		(HASH_CHUNK_HEADER_SIZE + HASH_CHUNK_SIZE)
#define MAX_CHUNKS		256		/* of a region */
#define HUGE_PAGE		(2 * 1024 * 1024)
#define HUGE_FROM		(2 * HUGE_PAGE)
#define SMALL_IF_UNKNOWN (1024 * 1024)

typedef struct Region
{
	char	   *memory;
	int			nchunks;		/* that it has room for */
} Region;

typedef struct Builder
{
	LaHashJoin *join;
	HashJoinTable table;
	MemoryContext context;		/* of the regions */
	int			first_buckets;	/* as estimated */
	int			buckets;		/* as stock would have now */
	double		tuples;
	double		nulls;			/* rows with null keys that are kept */
	Size		used;			/* bytes of tuples, as stock counts them */

	HashMemoryChunk *chunks;	/* in the order in which they were begun */
	int			nchunks;
	int			chunks_room;
	Region	   *regions;
	int			nregions;
	int			regions_room;
	int			left;			/* chunks in the last region */
} Builder;

/* ---- memory ---------------------------------------------------------- */

static void
ask_for_huge_pages(char *memory, Size size)
{
#ifdef MADV_HUGEPAGE
	uintptr_t	begin = TYPEALIGN(HUGE_PAGE, (uintptr_t) memory);
	uintptr_t	end = TYPEALIGN_DOWN(HUGE_PAGE, (uintptr_t) memory + size);

	/* without them it works as well */
	if (la_hash_huge_pages && size >= HUGE_FROM && end > begin)
		(void) madvise((void *) begin, end - begin, MADV_HUGEPAGE);
#endif
}

static void
add_region(Builder *b)
{
	int			nchunks = Min(Max(b->nchunks / 4, 1), MAX_CHUNKS);
	char	   *memory = MemoryContextAlloc(b->context, nchunks * CHUNK_BYTES);

	ask_for_huge_pages(memory, nchunks * CHUNK_BYTES);
	if (b->nregions == b->regions_room)
	{
		b->regions_room *= 2;
		b->regions = repalloc_huge(b->regions, b->regions_room * sizeof(Region));
	}
	b->regions[b->nregions].memory = memory;
	b->regions[b->nregions].nchunks = nchunks;
	b->nregions++;
	b->left = nchunks;
}

static HashMemoryChunk
add_chunk(Builder *b)
{
	Region	   *region;
	HashMemoryChunk chunk;

	if (b->left == 0)
		add_region(b);
	region = &b->regions[b->nregions - 1];
	chunk = (HashMemoryChunk)
		(region->memory + (region->nchunks - b->left) * CHUNK_BYTES);
	b->left--;
	chunk->maxlen = HASH_CHUNK_SIZE;
	chunk->used = 0;
	chunk->ntuples = 0;
	chunk->next.unshared = NULL;
	if (b->nchunks == b->chunks_room)
	{
		b->chunks_room *= 2;
		b->chunks = repalloc_huge(b->chunks,
								  b->chunks_room * sizeof(HashMemoryChunk));
	}
	b->chunks[b->nchunks++] = chunk;
	return chunk;
}

/* ---- the rows -------------------------------------------------------- */

/*
 * Room for a tuple of that length, as dense_alloc() finds it; NULL if it is too large
 * (behaviour C).
 */
static HashJoinTuple
room_for(Builder *b, Size length)
{
	Size		size = MAXALIGN(HJTUPLE_OVERHEAD + length);
	HashMemoryChunk chunk = b->nchunks == 0 ? NULL : b->chunks[b->nchunks - 1];
	HashJoinTuple tuple;

	if (size > HASH_CHUNK_THRESHOLD)
		return NULL;
	if (chunk == NULL || chunk->maxlen - chunk->used < size)
		chunk = add_chunk(b);
	tuple = (HashJoinTuple) (HASH_CHUNK_DATA(chunk) + chunk->used);
	chunk->used += size;
	chunk->ntuples++;
	return tuple;
}

static HashJoinTuple
store_minimal_tuple(Builder *b, TupleTableSlot *slot)
{
	bool		should_free;
	MinimalTuple minimal = ExecFetchSlotMinimalTuple(slot, &should_free);
	HashJoinTuple tuple = room_for(b, minimal->t_len);

	if (tuple != NULL)
		memcpy(HJTUPLE_MINTUPLE(tuple), minimal, minimal->t_len);
	if (should_free)
		heap_free_minimal_tuple(minimal);
	return tuple;
}

static HashJoinTuple
store_tuple(Builder *b, TupleTableSlot *slot)
{
	HeapTuple	heap = TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot) ?
		((HeapTupleTableSlot *) slot)->tuple : NULL;
	HashJoinTuple tuple;

	if (heap == NULL)
		return store_minimal_tuple(b, slot);

	/* a minimal tuple is a heap tuple without the beginning of its header */
	tuple = room_for(b, heap->t_len - MINIMAL_TUPLE_OFFSET);
	if (tuple != NULL)
	{
		MinimalTuple minimal = HJTUPLE_MINTUPLE(tuple);

		memcpy(minimal, (char *) heap->t_data + MINIMAL_TUPLE_OFFSET,
			   heap->t_len - MINIMAL_TUPLE_OFFSET);
		minimal->t_len = heap->t_len - MINIMAL_TUPLE_OFFSET;
	}
	return tuple;
}

/*
 * One more row.  Returns false if it is too large, and was not stored.
 */
static bool
add_row(Builder *b, TupleTableSlot *slot, uint32 hash)
{
	LaHashJoin *join = b->join;
	HashJoinTuple tuple = store_tuple(b, slot);

	if (tuple == NULL)
		return false;
	tuple->hashvalue = hash;
	HeapTupleHeaderClearMatch(HJTUPLE_MINTUPLE(tuple));
	if (join->inner_key != 0)
	{
		bool		isnull;

		/* one that is null never is looked up, and never compared */
		key_of(tuple) = DatumGetInt32(slot_getattr(slot, join->inner_key, &isnull));
	}

	if (b->tuples > b->buckets && b->buckets <= INT_MAX / 2 &&
		(Size) b->buckets * 2 <= MaxAllocSize / sizeof(HashJoinTuple))
		b->buckets *= 2;
	b->tuples++;
	b->used += HJTUPLE_OVERHEAD + HJTUPLE_MINTUPLE(tuple)->t_len;
	return true;
}

/* Behaviour B. */
static bool
would_split(const Builder *b)
{
	return b->used + b->buckets * sizeof(HashJoinTuple) > b->table->spaceAllowed;
}

/* ---- the buckets ----------------------------------------------------- */

typedef struct Spreader
{
	LaHashJoin *join;
	HashJoinTuple waiting[SPREAD];
	uint64		n;
} Spreader;

static inline void
link_tuple(LaHashJoin *join, HashJoinTuple tuple)
{
	HashJoinTuple *bucket = &join->buckets[tuple->hashvalue & join->mask];
	uint64		word = (uint64) *bucket;

	if (join->filtered)
	{
		tuple->next.unshared = (HashJoinTuple) (word & POINTER_BITS);
		*bucket = (HashJoinTuple) ((uint64) tuple | (word & ~POINTER_BITS) |
								   filter_bit(tuple->hashvalue));
	}
	else
	{
		tuple->next.unshared = *bucket;
		*bucket = tuple;
	}
}

static void
spread_chunk(Spreader *s, HashMemoryChunk chunk)
{
	char	   *p = HASH_CHUNK_DATA(chunk);
	char	   *end = p + chunk->used;

	CHECK_FOR_INTERRUPTS();
	while (p < end)
	{
		HashJoinTuple tuple = (HashJoinTuple) p;
		HashJoinTuple *waiting = &s->waiting[s->n % SPREAD];

		if (s->n >= SPREAD)
			link_tuple(s->join, *waiting);
		*waiting = tuple;
		s->n++;
		la_prefetch(&s->join->buckets[tuple->hashvalue & s->join->mask]);
		p += MAXALIGN(HJTUPLE_OVERHEAD + HJTUPLE_MINTUPLE(tuple)->t_len);
	}
}

/*
 * Behaviour A: a table that has kept its number of buckets has each row in front of
 * those before it; one that has got more of them was linked anew, the newest chunk
 * first.
 */
static void
spread(Builder *b)
{
	Spreader	s = {.join = b->join};
	bool		anew = b->buckets != b->first_buckets;

	for (int i = 0; i < b->nchunks; i++)
		spread_chunk(&s, b->chunks[anew ? b->nchunks - 1 - i : i]);
	for (uint64 n = s.n > SPREAD ? s.n - SPREAD : 0; n < s.n; n++)
		link_tuple(b->join, s.waiting[n % SPREAD]);
}

/* Can the upper bits of pointers be used? */
static bool
pointers_are_short(const Builder *b)
{
	for (int i = 0; i < b->nregions; i++)
	{
		uint64		end = (uint64) b->regions[i].memory +
			b->regions[i].nchunks * CHUNK_BYTES;

		if ((end & ~POINTER_BITS) != 0)
			return false;
	}
	return true;
}

/*
 * Bytes of the CPU's own cache; look-ups in as much do not wait.
 */
Size
la_hash_cache_size(void)
{
	static long size = 0;

#ifdef _SC_LEVEL2_CACHE_SIZE
	if (size == 0)
		size = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
	return size > 0 ? size : SMALL_IF_UNKNOWN;
}

static void
make_buckets(Builder *b)
{
	LaHashJoin *join = b->join;
	HashJoinTable table = b->table;
	Size		size = b->buckets * sizeof(HashJoinTuple);

	join->buckets = MemoryContextAllocHuge(table->batchCxt, size);
	ask_for_huge_pages((char *) join->buckets, size);
	memset(join->buckets, 0, size);
	join->mask = b->buckets - 1;
	join->filtered = !fill_inner(join->node) &&
		join->node->js.jointype != LA_JOIN_RIGHT_SEMI && pointers_are_short(b);
	join->small = b->used + size <= la_hash_cache_size();
	spread(b);

	pfree(table->buckets.unshared);
	table->buckets.unshared = join->buckets;
	table->nbuckets = table->nbuckets_optimal = b->buckets;
	table->nbuckets_original = b->first_buckets;
	table->log2_nbuckets = table->log2_nbuckets_optimal =
		pg_leftmost_one_pos32(b->buckets);
	table->totalTuples = b->tuples;
	table->la_hash_reported_rows = b->tuples + b->nulls;
	table->spaceUsed = table->spacePeak = b->used + size;
}

/* ---- tables that are left to stock ----------------------------------- */

/* The table gets the buckets that stock would have given it at first. */
static void
make_first_buckets(Builder *b)
{
	HashJoinTable table = b->table;

	pfree(table->buckets.unshared);
	table->buckets.unshared =
		MemoryContextAllocHuge(table->batchCxt, b->first_buckets * sizeof(HashJoinTuple));
	memset(table->buckets.unshared, 0, b->first_buckets * sizeof(HashJoinTuple));
	table->nbuckets = table->nbuckets_optimal = table->nbuckets_original =
		b->first_buckets;
	table->log2_nbuckets = table->log2_nbuckets_optimal =
		pg_leftmost_one_pos32(b->first_buckets);
}

/*
 * Behaviours B and C: the table becomes stock's; it gets the rows, and those that are
 * still to come.  pending is the row that was not stored, if there is one.
 */
static void
hand_over(Builder *b, TupleTableSlot *pending, uint32 pending_hash)
{
	LaHashJoin *join = b->join;
	HashState  *hash = join->hash;
	TupleTableSlot *slot = join->node->hj_HashTupleSlot;
	HashJoinTable table = b->table;
	int			nth = 0;

	make_first_buckets(b);
	for (int i = 0; i < b->nregions; i++)
	{
		for (int j = 0; j < b->regions[i].nchunks && nth < b->nchunks; j++)
		{
			HashMemoryChunk chunk = b->chunks[nth++];
			char	   *p = HASH_CHUNK_DATA(chunk);
			char	   *end = p + chunk->used;

			CHECK_FOR_INTERRUPTS();
			while (p < end)
			{
				HashJoinTuple tuple = (HashJoinTuple) p;
				MinimalTuple minimal = HJTUPLE_MINTUPLE(tuple);

				ExecStoreMinimalTuple(minimal, slot, false);
				ExecHashTableInsert(table, slot, tuple->hashvalue);
				table->totalTuples += 1;
				p += MAXALIGN(HJTUPLE_OVERHEAD + minimal->t_len);
			}
		}
		ExecClearTuple(slot);
		pfree(b->regions[i].memory);
	}
	if (pending != NULL)
	{
		ExecHashTableInsert(table, pending, pending_hash);
		table->totalTuples += 1;
	}
	MemoryContextDelete(b->context);

	/* it counts all rows of the table when it is done */
	if (hash->ps.instrument)
		InstrStopNode(hash->ps.instrument, b->nulls);
	(void) MultiExecProcNode((PlanState *) hash);
}

/* What ExecHashJoin does before it builds the table: is the outer side empty? */
static bool
outer_is_empty(LaHashJoin *join)
{
	HashJoinState *node = join->node;

	node->hj_FirstOuterTupleSlot = NULL;
	if (fill_inner(node) ||
		(!fill_outer(node) &&
		 (join->outer->plan->startup_cost >= join->hash->ps.plan->total_cost ||
		  node->hj_OuterNotEmpty)))
		return false;
	node->hj_FirstOuterTupleSlot = ExecProcNode(join->outer);
	node->hj_OuterNotEmpty = !TupIsNull(node->hj_FirstOuterTupleSlot);
	return !node->hj_OuterNotEmpty;
}

/*
 * A table without rows, that has not been given room for those expected.  The server takes
 * their number from the plan, which others may share, so it gets to see copies of what it
 * reads: the Hash node and its state, above a node of which one row is expected.
 */
static HashJoinTable
create_empty(LaHashJoin *join, Size space_allowed)
{
	HashState	state = *join->hash;
	Hash		hash = *(Hash *) state.ps.plan;
	Plan		input = *outerPlan(&hash);
	HashJoinTable table;

	input.plan_rows = 1;
	outerPlan(&hash) = &input;
	state.ps.plan = (Plan *) &hash;
	table = la_hash_table_create(join->node, &state);
	table->spaceAllowed = space_allowed;
	return table;
}

static void
init_builder(Builder *b, LaHashJoin *join, int buckets, Size space_allowed)
{
	MemoryContext old;

	memset(b, 0, sizeof(*b));
	b->join = join;
	b->table = create_empty(join, space_allowed);
	join->node->hj_HashTable = join->hash->hashtable = b->table;
	b->first_buckets = b->buckets = buckets;
	b->context = AllocSetContextCreate(b->table->batchCxt,
									   "pg_lookahead hash join",
									   ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(b->context);
	b->chunks_room = b->regions_room = 64;
	b->chunks = palloc(b->chunks_room * sizeof(HashMemoryChunk));
	b->regions = palloc(b->regions_room * sizeof(Region));
	MemoryContextSwitchTo(old);
}

/*
 * Take all inner rows.  Returns false if the table has become stock's.
 */
static bool
take_rows(Builder *b)
{
	LaHashJoin *join = b->join;
	HashState  *hash = join->hash;
	ExprContext *econtext = hash->ps.ps_ExprContext;

	/* as MultiExecProcNode and MultiExecHash */
	CHECK_FOR_INTERRUPTS();
	if (hash->ps.chgParam != NULL)
		ExecReScan(&hash->ps);
	if (hash->ps.instrument)
		InstrStartNode(hash->ps.instrument);
	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(outerPlanState(hash));
		uint32		value;

		if (TupIsNull(slot))
			break;
		econtext->ecxt_outertuple = slot;
		if (!la_hash_inner_row(hash, econtext, &value))
		{
			if (la_nulls_keep_inner(join, slot))
				b->nulls += 1;
			continue;
		}
		if (!add_row(b, slot, value))
		{
			hand_over(b, slot, value);
			return false;
		}
		if (would_split(b))
		{
			hand_over(b, NULL, 0);
			return false;
		}
	}
	make_buckets(b);
	if (hash->ps.instrument)
		InstrStopNode(hash->ps.instrument, b->tuples + b->nulls);
	return true;
}

/*
 * Build the table, or have it built.
 */
LaHashBuildResult
la_hash_build(LaHashJoin *join)
{
	HashJoinState *node = join->node;
	Hash	   *plan = (Hash *) join->hash->ps.plan;
	Plan	   *input = outerPlan(plan);
	Size		space_allowed;
	int			buckets;
	int			batches;
	int			skew;
	Builder		b;
	bool		own;

	ExecChooseHashTableSize(input->plan_rows, input->plan_width,
							OidIsValid(plan->skewTable), false, 0,
							&space_allowed, &buckets, &batches, &skew);
	if (batches > 1)
		return LA_HASH_LEFT_TO_STOCK;
	if (outer_is_empty(join))
		return LA_HASH_EMPTY;

	init_builder(&b, join, buckets, space_allowed);
	own = take_rows(&b);
	if (node->hj_HashTable->totalTuples == 0 && !fill_outer(node) &&
		!la_nulls_are_inner(join))
		return LA_HASH_EMPTY;
	node->hj_HashTable->nbatch_outstart = node->hj_HashTable->nbatch;
	node->hj_OuterNotEmpty = false;
	node->hj_JoinState = STATE_PROBE;
	return own ? LA_HASH_BUILT : LA_HASH_LEFT_TO_STOCK;
}
