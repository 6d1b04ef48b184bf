/*
 * aio.h
 *	  Asynchronous reads into shared buffers, for direct I/O.
 *
 * src/window/aio.h
 */
#ifndef LA_AIO_H
#define LA_AIO_H

#include "storage/fd.h"
#include "utils/rel.h"

#include "base/budget.h"
#include "base/compat.h"
#include "window/issue.h"

typedef struct LaAio LaAio;

#ifdef LA_HAVE_AIO
extern bool la_aio_works(Relation rel);
extern Size la_aio_size(int slots);
extern LaAio *la_aio_create(int slots, LaBudget *budget);
extern bool la_aio_has_room(const LaAio *aio);
extern LaIssueResult la_aio_start(LaAio *aio, Relation rel, BlockNumber block,
								  int *slot, Buffer *recent);
extern bool la_aio_settle(LaAio *aio, int slot, Buffer *recent);
extern LaReadResult la_aio_finish(LaAio *aio, int slot, Relation rel,
								  Buffer *current);
extern void la_aio_cancel(LaAio *aio, int slot);
#else
#define la_aio_works(rel)				((void) (rel), false)
#define la_aio_size(slots)				((void) (slots), (Size) 0)
#define la_aio_create(slots, budget)	((void) (slots), (void) (budget), (LaAio *) NULL)
#define la_aio_has_room(aio)			false
#define la_aio_start(aio, rel, block, slot, recent) ((void) (slot), LA_ISSUE_NOTHING)
#define la_aio_settle(aio, slot, recent) false
#define la_aio_finish(aio, slot, rel, current) ((LaReadResult) {false, 0.0})
#define la_aio_cancel(aio, slot)		((void) 0)
#endif

/* Are reads of the relation started here?  Advice has no effect on files opened with O_DIRECT. */
static inline bool
la_aio_is_needed(Relation rel)
{
	return la_direct_io() && la_aio_works(rel);
}

#endif							/* LA_AIO_H */
