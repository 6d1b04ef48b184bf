/*
 * route.c
 *	  The partition that a row is going to be inserted into.
 *
 * The server finds a row's partition when it inserts the row, and opens and locks the partition
 * then.  Neither may be early.  So the partition is looked up here without being opened, and a
 * row is routed only to partitions that the statement has opened for an earlier row.
 *
 * A row is not routed
 *	- if the partition is itself partitioned;
 *	- if an expression of the partition key, or a function that compares or hashes it, could be
 *	  noticed to be evaluated early (attach/effects.c);
 *	- if there is no partition for it: the server raises the error.
 *
 * src/write/route.c
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "executor/executor.h"
#include "optimizer/optimizer.h"
#include "partitioning/partdesc.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/rel.h"

#include "rows/rows.h"
#include "write/write_int.h"

struct LaRoute
{
	Relation	root;
	ModifyTableState *mt;
	Bitmapset  *columns;		/* of the partition key, by number minus
								 * FirstLowInvalidHeapAttributeNumber */
	EState	   *own;			/* of expressions */
	List	   *expressions;	/* ExprStates */
	MemoryContext context;
	MemoryContext key;			/* of the key of one row */
	int			nfound;
	ResultRelInfo **found;		/* by number of the partition; NULL: not yet */
};

/* In the current memory context. */
LaRoute *
la_route_create(Relation root, ModifyTableState *mt)
{
	PartitionKey key = RelationGetPartitionKey(root);
	LaRoute    *route = palloc0(sizeof(LaRoute));

	route->mt = mt;
	route->context = CurrentMemoryContext;
	if (!la_partition_key_is_pure(key))
		return route;
	if (key->partexprs != NIL)
	{
		route->own = CreateExecutorState();
		if (!la_compile_list(key->partexprs, route->own, &route->expressions))
			return route;
	}
	route->root = root;
	route->key = AllocSetContextCreate(CurrentMemoryContext, "pg_lookahead partition key",
									   ALLOCSET_SMALL_SIZES);
	pull_varattnos((Node *) key->partexprs, 1, &route->columns);
	for (int i = 0; i < key->partnatts; i++)
	{
		if (key->partattrs[i] != 0)
			route->columns = bms_add_member(route->columns, key->partattrs[i] -
											FirstLowInvalidHeapAttributeNumber);
	}
	return route;
}

/* Does it take one of these columns to find a row's partition? */
bool
la_route_depends_on(const LaRoute *route, const Bitmapset *columns)
{
	return columns != NULL &&
		(bms_is_member(-FirstLowInvalidHeapAttributeNumber, route->columns) ||
		 bms_overlap(route->columns, columns));
}

/* The columns of the partition key. */
static void
form_key(LaRoute *route, TupleTableSlot *row, Datum *values, bool *isnull)
{
	PartitionKey key = RelationGetPartitionKey(route->root);
	ListCell   *expression = list_head(route->expressions);
	ExprContext *econtext = NULL;

	if (expression != NULL)
	{
		econtext = GetPerTupleExprContext(route->own);
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = row;
	}
	for (int i = 0; i < key->partnatts; i++)
	{
		if (key->partattrs[i] != 0)
			values[i] = slot_getattr(row, key->partattrs[i], &isnull[i]);
		else
		{
			values[i] = ExecEvalExpr((ExprState *) lfirst(expression), econtext, &isnull[i]);
			expression = lnext(route->expressions, expression);
		}
	}
}

/* The partition, if the statement has it: one whose rows it changes, or that it has opened. */
static ResultRelInfo *
find_opened(const LaRoute *route, Oid oid)
{
	ListCell   *lc;

	if (route->mt->operation != CMD_INSERT)
	{
		ResultRelInfo *relation = ExecLookupResultRelByOid(route->mt, oid, true, false);

		if (relation != NULL)
			return relation;
	}
	foreach(lc, route->mt->ps.state->es_tuple_routing_result_relations)
	{
		ResultRelInfo *relation = lfirst(lc);

		if (RelationGetRelid(relation->ri_RelationDesc) == oid)
			return relation;
	}
	return NULL;
}

static ResultRelInfo *
opened(LaRoute *route, int n, int npartitions, Oid oid)
{
	if (npartitions > route->nfound)
	{
		route->found = MemoryContextAllocZero(route->context,
											  npartitions * sizeof(ResultRelInfo *));
		route->nfound = npartitions;
	}
	if (route->found[n] == NULL || RelationGetRelid(route->found[n]->ri_RelationDesc) != oid)
		route->found[n] = find_opened(route, oid);
	return route->found[n];
}

/* The partition of this row of the plan; NULL if it is not known. */
ResultRelInfo *
la_route_find(LaRoute *route, TupleTableSlot *row)
{
	Datum		values[PARTITION_MAX_KEYS];
	bool		isnull[PARTITION_MAX_KEYS];
	PartitionDirectory directory;
	PartitionDesc desc;
	MemoryContext old;
	int			n;

	if (route->root == NULL)
		return NULL;
	/* the statement's own, which stays as it is until its end */
	directory = route->mt->ps.state->es_partition_directory;
	desc = directory == NULL ? NULL : PartitionDirectoryLookup(directory, route->root);
	if (desc == NULL || desc->nparts == 0)
		return NULL;
	MemoryContextReset(route->key);
	old = MemoryContextSwitchTo(route->key);
	form_key(route, row, values, isnull);
	n = la_partition_number(route->root, desc, values, isnull);
	MemoryContextSwitchTo(old);
	if (n < 0 || !desc->is_leaf[n])
		return NULL;
	return opened(route, n, desc->nparts, desc->oids[n]);
}
