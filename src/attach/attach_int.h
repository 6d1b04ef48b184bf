/*
 * attach_int.h
 *	  What the files of this room share.
 *
 * src/attach/attach_int.h
 */
#ifndef LA_ATTACH_INT_H
#define LA_ATTACH_INT_H

#include "attach/attach.h"

/* ---- filter_effects: what a filter may do that has been evaluated before ---- */

extern void la_effects_of_filter(LaEffects *effects, List *clauses);

/* ---- initplans: those, and CTEs, that a part of a statement executes ---- */

extern PlanState *la_initplan_of(PlanState *top, int param);
extern bool la_initplans_may_be_left(PlanState *outer);

/* ---- known_functions ---- */

typedef enum LaKnownFunction
{
	LA_FUNCTION_FIXED,			/* stable, with a value that cannot change
								 * before the statement ends */
	LA_FUNCTION_EFFECTS,		/* has effects, or shows those of the server,
								 * though not declared volatile */
	LA_FUNCTION_STATE,			/* immutable, but reads state */
	LA_FUNCTION_SETTINGS,		/* stable, and an error leaves nothing held */
	LA_FUNCTION_NOTICES,		/* may raise a notice or a warning */
	LA_FUNCTION_DRAWS,			/* volatile, but only draws a value */
	LA_FUNCTION_ERRORFREE,		/* raises no error, whatever its arguments */
	LA_FUNCTION_LIKE,			/* LIKE and NOT LIKE */
	LA_FUNCTION_DIVISION		/* of integers, which fails for a divisor of
								 * zero, and may overflow for one of -1 */
} LaKnownFunction;

extern bool la_function_is(Oid function, LaKnownFunction kind);
extern bool la_function_may_raise(Oid function);

/* ---- node_effects: what a plan node evaluates, and when ---- */

typedef struct LaNodeEffects
{
	LaEffects	start;			/* in the first call after the start or a
								 * rescan */
	LaEffects	keys;			/* of a hash join, for each outer row, before
								 * anything else */
	LaEffects	later;			/* in any call */
} LaNodeEffects;

extern void la_node_effects(PlanState *ps, bool filter_passed, LaNodeEffects *e);

/* ---- types ---- */

extern bool la_type_exists(Oid type);
extern bool la_type_is_plain(Oid type);
extern bool la_type_is_quiet(Oid type);
extern bool la_type_has_rows(Oid type);
extern bool la_type_comparison_may_fail(Oid type, Oid function);

#endif							/* LA_ATTACH_INT_H */
