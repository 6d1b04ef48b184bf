/*
 * hashjoin_int.h
 *	  What the files of this room share.
 *
 * src/hashjoin/hashjoin_int.h
 */
#ifndef LA_HASHJOIN_INT_H
#define LA_HASHJOIN_INT_H

#include "executor/executor.h"
#include "executor/hashjoin.h"
#include "executor/nodeHash.h"
#include "nodes/execnodes.h"
#include "storage/buf.h"
#include "utils/dsa.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"

/* ---- hashjoin_int: states of a HashJoinState, and the hash values of its rows ---- */

/* Values of hj_JoinState, which nodeHashjoin.c defines for itself only. */
#define STATE_BUILD_HASHTABLE	1
#define STATE_NEED_NEW_OUTER	2
#define STATE_FILL_OUTER_NULLS	6	/* since 19 */
#define STATE_FILL_INNER_NULLS	7

/* Does the join return outer rows without a match? */
static inline bool
la_hash_fills_outer(const HashJoinState *node)
{
	return node->hj_NullInnerTupleSlot != NULL;
}

/* Does it return inner rows without a match? */
static inline bool
la_hash_fills_inner(const HashJoinState *node)
{
	return node->hj_NullOuterTupleSlot != NULL;
}

/*
 * Compute the hash value of econtext's outer tuple.  Returns false if it has none because of a
 * null key, so that the row cannot match.
 */
#ifdef LA_HASH_EXPRESSIONS
static inline bool
la_hash_by_expression(ExprState *expression, ExprContext *econtext, uint32 *value)
{
	bool		isnull;

	ResetExprContext(econtext);
	*value = DatumGetUInt32(ExecEvalExprSwitchContext(expression, econtext,
													  &isnull));
	return !isnull;
}

static inline bool
la_hash_inner_row(HashState *hash, ExprContext *econtext, uint32 *value)
{
	return la_hash_by_expression(hash->hash_expr, econtext, value);
}

static inline bool
la_hash_outer_row(HashJoinState *node, ExprContext *econtext, uint32 *value)
{
	return la_hash_by_expression(node->hj_OuterHash, econtext, value);
}
#else
static inline bool
la_hash_inner_row(HashState *hash, ExprContext *econtext, uint32 *value)
{
	return ExecHashGetHashValue(hash->hashtable, econtext, hash->hashkeys, false,
								hash->hashtable->keepNulls, value);
}

static inline bool
la_hash_outer_row(HashJoinState *node, ExprContext *econtext, uint32 *value)
{
	return ExecHashGetHashValue(node->hj_HashTable, econtext, node->hj_OuterHashKeys,
								true, la_hash_fills_outer(node), value);
}
#endif

/* ---- hashtable: the table of a hash join: built, and looked up ---- */

/* A table for look-ups: built by hashtable.c, or by stock in several processes (shared.c). */
typedef struct LaHashTable
{
	HashJoinState *node;
	HashState  *hash;
	uint32		mask;			/* hash & mask is the bucket's number */
	bool		fits_in_cache;	/* of the CPU: look-ups do not wait */

	/* built by hashtable.c */
	HashJoinTuple *buckets;
	bool		filtered;		/* pointers in buckets have filter bits */
	AttrNumber	outer_key;		/* int4 columns that are compared, or 0 */
	AttrNumber	inner_key;

	/* shared */
	bool		shared;
	dsa_pointer_atomic *shared_buckets;
	dsa_area   *area;
} LaHashTable;

typedef enum LaHashBuildResult
{
	LA_HASH_BUILT,
	LA_HASH_EMPTY,				/* the join has no rows */
	LA_HASH_LEFT_TO_STOCK		/* ExecHashJoin() is to go on */
} LaHashBuildResult;

/*
 * Filter bits: the upper 16 bits of a pointer to a chain are a set of numbers from 0 to 15,
 * each taken from the hash value of a row of the chain.  The product's upper bits are used,
 * as the lower bits of the hash value are the same in the whole chain.
 */
#define FILTER_SHIFT		48
#define POINTER_BITS		((UINT64CONST(1) << FILTER_SHIFT) - 1)
#define FILTER_BIT(hash) \
	(UINT64CONST(1) << (FILTER_SHIFT + (((hash) * 0x9E3779B1U) >> 28)))

/*
 * HashJoinTupleData, whose last four bytes are padding where pointers have eight: a row's int4 key
 * is kept there a second time, so that the probe need not take the row apart.
 */
typedef struct LaKeyedTuple
{
	HashJoinTuple next;
	uint32		hashvalue;
	int32		key;
} LaKeyedTuple;

StaticAssertDecl(SIZEOF_VOID_P != 8 ||
				 (sizeof(LaKeyedTuple) == sizeof(HashJoinTupleData) &&
				  offsetof(LaKeyedTuple, hashvalue) == offsetof(HashJoinTupleData, hashvalue) &&
				  offsetof(LaKeyedTuple, key) == sizeof(uint64) + sizeof(uint32)),
				 "HashJoinTupleData has no padding");

static inline int32 *
la_hashtable_key(HashJoinTuple tuple)
{
	return &((LaKeyedTuple *) tuple)->key;
}

/* What a look-up reads first. */
static inline const void *
la_hashtable_bucket(const LaHashTable *table, uint32 hash)
{
	if (table->shared)
		return &table->shared_buckets[hash & table->mask];
	return &table->buckets[hash & table->mask];
}

