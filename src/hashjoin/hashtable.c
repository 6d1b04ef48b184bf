/*
 * hashtable.c
 *	  The inner side of a hash join, stored so that it can be looked up without waits.
 *
 *		inner rows --> regions, large, side by side: [chunk|chunk|chunk|...]
 *											 |
 *							all rows are there, their number is known
 *											 v
 *		buckets, of their final number <-- row by row, BUCKET_FETCH_DISTANCE rows after its
 *										   bucket was fetched into the CPU's cache
 *
 * Behaviours
 *	Same table: rows, chunks of 32 kB and the number of buckets are what ExecHashTableInsert()
 *		would have made of the same rows, and rows are linked into their chains in the same
 *		order.  So rows with equal keys, and inner rows without a match, are returned in
 *		stock's order, and EXPLAIN's figures are the same.
 *	Same memory limit: memory is counted as stock counts it.  At the row at which stock would
 *		split the table into batches, the rows so far are inserted into a table of stock's, one
 *		by one and in their order, and stock goes on.  Regions are freed as they are emptied.
 *	Wide rows: a row too large for a chunk leaves the table to stock in the same way, since
 *		joins of such rows spend most of their time elsewhere.
 *	Filter bits: the upper 16 bits of a bucket's pointer are a filter of hash values, so most
 *		look-ups without a match read no row.  Only la_hashtable_chain() may read such a
 *		bucket: the server's functions that do, ExecScanHashTableForUnmatched() and
 *		ExecHashTableResetMatchFlags(), are called for joins that need the match flags of
 *		inner rows, and tables of those have no filter bits.
 *	Huge pages: regions and buckets of HUGE_PAGES_THRESHOLD bytes and more ask for huge
 *		pages, because a look-up in many megabytes waits for the address translation, too.
 *
 * Hash join's own structures are used (HashJoinTable, HashJoinTuple), so rescans, EXPLAIN
 * and the end of the query remain stock's.
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
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "base/base.h"
#include "hashjoin/hashjoin_int.h"
#include "window/window.h"

#define BUCKET_FETCH_DISTANCE	32	/* rows between fetch and use of a bucket */
#define CHUNK_BYTES				(HASH_CHUNK_HEADER_SIZE + HASH_CHUNK_SIZE)
#define REGION_MAX_CHUNKS		256
#define HUGE_PAGE_BYTES			(2 * 1024 * 1024)
#define HUGE_PAGES_THRESHOLD	(2 * HUGE_PAGE_BYTES)
#define DEFAULT_CACHE_BYTES		(1024 * 1024)	/* if the CPU's is not known */

/* Chunks side by side. */
typedef struct Region
{
	char	   *memory;
	int			room;			/* chunks that fit into it */
	int			nchunks;
} Region;

typedef struct Builder
{
	LaHashTable *table;
	HashJoinTable stock;		/* the node's, as the server knows it */
	MemoryContext context;		/* of the regions */
	int			first_buckets;	/* as many as the planner's estimate needs */
	int			buckets;		/* as many as stock would have by now */
	double		tuples;
	double		nulls;			/* rows with null keys that are kept */
	Size		used;			/* bytes of tuples, as stock counts them */

	HashMemoryChunk chunk;		/* the last one, or NULL */
	int			nchunks;
	Region	   *regions;
	int			nregions;
	int			regions_room;
	uint64		regions_end;	/* no region has a higher address */
} Builder;

/* ---- memory ---------------------------------------------------------- */

static void
ask_for_huge_pages(char *memory, Size size)
{
#ifdef MADV_HUGEPAGE
	uintptr_t	begin = TYPEALIGN(HUGE_PAGE_BYTES, (uintptr_t) memory);
	uintptr_t	end = TYPEALIGN_DOWN(HUGE_PAGE_BYTES, (uintptr_t) memory + size);

	/* an error leaves pages of the usual size */
	if (la_hash_huge_pages && size >= HUGE_PAGES_THRESHOLD && end > begin)
		(void) madvise((void *) begin, end - begin, MADV_HUGEPAGE);
#endif
}

