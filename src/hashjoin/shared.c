/*
 * shared.c
 *	  Parallel Hash: a shared table, fetched ahead.
 *
 * A join whose table several processes build together runs stock.  Between the join and its
 * outer child, and between the Hash and its child, rows are taken ahead in batches
 * (probebatch.c), their hash values are computed, and what stock is going to read of the table is
 * fetched into the CPU's cache:
 *
 *		ExecParallelHashJoin (stock) --> exec_child --> outer child
 *				|							 |
 *				+---- buckets, chains <------+  fetched
 *				|							 |
 *		MultiExecHash (stock) ---------> exec_child --> child of the Hash
 *
 * Behaviours
 *	Hints only: stock computes the hash value again, and looks the row up, or inserts it.
 *	Pass through: no row is taken ahead while the table is not a shared one (there were no
 *		resources for workers), has several batches, or fits into the CPU's own cache.
 *	Lazy wrapping: ExecHashJoinInitializeDSM() and ExecHashJoinInitializeWorker() reset
 *		ExecProcNode after ExecutorStart.  So a parallel hash join that is the outer child of
 *		another is wrapped again when one of its own children is first executed; the last
 *		child of such a chain of joins is a scan, which nobody resets.
 *
 * Eligible are children that no other room executes: sequential and bitmap heap scans, and
 * on the outer side parallel hash joins.  The rules for taking rows ahead are those of
 * other hash joins; the Hash takes all rows.
 *
 * src/hashjoin/shared.c
 */
#include "postgres.h"

#include "attach/attach.h"
#include "hashjoin/hashjoin_int.h"

/* A child of a parallel hash join, or of its Hash. */
typedef struct SharedChild
{
	LaInterposer interposer;
	LaProbeBatches batches;
} SharedChild;

static void
on_rescan(LaInterposer *interposer)
{
	la_probebatch_clear(&la_interpose_container(SharedChild, interposer)->batches);
}

static void
on_end(LaInterposer *interposer)
{
	la_probebatch_end(&la_interpose_container(SharedChild, interposer)->batches);
}

static void
prepare(LaProbeBatches *batches)
{
	LaInterposer *above = la_interpose_find(&batches->table.node->js.ps, LA_LAYER_OUTPUT);
	HashJoinTable stock = batches->table.node->hj_HashTable;
	bool		usable;

	la_probebatch_begin(batches);
	if (above != NULL)
		la_interpose_renew(above);	/* lazy wrapping */

	/* a shared table, in one batch, that is being looked up, or built? */
	usable = stock != NULL && stock->parallel_state != NULL && stock->nbatch == 1 &&
		stock->curbatch == 0;
	if (usable)
	{
		Size		size = batches->inserts ? stock->nbuckets * sizeof(dsa_pointer_atomic) :
			stock->batches[0].shared->size;

		batches->table.area = stock->area;
		batches->table.fits_in_cache = size <= la_hashtable_cache_size();
	}
	la_probebatch_prepare(batches, usable);
}

static TupleTableSlot *
exec_child(PlanState *ps)
{
	LaInterposer *interposer = la_interpose_enter(ps, LA_LAYER_OUTPUT);
	LaProbeBatches *batches = &la_interpose_container(SharedChild, interposer)->batches;
	HashJoinTable stock = batches->table.node->hj_HashTable;
	LaProbeRow *row;

	if (!batches->prepared)
		prepare(batches);
	if (!batches->runs_ahead)
		return interposer->below(ps);

	/* a table that is being built may get more buckets */
	batches->table.shared_buckets = stock->buckets.shared;
	batches->table.mask = stock->nbuckets - 1;
	batches->exec_outer = interposer->below;
	row = la_probebatch_next(batches);
	return row == NULL ? NULL : row->slot;
}

/* Run the child's rows ahead, if it is one of those that are eligible. */
static void
attach_child(HashJoinState *node, PlanState *child, bool inserts)
{
	SharedChild *shared;

	/* several SubPlan nodes may have one plan in common */
	if (!la_interpose_output_is_possible(child))
		return;
	if (!IsA(child, SeqScanState) && !IsA(child, BitmapHeapScanState) &&
		(!IsA(child, HashJoinState) || !child->plan->parallel_aware || inserts))
		return;
	shared = MemoryContextAllocZero(node->js.ps.state->es_query_cxt, sizeof(SharedChild));
	la_probebatch_init(&shared->batches, node, true, inserts);
	shared->interposer.on_rescan = on_rescan;
	shared->interposer.on_end = on_end;
	shared->interposer.listens_to = child->ps_ExprContext;
	la_interpose_begin(&shared->interposer, child, LA_LAYER_OUTPUT, exec_child);
}

/* The join will be executed by several processes. */
void
la_shared_attach(HashJoinState *node)
{
	attach_child(node, outerPlanState(node), false);
	attach_child(node, outerPlanState(innerPlanState(node)), true);
}
