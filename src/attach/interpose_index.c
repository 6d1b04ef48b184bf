/*
 * interpose_index.c
 *	  Functions of ours in the access method routine of one btree index: the one place where
 *	  they are exchanged.
 *
 * The server calls an access method through the routine that the index's relcache entry
 * points to.  The entry has a copy of its own, which lives as long as the entry; where the
 * server shares one routine among all indexes of the access method (19), it gets one here.
 *
 *		what				who				from					until
 *		ambuild				indexbuild/		its build is next		its build begins
 *		aminsert, and		write/			a statement of many		the statement closes it
 *		aminsertcleanup						rows has opened it		(17), or a row comes with
 *																	the setting off
 *
 * At the latest they are put back when the transaction ends in which they were exchanged, or
 * the subtransaction fails.
 *
 * Invariants
 *	- Only nbtree's own functions are exchanged, and put back only where ours still are.
 *	- While nobody has the index open, the entry may be dropped or built anew.  The routine
 *	  goes with the entry's rd_indexcxt, and a callback of that context forgets what is
 *	  known of it here; so nothing points to a routine that is gone.
 *	- To put back opens, locks and looks up nothing: it works while a transaction fails.
 *
 * src/attach/interpose_index.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/xact.h"
#include "lib/ilist.h"
#include "nodes/execnodes.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "attach/interpose_index.h"
#include "base/compat.h"

/* A routine in which functions are exchanged, or have been. */
typedef struct Routine
{
	IndexAmRoutine *routine;	/* hash key */
	ambuild_function build;		/* ours, or NULL */
	aminsert_function insert;	/* ours, or NULL */
	SubTransactionId exchanged_in;
	dlist_node	node;			/* in exchanged, if one of them is ours */
	MemoryContextCallback callback;
} Routine;

static HTAB *routines = NULL;
static dlist_head exchanged = DLIST_STATIC_INIT(exchanged);

static void
put_back(Routine *r)
{
	if (r->build == NULL && r->insert == NULL)
		return;
	if (r->routine->ambuild == r->build)
		r->routine->ambuild = btbuild;
	if (r->routine->aminsert == r->insert)
	{
		r->routine->aminsert = btinsert;
		la_set_insert_cleanup(r->routine, NULL);
	}
	r->build = NULL;
	r->insert = NULL;
	dlist_delete(&r->node);
}

static void
on_transaction(XactEvent event, void *arg)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &exchanged)
		put_back(dlist_container(Routine, node, iter.cur));
}

/* Subtransactions within the one that fails have begun after it. */
static void
on_subtransaction(SubXactEvent event, SubTransactionId subid, SubTransactionId parent,
				  void *arg)
{
	dlist_mutable_iter iter;

	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	dlist_foreach_modify(iter, &exchanged)
	{
		Routine    *r = dlist_container(Routine, node, iter.cur);

		if (r->exchanged_in >= subid)
			put_back(r);
	}
}

/* The relcache entry goes, and its routine with it. */
static void
on_memory(void *arg)
{
	Routine    *r = arg;

	put_back(r);
	(void) hash_search(routines, &r->routine, HASH_REMOVE, NULL);
}

static void
initialize(void)
{
	HASHCTL		ctl = {.keysize = sizeof(IndexAmRoutine *),.entrysize = sizeof(Routine)};

	routines = hash_create("pg_lookahead access method routines", 64, &ctl,
						   HASH_ELEM | HASH_BLOBS);
	RegisterXactCallback(on_transaction, NULL);
	RegisterSubXactCallback(on_subtransaction, NULL);
}

/* The index's own routine. */
static IndexAmRoutine *
own_routine(Relation index)
{
	if (la_routine_is_shared(index))
	{
		IndexAmRoutine *copy = MemoryContextAlloc(index->rd_indexcxt,
												  sizeof(IndexAmRoutine));

		*copy = *index->rd_indam;
		index->rd_indam = copy;
	}
	return (IndexAmRoutine *) index->rd_indam;
}

/* A function of the index's routine is going to be exchanged. */
static Routine *
begin_exchange(Relation index)
{
	IndexAmRoutine *routine = own_routine(index);
	Routine    *r;
	bool		found;

	if (routines == NULL)
		initialize();
	r = hash_search(routines, &routine, HASH_ENTER, &found);
	if (!found)
	{
		r->build = NULL;
		r->insert = NULL;
		r->callback.func = on_memory;
		r->callback.arg = r;
		MemoryContextRegisterResetCallback(index->rd_indexcxt, &r->callback);
	}
	if (r->build == NULL && r->insert == NULL)
		dlist_push_head(&exchanged, &r->node);
	r->exchanged_in = GetCurrentSubTransactionId();
	return r;
}

/*
 * The index is about to be built.
 */
void
la_interpose_ambuild(Relation index, ambuild_function function)
{
	if (index->rd_indam->ambuild == btbuild)
	{
		Routine    *r = begin_exchange(index);

		r->routine->ambuild = r->build = function;
	}
}

static void
on_statement_end(Relation index, IndexInfo *info)
{
	la_interpose_restore(index);
}

/*
 * A statement has opened the index for many rows.
 */
void
la_interpose_aminsert(Relation index, aminsert_function function)
{
	if (index->rd_indam->aminsert == btinsert)
	{
		Routine    *r = begin_exchange(index);

		r->routine->aminsert = r->insert = function;
		la_set_insert_cleanup(r->routine, on_statement_end);
	}
}

/*
 * Put back what is exchanged for this index.
 */
void
la_interpose_restore(Relation index)
{
	const IndexAmRoutine *routine = index->rd_indam;
	Routine    *r = routines == NULL ? NULL : hash_search(routines, &routine, HASH_FIND, NULL);

	if (r != NULL)
		put_back(r);
}