static Region *
add_region(Builder *b)
{
	int			room = Min(Max(b->nchunks / 4, 1), REGION_MAX_CHUNKS);
	char	   *memory = MemoryContextAlloc(b->context, room * CHUNK_BYTES);

	ask_for_huge_pages(memory, room * CHUNK_BYTES);
	b->regions_end = Max(b->regions_end, (uintptr_t) memory + room * CHUNK_BYTES);
	if (b->nregions == b->regions_room)
	{
		b->regions_room *= 2;
		b->regions = repalloc_huge(b->regions, b->regions_room * sizeof(Region));
	}
	b->regions[b->nregions].memory = memory;
	b->regions[b->nregions].room = room;
	b->regions[b->nregions].nchunks = 0;
	return &b->regions[b->nregions++];
}

static HashMemoryChunk
chunk_of(const Region *region, int n)
{
	return (HashMemoryChunk) (region->memory + n * CHUNK_BYTES);
}

static void
add_chunk(Builder *b)
{
	Region	   *region = b->nregions == 0 ? NULL : &b->regions[b->nregions - 1];

	if (region == NULL || region->nchunks == region->room)
		region = add_region(b);
	b->chunk = chunk_of(region, region->nchunks++);
	b->chunk->maxlen = HASH_CHUNK_SIZE;
	b->chunk->used = 0;
	b->chunk->ntuples = 0;
	b->chunk->next.unshared = NULL;
	b->nchunks++;
}

/* ---- the rows -------------------------------------------------------- */

/* Allocate a tuple, where dense_alloc() would.  NULL if it is a wide row. */
static HashJoinTuple
alloc_tuple(Builder *b, Size length)
{
	Size		size = MAXALIGN(HJTUPLE_OVERHEAD + length);
	HashJoinTuple tuple;

	if (size > HASH_CHUNK_THRESHOLD)
		return NULL;
	if (b->chunk == NULL || b->chunk->maxlen - b->chunk->used < size)
		add_chunk(b);
	tuple = (HashJoinTuple) (HASH_CHUNK_DATA(b->chunk) + b->chunk->used);
	b->chunk->used += size;
	b->chunk->ntuples++;
	return tuple;
}

/* Store a row as a minimal tuple, which is a heap tuple without the beginning of its header. */
static HashJoinTuple
store_tuple(Builder *b, TupleTableSlot *slot)
{
	HeapTuple	heap = TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot) ?
		((HeapTupleTableSlot *) slot)->tuple : NULL;
	bool		should_free = false;
	MinimalTuple minimal = heap == NULL ? ExecFetchSlotMinimalTuple(slot, &should_free) :
		(MinimalTuple) ((char *) heap->t_data + MINIMAL_TUPLE_OFFSET);
	uint32		length = heap == NULL ? minimal->t_len : heap->t_len - MINIMAL_TUPLE_OFFSET;
	HashJoinTuple tuple = alloc_tuple(b, length);

	if (tuple != NULL)
	{
		memcpy(HJTUPLE_MINTUPLE(tuple), minimal, length);
		HJTUPLE_MINTUPLE(tuple)->t_len = length;
	}
	if (should_free)
		heap_free_minimal_tuple(minimal);
	return tuple;
}

/* Store one more row.  Returns false if it is a wide row. */
static bool
add_row(Builder *b, TupleTableSlot *slot, uint32 hash)
{
	AttrNumber	key = b->table->inner_key;
	HashJoinTuple tuple = store_tuple(b, slot);

	if (tuple == NULL)
		return false;
	tuple->hashvalue = hash;
	HeapTupleHeaderClearMatch(HJTUPLE_MINTUPLE(tuple));
	if (key != 0)
	{
		bool		isnull;

		/* rows with null keys are not stored in such tables */
		*la_hashtable_key(tuple) = DatumGetInt32(slot_getattr(slot, key, &isnull));
	}

	if (b->tuples > b->buckets && b->buckets <= INT_MAX / 2 &&
		(Size) b->buckets * 2 <= MaxAllocSize / sizeof(HashJoinTuple))
		b->buckets *= 2;
	b->tuples++;
	b->used += HJTUPLE_OVERHEAD + HJTUPLE_MINTUPLE(tuple)->t_len;
	return true;
}

