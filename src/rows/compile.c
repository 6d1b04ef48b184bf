/*
 * compile.c
 *	  Expressions of a plan, compiled once more.
 *
 * What is evaluated early with state of its own is compiled here, as the executor has compiled it
 * when the plan was started.  Compiling checks that the user may call the functions, and tells
 * object_access_hook so.  Here that is done once more, and later: the user may be another one (a
 * cursor that a SECURITY DEFINER function returns), and the privilege may have been revoked.  The
 * expressions of an index are compiled here before the executor inserts the first entry, which it
 * may never do.  So what may not be compiled is not evaluated early, and the hook is not called.
 *
 * src/rows/compile.c
 */
#include "postgres.h"

#include "catalog/objectaccess.h"
#include "executor/executor.h"

#include "base/base.h"
#include "rows/rows.h"

typedef struct Compilation
{
	Node	   *source;
	ParamListInfo params;
	bool		is_qual;
	ExprState  *state;
} Compilation;

static void
compile(void *arg)
{
	Compilation *c = arg;

	c->state = c->is_qual ? ExecInitQual((List *) c->source, NULL) :
		ExecInitExprWithParams((Expr *) c->source, c->params);
}

static ExprState *
try_compile(Compilation *c)
{
	object_access_hook_type hook = object_access_hook;

	object_access_hook = NULL;
	PG_TRY();
	{
		if (!la_attempt_compute(compile, c))
			c->state = NULL;
	}
	PG_FINALLY();
	{
		object_access_hook = hook;
	}
	PG_END_TRY();
	return c->state;
}

/* In the current memory context; NULL if it may not be compiled.  params: external ones. */
ExprState *
la_compile_expression(Expr *expression, ParamListInfo params)
{
	Compilation c = {(Node *) expression, params, false, NULL};

	return try_compile(&c);
}

/*
 * Expressions of an index or of a partition key, as the relation's cache entry has them, in the
 * memory of this EState.  Returns false if one of them may not be compiled.
 */
bool
la_compile_list(List *expressions, EState *estate, List **states)
{
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	bool		compiled = true;
	ListCell   *lc;

	*states = NIL;
	foreach(lc, expressions)
	{
		ExprState  *state = la_compile_expression(lfirst(lc), NULL);

		compiled &= state != NULL;
		*states = lappend(*states, state);
	}
	MemoryContextSwitchTo(old);
	return compiled;
}

/* The same for a filter, which has clauses. */
ExprState *
la_compile_qual(List *qual)
{
	Compilation c = {(Node *) qual, NULL, true, NULL};

	Assert(qual != NIL);
	return try_compile(&c);
}
