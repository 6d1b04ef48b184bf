/*
 * effects.c
 *	  What could be noticed if an expression were evaluated at another time.
 *
 * Looking ahead evaluates expressions earlier than the server would, and sometimes for
 * rows that the server would never reach.  This file says what an expression does besides
 * returning a value, as a set of flags; runahead.c decides what is allowed.  It is an
 * allow-list: a kind of expression, or of function, that is not known here has effects.
 *
 *	Trusted functions
 *		A function is trusted to do nothing but compute if it is written in C (languages
 *		"internal" and "c") and runs with the caller's rights and settings.  A function in
 *		another language may do anything, whatever volatility it declares: an IMMUTABLE
 *		function in PL/pgSQL can raise a notice or set a parameter.  Of an SQL function that
 *		the planner has inlined, only the body is found here.  Functions of the server that
 *		run code which an argument names are listed in known_functions.c.
 *	Volatility
 *		Volatile functions have effects.  Those that only draw a value, in an order that must
 *		not change, such as nextval() and random(), are told apart (LA_DRAWS).  Stable ones
 *		read state that something else in the statement may change, such as a setting, except
 *		those listed in known_functions.c, whose values are fixed for the whole transaction.
 *		So do some that are declared immutable (function_lists.h).
 *	Failure
 *		A function may fail unless it is leakproof, which promises that it raises no error
 *		that depends on its arguments, or is listed in known_functions.c, or is called with
 *		a constant that rules out its errors, as in integer division by 10, or LIKE with a
 *		pattern without escapes.  The server's functions raise errors of certain classes
 *		(base/attempt.c), except functions of rows, which hold references to descriptors when
 *		they fail (LA_FAILS_FREELY).  Stable ones may hold entries of the catalogs' caches then
 *		(LA_MAY_HOLD), except those that read settings only.  Comparison and
 *		hash functions are known not to fail one by one; polymorphic ones do if a part of the
 *		values has no such function (types.c).  A function of values that have a collation
 *		fails if their collations conflict, which is found when it is called.
 *	Notices
 *		Few functions that only compute raise notices about what they are given: those that
 *		parse text for text search, XML, and names of types, among others (LA_HAS_NOTICES).
 *	Functions of extensions
 *		Nobody has read them.  Whatever they are declared, they may read settings, raise notices
 *		(as crypt() of pgcrypto does, which is immutable) and errors of any class.  Those that are
 *		only stable, or return sets, may run any statement (crosstab() of tablefunc).
 *	Plain types
 *		A polymorphic function calls functions of the types that it is given: comparison
 *		functions, input and output functions, constraints of domains.  It is trusted for
 *		the server's own types, enums, and arrays and rows of only these.  The columns of an
 *		anonymous row are found in the plan.
 *	Indirect calls
 *		What is called on behalf of an expression counts as well: support functions of
 *		aggregates, constraints of domains, operators' functions, the comparison and hash
 *		functions of their operator classes, and support functions of indexes.
 *
 * Security barriers and row-level security need no rules of their own: filters are
 * evaluated by the plan's own nodes, in their order, also when these run ahead; and what is
 * evaluated in addition, such as the keys of an inner scan, calls trusted functions only.
 *
 * src/attach/effects.c
 */
#include "postgres.h"

#include "access/brin_internal.h"
#include "access/gist.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/spgist.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "attach/attach.h"
#include "attach/attach_int.h"
#include "base/compat.h"

void
la_effects_add(LaEffects *e, int flags, const char *reason)
{
	if ((flags & LA_HAS_EFFECTS) != 0 && (e->flags & LA_HAS_EFFECTS) == 0)
		e->reason = reason;
	e->flags |= flags;
}

/* ---- functions ------------------------------------------------------------ */

static bool
calls_for_its_types(Oid type)
{
	return type != INTERNALOID && type != VOIDOID && type != ANYENUMOID &&
		get_typtype(type) == TYPTYPE_PSEUDO;
}

