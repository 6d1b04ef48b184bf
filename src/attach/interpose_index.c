/*
 * interpose_index.c
 *	  Functions of ours in the access method routine of one index: the one place where they are
 *	  exchanged.
 *
 * The server calls an access method through the routine that the index's relcache entry
 * points to.  The entry has a copy of its own; where the server shares one routine among all
 * indexes of the access method (19), the entry gets one here.
 *
 * Which room exchanges a function, and until when, is shown in src/README.md ("How functions
 * are interposed").  Whatever is still exchanged is put back when the transaction ends, or when the
 * subtransaction that exchanged it aborts.
 *
 * Invariants
 *	- Only functions of the server's access methods are exchanged, and they are put back only
 *	  where ours still are.
 *	- While the index is not open, its relcache entry may be dropped or rebuilt.  The routine
 *	  is freed with the entry's rd_indexcxt, and a callback of that context removes the
 *	  Routine kept here; so none points to a routine that is gone.
 *	- Putting back opens, locks and looks up nothing, so it is safe in a transaction that is
 *	  being aborted.
 *
 * src/attach/interpose_index.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "lib/ilist.h"
#include "nodes/execnodes.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"

/* A routine in which functions are, or have been, exchanged. */
typedef struct Routine
{
	IndexAmRoutine *routine;	/* hash key */
	ambuild_function build;		/* ours, or NULL */
	aminsert_function insert;	/* ours, or NULL */
	aminsert_function stock_insert;
	amrescan_function rescan;	/* ours, or NULL */
	SubTransactionId exchanged_in;
	dlist_node	node;			/* in "exchanged" while one of them is ours */
	MemoryContextCallback callback;
} Routine;

static HTAB *routines = NULL;
static dlist_head exchanged = DLIST_STATIC_INIT(exchanged);

static inline bool
is_exchanged(const Routine *r)
{
	return r->build != NULL || r->insert != NULL || r->rescan != NULL;
}

/* all: else only what is in front of a build, and of inserts */
static void
put_back(Routine *r, bool all)
{
	bool		was_exchanged = is_exchanged(r);

	if (r->routine->ambuild == r->build)
		r->routine->ambuild = btbuild;
	if (r->routine->aminsert == r->insert)
	{
		r->routine->aminsert = r->stock_insert;
		la_set_insert_cleanup(r->routine, NULL);
	}
	r->build = NULL;
	r->insert = NULL;
	if (all && r->routine->amrescan == r->rescan)
		r->routine->amrescan = btrescan;
	if (all)
		r->rescan = NULL;
	if (was_exchanged && !is_exchanged(r))
		dlist_delete(&r->node);
}

/* la_transaction_function.  Subtransactions of the one that fails have higher identifiers. */
static void
transaction_ends(XactEvent event, SubTransactionId failed)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &exchanged)
	{
		Routine    *r = dlist_container(Routine, node, iter.cur);

		if (r->exchanged_in >= failed)
			put_back(r, true);
	}
}

/* The relcache entry is freed, and the routine with it. */
static void
on_context_reset(void *arg)
{
	Routine    *r = arg;

	put_back(r, true);
	(void) hash_search(routines, &r->routine, HASH_REMOVE, NULL);
}

static void
initialize(void)
{
	HASHCTL		ctl = {.keysize = sizeof(IndexAmRoutine *),.entrysize = sizeof(Routine)};

	routines = hash_create("pg_lookahead access method routines", 64, &ctl,
						   HASH_ELEM | HASH_BLOBS);
	la_transaction_register(transaction_ends);
}

/* Called before a function of the index's routine is exchanged. */
static Routine *
begin_exchange(Relation index)
{
	IndexAmRoutine *routine;
	Routine    *r;
	bool		found;

	if (la_routine_is_shared(index))
	{
		routine = MemoryContextAlloc(index->rd_indexcxt, sizeof(IndexAmRoutine));
		*routine = *index->rd_indam;
		index->rd_indam = routine;
	}
	routine = (IndexAmRoutine *) index->rd_indam;
	if (routines == NULL)
		initialize();
	r = hash_search(routines, &routine, HASH_ENTER, &found);
	if (!found)
	{
		r->build = NULL;
		r->insert = NULL;
		r->rescan = NULL;
		r->callback.func = on_context_reset;
		r->callback.arg = r;
		MemoryContextRegisterResetCallback(index->rd_indexcxt, &r->callback);
	}
	if (!is_exchanged(r))
		dlist_push_head(&exchanged, &r->node);
	r->exchanged_in = GetCurrentSubTransactionId();
	return r;
}

/* Exchange ambuild of an index that is about to be built. */
void
la_interpose_ambuild(Relation index, ambuild_function function)
{
	if (index->rd_indam->ambuild == btbuild)
	{
		Routine    *r = begin_exchange(index);

		r->routine->ambuild = r->build = function;
	}
}

/* aminsertcleanup */
static void
on_statement_end(Relation index, IndexInfo *info)
{
	la_interpose_restore(index);
}

/* Exchange aminsert of an index that a statement inserts into, if it is the stock function. */
void
la_interpose_aminsert(Relation index, aminsert_function stock, aminsert_function function)
{
	if (index->rd_indam->aminsert == stock)
	{
		Routine    *r = begin_exchange(index);

		r->stock_insert = stock;
		r->routine->aminsert = r->insert = function;
		la_set_insert_cleanup(r->routine, on_statement_end);
	}
}

static Routine *
routine_of(Relation index)
{
	const IndexAmRoutine *routine = index->rd_indam;

	return routines == NULL ? NULL : hash_search(routines, &routine, HASH_FIND, NULL);
}

/* Does the server call our function to insert into the index? */
bool
la_interpose_has_aminsert(Relation index)
{
	const Routine *r = routine_of(index);

	return r != NULL && r->insert != NULL && r->routine->aminsert == r->insert;
}

/* Exchange amrescan of an index until the transaction ends. */
void
la_interpose_amrescan(Relation index, amrescan_function function)
{
	if (index->rd_indam->amrescan == btrescan)
	{
		Routine    *r = begin_exchange(index);

		r->routine->amrescan = r->rescan = function;
	}
}

/* Put back what this index's routine has for a build, or for inserts. */
void
la_interpose_restore(Relation index)
{
	Routine    *r = routine_of(index);

	if (r != NULL)
		put_back(r, false);
}

/* Call a function for each index of a table.  The table is locked, so none can be dropped. */
void
la_interpose_each_index(Relation table, void (*exchange) (Relation index))
{
	List	   *indexes = RelationGetIndexList(table);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(lc));

		if (!RelationIsValid(index))
			continue;
		exchange(index);
		RelationClose(index);
	}
	list_free(indexes);
}
