/*
 * aio.h
 *	  Asynchronous reads into shared buffers, for direct I/O.
 *
 * src/window/aio.h
 */
#ifndef LA_AIO_H
#define LA_AIO_H

#include "utils/rel.h"

#include "window/issue.h"

extern bool la_aio_works(Relation rel);
extern Size la_aio_size(int slots);
extern LaAio *la_aio_create(int slots, LaBudget *budget);
extern bool la_aio_has_room(const LaAio *aio);
extern LaIssueResult la_aio_start(LaAio *aio, Relation rel, BlockNumber block,
								  int *slot, Buffer *recent);
extern bool la_aio_settle(LaAio *aio, int slot, Buffer *recent);
extern Buffer la_aio_finish(LaAio *aio, int slot);
extern void la_aio_cancel(LaAio *aio, int slot);

#endif							/* LA_AIO_H */