static bool
is_polymorphic(Form_pg_proc proc)
{
	for (int i = 0; i < proc->pronargs; i++)
	{
		if (calls_for_its_types(proc->proargtypes.values[i]))
			return true;
	}
	return calls_for_its_types(proc->prorettype);
}

/* A call of a function with values of these types; the last may be its result's. */
static void
note_call(LaEffects *e, Oid function, int ntypes, const Oid *types)
{
	HeapTuple	tuple;
	Form_pg_proc proc;

	if (!OidIsValid(function))
		return;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
	{
		la_effects_add(e, LA_HAS_EFFECTS, "a function is unknown");
		return;
	}
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if ((proc->prolang != INTERNALlanguageId && proc->prolang != ClanguageId) ||
		proc->prosecdef || FmgrHookIsNeeded(function) ||
		!heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL))
		la_effects_add(e, LA_HAS_EFFECTS,
					   "a function is not written in C, or has settings or rights of its own");
	else if (la_function_is(function, LA_FUNCTION_DRAWS))
		la_effects_add(e, LA_DRAWS, NULL);
	else if (proc->provolatile == PROVOLATILE_VOLATILE)
		la_effects_add(e, LA_HAS_EFFECTS, "a function is volatile");
	else if (la_function_is(function, LA_FUNCTION_EFFECTS))
		la_effects_add(e, LA_HAS_EFFECTS,
					   "a function runs code that its arguments name, or assigns a transaction ID");
	else if (function >= FirstNormalObjectId &&
			 (proc->provolatile != PROVOLATILE_IMMUTABLE || proc->proretset))
		la_effects_add(e, LA_HAS_EFFECTS,
					   "a function of an extension is not immutable, or returns a set");
	else if (la_function_is(function, LA_FUNCTION_STATE) ||
			 (proc->provolatile == PROVOLATILE_STABLE &&
			  !la_function_is(function, LA_FUNCTION_FIXED)))
	{
		la_effects_add(e, LA_READS_STATE, NULL);
		if (proc->provolatile == PROVOLATILE_STABLE &&
			!la_function_is(function, LA_FUNCTION_SETTINGS))
			la_effects_add(e, LA_MAY_HOLD, NULL);
	}
	if (!proc->proleakproof && !la_function_is(function, LA_FUNCTION_ERRORFREE))
		la_effects_add(e, LA_MAY_FAIL, NULL);
	if (la_function_is(function, LA_FUNCTION_NOTICES))
		la_effects_add(e, LA_HAS_NOTICES, NULL);
	if (function >= FirstNormalObjectId)
		la_effects_add(e, LA_READS_STATE | LA_HAS_NOTICES | LA_MAY_FAIL | LA_FAILS_FREELY, NULL);
	if (is_polymorphic(proc))
	{
		bool		plain = ntypes > 0;

		for (int i = 0; i < ntypes; i++)
		{
			plain &= la_type_is_plain(types[i]);
			if (!la_type_is_quiet(types[i]))
				la_effects_add(e, LA_HAS_NOTICES, NULL);
			if (la_type_has_rows(types[i]))
				la_effects_add(e, LA_MAY_FAIL | LA_FAILS_FREELY, NULL);
		}
		if (!plain)
			la_effects_add(e, LA_HAS_EFFECTS,
						   "a function of any type is called for a type that is not the server's");
	}
	ReleaseSysCache(tuple);
}

/* Is it a function of the server that calls functions of its arguments' types? */
static bool
is_for_any_type(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		result = false;

	if (HeapTupleIsValid(tuple))
	{
		result = is_polymorphic((Form_pg_proc) GETSTRUCT(tuple));
		ReleaseSysCache(tuple);
	}
	return result;
}

