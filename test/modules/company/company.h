/*
 * company.h
 *	  An extension that does to the executor what other extensions do.
 *
 *		hooks.c		the executor's hooks, settings, queries run from within hooks
 *		wrap.c		functions put around those of plan nodes, and what they count
 *		tree.c		walks and prints the plans of running queries; counts pins
 *		plan.c		notices whoever writes into a Plan tree
 *		paths.c		changes the planner's paths
 *
 * Nothing of it knows pg_lookahead.  t/015_company.pl compares what it sees with
 * look-ahead and without.
 *
 * test/modules/company/company.h
 */
#ifndef COMPANY_H
#define COMPANY_H

#include "executor/executor.h"

/* What was put around one node. */
typedef struct Wrap
{
	PlanState  *node;
	ExecProcNodeMtd saved;		/* what the wrapper calls */
	ExecProcNodeMtd before;		/* ExecProcNode at the time */
	int			counted;		/* index of its counts */
} Wrap;

/* A query of which ExecutorStart has been seen; lives in its es_query_cxt. */
typedef struct Execution
{
	QueryDesc  *desc;
	uint64		digest;			/* of its plan, 0: unknown */
	PlanState **nodes;			/* in the order of planstate_tree_walker() */
	int			nnodes;
	Wrap	   *wraps;
	int			nwraps;
	MemoryContextCallback callback;
	struct Execution *next;		/* of all, newest first */
	struct Execution *outer;	/* of those in ExecutorRun or ExecutorFinish */
} Execution;

/* hooks.c */
extern Execution *running;		/* the innermost */
extern void complain(const char *format,...) pg_attribute_printf(1, 2);

/* wrap.c */
extern void wrap_define_settings(void);
extern bool wrap_is_on(void);
extern void wrap_at_start(Execution *query);
extern void wrap_at_row(Execution *query);
extern void wrap_at_end(Execution *query);
extern void wrap_forget(void);

/* tree.c */
extern void tree_define_settings(void);
extern void tree_note(Execution *query);
extern void tree_check(Execution *query);
extern void tree_at_end(Execution *query);
extern void tree_forget(void);
extern const char *tree_name(NodeTag tag);

/* plan.c */
extern void plan_define_settings(void);
extern void plan_before_start(QueryDesc *desc);
extern void plan_at_start(Execution *query);
extern void plan_check(Execution *query, const char *when);

/* paths.c */
extern void paths_define_settings(void);

#endif							/* COMPANY_H */
