/*
 * plancost_int.h
 *	  What the files of this room share.
 *
 * src/plancost/plancost_int.h
 */
#ifndef LA_PLANCOST_INT_H
#define LA_PLANCOST_INT_H

#include "access/amapi.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "utils/relcache.h"

#include "plancost/prices.h"
#include "plancost/scatter.h"

/* ---- leafsample: some leaf pages of a btree index, looked at by the planner ---- */

extern void la_leaf_sample(Relation index, LaScatter *scatter);

/* ---- mark: plans whose costs were adjusted are marked, and EXPLAIN says so ---- */

extern void la_mark_adjusted(PlannedStmt *plan);
extern void la_mark_init(void);

/* ---- repeats: how often a subquery is executed ---- */

extern double la_repeats(PlannerInfo *root);

/* ---- reprice: the paths of a table, made with other prices for reads ---- */

/* Of the table, or of one of its indexes. */
typedef struct LaPriced
{
	bool		adjusted;		/* else stock's prices */
	LaPrices	prices;
	LaPrices	shared;			/* if there are workers, for each of them */
} LaPriced;

typedef struct LaPricedIndex
{
	IndexOptInfo *index;
	amcostestimate_function estimate;	/* its own */
	LaPriced	pages;
	bool		has_scatter;	/* it has been looked for */
	LaScatter	scatter;
} LaPricedIndex;

/* As the server's settings have them. */
typedef struct LaPagePrices
{
	double		random;
	double		sequential;
} LaPagePrices;

typedef struct LaReprice
{
	LaPriced	table;
	LaReach		reach;			/* of index scans */
	double		bitmap_distance;	/* of bitmap scans */
	bool		over_outer_rows;	/* repeated scans are as one */
	double		repeats;		/* executions of the query; 1 or more */
	bool		over_repeats;	/* they are as one, too */
	bool		may_share;		/* there may be workers */
	bool		in_workers;		/* paths are made with shared prices */
	LaPricedIndex *indexes;
	int			nindexes;

	/* while another statement is planned: reprice.c's */
	LaPagePrices stock;
	LaPagePrices written;
	bool		random_is_as_written;
	bool		sequential_is_as_written;
} LaReprice;

/* Make a table's sequential paths, at these prices. */
typedef void (*LaMakePaths) (PlannerInfo *root, RelOptInfo *rel, const LaReprice *prices);

extern void la_reprice_paths(PlannerInfo *root, RelOptInfo *rel, LaReprice *prices,
							 LaMakePaths make_sequential);
extern bool la_reprice_is_active(void);
extern LaReprice *la_reprice_suspend(void);
extern void la_reprice_resume(LaReprice *suspended);

/* ---- residency: which share of a relation's blocks is in memory ---- */

/* Not known. */
#define LA_RESIDENCY_UNKNOWN	(-1.0)

extern double la_residency(Relation rel, BlockNumber blocks);

#endif							/* LA_PLANCOST_INT_H */