/* May a support function raise an error?  Few of the server's are declared leakproof. */
static bool
support_may_fail(Oid function, int ntypes, const Oid *types)
{
	if (!la_function_may_raise(function))
		return false;
	if (function >= FirstGenbkiObjectId || ntypes == 0 || !is_for_any_type(function))
		return true;
	for (int i = 0; i < ntypes; i++)
	{
		if (la_type_comparison_may_fail(types[i], function))
			return true;
	}
	return false;
}

/* A comparison, hash or other support function of an operator class. */
void
la_effects_of_support(LaEffects *e, Oid function, int ntypes, const Oid *types)
{
	LaEffects	own = {0};

	note_call(&own, function, ntypes, types);
	if (!support_may_fail(function, ntypes, types))
		own.flags &= ~(LA_MAY_FAIL | LA_FAILS_FREELY | LA_MAY_HOLD);
	la_effects_add(e, own.flags, own.reason);
}

/* A function whose arguments are of types that are not known here. */
void
la_effects_of_function(LaEffects *e, Oid function)
{
	note_call(e, function, 0, NULL);
}

/* LIKE with a constant pattern can fail only for an escape in it. */
static bool
is_simple_like(Oid function, Oid collation, const Const *pattern)
{
	text	   *value;

	if (!la_function_is(function, LA_FUNCTION_LIKE) || pattern->consttype != TEXTOID ||
		!OidIsValid(collation) || !get_collation_isdeterministic(collation))
		return false;
	value = DatumGetTextPP(pattern->constvalue);
	return memchr(VARDATA_ANY(value), '\\', VARSIZE_ANY_EXHDR(value)) == NULL;
}

static bool
is_simple_division(Oid function, const Const *divisor)
{
	int64		value;

	if (!la_function_is(function, LA_FUNCTION_DIVISION))
		return false;
	switch (divisor->consttype)
	{
		case INT2OID:
			value = DatumGetInt16(divisor->constvalue);
			break;
		case INT4OID:
			value = DatumGetInt32(divisor->constvalue);
			break;
		default:
			value = DatumGetInt64(divisor->constvalue);
			break;
	}
	return value != 0 && value != -1;
}

/* The server may have something to say when it opens a collation. */
void
la_effects_of_collation(LaEffects *e, Oid collation)
{
	if (!la_collation_is_silent(collation))
		la_effects_add(e, LA_HAS_NOTICES | LA_MAY_FAIL, NULL);
}

/* Nothing is known of values whose collations conflict but that most functions refuse them. */
static void
note_collation(LaEffects *e, Oid collation, int ntypes, const Oid *types)
{
	if (OidIsValid(collation))
	{
		la_effects_of_collation(e, collation);
		return;
	}
	for (int i = 0; i < ntypes; i++)
	{
		if (type_is_collatable(types[i]))
			la_effects_add(e, LA_MAY_FAIL, NULL);
	}
}

/* The expression of the node's child that this Var stands for, and that child. */
static Node *
expression_below(const Plan **plan, const Var *var)
{
	const TargetEntry *entry;

	switch (nodeTag(*plan))
	{
		case T_Result:
		case T_ProjectSet:
		case T_Sort:
		case T_IncrementalSort:
		case T_Limit:
		case T_Unique:
		case T_Material:
		case T_Agg:
		case T_Group:
		case T_WindowAgg:
		case T_Hash:
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			break;
		default:
			return NULL;
	}
	*plan = var->varno == OUTER_VAR ? outerPlan(*plan) : innerPlan(*plan);
	entry = *plan == NULL ? NULL : get_tle_by_resno((*plan)->targetlist, var->varattno);
	return entry == NULL ? NULL : (Node *) entry->expr;
}

