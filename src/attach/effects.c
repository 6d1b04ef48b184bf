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
 *	Failure
 *		A function may fail unless it is leakproof, which promises that it raises no error
 *		that depends on its arguments, or is listed in known_functions.c, or is called with
 *		a constant that rules out its errors, as in integer division by 10, or LIKE with a
 *		pattern without escapes.  The server's functions raise errors of certain classes
 *		(rows/attempt.c), those of other extensions any (LA_FAILS_FREELY).  The same is said of
 *		functions of rows, which hold references to descriptors when they fail.
 *	Notices
 *		Few functions that only compute raise notices about what they are given: those that
 *		parse text for text search, and XML (LA_HAS_NOTICES).
 *	Plain types
 *		A polymorphic function calls functions of the types that it is given: comparison
 *		functions, input and output functions, constraints of domains.  It is trusted for
 *		the server's own types, enums, and arrays and rows of only these.
 *	Indirect calls
 *		What is called on behalf of an expression counts as well: support functions of
 *		aggregates, constraints of domains, operators' functions, the comparison and hash
 *		functions of their operator classes, and support functions of indexes.
 *	Passed filters
 *		For a row that has passed a filter, all clauses of the filter have been evaluated,
 *		and with them those of their arguments that do not depend on the row.  So these
 *		cannot fail later in the same scan, and a Param among them has its value.
 *
 * Security barriers and row-level security need no rules of their own: filters are
 * evaluated by the plan's own nodes, in their order, also when these run ahead; and what is
 * evaluated in addition, such as the keys of an inner scan, calls trusted functions only.
 *
 * src/attach/effects.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "attach/effects.h"
#include "attach/known_functions.h"
#include "base/compat.h"

void
la_effects_add(LaEffects *e, int flags, const char *reason)
{
	if ((flags & LA_HAS_EFFECTS) != 0 && (e->flags & LA_HAS_EFFECTS) == 0)
		e->reason = reason;
	e->flags |= flags;
}

/* ---- types ---------------------------------------------------------------- */

/* Does this hold for the types of all columns? */
static bool
columns_are(Oid type, bool (*what) (Oid type))
{
	TupleDesc	desc = lookup_rowtype_tupdesc_noerror(type, -1, true);
	bool		result = desc != NULL;

	for (int i = 0; result && i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		result = att->attisdropped || what(att->atttypid);
	}
	if (desc != NULL)
		ReleaseTupleDesc(desc);
	return result;
}

/* Is the type's input function known to raise no notices? */
static bool
is_quiet(Oid type)
{
	Oid			base = getBaseType(type);
	Oid			element = get_element_type(base);

	if (OidIsValid(element))
		return is_quiet(element);
	if (get_typtype(base) == TYPTYPE_COMPOSITE)
		return columns_are(base, is_quiet);
	return base != TSQUERYOID && base != XMLOID && base != ACLITEMOID &&
		base != REGTYPEOID && base != REGPROCEDUREOID && base != REGOPERATOROID;
}

/* The json functions call such a cast, which may be in any language. */
static bool
has_cast_to_json(Oid type)
{
	Oid			function;

	return find_coercion_pathway(JSONOID, type, COERCION_EXPLICIT, &function) ==
		COERCION_PATH_FUNC;
}

/* "Plain types": does a polymorphic function call only functions of the server for it? */
bool
la_effects_type_is_plain(Oid type)
{
	Oid			element = get_element_type(type);

	if (OidIsValid(element))
		return la_effects_type_is_plain(element);
	switch (get_typtype(type))
	{
		case TYPTYPE_ENUM:
			return !has_cast_to_json(type);
		case TYPTYPE_COMPOSITE:
			return columns_are(type, la_effects_type_is_plain);
		case TYPTYPE_BASE:
		case TYPTYPE_RANGE:
		case TYPTYPE_MULTIRANGE:
			return type < FirstNormalObjectId;
		default:
			return false;
	}
}