/* Would stock split the table now (same memory limit)? */
static bool
would_split(const Builder *b)
{
	return b->used + b->buckets * sizeof(HashJoinTuple) > b->stock->spaceAllowed;
}

/* ---- the buckets ----------------------------------------------------- */

/* Tuples on their way into the chains: the last ones wait for their buckets. */
typedef struct Linker
{
	LaHashTable *table;
	HashJoinTuple waiting[BUCKET_FETCH_DISTANCE];
	uint64		n;				/* tuples so far */
} Linker;

static inline void
link_tuple(LaHashTable *table, HashJoinTuple tuple)
{
	HashJoinTuple *bucket = &table->buckets[tuple->hashvalue & table->mask];
	uint64		word = (uintptr_t) *bucket;

	if (table->filtered)
	{
		tuple->next.unshared = (HashJoinTuple) (uintptr_t) (word & POINTER_BITS);
		word = (uintptr_t) tuple | (word & ~POINTER_BITS) | FILTER_BIT(tuple->hashvalue);
		*bucket = (HashJoinTuple) (uintptr_t) word;
	}
	else
	{
		tuple->next.unshared = *bucket;
		*bucket = tuple;
	}
}

static void
link_chunk(Linker *l, HashMemoryChunk chunk)
{
	char	   *p = HASH_CHUNK_DATA(chunk);
	char	   *end = p + chunk->used;

	CHECK_FOR_INTERRUPTS();
	while (p < end)
	{
		HashJoinTuple tuple = (HashJoinTuple) p;
		HashJoinTuple *waiting = &l->waiting[l->n % BUCKET_FETCH_DISTANCE];

		if (l->n >= BUCKET_FETCH_DISTANCE)
			link_tuple(l->table, *waiting);
		*waiting = tuple;
		l->n++;
		la_prefetch(&l->table->buckets[tuple->hashvalue & l->table->mask]);
		p += MAXALIGN(HJTUPLE_OVERHEAD + HJTUPLE_MINTUPLE(tuple)->t_len);
	}
}

/*
 * Same table: stock links each row before its predecessors.  When it increases the number of
 * buckets, it links all rows again, from the newest chunk to the oldest.
 */
static void
link_all(Builder *b)
{
	Linker		l = {.table = b->table};
	bool		anew = b->buckets != b->first_buckets;

	for (int i = 0; i < b->nregions; i++)
	{
		Region	   *region = &b->regions[anew ? b->nregions - 1 - i : i];

		for (int j = 0; j < region->nchunks; j++)
			link_chunk(&l, chunk_of(region, anew ? region->nchunks - 1 - j : j));
	}
	for (uint64 n = l.n > BUCKET_FETCH_DISTANCE ? l.n - BUCKET_FETCH_DISTANCE : 0; n < l.n; n++)
		link_tuple(b->table, l.waiting[n % BUCKET_FETCH_DISTANCE]);
}

/* The size of the cache that the CPU has for itself (L2). */
Size
la_hashtable_cache_size(void)
{
	static long size = 0;

#ifdef _SC_LEVEL2_CACHE_SIZE
	if (size == 0)
		size = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
	return size > 0 ? size : DEFAULT_CACHE_BYTES;
}

/* Replace the buckets with which the table was created by this number of empty ones. */
static void
replace_buckets(Builder *b, int buckets, bool huge_pages)
{
	HashJoinTable stock = b->stock;
	Size		size = buckets * sizeof(HashJoinTuple);

	pfree(stock->buckets.unshared);
	stock->buckets.unshared = MemoryContextAllocHuge(stock->batchCxt, size);
	if (huge_pages)
		ask_for_huge_pages((char *) stock->buckets.unshared, size);
	memset(stock->buckets.unshared, 0, size);
	stock->nbuckets = stock->nbuckets_optimal = buckets;
	stock->nbuckets_original = b->first_buckets;
	stock->log2_nbuckets = stock->log2_nbuckets_optimal = pg_leftmost_one_pos32(buckets);
}

