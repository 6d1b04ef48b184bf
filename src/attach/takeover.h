/*
 * takeover.h
 *	  A plan node that is executed by a function of ours.
 *
 * src/attach/takeover.h
 */
#ifndef LA_TAKEOVER_H
#define LA_TAKEOVER_H

#include "nodes/execnodes.h"

/* What the server has for all nodes of a kind; learnt from the first one seen. */
typedef struct LaNodeKind
{
	ExecProcNodeMtd stock;
} LaNodeKind;

/* A member of what a room keeps for such a node. */
typedef struct LaTakeover
{
	PlanState  *node;
	LaNodeKind *kind;
	void		(*on_rescan) (struct LaTakeover *takeover);
	void		(*on_end) (struct LaTakeover *takeover);
	MemoryContextCallback callback;
	struct LaTakeover *next;
} LaTakeover;

#define la_takeover_container(type, t) \
	((type *) ((char *) (t) - offsetof(type, takeover)))

extern bool la_takeover_is_possible(PlanState *node, LaNodeKind *kind);
extern void la_takeover_begin(LaTakeover *takeover, PlanState *node,
							  LaNodeKind *kind, ExecProcNodeMtd function);
extern LaTakeover *la_takeover_of(PlanState *node);
extern LaTakeover *la_takeover_find(PlanState *node, LaNodeKind *kind);
extern void la_takeover_give_back(PlanState *node, LaNodeKind *kind);

#endif							/* LA_TAKEOVER_H */