/* The types of an anonymous row's columns.  Returns how many, or -1 if they are not known. */
static int
columns_of_row(const Plan *plan, Node *row, Oid *types, int room)
{
	List	   *columns = NIL;
	int			n = 0;
	ListCell   *lc;

	check_stack_depth();
	if (row != NULL && IsA(row, RowExpr))
		columns = ((RowExpr *) row)->args;
	else if (row == NULL || !IsA(row, Var) || plan == NULL)
		return -1;
	else if (((Var *) row)->varno == OUTER_VAR || ((Var *) row)->varno == INNER_VAR)
	{
		row = expression_below(&plan, (Var *) row);
		return columns_of_row(plan, row, types, room);
	}
	else if (((Var *) row)->varattno == InvalidAttrNumber && IsA(plan, SubqueryScan))
		columns = ((const SubqueryScan *) plan)->subplan->targetlist;
	else
		return -1;
	foreach(lc, columns)
	{
		const TargetEntry *entry = IsA(lfirst(lc), TargetEntry) ? lfirst(lc) : NULL;

		if (n >= room)
			return -1;
		if (entry == NULL || !entry->resjunk)
			types[n++] = exprType(entry == NULL ? lfirst(lc) : (Node *) entry->expr);
	}
	return n;
}

/* Add the type of an argument, or instead of an anonymous row's the types of its columns. */
static void
add_type(LaEffects *e, Node *arg, Oid type, Oid *types, int *n)
{
	int			columns = type != RECORDOID ? -1 :
		columns_of_row(e->plan, arg, types + *n, FUNC_MAX_ARGS - *n);

	if (columns >= 0)
	{
		la_effects_add(e, LA_MAY_FAIL | LA_FAILS_FREELY, NULL);
		*n += columns;
	}
	else if (*n < FUNC_MAX_ARGS)
		types[(*n)++] = type;
}

/* A call with these arguments, of which a constant may rule out errors. */
static void
note_call_of(LaEffects *e, Oid function, Oid result, Oid collation, List *args)
{
	LaEffects	own = {0};
	const Const *second = list_length(args) == 2 ? lsecond(args) : NULL;
	Oid			types[FUNC_MAX_ARGS + 1];
	int			n = 0;
	ListCell   *lc;

	own.plan = e->plan;
	foreach(lc, args)
		add_type(&own, lfirst(lc), exprType(lfirst(lc)), types, &n);
	types[n++] = result;
	note_call(&own, function, n, types);
	if (second != NULL && IsA(second, Const) && !second->constisnull &&
		(is_simple_like(function, collation, second) ||
		 is_simple_division(function, second)))
		own.flags &= ~LA_MAY_FAIL;
	note_collation(&own, collation, n, types);
	la_effects_add(e, own.flags, own.reason);
}

/* ---- operators ------------------------------------------------------------ */

/* The comparison functions of the btree operator families that contain the operator. */
static void
note_ordering(LaEffects *e, Oid operator, int ntypes, const Oid *types)
{
	CatCList   *list = SearchSysCacheList1(AMOPOPID, ObjectIdGetDatum(operator));

	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_amop op = (Form_pg_amop) GETSTRUCT(&list->members[i]->tuple);

		if (op->amopmethod == BTREE_AM_OID && op->amoppurpose == AMOP_SEARCH)
			la_effects_of_support(e, get_opfamily_proc(op->amopfamily, op->amoplefttype,
													   op->amoprighttype, BTORDER_PROC),
								  ntypes, types);
	}
	ReleaseCatCacheList(list);
}

/* An operator by which a node compares rows, with this collation. */
void
la_effects_of_operator(LaEffects *e, Oid operator, Oid collation)
{
	Oid			types[2];

	if (!OidIsValid(operator))
		return;
	if (!SearchSysCacheExists1(OPEROID, ObjectIdGetDatum(operator)))
	{
		la_effects_add(e, LA_HAS_EFFECTS, "an operator is unknown");
		return;
	}

	/* nodes do not say for which types they use a polymorphic operator */
	op_input_types(operator, &types[0], &types[1]);
	note_call(e, get_opcode(operator), 2, types);
	note_ordering(e, operator, 2, types);
	note_collation(e, collation, 2, types);
}

