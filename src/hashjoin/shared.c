/*
 * shared.c
 *	  Parallel Hash: a shared table, fetched ahead.
 *
 * A table that several processes build together stays stock's, and so does the join.
 * What can be done beside it: between the join and its outer child, and between the Hash
 * and its child, rows are taken ahead in batches (probebatch.c), their hash values computed,
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
 *	C. ExecHashJoinInitializeDSM() and ExecHashJoinInitializeWorker() reset the function of
 *	   a parallel hash join after ExecutorStart.  An outer child that is such a join gets
 *	   its exec_child once more when the first row is asked for at the bottom of the chain
 *	   of such joins, whose outer child is a scan.
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
#include "hashjoin/hashjoin_int.h"

/* The first row that the table holds for this hash value, or one like it; or NULL. */
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
	LaInterposer *above = la_interpose_find(&join->node->js.ps, LA_LAYER_OUTPUT);

	la_demand_context(&join->node->js.ps, &join->ahead.context);
	if (above != NULL)
		la_interpose_renew(above);	/* behaviour C */
	if (!join->building)
		join->counters.c[LA_SCANS_ATTACHED]++;
	join->early = find_table(join) && (!join->small || la_force) &&
		la_hash_may_be_early(join);
	la_probebatch_prepare(join);
	join->prepared = true;
}

static TupleTableSlot *
exec_child(PlanState *ps)
{
	LaInterposer *interposer = la_interpose_of(ps, LA_LAYER_OUTPUT);
	LaHashJoin *join = la_interpose_container(LaHashJoin, interposer);
	HashJoinTable table = join->node->hj_HashTable;
	Probe	   *p;

	if (!join->prepared)
		prepare(join);
	if (join->batch == 0)
		return interposer->below(ps);

	/* a table that is being built may get more buckets */
	join->shared_buckets = table->buckets.shared;
	join->mask = table->nbuckets - 1;
	p = la_probebatch_next(join);
	return p == NULL ? NULL : p->slot;
}

/*
 * The join will be executed by several processes: its outer child, or that of its Hash.
 */
void
la_hash_attach_shared(LaHashJoin *join)
{
	/* several SubPlan nodes may have one plan in common */
	if (!la_interpose_output_is_possible(join->outer))
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
	join->interposer.listens_to = join->outer->ps_ExprContext;
	la_interpose_begin(&join->interposer, join->outer, LA_LAYER_OUTPUT, exec_child);
}