/* The first row of the chain that may have this hash value; NULL if none has it. */
static inline HashJoinTuple
la_hashtable_chain(const LaHashTable *table, uint32 hash)
{
	uint64		word;

	if (table->shared)
	{
		dsa_pointer pointer = dsa_pointer_atomic_read(&table->shared_buckets[hash & table->mask]);

		return DsaPointerIsValid(pointer) ? dsa_get_address(table->area, pointer) : NULL;
	}
	word = (uintptr_t) table->buckets[hash & table->mask];
	if (!table->filtered)
		return (HashJoinTuple) (uintptr_t) word;
	if ((word & FILTER_BIT(hash)) == 0)
		return NULL;
	return (HashJoinTuple) (uintptr_t) (word & POINTER_BITS);
}

extern void la_hashtable_find_keys(LaHashTable *table);
extern LaHashBuildResult la_hashtable_build(LaHashTable *table);
extern Size la_hashtable_cache_size(void);

/* ---- nulls: rows with null keys that a hash join has to return ---- */

extern void la_nulls_keep(HashJoinTable table, Tuplestorestate **store,
						  TupleTableSlot *slot);
extern bool la_nulls_are_inner(const HashState *hash);
extern bool la_nulls_begin(HashJoinState *node);

/* ---- probebatch: outer rows taken ahead in batches, and their look-ups ---- */

#define PROBE_BATCH_ROWS	32
#define PROBE_BATCH_PINS	8	/* buffers that a batch keeps pinned */

/* An outer row, and its look-up. */
typedef struct LaProbeRow
{
	TupleTableSlot *slot;
	HashJoinTuple candidate;	/* first row of its chain, or NULL */
	uint32		hash;
	int32		key;			/* where keys are compared as int4 */
	bool		can_match;		/* no null key prevents it */
	uint32		skipped;		/* rows before it that cannot match */
} LaProbeRow;

typedef struct LaProbeBatch
{
	LaProbeRow	rows[PROBE_BATCH_ROWS];
	TupleTableSlot *slots[PROBE_BATCH_ROWS];	/* for copies of them */
	Buffer		pins[PROBE_BATCH_PINS]; /* of copies by reference */
	int			nrows;
	int			npins;
} LaProbeBatch;

/* The outer rows of a hash join, or the rows that are inserted into a shared table. */
typedef struct LaProbeBatches
{
	LaHashTable table;
	bool		prepared;		/* for the present scan of the outer side */
	bool		runs_ahead;		/* rows are taken ahead */
	bool		wants_rows;		/* also if the table fits into the cache */
	ExecProcNodeMtd exec_outer; /* the outer child's, if the table is shared */

	/* The rest is for probebatch.c only.  What is known of the join: */
	PlanState  *outer;			/* where rows come from */
	bool		inserts;		/* they are inserted, not looked up */
	bool		by_value;		/* the first ncolumns are all passed by value */
	int			ncolumns;		/* only these are needed; -1: the whole row */
	LaRunAhead	ahead;
	LaCounters	counters;

	/* The present scan: */
	bool		takes_all;		/* all rows will be taken, if nothing fails */
	bool		judged;			/* may_run_ahead() has been answered */
	bool		judged_takes_all;	/* the value of takes_all that it was for */
	bool		judged_may;		/* the answer */
	bool		filter_first;	/* rows are tested before they are copied */
	int			batch_rows;		/* to be taken at a time; 0: none ahead */

	/* Its rows: */
	bool		eof;
	uint32		skipped;		/* rows since the last one that can match */
	int			position;		/* in the current batch */
	LaProbeBatch *current;		/* being joined, while the other is fetched */
	LaProbeBatch both[2];
	LaBudget	budget;			/* of pins */
} LaProbeBatches;

extern void la_probebatch_init(LaProbeBatches *b, HashJoinState *node, bool shared,
							   bool inserts);
extern void la_probebatch_begin(LaProbeBatches *b);
extern void la_probebatch_prepare(LaProbeBatches *b, bool usable);
extern void la_probebatch_run_ahead(LaProbeBatches *b);
extern LaProbeRow *la_probebatch_next(LaProbeBatches *b);
extern const LaProbeRow *la_probebatch_peek(LaProbeBatches *b, int n);
extern void la_probebatch_clear(LaProbeBatches *b);
extern void la_probebatch_end(LaProbeBatches *b);

/* ---- probe: outer rows joined with the rows of a table that hashtable.c has built ---- */

typedef struct LaProbe
{
	LaProbeBatches batches;

	/* for probe.c only */
	bool		unmatched;		/* inner rows without a match are returned */
	bool		matched;		/* "row" has had a match */
	struct LaInnerValues *inner_values; /* is told of each row; or NULL */
	LaProbeRow *row;			/* that is being joined, or NULL */
	HashJoinTuple match;		/* its last match, or NULL */
} LaProbe;

extern TupleTableSlot *la_probe_next(LaProbe *probe);
extern void la_probe_clear(LaProbe *probe);

/* ---- innervalues: values out of line of the inner rows that look-ups to come will find ---- */

#define LA_INNER_COLUMNS	8	/* more are left alone */

typedef struct LaInnerValues
{
	LaProbe    *probe;
	TupleTableSlot *slot;		/* for an inner row */
	AttrNumber	columns[LA_INNER_COLUMNS];
	int			ncolumns;
	LaFollower *follower;		/* NULL until there is a value */
	uint64		number;			/* of the current outer row */
	int			looked;			/* outer rows, for a value */
	bool		asked;			/* that rows be taken ahead */
	bool		given_up;
} LaInnerValues;

extern void la_innervalues_begin(LaInnerValues *v, LaProbe *probe);
extern void la_innervalues_turn(LaInnerValues *v);
extern void la_innervalues_clear(LaInnerValues *v);

/* ---- shared: parallel Hash: a shared table, fetched ahead ---- */

extern void la_shared_attach(HashJoinState *node);

#endif							/* LA_HASHJOIN_INT_H */
