/*
 * hashjoin_int.h
 *	  One hash join that we execute: shared by the files of this room only.
 *
 * src/hashjoin/hashjoin_int.h
 */
#ifndef LA_HASHJOIN_INT_H
#define LA_HASHJOIN_INT_H

#include "executor/executor.h"
#include "executor/hashjoin.h"
#include "nodes/execnodes.h"
#include "storage/buf.h"

#include "attach/runahead.h"
#include "attach/interpose_node.h"
#include "base/budget.h"
#include "base/compat.h"
#include "base/stats.h"

#define BATCH			32		/* outer rows whose look-ups are made together */
#define MAX_PINS		8		/* buffers in which they are */

/* An outer row, and where its look-up has come. */
typedef struct Probe
{
	TupleTableSlot *slot;
	HashJoinTuple candidate;	/* first of the chain, or NULL */
	uint32		hash;
	int32		key;			/* if it is compared here */
	bool		wanted;			/* has a hash value, and may match */
	uint32		skipped;		/* rows with null keys before this one */
} Probe;

typedef struct LaHashJoin
{
	LaInterposer interposer;
	HashJoinState *node;
	HashState  *hash;
	PlanState  *outer;
	LaRunAhead	ahead;
	LaCounters	counters;
	LaBudget	budget;			/* of pins */

	bool		prepared;		/* to look rows up in the table */
	bool		early;			/* outer rows may be taken ahead, */
	bool		early_takes_all;	/* ... if all of them will be taken */
	bool		early_known;

	/* hashtable.c */
	HashJoinTable table;		/* that we have built */
	HashJoinTuple *buckets;		/* with filter bits, if filtered */
	uint32		mask;
	bool		filtered;
	bool		small;			/* the table fits into the CPU's own cache */

	/* shared.c */
	bool		shared;			/* the table is stock's, of several processes */
	bool		building;		/* ... and "outer" is the child of the Hash */
	dsa_pointer_atomic *shared_buckets;

	/* keys that are compared here: attribute numbers, or 0 */
	AttrNumber	outer_key;
	AttrNumber	inner_key;

	/* probebatch.c */
	Probe		probes[2][BATCH];
	TupleTableSlot *slots[2][BATCH];
	bool		have_slots;
	int			attributes;		/* of an outer row that are needed, or -1: the
								 * row itself is */
	bool		by_value;		/* ... all of these are */
	Buffer		pins[2][MAX_PINS];	/* of rows in slots[] */
	int			npins[2];
	int			count[2];
	int			current;		/* which of both is being joined */
	int			position;		/* in it */
	int			batch;			/* rows to be taken at a time; 0: none ahead */
	bool		takes_all;
	bool		test_first;		/* outer rows that cannot match are skipped */
	bool		eof;			/* of the outer side */
	uint32		skipped;		/* rows that could not match, after the last
								 * one that could */

	/* probe.c */
	bool		unmatched;		/* inner rows without a match are returned */
	bool		nulls;			/* rows with null keys are */
	Probe	   *probe;			/* that is being joined, or NULL */
	HashJoinTuple match;		/* its last match, or NULL */
	bool		matched;
} LaHashJoin;

/*
 * Filter bits: the upper 16 bits of a pointer to a chain say which of 16 values a
 * few bits of hash values have that are in the chain.  These bits must not be those
 * that chose the chain.
 */
#define FILTER_SHIFT		48
#define POINTER_BITS		((UINT64CONST(1) << FILTER_SHIFT) - 1)
#define filter_bit(hash) \
	(UINT64CONST(1) << (FILTER_SHIFT + (((hash) * 0x9E3779B1U) >> 28)))

/* An int4 key is kept in the padding of the tuple's header. */
#define key_of(tuple)		(((int32 *) (tuple))[3])

StaticAssertDecl(SIZEOF_VOID_P != 8 || sizeof(HashJoinTupleData) == 16,
				 "HashJoinTupleData has no padding");

/* As nodeHashjoin.c defines them, for itself only. */
#define STATE_BUILD			1
#define STATE_PROBE			2
#define fill_outer(node)	((node)->hj_NullInnerTupleSlot != NULL)
#define fill_inner(node)	((node)->hj_NullOuterTupleSlot != NULL)

#ifdef LA_HASH_EXPRESSIONS
/* A row's hash value; false if it cannot match because of a null. */
static inline bool
la_hash_by_expression(ExprState *expression, ExprContext *econtext, uint32 *value)
{
	bool		isnull;

	ResetExprContext(econtext);
	*value = DatumGetUInt32(ExecEvalExprSwitchContext(expression, econtext,
													  &isnull));
	return !isnull;
}
#endif

/* hashjoin.c */
extern bool la_hash_takes_all(const LaHashJoin *join);
extern bool la_hash_may_be_early(LaHashJoin *join);

/* hashtable.c */
typedef enum LaHashBuildResult
{
	LA_HASH_BUILT,
	LA_HASH_EMPTY,				/* the join is empty */
	LA_HASH_LEFT_TO_STOCK		/* the server's own function is to go on */
} LaHashBuildResult;

extern LaHashBuildResult la_hash_build(LaHashJoin *join);
extern Size la_hash_cache_size(void);

/* shared.c */
extern void la_hash_attach_shared(LaHashJoin *join);
extern HashJoinTuple la_hash_shared_tuple(const LaHashJoin *join, uint32 hash);

/* nulls.c */
extern void la_nulls_keep_outer(LaHashJoin *join, TupleTableSlot *slot);
extern bool la_nulls_keep_inner(LaHashJoin *join, TupleTableSlot *slot);
extern bool la_nulls_are_inner(const LaHashJoin *join);
extern bool la_nulls_may_be_outer(const HashJoinState *node);
extern TupleTableSlot *la_nulls_next(LaHashJoin *join);

/* probebatch.c */
extern void la_probebatch_prepare(LaHashJoin *join);
extern Probe *la_probebatch_next(LaHashJoin *join);
extern void la_probebatch_clear(LaHashJoin *join);

/* probe.c */
extern TupleTableSlot *la_probe_next(LaHashJoin *join);
extern void la_probe_clear(LaHashJoin *join);

#endif							/* LA_HASHJOIN_INT_H */
