/*
 * nodes.h
 *	  What is known of each kind of node: its children, and what it does with their rows.
 *
 * src/attach/nodes.h
 */
#ifndef LA_NODES_H
#define LA_NODES_H

#include "nodes/execnodes.h"

/* Subplans aside, an outer and an inner child are all that it has. */
#define LA_NODE_IS_SIMPLE	0x01

/* Without a filter, it takes a row of its child for each row that it returns. */
#define LA_NODE_ONE_TO_ONE	0x02

/* Without a filter, it asks its children for no more rows than it is asked for. */
#define LA_NODE_ASKS_ALIKE	0x04

/* It reads its outer side, or its members, as far as it is read itself, or to the end. */
#define LA_NODE_READS_ALIKE 0x08

/* It executes its children anew for each execution of its own. */
#define LA_NODE_REPEATS		0x10

/* It passes the bound of a Limit above it on to its children, as ExecSetTupleBound() does. */
#define LA_NODE_BOUNDS		0x20

/* It passes on the row that a cursor is on, as search_plan_tree() looks for it. */
#define LA_NODE_HAS_CURSOR	0x40

/* A scan of a table, which may be where that row comes from. */
#define LA_NODE_SCANS_TABLE 0x80

/* By tag. */
extern const uint8 la_node_properties[T_LimitState + 1];

static inline bool
la_node_is(const PlanState *ps, int property)
{
	/* LimitState is the last node of a plan */
	return nodeTag(ps) <= T_LimitState && (la_node_properties[nodeTag(ps)] & property) != 0;
}

extern PlanState *la_node_child(const PlanState *ps, int n);

#endif							/* LA_NODES_H */