/* Is it a row, or made of rows? */
static bool
has_rows(Oid type)
{
	Oid			base = getBaseType(type);
	Oid			element = get_element_type(base);

	switch (get_typtype(base))
	{
		case TYPTYPE_COMPOSITE:
			return true;
		case TYPTYPE_RANGE:
			return has_rows(get_range_subtype(base));
		case TYPTYPE_MULTIRANGE:
			return has_rows(get_multirange_range(base));
		default:
			return OidIsValid(element) && has_rows(element);
	}
}

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

/* ---- functions ------------------------------------------------------------ */

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
	else if (la_function_is(function, LA_FUNCTION_SETTINGS) ||
			 (proc->provolatile == PROVOLATILE_STABLE &&
			  !la_function_is(function, LA_FUNCTION_FIXED)))
		la_effects_add(e, LA_READS_STATE, NULL);
	if (!proc->proleakproof && !la_function_is(function, LA_FUNCTION_ERRORFREE))
		la_effects_add(e, function < FirstNormalObjectId ? LA_MAY_FAIL :
					   LA_MAY_FAIL | LA_FAILS_FREELY, NULL);
	if (la_function_is(function, LA_FUNCTION_NOTICES))
		la_effects_add(e, LA_HAS_NOTICES, NULL);
	if (is_polymorphic(proc))
	{
		bool		plain = ntypes > 0;

		for (int i = 0; i < ntypes; i++)
		{
			plain &= la_effects_type_is_plain(types[i]);
			if (!is_quiet(types[i]))
				la_effects_add(e, LA_HAS_NOTICES, NULL);
			if (has_rows(types[i]))
				la_effects_add(e, LA_MAY_FAIL | LA_FAILS_FREELY, NULL);
		}
		if (!plain)
			la_effects_add(e, LA_HAS_EFFECTS,
						   "a function of any type is called for a type that is not the server's");
	}
	ReleaseSysCache(tuple);
}

/*
 * A comparison, hash or other support function of an operator class.  The server's own
 * raise no errors, though few are declared leakproof.
 */
void
la_effects_of_support(LaEffects *e, Oid function, int ntypes, const Oid *types)
{
	LaEffects	own = {0};

	note_call(&own, function, ntypes, types);
	if (function < FirstGenbkiObjectId)
		own.flags &= ~(LA_MAY_FAIL | LA_FAILS_FREELY);
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
	bool		simple;

	if (!la_function_is(function, LA_FUNCTION_LIKE) || pattern->consttype != TEXTOID ||
		!OidIsValid(collation) || !get_collation_isdeterministic(collation))
		return false;
	value = DatumGetTextPP(pattern->constvalue);
	simple = memchr(VARDATA_ANY(value), '\\', VARSIZE_ANY_EXHDR(value)) == NULL;
	if ((Pointer) value != DatumGetPointer(pattern->constvalue))
		pfree(value);
	return simple;
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
		case INT8OID:
			value = DatumGetInt64(divisor->constvalue);
			break;
		default:
			return false;
	}
	return value != 0 && value != -1;
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

	foreach(lc, args)
	{
		if (n < FUNC_MAX_ARGS)
			types[n++] = exprType(lfirst(lc));
	}
	types[n++] = result;
	note_call(&own, function, n, types);
	if (second != NULL && IsA(second, Const) && !second->constisnull &&
		(is_simple_like(function, collation, second) ||
		 is_simple_division(function, second)))
		own.flags &= ~LA_MAY_FAIL;
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

/* An operator by which a node compares rows. */
void
la_effects_of_operator(LaEffects *e, Oid operator)
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
}

