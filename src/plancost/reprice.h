/*
 * reprice.h
 *	  The paths of a table's indexes, made with other prices for reads.
 *
 * src/plancost/reprice.h
 */
#ifndef LA_REPRICE_H
#define LA_REPRICE_H

#include "access/amapi.h"
#include "nodes/pathnodes.h"

#include "plancost/prices.h"

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
} LaPricedIndex;

typedef struct LaReprice
{
	LaPriced	table;
	LaReach		reach;			/* of index scans */
	double		bitmap_distance;	/* of bitmap scans */
	bool		over_outer_rows;	/* repeated scans are as one */
	bool		may_share;		/* there may be workers */
	bool		in_workers;		/* paths are made with shared prices */
	LaPricedIndex *indexes;
	int			nindexes;

	/* while another statement is planned: reprice.c's */
	double		stock_price;
	double		written_price;
	bool		is_as_written;
} LaReprice;

extern void la_reprice_index_paths(PlannerInfo *root, RelOptInfo *rel, LaReprice *prices);
extern bool la_reprice_is_active(void);
extern LaReprice *la_reprice_suspend(void);
extern void la_reprice_resume(LaReprice *suspended);

#endif							/* LA_REPRICE_H */
