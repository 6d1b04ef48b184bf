/*
 * aio.c
 *	  Asynchronous reads into shared buffers, for direct I/O.
 *
 * With debug_io_direct = data there is no page cache that advice could fill.
 * From 18 on the server reads asynchronously (io_method worker or io_uring):
 * StartReadBuffer gives the block a buffer, pins it and starts the read,
 * WaitReadBuffers waits for it.  Before 18, and with io_method = sync, nothing
 * can be done, and la_aio_works() says so.
 *
 *		start ----> in flight, pinned ----> finish: waited for; the pin is the
 *						|					caller's, or the read's error raised
 *						+----> settle: the read is done, the pin goes; from then
 *						|	   on the block is one that is cached
 *						+----> cancel: not wanted any more; errors do not matter
 *
 * Pins.  A block that is only foreseen must not keep a buffer pinned: that holds
 * up VACUUM, and on a standby the replay.  A read in flight has to.  So reads
 * are settled, in the order of the scan, at the first visit that finds them
 * done; an idle cursor keeps what was in flight at its last visit, at most
 * max_distance buffers and never more than the budget of pins allows (budget.c).
 * On a standby no read is started: a pin there can
 * cancel queries.
 *
 * Memory.  The server writes the result of a read into the operation, so a slot
 * is not given up before its read is done.  After an error the server has let go
 * of the operations itself (pgaio_io_release_resowner), and of the pins.
 *
 * src/window/aio.c
 */
#include "postgres.h"

#include "access/xlog.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "window/aio.h"

#ifdef LA_HAVE_AIO

#include "storage/aio.h"

typedef struct Slot
{
	ReadBuffersOperation op;
	Buffer		buffer;
} Slot;

struct LaAio
{
	LaBudget   *budget;
	int			nfree;
	int		   *free;
	Slot		slots[FLEXIBLE_ARRAY_MEMBER];
};

bool
la_aio_works(Relation rel)
{
	return io_method != IOMETHOD_SYNC && !RelationUsesLocalBuffers(rel) &&
		!RecoveryInProgress();
}

Size
la_aio_size(int slots)
{
	return offsetof(LaAio, slots) + slots * (sizeof(Slot) + sizeof(int));
}

LaAio *
la_aio_create(int slots, LaBudget *budget)
{
	LaAio	   *aio = palloc0(la_aio_size(slots));

	aio->budget = budget;
	aio->free = (int *) &aio->slots[slots];
	for (int i = 0; i < slots; i++)
		aio->free[aio->nfree++] = i;
	return aio;
}

/* May another read be started now? */
bool
la_aio_has_room(const LaAio *aio)
{
	return aio->nfree > 0 && la_budget_has_pin(false);
}

/* The slot's read is over; its pin is the caller's, or has gone. */
static void
free_slot(LaAio *aio, int slot)
{
	la_budget_return_pin(aio->budget, false);
	aio->free[aio->nfree++] = slot;
}

/*
 * Start the read of a block, unless it is cached.
 */
LaIssueResult
la_aio_start(LaAio *aio, Relation rel, BlockNumber block, int *slot,
			 Buffer *recent)
{
	Slot	   *s;

	if (la_issue_is_cached(rel, block, recent))
		return LA_ISSUE_CACHED;
	if (!la_aio_has_room(aio))
		return LA_ISSUE_NOTHING;

	s = &aio->slots[aio->free[aio->nfree - 1]];
	memset(&s->op, 0, sizeof(s->op));
	s->op.rel = rel;
	s->op.smgr = RelationGetSmgr(rel);
	s->op.persistence = rel->rd_rel->relpersistence;
	s->op.forknum = MAIN_FORKNUM;
	if (!StartReadBuffer(&s->op, &s->buffer, block, 0))
	{
		/* someone else has read it in this moment */
		*recent = s->buffer;
		ReleaseBuffer(s->buffer);
		return LA_ISSUE_CACHED;
	}
	la_budget_take_pin(aio->budget, false);
	*slot = aio->free[--aio->nfree];
	return LA_ISSUE_STARTED;
}

/*
 * If the read is done without an error, let the buffer go and tell where it is.
 */
bool
la_aio_settle(LaAio *aio, int slot, Buffer *recent)
{
	Slot	   *s = &aio->slots[slot];

	if (!pgaio_wref_check_done(&s->op.io_wref) ||
		!(la_read_is_of_another(&s->op) ? la_recent_is_valid(s->buffer) :
		  s->op.io_return.result.status == PGAIO_RS_OK))
		return false;
	*recent = s->buffer;
	ReleaseBuffer(s->buffer);
	free_slot(aio, slot);
	return true;
}

/*
 * Wait for the read, and hand over the pinned buffer.
 */
Buffer
la_aio_finish(LaAio *aio, int slot)
{
	Slot	   *s = &aio->slots[slot];

	WaitReadBuffers(&s->op);
	free_slot(aio, slot);
	return s->buffer;
}

void
la_aio_cancel(LaAio *aio, int slot)
{
	Slot	   *s = &aio->slots[slot];

	pgaio_wref_wait(&s->op.io_wref);
	ReleaseBuffer(s->buffer);
	free_slot(aio, slot);
}

#else							/* !LA_HAVE_AIO */

bool
la_aio_works(Relation rel)
{
	return false;
}

Size
la_aio_size(int slots)
{
	return 0;
}

LaAio *
la_aio_create(int slots, LaBudget *budget)
{
	return NULL;
}

bool
la_aio_has_room(const LaAio *aio)
{
	return false;
}

LaIssueResult
la_aio_start(LaAio *aio, Relation rel, BlockNumber block, int *slot,
			 Buffer *recent)
{
	return LA_ISSUE_NOTHING;
}

bool
la_aio_settle(LaAio *aio, int slot, Buffer *recent)
{
	return false;
}

Buffer
la_aio_finish(LaAio *aio, int slot)
{
	return InvalidBuffer;
}

void
la_aio_cancel(LaAio *aio, int slot)
{
}

#endif							/* LA_HAVE_AIO */