void
la_effects_of_operators(LaEffects *e, int n, const Oid *operators, const Oid *collations)
{
	for (int i = 0; i < n; i++)
		la_effects_of_operator(e, operators[i], collations[i]);
}

/* The hash functions of an equality operator. */
void
la_effects_of_hashing(LaEffects *e, Oid operator)
{
	RegProcedure functions[2];
	Oid			types[2];

	if (!OidIsValid(operator) ||
		!get_op_hash_functions(operator, &functions[0], &functions[1]))
	{
		la_effects_add(e, LA_HAS_EFFECTS, "an operator has no hash function");
		return;
	}
	op_input_types(operator, &types[0], &types[1]);
	for (int i = 0; i < 2; i++)
		la_effects_of_support(e, functions[i], 1, &types[i]);
}

/* Does a search call this support function?  Others are for making entries, or for sorting. */
static bool
is_called_by_search(Oid method, int number)
{
	switch (method)
	{
		case BTREE_AM_OID:
			return number == BTORDER_PROC;
		case GIST_AM_OID:
			return number == GIST_CONSISTENT_PROC || number == GIST_DECOMPRESS_PROC ||
				number == GIST_DISTANCE_PROC || number == GIST_FETCH_PROC;
		case BRIN_AM_OID:
			return number == BRIN_PROCNUM_CONSISTENT;
		case SPGIST_AM_OID:
			return number == SPGIST_CONFIG_PROC || number == SPGIST_INNER_CONSISTENT_PROC ||
				number == SPGIST_LEAF_CONSISTENT_PROC;
		default:
			return true;
	}
}

/* The support functions of an index; those that a search does not call cannot fail in it. */
void
la_effects_of_index(LaEffects *e, Relation index)
{
	int			nsupport = index->rd_indam->amsupport;

	if (index->rd_rel->relam >= FirstNormalObjectId)
	{
		la_effects_add(e, LA_HAS_EFFECTS, "an index access method is not the server's");
		return;
	}
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Oid			type = index->rd_opcintype[i];

		if (get_typtype(type) == TYPTYPE_PSEUDO)
			type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
		for (int j = 0; j < nsupport; j++)
		{
			LaEffects	own = {0};

			la_effects_of_support(&own, index->rd_support[i * nsupport + j], 1, &type);
			if (!is_called_by_search(index->rd_rel->relam, j + 1))
				own.flags &= ~(LA_MAY_FAIL | LA_FAILS_FREELY | LA_MAY_HOLD);
			la_effects_add(e, own.flags, own.reason);
		}
		la_effects_of_collation(e, index->rd_indcollation[i]);
	}
}

/* ---- kinds of expressions ------------------------------------------------- */

static void
note_var(LaEffects *e, const Var *var)
{
	if (var->varattno < 0 && var->varattno != SelfItemPointerAttributeNumber &&
		var->varattno != TableOidAttributeNumber)
		la_effects_add(e, LA_READS_VERSION, NULL);
}

static void
note_param(LaEffects *e, const Param *param)
{
	if (param->paramkind == PARAM_EXTERN)
	{
		if (e->fetches_params)
			la_effects_add(e, LA_MAY_FAIL, NULL);
		return;
	}
	if (param->paramkind != PARAM_EXEC)
		la_effects_add(e, LA_HAS_EFFECTS, "a parameter is of a kind that is not known");
	else if (e->note_param != NULL)
		e->note_param(e, param->paramid, e->arg);
}

static void
note_operator_call(LaEffects *e, const OpExpr *op)
{
	note_call_of(e, OidIsValid(op->opfuncid) ? op->opfuncid : get_opcode(op->opno),
				 op->opresulttype, op->inputcollid, op->args);
}

