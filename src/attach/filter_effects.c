/*
 * filter_effects.c
 *	  What a filter may do that has been evaluated before.
 *
 * For a row that has passed a filter, all clauses of the filter have been evaluated, and with them
 * those of their arguments that do not depend on the row.  So these cannot fail later in the same
 * scan, and a Param among them has its value.
 *
 * src/attach/filter_effects.c
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"

#include "attach/attach_int.h"

static bool
depends_on_row(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Const:
		case T_Param:
		case T_RelabelType:
		case T_FuncExpr:
		case T_OpExpr:
		case T_ScalarArrayOpExpr:
		case T_SQLValueFunction:
		case T_CoerceViaIO:
		case T_ArrayExpr:
		case T_List:
			return expression_tree_walker(node, depends_on_row, context);
		default:
			return true;
	}
}

/* The arguments of an expression whose evaluation always evaluates all of them. */
static List *
certain_arguments(Node *node)
{
	switch (nodeTag(node))
	{
		case T_FuncExpr:
			return ((FuncExpr *) node)->args;
		case T_OpExpr:
		case T_DistinctExpr:
			return ((OpExpr *) node)->args;
		case T_ScalarArrayOpExpr:
			return ((ScalarArrayOpExpr *) node)->args;
		default:
			return NIL;
	}
}

static void
note_certain(LaEffects *e, Node *node)
{
	List	   *args = certain_arguments(node);
	ListCell   *lc;

	if (args == NIL)
	{
		la_effects_of_expression(e, node);
		return;
	}
	la_effects_of_node(e, node);
	foreach(lc, args)
	{
		Node	   *arg = lfirst(lc);
		LaEffects	once = {0};

		if (depends_on_row(arg, NULL))
		{
			note_certain(e, arg);
			continue;
		}
		la_effects_of_expression(&once, arg);
		la_effects_add(e, once.flags & ~LA_MAY_FAIL, once.reason);
	}
}

/* The filter of a node that has returned a row and was not rescanned since. */
void
la_effects_of_filter(LaEffects *e, List *clauses)
{
	ListCell   *lc;

	foreach(lc, clauses)
		note_certain(e, lfirst(lc));
}
