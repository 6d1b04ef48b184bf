/*
 * paths.c
 *	  The planner's paths of a table, as other extensions change them.
 *
 *	la_company.paths	halve	only a sequential scan is left, at half its cost: what an
 *								extension does whose tables must not be read in another way
 *						custom	a path of its own is added, at half the cost of the cheapest
 *
 * It is done before the hook is called that was there before.
 *
 * test/modules/company/paths.c
 */
#include "postgres.h"

#include "nodes/extensible.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/guc.h"

#include "company.h"

enum
{
	PATHS_AS_THEY_ARE, PATHS_HALVE, PATHS_CUSTOM
};

static const struct config_enum_entry options[] = {
	{"none", PATHS_AS_THEY_ARE, false},
	{"halve", PATHS_HALVE, false},
	{"custom", PATHS_CUSTOM, false},
	{NULL, 0, false}
};

static int	paths = PATHS_AS_THEY_ARE;
static set_rel_pathlist_hook_type prev_hook = NULL;

/* ---- a scan that does what the path below it does ------------------------------ */

static void
begin_scan(CustomScanState *node, EState *estate, int eflags)
{
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;

	node->custom_ps = list_make1(ExecInitNode(linitial(scan->custom_plans), estate, eflags));
}

static TupleTableSlot *
execute_scan(CustomScanState *node)
{
	return ExecProcNode(linitial(node->custom_ps));
}

static void
end_scan(CustomScanState *node)
{
	ExecEndNode(linitial(node->custom_ps));
}

static void
rescan(CustomScanState *node)
{
	ExecReScan(linitial(node->custom_ps));
}

static const CustomExecMethods execute_methods = {
	.CustomName = "company",
	.BeginCustomScan = begin_scan,
	.ExecCustomScan = execute_scan,
	.EndCustomScan = end_scan,
	.ReScanCustomScan = rescan
};

static Node *
create_state(CustomScan *scan)
{
	CustomScanState *state = (CustomScanState *) newNode(sizeof(CustomScanState), T_CustomScanState);

	state->methods = &execute_methods;
	return (Node *) state;
}

static const CustomScanMethods scan_methods = {"company", create_state};

static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
		  List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = tlist;
	scan->scan.scanrelid = rel->relid;
	scan->custom_plans = custom_plans;
	scan->methods = &scan_methods;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {.CustomName = "company",.PlanCustomPath = plan_path};

static void
add_custom(RelOptInfo *rel)
{
	CustomPath *path = makeNode(CustomPath);
	Path	   *child = linitial(rel->pathlist);

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.rows = child->rows;
	path->path.startup_cost = child->startup_cost / 2;
	path->path.total_cost = child->total_cost / 2;
	path->custom_paths = list_make1(child);
	path->methods = &path_methods;

	/* add_path() frees what is not worth keeping */
	rel->pathlist = list_delete_first(rel->pathlist);
	add_path(rel, &path->path);
}

/* ---- the hook ------------------------------------------------------------------ */

static void
change_paths(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	if (rte->rtekind == RTE_RELATION && !rte->inh && rel->pathlist != NIL)
	{
		if (paths == PATHS_HALVE)
		{
			Path	   *path = create_seqscan_path(root, rel, rel->lateral_relids, 0);

			path->total_cost /= 2;
			rel->pathlist = list_make1(path);
			rel->partial_pathlist = NIL;
		}
		else if (paths == PATHS_CUSTOM && ((Path *) linitial(rel->pathlist))->param_info == NULL)
			add_custom(rel);
	}
	if (prev_hook)
		prev_hook(root, rel, rti, rte);
}

void
paths_define_settings(void)
{
	DefineCustomEnumVariable("la_company.paths", "", NULL, &paths, PATHS_AS_THEY_ARE, options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	prev_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = change_paths;
}
