/*
 * innersearch.h
 *	  The leaf page, the matches and the heap blocks that an outer row's inner scan needs.
 *
 * src/nestloop/innersearch.h
 */
#ifndef LA_INNERSEARCH_H
#define LA_INNERSEARCH_H

#include "nestloop/outerqueue.h"
#include "window/issue.h"

#define LA_MAX_VISITS	2048	/* of all rows in the queue; a power of 2 */
#define LA_MAX_MATCHES	4096	/* the same */

/* What was found for the rows in the queue, in their order: [first, end) of two rings. */
typedef struct LaInnerSearch
{
	LaNestLoop *join;
	LaMapPage	map;
	int			vm_inner;
	uint32		first_visit;
	uint32		end_visit;
	uint32		first_match;	/* of the row returned last */
	uint32		end_match;
	LaForeseen	visits[LA_MAX_VISITS];
	ItemPointerData matches[LA_MAX_MATCHES];
} LaInnerSearch;

/* The inner scan of a row that has one. */
static inline LaInner *
la_innersearch_inner(const LaInnerSearch *search, const LaOuterRow *row)
{
	return &search->join->inners[row->inner];
}

/* A visit of this row. */
static inline LaForeseen *
la_innersearch_visit(LaInnerSearch *search, const LaOuterRow *row, int i)
{
	return &search->visits[(row->first_visit + i) & (LA_MAX_VISITS - 1)];
}

/* All matches of a row whose matches are kept. */
static inline ItemPointer
la_innersearch_matches(LaInnerSearch *search, const LaOuterRow *row)
{
	return &search->matches[row->first_match & (LA_MAX_MATCHES - 1)];
}

extern bool la_innersearch_has_room(const LaInnerSearch *search);
extern bool la_innersearch_find_leaf(LaInnerSearch *search, LaOuterRow *row, bool may_wait);
extern void la_innersearch_search_leaf(LaInnerSearch *search, LaOuterRow *row, Buffer *buffer);
extern void la_innersearch_release(LaInnerSearch *search, const LaOuterRow *row);
extern void la_innersearch_release_all(LaInnerSearch *search);

#endif							/* LA_INNERSEARCH_H */
