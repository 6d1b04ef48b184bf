/*
 * compile.h
 *	  Expressions of a plan, compiled once more.
 *
 * src/rows/compile.h
 */
#ifndef LA_COMPILE_H
#define LA_COMPILE_H

#include "nodes/execnodes.h"
#include "nodes/params.h"

extern ExprState *la_compile_expression(Expr *expression, ParamListInfo params);
extern bool la_compile_list(List *expressions, EState *estate, List **states);
extern ExprState *la_compile_qual(List *qual);

#endif							/* LA_COMPILE_H */
