/*
 * interpose_node.h
 *	  Functions of ours between a plan node and its parent.
 *
 * src/attach/interpose_node.h
 */
#ifndef LA_INTERPOSE_NODE_H
#define LA_INTERPOSE_NODE_H

#include "nodes/execnodes.h"

typedef enum LaLayer
{
	LA_LAYER_NODE,				/* executes the node */
	LA_LAYER_OUTPUT				/* passes its rows on to the parent */
} LaLayer;

/* The server's function for all nodes of a kind, taken from the first of them. */
typedef struct LaNodeKind
{
	ExecProcNodeMtd stock;
} LaNodeKind;

/*
 * Embedded in what a room keeps for a node, which lives in the query's memory.  The room
 * sets the first three members.
 */
typedef struct LaInterposer
{
	ExprContext *listens_to;	/* whose rescans call on_rescan, or NULL */
	void		(*on_rescan) (struct LaInterposer *interposer);
	void		(*on_end) (struct LaInterposer *interposer);	/* or NULL */

	PlanState  *node;
	LaLayer		layer;
	ExecProcNodeMtd function;	/* ours */
	ExecProcNodeMtd below;		/* the one behind it */
	bool		listens;		/* the callback is registered */
	bool		ended;			/* see la_interpose_end() */
	MemoryContextCallback callback;
} LaInterposer;

#define la_interpose_container(type, i) \
	((type *) ((char *) (i) - offsetof(type, interposer)))

extern void la_interpose_init(void);
extern bool la_interpose_is_unwrapped(const PlanState *node);
extern bool la_interpose_is_possible(PlanState *node, LaNodeKind *kind);
extern bool la_interpose_output_is_possible(PlanState *node);
extern ExecProcNodeMtd la_interpose_executing(PlanState *node);
extern void la_interpose_replace(PlanState *node, ExecProcNodeMtd old,
								 ExecProcNodeMtd new);
extern void la_interpose_begin(LaInterposer *interposer, PlanState *node,
							   LaLayer layer, ExecProcNodeMtd function);
extern LaInterposer *la_interpose_find(PlanState *node, LaLayer layer);
extern LaInterposer *la_interpose_enter(PlanState *node, LaLayer layer);
extern void la_interpose_renew(LaInterposer *interposer);
extern void la_interpose_end(LaInterposer *interposer);

#endif							/* LA_INTERPOSE_NODE_H */
