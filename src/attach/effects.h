/*
 * effects.h
 *	  What could be noticed if an expression were evaluated at another time.
 *
 * src/attach/effects.h
 */
#ifndef LA_EFFECTS_H
#define LA_EFFECTS_H

#include "nodes/execnodes.h"

#define LA_HAS_EFFECTS		0x01	/* or is volatile, or not known here */
#define LA_READS_STATE		0x02	/* which the statement may change */
#define LA_READS_VERSION	0x04	/* xmin, xmax, cmin or cmax of a row */
#define LA_MAY_FAIL			0x08
#define LA_HAS_SUBPLAN		0x10	/* which effects.c does not examine */
#define LA_DRAWS			0x20	/* draws a value in an order, as nextval() */
#define LA_HAS_NOTICES		0x40	/* may raise a notice or a warning */
#define LA_FAILS_FREELY		0x80	/* may fail with an error of any class */
#define LA_MAY_HOLD			0x100	/* if it fails, something may stay held,
									 * as an entry of a catalog's cache */
#define LA_ANY_EFFECTS		(LA_HAS_EFFECTS | LA_DRAWS)

typedef struct LaEffects
{
	int			flags;
	const char *reason;			/* for LA_HAS_EFFECTS; a constant */
	bool		fetches_params; /* external Params are variables of a
								 * procedural language, which may fail:
								 * "record is not assigned yet" */
	List	   *evaluated;		/* expressions that do not count, since they
								 * have been evaluated before */

	/* whose expressions these are, to find the columns of rows; or NULL */
	const Plan *plan;

	/* adds what the first evaluation of this Param may do; or NULL */
	void		(*note_param) (struct LaEffects *effects, int param, void *arg);
	void	   *arg;
} LaEffects;

extern void la_effects_add(LaEffects *effects, int flags, const char *reason);
extern void la_effects_of_expression(LaEffects *effects, Node *expression);
extern void la_effects_of_node(LaEffects *effects, Node *node);
extern void la_effects_of_function(LaEffects *effects, Oid function);
extern void la_effects_of_support(LaEffects *effects, Oid function, int ntypes,
								  const Oid *types);
extern void la_effects_of_collation(LaEffects *effects, Oid collation);
extern void la_effects_of_operator(LaEffects *effects, Oid operator, Oid collation);
extern void la_effects_of_hashing(LaEffects *effects, Oid operator);
extern void la_effects_of_operators(LaEffects *effects, int n,
									const Oid *operators, const Oid *collations);
extern void la_effects_of_index(LaEffects *effects, Relation index);

#endif							/* LA_EFFECTS_H */
