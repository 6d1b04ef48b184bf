/*
 * innervalues.c
 *	  Values out of line of the inner rows that look-ups to come will find.
 *
 * A hash table has pointers to such values, which are fetched when a joined row is used.  The outer
 * rows of a batch are known with their chains (probebatch.c), and so are these pointers:
 *
 *		[ row | row | row | row ] [ row | ... ]		outer rows of both batches
 *				^     |      |
 *			current	  v      v
 *					 inner rows with the same hash value --> pointers --> follower (attach/follow.c)
 *
 * Nothing is done until an inner row with such a value is looked up, and rows are taken ahead for
 * it only once the follower has seen that values are fetched, and waited for.  An inner row with
 * the hash value of another key is a wrong hint.
 *
 * src/hashjoin/innervalues.c
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "optimizer/optimizer.h"

#include "hashjoin/hashjoin_int.h"

#define MOST_LOOKED 64			/* outer rows without a value */
#define MOST_OF_CHAIN 32		/* inner rows that are looked at for one */

/* The n-th outer row behind the current one, or NULL. */
static const LaProbeRow *
row_at(const LaInnerValues *v, int n)
{
	return n == 0 ? v->probe->row : la_probebatch_peek(&v->probe->batches, n);
}

/* LaComingValues.is_known */
static bool
is_known(void *arg, int n, uint64 *id)
{
	const LaInnerValues *v = arg;

	*id = v->number + n;
	return row_at(v, n) != NULL;
}

/* Pass on the values of an inner row.  Returns false if no more are wanted. */
static bool
values_of(const LaInnerValues *v, HashJoinTuple tuple, la_value_function add, void *to)
{
	bool		goes_on = true;

	ExecStoreMinimalTuple(HJTUPLE_MINTUPLE(tuple), v->slot, false);
	for (int i = 0; i < v->ncolumns && goes_on; i++)
	{
		bool		isnull;
		Datum		value = slot_getattr(v->slot, v->columns[i], &isnull);

		goes_on = isnull || add(to, value);
	}
	ExecClearTuple(v->slot);
	return goes_on;
}

/* LaComingValues.values */
static void
values(void *arg, int n, la_value_function add, void *to)
{
	const LaInnerValues *v = arg;
	const LaProbeRow *row = row_at(v, n);
	HashJoinTuple tuple = row->candidate;

	for (int i = 0; tuple != NULL && i < MOST_OF_CHAIN; i++)
	{
		if (tuple->hashvalue == row->hash && !values_of(v, tuple, add, to))
			break;
		tuple = tuple->next.unshared;
	}
}

/* Columns of the inner rows that the join returns, and that may be out of line. */
static void
find_columns(LaInnerValues *v, const HashJoinState *node)
{
	const Plan *plan = node->js.ps.plan;
	TupleDesc	desc = v->slot->tts_tupleDescriptor;
	Bitmapset  *used = NULL;

	pull_varattnos((Node *) plan->targetlist, INNER_VAR, &used);
	for (int i = 0; i < desc->natts && v->ncolumns < LA_INNER_COLUMNS; i++)
	{
		if (TupleDescAttr(desc, i)->attlen == -1 &&
			bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber, used))
			v->columns[v->ncolumns++] = i + 1;
	}
	bms_free(used);
}

/* The table has been built.  *v is zeroed before the first time. */
void
la_innervalues_begin(LaInnerValues *v, LaProbe *probe)
{
	HashJoinState *node = probe->batches.table.node;
	EState	   *estate = node->js.ps.state;
	MemoryContext old;

	if (v->slot == NULL)
	{
		old = MemoryContextSwitchTo(estate->es_query_cxt);
		v->probe = probe;
		v->slot = la_alloc_table_slot(&estate->es_tupleTable,
									  ExecGetResultType(innerPlanState(node)),
									  &TTSOpsMinimalTuple);
		find_columns(v, node);
		MemoryContextSwitchTo(old);
		v->given_up = v->ncolumns == 0;
	}
	if (!v->given_up)
		probe->inner_values = v;
}

/* Follow the rows from this one on, if it finds one with a value. */
static void
look(LaInnerValues *v)
{
	HashJoinState *node = v->probe->batches.table.node;
	const LaProbeRow *row = v->probe->row;
	LaComingValues coming = {v, is_known, values};

	if (row->candidate == NULL)
		return;
	if ((HJTUPLE_MINTUPLE(row->candidate)->t_infomask & HEAP_HASEXTERNAL) != 0)
		v->follower = la_follow_values(&node->js.ps, &coming);
	v->given_up = v->follower == NULL && ++v->looked >= MOST_LOOKED;
}

/* An outer row has been looked up, and is about to be joined. */
void
la_innervalues_turn(LaInnerValues *v)
{
	v->number++;
	if (v->follower == NULL)
		look(v);
	else if (!la_follow(v->follower))
	{
		v->follower = NULL;
		v->given_up = true;
	}
	else if (v->follower->attends && !v->asked)
	{
		la_probebatch_run_ahead(&v->probe->batches);
		v->asked = true;
	}
	if (v->given_up)
		v->probe->inner_values = NULL;
}

/* The outer rows are forgotten. */
void
la_innervalues_clear(LaInnerValues *v)
{
	if (v->follower != NULL)
		v->follower->clear(v->follower);
}
