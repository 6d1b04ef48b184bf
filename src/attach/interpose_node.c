/*
 * interpose_node.c
 *	  Functions of ours between a plan node and its parent: the one place where a node's
 *	  function is exchanged.
 *
 * A node is executed by ExecProcNode, which after the first call is ExecProcNodeReal, or
 * ExecProcNodeInstr() in front of it.  There are two layers in front of the server's
 * function, each for at most one room:
 *
 *		parent --> ExecProcNode --> LA_LAYER_OUTPUT --> LA_LAYER_NODE --> the server's
 *				   (and perhaps		(rows are taken		(a room executes
 *				   a wrapper)		before their turn)	the node)
 *
 * Which room exchanges a function, and until when, is shown in src/README.md ("How functions
 * are interposed").  The room takes its function out by la_interpose_replace() or
 * la_interpose_end(); what is not taken out is freed with the node.  The tags, children and
 * plans of the nodes are never changed.
 *
 * Rules
 *	Stock only
 *		ExecProcNodeReal is exchanged only where it is a function of the server: one whose
 *		address lies in the server's binary.  A node for which another extension has
 *		installed a function before us stays as it is.
 *	Still ours
 *		Our function is taken out only where it still is.  If another extension has replaced
 *		it, or saved it in order to call it, ours remains, and passes each call on.
 *	Same function
 *		ExecProcNode is changed only where it is the very function that is exchanged.
 *
 * A room that keeps something for a node (LaInterposer) finds it by a hash table over the
 * nodes' addresses.  Its on_rescan is called when its node, or the node's parent, is
 * rescanned, by a callback of an ExprContext of that node; and its on_end at the end of the
 * query, also after an error, by a callback of the query's memory context:
 *
 *		ExecReScan(node) -> ReScanExprContext --\
 *		end of the query -> FreeExprContext ----+--> on_expr_context --> on_rescan
 *		the query's memory is reset ---------------> on_context_reset -> on_end
 *
 * ReScanExprContext() removes the callbacks that it has called, so ours is registered again
 * by the next call of the function (la_interpose_enter()).
 *
 * src/attach/interpose_node.c
 */
#include "postgres.h"

#ifdef __ELF__
#include <link.h>
#else
#include <dlfcn.h>
#endif

#include "executor/executor.h"
#include "utils/memutils.h"

#include "attach/attach.h"

typedef struct NodeEntry
{
	PlanState  *node;
	char		status;
	LaInterposer *layers[2];
} NodeEntry;

static inline uint64
hash_address(const void *address)
{
	return (uint64) (uintptr_t) address * UINT64CONST(0x9E3779B97F4A7C15);
}

#define SH_PREFIX nodes
#define SH_ELEMENT_TYPE NodeEntry
#define SH_KEY_TYPE PlanState *
#define SH_KEY node
#define SH_HASH_KEY(tb, key) ((uint32) (hash_address(key) >> 32))
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Nodes for which a room keeps something, of all queries that this backend executes. */
static nodes_hash * nodes = NULL;

/* What was found last; a join finds its own for each row. */
static LaInterposer *recent = NULL;

/* ---- owners of functions ----------------------------------------------------- */

typedef enum Owner
{
	OWNER_SERVER,
	OWNER_US,
	OWNER_OTHER
} Owner;

/* The addresses of a binary's code, once they have been looked up. */
typedef struct Code
{
	uintptr_t	begin;
	uintptr_t	end;
} Code;

static Code server_code;
static Code our_code;

#ifdef __ELF__

/* For dl_iterate_phdr(): is the code's first address in this binary?  Then find its end. */
static int
find_code(struct dl_phdr_info *binary, size_t size, void *arg)
{
	Code	   *code = arg;

	for (int i = 0; i < binary->dlpi_phnum; i++)
	{
		const		ElfW(Phdr) * segment = &binary->dlpi_phdr[i];
		uintptr_t	begin = binary->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0 ||
			code->begin < begin || code->begin >= begin + segment->p_memsz)
			continue;
		code->begin = begin;
		code->end = begin + segment->p_memsz;
		return 1;
	}
	return 0;
}

/*
 * The code of the binary that a function belongs to.  (dladdr() would search the binary's symbols
 * as well, which takes 80 microseconds for the server's.)
 */
static Code
code_of(const void *function)
{
	Code		code = {(uintptr_t) function, 0};

	(void) dl_iterate_phdr(find_code, &code);
	return code;
}

static bool
is_in(const void *function, const Code *code)
{
	return (uintptr_t) function >= code->begin && (uintptr_t) function < code->end;
}

#else

static Code
code_of(const void *function)
{
	Dl_info		info;
	Code		code = {dladdr(function, &info) != 0 ? (uintptr_t) info.dli_fbase : 0, 0};

	return code;
}

static bool
is_in(const void *function, const Code *code)
{
	Dl_info		info;

	return dladdr(function, &info) != 0 && (uintptr_t) info.dli_fbase == code->begin;
}

#endif

static Owner
owner_of(ExecProcNodeMtd function)
{
	if (is_in((const void *) function, &server_code))
		return OWNER_SERVER;
	return is_in((const void *) function, &our_code) ? OWNER_US : OWNER_OTHER;
}

/* Is the node executed by nobody but the server and us? */
bool
la_interpose_is_unwrapped(const PlanState *node)
{
	return owner_of(node->ExecProcNode) != OWNER_OTHER &&
		owner_of(node->ExecProcNodeReal) != OWNER_OTHER;
}

