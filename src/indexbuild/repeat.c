/*
 * repeat.c
 *	  May the expressions of an index be evaluated twice for a row?
 *
 * When a build fails in the middle of the table's scan, the server builds the index from the
 * start, and evaluates its expressions and its predicate again.  They are immutable, but a function
 * of a user can do anything all the same: print a notice, write, or fail the second time.
 *
 * So this is an allow-list of what does nothing but return a value, or raise an error, which ends
 * either build: expressions of core's immutable functions in C, on values of core's types or of
 * enums.  (Functions on arrays, rows or domains may call functions of their parts.)  Functions of
 * text search and XML are not on it: they raise notices.
 *
 * src/indexbuild/repeat.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "indexbuild/indexbuild_int.h"

static bool
is_unknown_function(Oid function, void *context)
{
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		known;

	if (function >= FirstNormalObjectId)
		return true;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return true;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	known = proc->prolang == INTERNALlanguageId &&
		proc->provolatile == PROVOLATILE_IMMUTABLE;
	ReleaseSysCache(tuple);
	return !known;
}

static bool
is_unknown_type(Oid type)
{
	switch (type)
	{
		case TSVECTOROID:
		case TSQUERYOID:
		case REGCONFIGOID:
		case XMLOID:
			return true;
	}
	return get_typtype(type) == TYPTYPE_PSEUDO ||
		(type >= FirstNormalObjectId && !type_is_enum(type));
}

/* Does the expression contain anything that is not on the list? */
static bool
is_unknown(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_CaseWhen:
			/* these have no type */
			return expression_tree_walker(node, is_unknown, context);

		case T_ArrayExpr:
		case T_BoolExpr:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_CoerceViaIO:
		case T_CollateExpr:
		case T_Const:
		case T_DistinctExpr:
		case T_FuncExpr:
		case T_NullIfExpr:
		case T_NullTest:
		case T_OpExpr:
		case T_RelabelType:
		case T_ScalarArrayOpExpr:
		case T_Var:
			break;

		default:
			return true;
	}
	return is_unknown_type(exprType(node)) ||
		check_functions_in_node(node, is_unknown_function, NULL) ||
		expression_tree_walker(node, is_unknown, context);
}

bool
la_repeat_is_safe(const IndexInfo *info)
{
	return !is_unknown((Node *) info->ii_Expressions, NULL) &&
		!is_unknown((Node *) info->ii_Predicate, NULL);
}
