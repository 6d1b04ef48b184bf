/*
 * takeover.h
 *	  Plan nodes that are executed by functions of ours.
 *
 * src/attach/takeover.h
 */
#ifndef LA_TAKEOVER_H
#define LA_TAKEOVER_H

#include "nodes/execnodes.h"

/* A node's own function, and what stands between the node and its parent. */
typedef enum LaLayer
{
	LA_LAYER_NODE,				/* how the node is executed */
	LA_LAYER_OUTPUT				/* what becomes of its rows */
} LaLayer;

/* What the server has for all nodes of a kind; learnt from the first one seen. */
typedef struct LaNodeKind
{
	ExecProcNodeMtd stock;
} LaNodeKind;

/* A member of what a room keeps for such a node. */
typedef struct LaTakeover
{
	PlanState  *node;
	LaLayer		layer;
	ExecProcNodeMtd function;	/* ours */
	ExecProcNodeMtd below;		/* what it stands in front of */
	void		(*on_rescan) (struct LaTakeover *takeover);
	void		(*on_end) (struct LaTakeover *takeover);
	ExprContext *listens_to;	/* of the node whose rescans matter, or NULL */
	bool		listens;
	bool		ended;			/* the node was given back */
	MemoryContextCallback callback;
} LaTakeover;

#define la_takeover_container(type, t) \
	((type *) ((char *) (t) - offsetof(type, takeover)))

extern bool la_takeover_is_unwrapped(const PlanState *node);
extern bool la_takeover_is_possible(PlanState *node, LaNodeKind *kind);
extern bool la_takeover_is_executed_by(PlanState *node,
									   ExecProcNodeMtd function);
extern bool la_takeover_of_output_is_possible(PlanState *node);
extern void la_takeover_begin(LaTakeover *takeover, PlanState *node,
							  LaLayer layer, ExecProcNodeMtd function);
extern LaTakeover *la_takeover_find(PlanState *node, LaLayer layer);
extern LaTakeover *la_takeover_of(PlanState *node, LaLayer layer);
extern void la_takeover_renew(LaTakeover *takeover);
extern void la_takeover_end(LaTakeover *takeover);
extern void la_takeover_put(PlanState *node, ExecProcNodeMtd function);
extern void la_takeover_remove(PlanState *node, ExecProcNodeMtd function,
							   ExecProcNodeMtd next);

#endif							/* LA_TAKEOVER_H */