void
la_effects_of_operators(LaEffects *e, int n, const Oid *operators)
{
	for (int i = 0; i < n; i++)
		la_effects_of_operator(e, operators[i]);
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

/* The support functions that a search of an index may call. */
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
			la_effects_of_support(e, index->rd_support[i * nsupport + j], 1, &type);
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

static void
note_array_operator(LaEffects *e, const ScalarArrayOpExpr *op)
{
	Oid			function = OidIsValid(op->opfuncid) ? op->opfuncid : get_opcode(op->opno);

	note_call_of(e, function, BOOLOID, op->inputcollid, op->args);
	if (OidIsValid(op->hashfuncid))
		la_effects_of_hashing(e, op->opno);
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
		if (n < FUNC_MAX_ARGS)
			types[n++] = lfirst_oid(lc);
	}
	types[n++] = aggref->aggtype;
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

static void
note_domain(LaEffects *e, Oid type)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_lookahead domain",
												  ALLOCSET_SMALL_SIZES);
	DomainConstraintRef *ref = MemoryContextAlloc(context, sizeof(DomainConstraintRef));
	ListCell   *lc;

	InitDomainConstraintRef(type, ref, context, false);
	foreach(lc, ref->constraints)
	{
		DomainConstraintState *constraint = lfirst(lc);

		la_effects_add(e, LA_MAY_FAIL, NULL);
		la_effects_of_expression(e, (Node *) constraint->check_expr);
	}
	MemoryContextDelete(context);
}

static void
note_conversion(LaEffects *e, Oid from, Oid to)
{
	/* neither output functions of plain types nor textin() fail */
	la_effects_add(e, LA_READS_STATE, NULL);
	if (to != TEXTOID)
		la_effects_add(e, LA_MAY_FAIL, NULL);
	if (!is_quiet(to))
		la_effects_add(e, LA_HAS_NOTICES, NULL);
	if (!la_effects_type_is_plain(from) || !la_effects_type_is_plain(to))
		la_effects_add(e, LA_HAS_EFFECTS,
					   "a value is converted from or to a type that is not the server's");
}

/* The less common kinds of expressions. */
static void
note_rare(LaEffects *e, Node *node)
{
	ListCell   *lc;
	Oid			type;

	switch (nodeTag(node))
	{
		case T_Aggref:
			note_aggregate(e, (Aggref *) node);
			break;
		case T_WindowFunc:
			note_window_function(e, (WindowFunc *) node);
			break;
		case T_SortGroupClause:
			la_effects_of_operator(e, ((SortGroupClause *) node)->eqop);
			la_effects_of_operator(e, ((SortGroupClause *) node)->sortop);
			break;
		case T_SubPlan:
			la_effects_add(e, LA_HAS_SUBPLAN, NULL);
			break;
		case T_CoerceToDomain:
			note_domain(e, ((CoerceToDomain *) node)->resulttype);
			break;
		case T_CoerceViaIO:
			note_conversion(e, exprType((Node *) ((CoerceViaIO *) node)->arg),
							((CoerceViaIO *) node)->resulttype);
			break;
		case T_MinMaxExpr:
			type = ((MinMaxExpr *) node)->minmaxtype;
			note_call(e, lookup_type_cache(type, TYPECACHE_CMP_PROC)->cmp_proc, 1, &type);
			break;
		case T_RowCompareExpr:
			foreach(lc, ((RowCompareExpr *) node)->opnos)
				la_effects_of_operator(e, lfirst_oid(lc));
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
			if (!la_effects_type_is_plain(((SubscriptingRef *) node)->refcontainertype))
				la_effects_add(e, LA_HAS_EFFECTS,
							   "a value of a type that is not the server's is subscripted");
			la_effects_add(e, LA_MAY_FAIL, NULL);
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
static void
note_one(LaEffects *e, Node *node)
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
	note_one(e, node);
	return expression_tree_walker(node, note_node, context);
}

/* An expression, or a list of expressions. */
void
la_effects_of_expression(LaEffects *e, Node *expression)
{
	(void) note_node(expression, e);
}

/* ---- "passed filters" ----------------------------------------------------- */

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
	note_one(e, node);
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
