/*
 * takeover.c
 *	  Plan nodes that are executed by functions of ours: the one place where a node's
 *	  function is exchanged.
 *
 * A node is executed by ExecProcNode, which after the first call is ExecProcNodeReal, or
 * ExecProcNodeInstr() in front of it.  Rooms get between a node and its parent at two
 * points; each is taken by one room at most:
 *
 *		parent --> ExecProcNode --> LA_LAYER_OUTPUT --> LA_LAYER_NODE --> the server's
 *				   (perhaps some	(rows are taken		(the node is
 *				   other wrapper)	before their turn)	executed by us)
 *
 * The state tree stays as the server has made it: tags, children and plans are the
 * server's, and whoever walks it at any moment finds nothing else.
 *
 * Company
 *	A. ExecProcNodeReal is exchanged only where it is a function of the server: one whose
 *	   address lies in the server's binary.  What another extension has installed there
 *	   before us stays, and the node is left alone.
 *	B. Our function is taken out only where it still is: if another extension has replaced
 *	   it, or saved it in order to call it, it remains, and passes each call on.
 *	C. ExecProcNode is changed only where it is the very function that we are exchanging.
 *
 * A room finds what it keeps for a node by a hash table over the nodes' addresses.  It hears
 * of rescans through the ExprContext of this node, or of its parent, which has one in any
 * case, and of the end of the query, or of an error, through the query's memory:
 *
 *		ExecReScan(node) -> ReScanExprContext --\
 *		end of the query -> FreeExprContext ----+--> on_callback --> on_rescan
 *		memory of the query goes ------------------> on_memory ----> on_end
 *
 * ReScanExprContext calls callbacks and forgets them, so ours is registered again when
 * the node is executed next.
 *
 * src/attach/takeover.c
 */
#include "postgres.h"

#include <dlfcn.h>

#include "executor/executor.h"
#include "utils/memutils.h"

#include "attach/takeover.h"

typedef struct NodeEntry
{
	PlanState  *node;
	char		status;
	LaTakeover *layers[2];
} NodeEntry;

#define SH_PREFIX nodes
#define SH_ELEMENT_TYPE NodeEntry
#define SH_KEY_TYPE PlanState *
#define SH_KEY node
#define SH_HASH_KEY(tb, key) ((uint32) (((uint64) (uintptr_t) (key) * UINT64CONST(0x9E3779B97F4A7C15)) >> 32))
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Of all queries that this backend is executing. */
static nodes_hash * taken = NULL;

/* ---- whose function is it? -------------------------------------------------- */

#define MAX_FUNCTIONS	256		/* a power of 2; the server has some 60 */

typedef enum Owner
{
	OWNER_UNKNOWN,
	OWNER_SERVER,
	OWNER_US,
	OWNER_OTHER
} Owner;

