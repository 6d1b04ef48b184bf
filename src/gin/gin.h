/*
 * gin.h
 *	  What the room gin/ offers to others.
 *
 * src/gin/gin.h
 */
#ifndef LA_GIN_H
#define LA_GIN_H

#include "access/amapi.h"
#include "access/gin_private.h"
#include "fmgr.h"
#include "storage/block.h"
#include "storage/buf.h"
#include "storage/bufpage.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "base/base.h"
#include "window/window.h"

/* ---- ginpage: pages of a GIN index, which may be damaged ---- */

extern bool la_ginpage_is_sound(Page page);
extern int	la_ginpage_count_children(Page page);
extern BlockNumber la_ginpage_child_of(Page page, ItemPointer tid);

/* ---- ginreads: are the reads of a GIN index's pages waits? Pages read, and advised ---- */

typedef struct LaGinReads
{
	Relation	index;
	LaIoPolicyConfig config;	/* set by the caller */
	LaCounters *counters;
	LaIoPolicy	policy;
	BlockNumber index_size;		/* see la_issue_exists() */
	int			calls;			/* of the access method, this one included */
	int64		try_again;		/* observe again when so many blocks were read */
	bool		counted;		/* as activated */
} LaGinReads;

extern bool la_ginreads_is_stock(const IndexAmRoutine *am);
extern void la_ginreads_init(LaGinReads *r, Relation index, LaCounters *counters);
extern void la_ginreads_begin(LaGinReads *r);
extern void la_ginreads_end(LaGinReads *r);
extern bool la_ginreads_arms(LaGinReads *r);
extern bool la_ginreads_may_read(void);
extern bool la_ginreads_is_observing(LaGinReads *r);
extern Buffer la_ginreads_read(LaGinReads *r, BlockNumber block);
extern void la_ginreads_advise(LaGinReads *r, BlockNumber block);

/* ---- ginsupport: functions of ours in place of an operator class's ---- */

extern PGFunction la_ginsupport_original(const FmgrInfo *flinfo);
extern void la_ginsupport_exchange(FmgrInfo *flinfo, PGFunction from, PGFunction to);
extern Datum la_ginsupport_call_original(FunctionCallInfo fcinfo);

/* ---- ginsearch: entries that are going to be looked for, all of them at once ---- */

/* An entry that is searched for. */
typedef struct LaGinSearch
{
	Datum		key;
	BlockNumber block;			/* the next page, or InvalidBlockNumber */
	OffsetNumber attnum;
	GinNullCategory category;
	bool		partial;		/* what begins with the key */
	bool		in_postings;	/* the page belongs to the posting tree */
	ItemPointerData tid;		/* whose page is wanted there; invalid: the
								 * first page */
} LaGinSearch;

typedef struct LaGinSearcher
{
	LaGinReads *reads;
	GinState   *state;
	MemoryContext context;		/* reset after each search */
} LaGinSearcher;

extern bool la_ginsearch_is_possible(const GinState *state);
extern void la_ginsearch_set(LaGinSearch *s, OffsetNumber attnum, Datum key,
							 GinNullCategory category);
extern void la_ginsearch_run(const LaGinSearcher *by, LaGinSearch *searches, int n);

#endif							/* LA_GIN_H */
