/*
 * repeats.c
 *	  How often a subquery is executed.
 *
 * A subquery that depends on rows of the query around it is executed again for each of them that
 * differs, and its executions share blocks.  The server plans it as if there were only one.
 *
 * The server plans such a subquery before it knows how many rows the tables around it have.  So
 * they are estimated here, by the server's functions: the rows of each table whose columns the
 * subquery depends on, after the conditions on this table alone.  Of several tables it is the least
 * number, by the server's own rule for inner index scans.  Where a subquery depends on something
 * else as well, such as an aggregate, only the columns count; if there are none, one execution is
 * supposed.
 *
 * Conditions are taken as they were written, except for those that the server has come to
 * already.  What contains subqueries does not count: it may be the one that is being planned.
 *
 * src/plancost/repeats.c
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"

#include "base/compat.h"
#include "plancost/plancost_int.h"

/* The conditions of a table, among those of a query. */
typedef struct Conditions
{
	PlannerInfo *root;
	int			varno;
	List	   *found;			/* copies, of table 1 */
} Conditions;

static void
add_conditions(Conditions *c, Node *quals)
{
	List	   *list = quals != NULL && IsA(quals, List) ? (List *) quals :
		make_ands_implicit((Expr *) quals);
	ListCell   *lc;

	foreach(lc, list)
	{
		Node	   *clause = lfirst(lc);
		Relids		varnos = pull_varnos(c->root, clause);

		if (bms_membership(varnos) != BMS_SINGLETON || !bms_is_member(c->varno, varnos) ||
			contain_subplans(clause))
			continue;
		/* the macro copyObject() of 19 needs a newer compiler */
		clause = copyObjectImpl(clause);
		ChangeVarNodes(clause, c->varno, 1, 0);
		c->found = lappend(c->found, clause);
	}
}

/* Those that remove rows of the table, below outer joins apart. */
static void
find_conditions(Conditions *c, Node *jointree)
{
	if (jointree == NULL)
		return;
	if (IsA(jointree, FromExpr))
	{
		FromExpr   *f = (FromExpr *) jointree;
		ListCell   *lc;

		foreach(lc, f->fromlist)
			find_conditions(c, lfirst(lc));
		add_conditions(c, f->quals);
	}
	else if (IsA(jointree, JoinExpr) && ((JoinExpr *) jointree)->jointype == JOIN_INNER)
	{
		JoinExpr   *j = (JoinExpr *) jointree;

		find_conditions(c, j->larg);
		find_conditions(c, j->rarg);
		add_conditions(c, j->quals);
	}
}

/* What the server knows of a table when it plans a query, of a query of this table alone. */
static PlannerInfo *
root_of_table(const PlannerInfo *of, RangeTblEntry *rte)
{
	PlannerInfo *root = makeNode(PlannerInfo);

	root->parse = makeNode(Query);
	root->parse->commandType = CMD_SELECT;
	root->parse->rtable = list_make1(rte);
	la_share_permissions(root->parse, of->parse);
	root->glob = of->glob;
	root->query_level = 1;
	root->planner_cxt = CurrentMemoryContext;
	root->wt_param_id = -1;
	setup_simple_rel_arrays(root);
	return root;
}

/* Of a table of the query.  0: not known. */
static double
estimate_rows(PlannerInfo *root, int varno)
{
	Conditions	conditions = {root, varno, NIL};
	RangeTblEntry *rte = rt_fetch(varno, root->parse->rtable);
	PlannerInfo *alone;
	RelOptInfo *rel;

	if (rte->rtekind != RTE_RELATION || rte->inh || rte->relkind == RELKIND_FOREIGN_TABLE)
		return 0.0;
	find_conditions(&conditions, (Node *) root->parse->jointree);
	alone = root_of_table(root, copyObjectImpl(rte));
	rel = build_simple_rel(alone, 1, NULL);
	return clamp_row_est(rel->tuples *
						 clauselist_selectivity(alone, conditions.found, 0, JOIN_INNER, NULL));
}

/* By the columns that the subquery depends on.  0: there are none. */
static double
executions_by(PlannerInfo *outer)
{
	double		least = 0.0;
	ListCell   *lc;

	foreach(lc, outer->plan_params)
	{
		const PlannerParamItem *param = lfirst_node(PlannerParamItem, lc);
		double		rows;

		if (!IsA(param->item, Var))
			continue;
		rows = estimate_rows(outer, ((Var *) param->item)->varno);
		if (rows > 0.0 && (least == 0.0 || rows < least))
			least = rows;
	}
	return least;
}

/* Executions of the query that is being planned, as a part of the whole one: 1 or more. */
double
la_repeats(PlannerInfo *root)
{
	double		repeats = 1.0;

	for (PlannerInfo *outer = root->parent_root; outer != NULL; outer = outer->parent_root)
	{
		double		rows = executions_by(outer);

		if (rows == 0.0)
			break;
		repeats *= rows;
	}
	return repeats;
}