/* A value is looked for among many of NOT IN by the operator's negator. */
static void
note_array_operator(LaEffects *e, const ScalarArrayOpExpr *op)
{
	Oid			function = OidIsValid(op->opfuncid) ? op->opfuncid : get_opcode(op->opno);

	note_call_of(e, function, BOOLOID, op->inputcollid, op->args);
	if (OidIsValid(op->negfuncid))
		note_call_of(e, op->negfuncid, BOOLOID, op->inputcollid, op->args);
	if (OidIsValid(op->hashfuncid))
		la_effects_of_hashing(e, op->useOr ? op->opno : get_negator(op->opno));
}

/* ORDER BY and DISTINCT compare each argument by the argument's own collation. */
static void
note_sorted_arguments(LaEffects *e, const Aggref *aggref)
{
	ListCell   *lc;

	if (aggref->aggorder == NIL && aggref->aggdistinct == NIL)
		return;
	foreach(lc, aggref->args)
	{
		Node	   *arg = (Node *) ((TargetEntry *) lfirst(lc))->expr;
		Oid			type = exprType(arg);

		note_collation(e, exprCollation(arg), 1, &type);
	}
}

static void
note_aggregate(LaEffects *e, const Aggref *aggref)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	Oid			types[FUNC_MAX_ARGS + 1];
	int			n = 0;
	ListCell   *lc;
	Form_pg_aggregate agg;

	if (!HeapTupleIsValid(tuple))
	{
		la_effects_add(e, LA_HAS_EFFECTS, "an aggregate is unknown");
		return;
	}
	foreach(lc, aggref->aggargtypes)
	{
		const TargetEntry *arg = aggref->aggkind != AGGKIND_NORMAL ||
			aggref->aggsplit != AGGSPLIT_SIMPLE ? NULL :
			get_tle_by_resno(aggref->args, foreach_current_index(lc) + 1);

		add_type(e, arg == NULL ? NULL : (Node *) arg->expr, lfirst_oid(lc), types, &n);
	}
	types[n++] = aggref->aggtype;
	note_collation(e, aggref->inputcollid, n, types);
	note_sorted_arguments(e, aggref);
	agg = (Form_pg_aggregate) GETSTRUCT(tuple);
	note_call(e, agg->aggtransfn, n, types);
	note_call(e, agg->aggfinalfn, n, types);
	if (aggref->aggsplit != AGGSPLIT_SIMPLE)
	{
		note_call(e, agg->aggcombinefn, n, types);
		note_call(e, agg->aggserialfn, n, types);
		note_call(e, agg->aggdeserialfn, n, types);
	}
	ReleaseSysCache(tuple);
}

static void
note_window_function(LaEffects *e, const WindowFunc *function)
{
	HeapTuple	tuple;

	note_call_of(e, function->winfnoid, function->wintype, function->inputcollid,
				 function->args);
	if (!function->winagg)
		return;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(function->winfnoid));
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_aggregate agg = (Form_pg_aggregate) GETSTRUCT(tuple);
		const Oid	functions[] = {
			agg->aggtransfn, agg->aggfinalfn, agg->aggmtransfn, agg->aggminvtransfn,
			agg->aggmfinalfn
		};

		for (size_t i = 0; i < lengthof(functions); i++)
			note_call_of(e, functions[i], function->wintype, function->inputcollid,
						 function->args);
		ReleaseSysCache(tuple);
	}
}

/* Has the type been dropped?  Then whatever its functions were may be called. */
static bool
note_dropped_type(LaEffects *e, Oid type)
{
	if (la_type_exists(type))
		return false;
	la_effects_add(e, LA_HAS_EFFECTS, "a function is unknown");
	return true;
}

