/*
 * shared.c
 *	  Parallel Hash: a shared table, fetched ahead.
 *
 * A table that several processes build together stays stock's, and so does the join.
 * What can be done beside it: between the join and its outer child, and between the Hash
 * and its child, rows are taken ahead in batches (batch.c), their hash values computed,
 * and what the join is going to read is fetched into the CPU's cache.
 *
 *		ExecParallelHashJoin (stock) --> exec_child --> outer child
 *				|							 |
 *				+---- buckets, chains <------+  fetched
 *				|							 |
 *		MultiExecHash (stock) ---------> exec_child --> child of the Hash
 *
 * Behaviours
 *	A. Nothing is decided here: stock computes the hash value again, and looks the row
 *	   up, or inserts it.
 *	B. Rows are passed on as they come while the table is not a shared one (no worker could
 *	   be had), has several batches, or fits into the CPU's own cache.
 *	C. The server sets ExecParallelHashJoin after ExecutorStart, when workers are started,
 *	   and would set aside what stands in its place.  An outer child that is a parallel
 *	   hash join itself gets its exec_child when the first row is asked for at the bottom of
 *	   the chain of such joins, in whose outer child nobody changes anything.
 *
 * Eligible are children that no other room executes: sequential and bitmap heap scans, and
 * on the outer side parallel hash joins.  The rules for taking rows ahead are those of
 * other hash joins; the Hash takes all rows.
 *
 * src/hashjoin/shared.c
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/dsa.h"

#include "base/guc.h"
#include "hashjoin/join.h"

static TupleTableSlot *exec_child(PlanState *ps);

/* Behaviour C. */
static void
put_between(LaHashJoin *join)
{
	PlanState  *outer = join->outer;

	if (outer->ExecProcNodeReal == exec_child)
		return;
	join->shared_outer = outer->ExecProcNodeReal;
	outer->ExecProcNodeReal = exec_child;
	if (!outer->instrument)
		outer->ExecProcNode = exec_child;
}

/* The first row that the table hold for this hash value, or one like it; or NULL. */
HashJoinTuple
la_hash_shared_tuple(const LaHashJoin *join, uint32 hash)
{
	dsa_pointer pointer =
		dsa_pointer_atomic_read(&join->shared_buckets[hash & join->mask]);

	return DsaPointerIsValid(pointer) ?
		dsa_get_address(join->node->hj_HashTable->area, pointer) : NULL;
}

/*
 * Is there a shared table, in one piece, that is being looked up, or built?  Behaviour B.
 */
static bool
find_table(LaHashJoin *join)
{
	HashJoinTable table = join->node->hj_HashTable;

	if (table == NULL || table->parallel_state == NULL || table->nbatch != 1 ||
		table->curbatch != 0)
		return false;
	join->small = (join->building ? table->nbuckets * sizeof(dsa_pointer_atomic) :
				   table->batches[0].shared->size) <= la_hash_cache_size();
	return true;
}

static void
prepare(LaHashJoin *join)
{
	LaTakeover *above = la_takeover_of(&join->node->js.ps);

	if (above != NULL)
		put_between(la_takeover_container(LaHashJoin, above));
	if (!join->building)
		join->counters.c[LA_SCANS_ATTACHED]++;
	join->early = find_table(join) && la_hash_may_be_early(join);
	la_batch_prepare(join);
	join->prepared = true;
}

static TupleTableSlot *
exec_child(PlanState *ps)
{
	LaHashJoin *join = la_takeover_container(LaHashJoin, la_takeover_of(ps));
	HashJoinTable table = join->node->hj_HashTable;
	Probe	   *p;

	if (!join->prepared)
		prepare(join);
	if (join->batch == 0)
		return join->shared_outer(ps);

	/* a table that is being built may get more buckets */
	join->shared_buckets = table->buckets.shared;
	join->mask = table->nbuckets - 1;
	p = la_batch_next(join);
	return p == NULL ? NULL : p->slot;
}

/*
 * The join will be executed by several processes: its outer child, or that of its Hash.
 */
void
la_hash_attach_shared(LaHashJoin *join)
{
	/* several SubPlan nodes may have one plan in common */
	if (join->outer->ExecProcNodeReal == exec_child)
		return;
	switch (nodeTag(join->outer))
	{
		case T_SeqScanState:
		case T_BitmapHeapScanState:
			break;
		case T_HashJoinState:
			if (join->outer->plan->parallel_aware && !join->building)
				break;
			return;
		default:
			return;
	}
	join->shared = true;
	join->shared_outer = join->outer->ExecProcNodeReal;
	join->shared_kind.stock = join->shared_outer;
	la_takeover_begin(&join->takeover, join->outer, &join->shared_kind, exec_child);
}
