/*
 * runahead.h
 *	  May the outer side of a join, or the plan of a write, be run ahead?
 *
 * src/attach/runahead.h
 */
#ifndef LA_RUNAHEAD_H
#define LA_RUNAHEAD_H

#include "attach/demand.h"
#include "attach/effects.h"

/*
 * A join, or a write, whose outer side is to be run ahead.  The functions
 * la_runahead_refuses_...() return NULL if what they are asked about may be early, or else a
 * constant that says why not.
 */
typedef struct LaRunAhead
{
	PlanState  *join;
	PlanState  *outer;			/* its outer side */
	PlanState  *inner;			/* inner side with keys to evaluate, or NULL */
	LaDemandContext context;	/* of the join */
	bool		can_keep_errors;	/* of the outer side, until their turn */
	bool		keeps_errors;	/* ... and has to, as it may fail */
	bool		hints_only;		/* keys are for hints; stock may never
								 * evaluate them */
	bool		pages_only;		/* of `outer`, an index scan, the pages of the
								 * index are early, and not the rows */
	bool		writer_is_quiet;	/* a write of which only the server's own
									 * effects come between rows */
} LaRunAhead;

extern const char *la_runahead_refuses_reading(bool takes_all, const EState *estate);
extern const char *la_runahead_refuses_outer(LaRunAhead *ahead);
extern const char *la_runahead_refuses_pages(PlanState *scan, const LaEffects *early);
extern const char *la_runahead_refuses_plan(PlanState *plan);
extern const char *la_runahead_refuses_expression(const LaRunAhead *ahead,
												  Node *expression);
extern const char *la_runahead_refuses_attempt(const LaRunAhead *ahead, Node *expression,
											   bool *may_fail);
extern const char *la_runahead_refuses_support(const LaRunAhead *ahead,
											   Oid function, Oid type, Oid collation);
extern const char *la_runahead_refuses_hashing(const LaRunAhead *ahead,
											   List *operators);
extern bool la_runahead_is_without_effects(const EState *estate);
extern bool la_runahead_takes_all(const LaDemandContext *context,
								  const EState *estate);
extern bool la_runahead_may_fetch(const LaDemandContext *context, const EState *estate,
								  int64 known, int64 taken);

#endif							/* LA_RUNAHEAD_H */