/* All rows are stored: link them into chains. */
static void
make_chains(Builder *b)
{
	LaHashTable *table = b->table;
	HashJoinTable stock = b->stock;
	Size		used;

	replace_buckets(b, b->buckets, true);
	used = b->used + b->buckets * sizeof(HashJoinTuple);
	table->buckets = stock->buckets.unshared;
	table->mask = b->buckets - 1;
	table->filtered = !la_hash_fills_inner(table->node) &&
		table->node->js.jointype != LA_JOIN_RIGHT_SEMI && b->regions_end <= POINTER_BITS;
	table->fits_in_cache = used <= la_hashtable_cache_size();
	link_all(b);

	stock->totalTuples = b->tuples;
	stock->la_hash_reported_rows = b->tuples + b->nulls;
	stock->spaceUsed = stock->spacePeak = used;
}

/* ---- tables that are left to stock ----------------------------------- */

/*
 * Same memory limit, wide rows: insert the rows so far as stock would have done, then the row
 * that was not stored, if any, and have MultiExecHash() take the others.
 */
static void
leave_to_stock(Builder *b, TupleTableSlot *not_stored, uint32 hash_of_it)
{
	HashState  *hash = b->table->hash;
	TupleTableSlot *slot = b->table->node->hj_HashTupleSlot;

	replace_buckets(b, b->first_buckets, false);
	for (int i = 0; i < b->nregions; i++)
	{
		for (int j = 0; j < b->regions[i].nchunks; j++)
		{
			HashMemoryChunk chunk = chunk_of(&b->regions[i], j);
			char	   *p = HASH_CHUNK_DATA(chunk);
			char	   *end = p + chunk->used;

			CHECK_FOR_INTERRUPTS();
			while (p < end)
			{
				HashJoinTuple tuple = (HashJoinTuple) p;
				MinimalTuple minimal = HJTUPLE_MINTUPLE(tuple);

				ExecStoreMinimalTuple(minimal, slot, false);
				ExecHashTableInsert(b->stock, slot, tuple->hashvalue);
				b->stock->totalTuples += 1;
				p += MAXALIGN(HJTUPLE_OVERHEAD + minimal->t_len);
			}
		}
		ExecClearTuple(slot);
		pfree(b->regions[i].memory);
	}
	if (not_stored != NULL)
	{
		ExecHashTableInsert(b->stock, not_stored, hash_of_it);
		b->stock->totalTuples += 1;
	}
	MemoryContextDelete(b->context);

	/* MultiExecHash() counts all rows of the table, not those with null keys */
	if (hash->ps.instrument)
		InstrStopNode(hash->ps.instrument, b->nulls);
	(void) MultiExecProcNode((PlanState *) hash);
}

/* ---- building -------------------------------------------------------- */

/*
 * Fetch the first outer row into hj_FirstOuterTupleSlot under the conditions under which
 * ExecHashJoin() does so before it builds the table.  Returns false if the outer side is empty.
 */
static bool
fetch_first_outer(LaHashTable *table)
{
	HashJoinState *node = table->node;
	PlanState  *outer = outerPlanState(node);

	node->hj_FirstOuterTupleSlot = NULL;
	if (la_hash_fills_inner(node) ||
		(!la_hash_fills_outer(node) &&
		 (outer->plan->startup_cost >= table->hash->ps.plan->total_cost ||
		  node->hj_OuterNotEmpty)))
		return true;
	node->hj_FirstOuterTupleSlot = ExecProcNode(outer);
	node->hj_OuterNotEmpty = !TupIsNull(node->hj_FirstOuterTupleSlot);
	return node->hj_OuterNotEmpty;
}

/*
 * Create a table with as few buckets as possible, as they will be replaced.
 *
 * ExecHashTableCreate() takes their number from the planner's estimate in the plan, which other
 * executions may share.  So it gets copies of the HashState, its Hash and the plan below, with
 * an estimate of one row.  It keeps no pointer to them.
 */
static HashJoinTable
create_for_one_row(LaHashTable *table, Size space_allowed)
{
	HashState	state = *table->hash;
	Hash		hash = *(Hash *) state.ps.plan;
	Plan		input = *outerPlan(&hash);
	HashJoinTable stock;

	input.plan_rows = 1;
	outerPlan(&hash) = &input;
	state.ps.plan = (Plan *) &hash;
	stock = la_hash_table_create(table->node, &state);
	stock->spaceAllowed = space_allowed;
	return stock;
}

