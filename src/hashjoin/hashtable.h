/*
 * hashtable.h
 *	  The table of a hash join: built, and looked up.
 *
 * src/hashjoin/hashtable.h
 */
#ifndef LA_HASHTABLE_H
#define LA_HASHTABLE_H

#include "executor/hashjoin.h"
#include "nodes/execnodes.h"
#include "utils/dsa.h"

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

StaticAssertDecl(SIZEOF_VOID_P != 8 || sizeof(HashJoinTupleData) == 16,
				 "HashJoinTupleData has no padding");

/* A row's int4 key is kept a second time in the padding of its HashJoinTupleData. */
static inline int32 *
la_hashtable_key(HashJoinTuple tuple)
{
	return &((int32 *) tuple)[3];
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
	word = (uint64) table->buckets[hash & table->mask];
	if (!table->filtered)
		return (HashJoinTuple) word;
	return (word & FILTER_BIT(hash)) != 0 ? (HashJoinTuple) (word & POINTER_BITS) : NULL;
}

extern void la_hashtable_find_keys(LaHashTable *table);
extern LaHashBuildResult la_hashtable_build(LaHashTable *table);
extern Size la_hashtable_cache_size(void);

#endif							/* LA_HASHTABLE_H */
