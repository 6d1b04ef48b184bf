/*
 * reprice.h
 *	  The paths of a table, made with other prices for reads.
 *
 * src/plancost/reprice.h
 */
#ifndef LA_REPRICE_H
#define LA_REPRICE_H

#include "access/amapi.h"
#include "nodes/pathnodes.h"

#include "plancost/prices.h"
#include "plancost/scatter.h"

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

#endif							/* LA_REPRICE_H */