static void
note_domain(LaEffects *e, Oid type)
{
	MemoryContext context;
	DomainConstraintRef *ref;
	ListCell   *lc;

	if (note_dropped_type(e, type))
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_lookahead domain",
									ALLOCSET_SMALL_SIZES);
	ref = MemoryContextAlloc(context, sizeof(DomainConstraintRef));
	InitDomainConstraintRef(type, ref, context, false);
	foreach(lc, ref->constraints)
	{
		DomainConstraintState *constraint = lfirst(lc);

		la_effects_add(e, LA_MAY_FAIL, NULL);
		la_effects_of_expression(e, (Node *) constraint->check_expr);
	}
	MemoryContextDelete(context);
}

/* A type's input or output function, and of an array's the one of its elements. */
static void
note_conversion_of(LaEffects *e, Oid type, bool input)
{
	Oid			types[] = {type};
	Oid			element = get_element_type(type);
	Oid			function;
	Oid			parameter;
	bool		varlena;

	if (!la_type_is_plain(type))
		la_effects_add(e, LA_HAS_EFFECTS,
					   "a value is converted from or to a type that is not the server's");
	else if (OidIsValid(element))
	{
		la_effects_add(e, LA_READS_STATE, NULL);
		note_conversion_of(e, element, input);
	}
	else
	{
		if (input)
			getTypeInputInfo(type, &function, &parameter);
		else
			getTypeOutputInfo(type, &function, &varlena);
		note_call(e, function, lengthof(types), types);
	}
}

static void
note_conversion(LaEffects *e, Oid from, Oid to)
{
	LaEffects	output = {0};
	LaEffects	input = {0};

	/* neither output functions of plain types nor textin() fail */
	note_conversion_of(&output, from, false);
	note_conversion_of(&input, to, true);
	output.flags &= ~(LA_MAY_FAIL | LA_FAILS_FREELY | LA_MAY_HOLD);
	if (to == TEXTOID)
		input.flags &= ~LA_MAY_FAIL;
	la_effects_add(e, output.flags, output.reason);
	la_effects_add(e, input.flags, input.reason);
	if (!la_type_is_quiet(from) || !la_type_is_quiet(to))
		la_effects_add(e, LA_HAS_NOTICES, NULL);
}

static void
note_hashed_clause(LaEffects *e, Node *clause)
{
	if (clause != NULL && IsA(clause, OpExpr))
		la_effects_of_hashing(e, ((OpExpr *) clause)->opno);
}

/* The functions by which an expression itself compares or hashes what a subplan returns. */
static void
note_subplan(LaEffects *e, const SubPlan *subplan)
{
	ListCell   *lc;

	la_effects_add(e, LA_HAS_SUBPLAN, NULL);
	if (!subplan->useHashTable)
		return;
	if (!is_andclause(subplan->testexpr))
		note_hashed_clause(e, subplan->testexpr);
	else
	{
		foreach(lc, ((BoolExpr *) subplan->testexpr)->args)
			note_hashed_clause(e, lfirst(lc));
	}
}

/* GREATEST or LEAST */
static void
note_extreme(LaEffects *e, const MinMaxExpr *extreme)
{
	Oid			type = extreme->minmaxtype;

	if (note_dropped_type(e, type))
		return;
	note_call(e, lookup_type_cache(type, TYPECACHE_CMP_PROC)->cmp_proc, 1, &type);
	note_collation(e, extreme->inputcollid, 1, &type);
}

static void
note_subscript(LaEffects *e, Oid container)
{
	if (!la_type_is_plain(container))
		la_effects_add(e, LA_HAS_EFFECTS,
					   "a value of a type that is not the server's is subscripted");
	la_effects_add(e, LA_MAY_FAIL, NULL);
}

