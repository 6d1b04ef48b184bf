/*
 * takeover.c
 *	  A plan node that is executed by a function of ours.
 *
 * A room that has a node executed by its own function needs to find what it keeps for
 * the node, and to hear of rescans and of the end of the query.  There is no room for
 * that in the node itself, but its ExprContext has callbacks:
 *
 *		ExecReScan(node) -> ReScanExprContext --\
 *		end of the query -> FreeExprContext ----+--> on_callback --> on_rescan
 *		memory of the query goes ------------------> on_memory ----> on_end
 *
 * ReScanExprContext calls callbacks and forgets them, so ours is registered again when
 * the node is executed next.  Until then the node is found in the list of all.
 *
 * Invariants
 *	- Only nodes are taken over that the server's own function executes.
 *	- After la_takeover_give_back() the node is as if nothing had been, but for the
 *	  callbacks, which still come.
 *
 * src/attach/takeover.c
 */
#include "postgres.h"

#include "executor/executor.h"

#include "attach/takeover.h"

/* Of all queries that this backend is executing, newest first. */
static LaTakeover *takeovers = NULL;

static void
on_callback(Datum arg)
{
	LaTakeover *t = (LaTakeover *) DatumGetPointer(arg);

	t->on_rescan(t);
}

static void
on_memory(void *arg)
{
	LaTakeover *t = arg;
	LaTakeover **p = &takeovers;

	while (*p != NULL && *p != t)
		p = &(*p)->next;
	if (*p != NULL)
		*p = t->next;
	t->on_end(t);
}

/*
 * Is the node executed by the server's own function?
 */
bool
la_takeover_is_possible(PlanState *node, LaNodeKind *kind)
{
	if (kind->stock == NULL)
		kind->stock = node->ExecProcNodeReal;
	return node->ExecProcNodeReal == kind->stock;
}

/*
 * takeover, with both of its functions filled in, lives in the query's memory.
 */
void
la_takeover_begin(LaTakeover *t, PlanState *node, LaNodeKind *kind,
				  ExecProcNodeMtd function)
{
	t->node = node;
	t->kind = kind;
	t->callback.func = on_memory;
	t->callback.arg = t;
	MemoryContextRegisterResetCallback(node->state->es_query_cxt, &t->callback);
	t->next = takeovers;
	takeovers = t;
	node->ExecProcNodeReal = function;
}

/*
 * For EXPLAIN, which may ask after the node was given back.
 */
LaTakeover *
la_takeover_find(PlanState *node, LaNodeKind *kind)
{
	for (LaTakeover *t = takeovers; t != NULL; t = t->next)
	{
		if (t->node == node && t->kind == kind)
			return t;
	}
	return NULL;
}

/*
 * For the function that executes the node.
 */
LaTakeover *
la_takeover_of(PlanState *node)
{
	ExprContext_CB *callback = node->ps_ExprContext->ecxt_callbacks;

	for (; callback != NULL; callback = callback->next)
	{
		if (callback->function == on_callback)
			return (LaTakeover *) DatumGetPointer(callback->arg);
	}
	for (LaTakeover *t = takeovers; t != NULL; t = t->next)
	{
		if (t->node != node)
			continue;
		RegisterExprContextCallback(node->ps_ExprContext, on_callback,
									PointerGetDatum(t));
		return t;
	}
	return NULL;
}

/*
 * Give the node back; see ExecProcNodeFirst() for the two fields.
 */
void
la_takeover_give_back(PlanState *node, LaNodeKind *kind)
{
	node->ExecProcNodeReal = kind->stock;
	if (!node->instrument)
		node->ExecProcNode = kind->stock;
}