static void
init_builder(Builder *b, LaHashTable *table, int buckets, Size space_allowed)
{
	memset(b, 0, sizeof(*b));
	b->table = table;
	b->stock = create_for_one_row(table, space_allowed);
	table->node->hj_HashTable = table->hash->hashtable = b->stock;
	b->first_buckets = b->buckets = buckets;
	b->context = AllocSetContextCreate(b->stock->batchCxt, "pg_lookahead hash join",
									   ALLOCSET_DEFAULT_SIZES);
	b->regions_room = 64;
	b->regions = MemoryContextAlloc(b->context, b->regions_room * sizeof(Region));
}

/* As MultiExecProcNode() and MultiExecHash().  Returns false if the table is left to stock. */
static bool
take_rows(Builder *b)
{
	HashState  *hash = b->table->hash;
	ExprContext *econtext = hash->ps.ps_ExprContext;

	CHECK_FOR_INTERRUPTS();
	if (hash->ps.chgParam != NULL)
		ExecReScan(&hash->ps);
	if (hash->ps.instrument)
		InstrStartNode(hash->ps.instrument);
	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(outerPlanState(hash));
		uint32		value;
		bool		stored;

		if (TupIsNull(slot))
			break;
		econtext->ecxt_outertuple = slot;
		if (!la_hash_inner_row(hash, econtext, &value))
		{
			if (la_hash_keeps_inner_nulls(hash))
			{
				la_nulls_keep(b->stock, la_hash_inner_nulls(hash), slot);
				b->nulls += 1;
			}
			continue;
		}
		stored = add_row(b, slot, value);
		if (!stored || would_split(b))
		{
			leave_to_stock(b, stored ? NULL : slot, value);
			return false;
		}
	}
	make_chains(b);
	if (hash->ps.instrument)
		InstrStopNode(hash->ps.instrument, b->tuples + b->nulls);
	return true;
}

/* Build the table, as ExecHashJoin() does in its state HJ_BUILD_HASHTABLE. */
LaHashBuildResult
la_hashtable_build(LaHashTable *table)
{
	HashJoinState *node = table->node;
	Hash	   *plan = (Hash *) table->hash->ps.plan;
	Plan	   *input = outerPlan(plan);
	Size		space_allowed;
	int			buckets;
	int			batches;
	int			skew;
	Builder		b;
	bool		built;

	ExecChooseHashTableSize(input->plan_rows, input->plan_width,
							OidIsValid(plan->skewTable), false, 0,
							&space_allowed, &buckets, &batches, &skew);
	if (batches > 1)
		return LA_HASH_LEFT_TO_STOCK;
	if (!fetch_first_outer(table))
		return LA_HASH_EMPTY;

	init_builder(&b, table, buckets, space_allowed);
	built = take_rows(&b);
	if (node->hj_HashTable->totalTuples == 0 && !la_hash_fills_outer(node) &&
		!la_nulls_are_inner(table->hash))
		return LA_HASH_EMPTY;
	node->hj_HashTable->nbatch_outstart = node->hj_HashTable->nbatch;
	node->hj_OuterNotEmpty = false;
	node->hj_JoinState = STATE_NEED_NEW_OUTER;
	return built ? LA_HASH_BUILT : LA_HASH_LEFT_TO_STOCK;
}

/* Have keys compared as int4 if the only hash clause compares two int4 columns. */
void
la_hashtable_find_keys(LaHashTable *table)
{
	HashJoin   *plan = (HashJoin *) table->node->js.ps.plan;
	OpExpr	   *clause = linitial(plan->hashclauses);
	Var		   *outer,
			   *inner;

	if (list_length(plan->hashclauses) != 1 || !IsA(clause, OpExpr) ||
		get_opcode(clause->opno) != F_INT4EQ || la_hash_fills_inner(table->node))
		return;
	outer = linitial(clause->args);
	inner = lsecond(clause->args);
	if (!IsA(outer, Var) || outer->varno != OUTER_VAR || outer->varattno <= 0 ||
		!IsA(inner, Var) || inner->varno != INNER_VAR || inner->varattno <= 0)
		return;
	table->outer_key = outer->varattno;
	table->inner_key = inner->varattno;
}