/* The less common kinds of expressions. */
static void
note_rare(LaEffects *e, Node *node)
{
	ListCell   *lc;
	ListCell   *collation;

	switch (nodeTag(node))
	{
		case T_Aggref:
			note_aggregate(e, (Aggref *) node);
			break;
		case T_WindowFunc:
			note_window_function(e, (WindowFunc *) node);
			break;
		case T_SortGroupClause:
			/* for the collation, see note_sorted_arguments() */
			la_effects_of_operator(e, ((SortGroupClause *) node)->eqop, DEFAULT_COLLATION_OID);
			la_effects_of_operator(e, ((SortGroupClause *) node)->sortop, DEFAULT_COLLATION_OID);
			break;
		case T_SubPlan:
			note_subplan(e, (SubPlan *) node);
			break;
		case T_CoerceToDomain:
			note_domain(e, ((CoerceToDomain *) node)->resulttype);
			break;
		case T_CoerceViaIO:
			note_conversion(e, exprType((Node *) ((CoerceViaIO *) node)->arg),
							((CoerceViaIO *) node)->resulttype);
			break;
		case T_MinMaxExpr:
			note_extreme(e, (MinMaxExpr *) node);
			break;
		case T_RowCompareExpr:
			forboth(lc, ((RowCompareExpr *) node)->opnos,
					collation, ((RowCompareExpr *) node)->inputcollids)
				la_effects_of_operator(e, lfirst_oid(lc), lfirst_oid(collation));
			break;
		case T_SQLValueFunction:
			if (((SQLValueFunction *) node)->op != SVFOP_CURRENT_TIMESTAMP &&
				((SQLValueFunction *) node)->op != SVFOP_CURRENT_TIMESTAMP_N)
				la_effects_add(e, LA_READS_STATE, NULL);
			break;
		case T_NextValueExpr:
			la_effects_add(e, LA_DRAWS | LA_MAY_FAIL, NULL);
			break;
		case T_SubscriptingRef:
			note_subscript(e, ((SubscriptingRef *) node)->refcontainertype);
			break;
		case T_ArrayCoerceExpr:
		case T_ConvertRowtypeExpr:
		case T_FieldSelect:
		case T_FieldStore:
			la_effects_add(e, LA_MAY_FAIL, NULL);
			break;
		default:
			if (la_is_of_returning(node))
				la_effects_add(e, LA_READS_STATE | LA_MAY_FAIL, NULL);
			else
				la_effects_add(e, LA_HAS_EFFECTS, "an expression is of a kind that is not known");
			break;
	}
}

/* An expression without its arguments. */
void
la_effects_of_node(LaEffects *e, Node *node)
{
	switch (nodeTag(node))
	{
		case T_Const:
		case T_TargetEntry:
		case T_List:
		case T_RelabelType:
		case T_CollateExpr:
		case T_BoolExpr:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_CoerceToDomainValue:
		case T_RowExpr:
		case T_GroupingFunc:
		case T_RangeTblFunction:
			break;
		case T_Var:
			note_var(e, (Var *) node);
			break;
		case T_Param:
			note_param(e, (Param *) node);
			break;
		case T_NullTest:
			if (((NullTest *) node)->argisrow)
				la_effects_add(e, LA_MAY_FAIL, NULL);
			break;
		case T_ArrayExpr:
			if (((ArrayExpr *) node)->multidims)
				la_effects_add(e, LA_MAY_FAIL, NULL);
			break;
		case T_FuncExpr:
			note_call_of(e, ((FuncExpr *) node)->funcid, ((FuncExpr *) node)->funcresulttype,
						 ((FuncExpr *) node)->inputcollid, ((FuncExpr *) node)->args);
			break;
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			note_operator_call(e, (OpExpr *) node);
			break;
		case T_ScalarArrayOpExpr:
			note_array_operator(e, (ScalarArrayOpExpr *) node);
			break;
		default:
			note_rare(e, node);
			break;
	}
}

static bool
note_node(Node *node, void *context)
{
	LaEffects  *e = context;

	if (node == NULL || (e->evaluated != NIL && list_member(e->evaluated, node)))
		return false;
	la_effects_of_node(e, node);
	return expression_tree_walker(node, note_node, context);
}

/* An expression, or a list of expressions. */
void
la_effects_of_expression(LaEffects *e, Node *expression)
{
	(void) note_node(expression, e);
}