/* ---- layers ----------------------------------------------------------------- */

/* What the room in this layer keeps for the node, or NULL. */
LaInterposer *
la_interpose_find(PlanState *node, LaLayer layer)
{
	NodeEntry  *entry;

	if (recent != NULL && recent->node == node && recent->layer == layer)
		return recent;
	if (nodes == NULL || nodes->members == 0)
		return NULL;
	entry = nodes_lookup(nodes, node);
	if (entry == NULL || entry->layers[layer] == NULL)
		return NULL;
	return recent = entry->layers[layer];
}

/* The function in the node layer, ours or not. */
ExecProcNodeMtd
la_interpose_executing(PlanState *node)
{
	LaInterposer *output = la_interpose_find(node, LA_LAYER_OUTPUT);

	return output == NULL ? node->ExecProcNodeReal : output->below;
}

/* Rules "Still ours" and "Same function". */
static void
exchange(PlanState *node, ExecProcNodeMtd old, ExecProcNodeMtd new)
{
	if (node->ExecProcNodeReal == old)
		node->ExecProcNodeReal = new;
	if (node->ExecProcNode == old)
		node->ExecProcNode = new;
}

/* Is the node executed by the server's function, so that the node layer can be used? */
bool
la_interpose_is_possible(PlanState *node, LaNodeKind *kind)
{
	ExecProcNodeMtd function = la_interpose_executing(node);

	if (kind->stock == NULL && owner_of(function) == OWNER_SERVER)
		kind->stock = function;
	return function == kind->stock;
}

/* Can a function be put into the output layer? */
bool
la_interpose_output_is_possible(PlanState *node)
{
	return la_interpose_find(node, LA_LAYER_OUTPUT) == NULL &&
		owner_of(node->ExecProcNodeReal) != OWNER_OTHER;
}

/*
 * Exchange the function in the node layer, if it still is "old".  Rooms that keep nothing
 * for the node call this directly.
 */
void
la_interpose_replace(PlanState *node, ExecProcNodeMtd old, ExecProcNodeMtd new)
{
	LaInterposer *output = la_interpose_find(node, LA_LAYER_OUTPUT);

	if (output != NULL && output->below == old)
		output->below = new;
	else
		exchange(node, old, new);
}

static void
on_expr_context(Datum arg)
{
	LaInterposer *i = (LaInterposer *) DatumGetPointer(arg);

	i->listens = false;
	i->on_rescan(i);
}

static void
on_context_reset(void *arg)
{
	LaInterposer *i = arg;
	NodeEntry  *entry = nodes_lookup(nodes, i->node);

	if (recent == i)
		recent = NULL;
	if (entry != NULL && entry->layers[i->layer] == i)
	{
		entry->layers[i->layer] = NULL;
		if (entry->layers[LA_LAYER_NODE] == NULL && entry->layers[LA_LAYER_OUTPUT] == NULL)
			nodes_delete_item(nodes, entry);
	}
	if (i->on_end != NULL)
		i->on_end(i);
}

/* Put a function into a layer, with what the room keeps for the node. */
void
la_interpose_begin(LaInterposer *i, PlanState *node, LaLayer layer,
				   ExecProcNodeMtd function)
{
	NodeEntry  *entry;
	bool		found;

	if (nodes == NULL)
		nodes = nodes_create(TopMemoryContext, 64, NULL);
	entry = nodes_insert(nodes, node, &found);
	if (!found)
		entry->layers[LA_LAYER_NODE] = entry->layers[LA_LAYER_OUTPUT] = NULL;

	i->node = node;
	i->layer = layer;
	i->function = function;
	i->below = layer == LA_LAYER_NODE ? la_interpose_executing(node) : node->ExecProcNodeReal;
	i->callback.func = on_context_reset;
	i->callback.arg = i;
	MemoryContextRegisterResetCallback(node->state->es_query_cxt, &i->callback);
	if (layer == LA_LAYER_NODE)
		la_interpose_replace(node, i->below, function);
	else
		exchange(node, i->below, function);
	entry->layers[layer] = recent = i;
}

/* Put our function back in front of the node's, which the server may have set anew. */
void
la_interpose_renew(LaInterposer *i)
{
	ExecProcNodeMtd now = i->node->ExecProcNodeReal;

	if (i->ended || i->layer != LA_LAYER_OUTPUT || owner_of(now) != OWNER_SERVER)
		return;
	i->below = now;
	exchange(i->node, now, i->function);
}

/*
 * What the room in this layer keeps for the node, or NULL.  The room's function calls this
 * when it is executed, so that the next rescan calls on_rescan.
 */
LaInterposer *
la_interpose_enter(PlanState *node, LaLayer layer)
{
	LaInterposer *i = la_interpose_find(node, layer);

	if (i != NULL && !i->listens && i->listens_to != NULL)
	{
		RegisterExprContextCallback(i->listens_to, on_expr_context, PointerGetDatum(i));
		i->listens = true;
	}
	return i;
}

/*
 * Take the function out.  What the room keeps for the node remains, so that calls of an
 * extension that has saved the function can be passed on.
 */
void
la_interpose_end(LaInterposer *i)
{
	if (i->ended)
		return;
	if (i->layer == LA_LAYER_NODE)
		la_interpose_replace(i->node, i->function, i->below);
	else
		exchange(i->node, i->function, i->below);
	i->ended = true;
}

void
la_interpose_init(void)
{
	server_code = code_of((const void *) standard_ExecutorRun);
	our_code = code_of((const void *) la_interpose_begin);
}