/* The binary in which the address lies. */
static void *
binary_of(const void *address)
{
	Dl_info		info;

	return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

static Owner
look_up_owner(ExecProcNodeMtd function)
{
	void	   *binary = binary_of((const void *) function);

	if (binary == NULL)
		return OWNER_OTHER;
	if (binary == binary_of((const void *) standard_ExecutorRun))
		return OWNER_SERVER;
	if (binary == binary_of((const void *) la_takeover_begin))
		return OWNER_US;
	return OWNER_OTHER;
}

/* Libraries are never unloaded, so an answer remains right. */
static Owner
owner_of(ExecProcNodeMtd function)
{
	static struct
	{
		ExecProcNodeMtd function;
		Owner		owner;
	}			known[MAX_FUNCTIONS];
	uint64		hash = (uint64) (uintptr_t) function * UINT64CONST(0x9E3779B97F4A7C15);
	int			i = (int) (hash >> 56) & (MAX_FUNCTIONS - 1);

	if (known[i].function != function)
	{
		known[i].owner = look_up_owner(function);
		known[i].function = function;
	}
	return known[i].owner;
}

/*
 * Is the node executed by nobody but the server and us?
 */
bool
la_takeover_is_unwrapped(const PlanState *node)
{
	return owner_of(node->ExecProcNode) != OWNER_OTHER &&
		owner_of(node->ExecProcNodeReal) != OWNER_OTHER;
}

/* ---- layers ----------------------------------------------------------------- */

static LaTakeover *
output_of(PlanState *node)
{
	NodeEntry  *entry = taken == NULL ? NULL : nodes_lookup(taken, node);

	return entry == NULL ? NULL : entry->layers[LA_LAYER_OUTPUT];
}

/* Company, C. */
static void
exchange(PlanState *node, ExecProcNodeMtd old, ExecProcNodeMtd new)
{
	if (node->ExecProcNodeReal == old)
		node->ExecProcNodeReal = new;
	if (node->ExecProcNode == old)
		node->ExecProcNode = new;
}

/*
 * Is the node executed by the server's own function for its kind?
 */
bool
la_takeover_is_possible(PlanState *node, LaNodeKind *kind)
{
	LaTakeover *output = output_of(node);
	ExecProcNodeMtd function = output == NULL ? node->ExecProcNodeReal : output->below;

	if (kind->stock == NULL && owner_of(function) == OWNER_SERVER)
		kind->stock = function;
	return function == kind->stock;
}

/*
 * Is the node executed by this function, below what becomes of its rows?
 */
bool
la_takeover_is_executed_by(PlanState *node, ExecProcNodeMtd function)
{
	LaTakeover *output = output_of(node);

	return function == (output == NULL ? node->ExecProcNodeReal : output->below);
}

/*
 * Can a function be put between this node and its parent?
 */
bool
la_takeover_of_output_is_possible(PlanState *node)
{
	return output_of(node) == NULL &&
		owner_of(node->ExecProcNodeReal) != OWNER_OTHER;
}

/*
 * A function that needs no takeover: it keeps nothing for the node.
 */
void
la_takeover_put(PlanState *node, ExecProcNodeMtd function)
{
	LaTakeover *output = output_of(node);

	if (output != NULL)
		output->below = function;
	else
		exchange(node, node->ExecProcNodeReal, function);
}

/*
 * It is taken out, if it is still there.
 */
void
la_takeover_remove(PlanState *node, ExecProcNodeMtd function, ExecProcNodeMtd next)
{
	LaTakeover *output = output_of(node);

	if (output != NULL && output->below == function)
		output->below = next;
	else
		exchange(node, function, next);
}

static void
on_callback(Datum arg)
{
	LaTakeover *t = (LaTakeover *) DatumGetPointer(arg);

	t->listens = false;
	t->on_rescan(t);
}

static void
on_memory(void *arg)
{
	LaTakeover *t = arg;
	NodeEntry  *entry = nodes_lookup(taken, t->node);

	if (entry != NULL && entry->layers[t->layer] == t)
	{
		entry->layers[t->layer] = NULL;
		if (entry->layers[LA_LAYER_NODE] == NULL &&
			entry->layers[LA_LAYER_OUTPUT] == NULL)
			nodes_delete_item(taken, entry);
	}
	t->on_end(t);
}

/*
 * takeover, with its callbacks and listens_to filled in, lives in the query's memory.
 */
void
la_takeover_begin(LaTakeover *t, PlanState *node, LaLayer layer,
				  ExecProcNodeMtd function)
{
	NodeEntry  *entry;
	bool		found;

	if (taken == NULL)
		taken = nodes_create(TopMemoryContext, 64, NULL);
	entry = nodes_insert(taken, node, &found);
	if (!found)
		entry->layers[LA_LAYER_NODE] = entry->layers[LA_LAYER_OUTPUT] = NULL;

	t->node = node;
	t->layer = layer;
	t->function = function;
	if (layer == LA_LAYER_NODE && entry->layers[LA_LAYER_OUTPUT] != NULL)
		t->below = entry->layers[LA_LAYER_OUTPUT]->below;
	else
		t->below = node->ExecProcNodeReal;
	t->callback.func = on_memory;
	t->callback.arg = t;
	MemoryContextRegisterResetCallback(node->state->es_query_cxt, &t->callback);
	if (layer == LA_LAYER_NODE)
		la_takeover_put(node, function);
	else
		exchange(node, t->below, function);
	entry->layers[layer] = t;
}

/*
 * The server may have set the node's function anew: stand in front of it again.
 */
void
la_takeover_renew(LaTakeover *t)
{
	ExecProcNodeMtd now = t->node->ExecProcNodeReal;

	if (t->ended || t->layer != LA_LAYER_OUTPUT || owner_of(now) != OWNER_SERVER)
		return;
	t->below = now;
	exchange(t->node, now, t->function);
}

/*
 * What a room keeps for the node, or NULL.
 */
LaTakeover *
la_takeover_find(PlanState *node, LaLayer layer)
{
	NodeEntry  *entry = taken == NULL ? NULL : nodes_lookup(taken, node);

	return entry == NULL ? NULL : entry->layers[layer];
}

/*
 * The same for the function that executes the node, and wants to hear of rescans.
 */
LaTakeover *
la_takeover_of(PlanState *node, LaLayer layer)
{
	LaTakeover *t = la_takeover_find(node, layer);

	if (t != NULL && !t->listens && t->listens_to != NULL)
	{
		RegisterExprContextCallback(t->listens_to, on_callback,
									PointerGetDatum(t));
		t->listens = true;
	}
	return t;
}

/*
 * Give the node back.  The takeover remains, for those who still call its function.
 */
void
la_takeover_end(LaTakeover *t)
{
	if (!t->ended)
	{
		if (t->layer == LA_LAYER_NODE)
			la_takeover_remove(t->node, t->function, t->below);
		else
			exchange(t->node, t->function, t->below);
	}
	t->ended = true;
}
