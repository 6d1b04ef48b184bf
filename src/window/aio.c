/*
 * aio.c
 *	  Asynchronous reads into shared buffers, for direct I/O.
 *
 * With debug_io_direct = data there is no page cache that advice could fill.  From 18 on the
 * server reads asynchronously (io_method worker or io_uring): StartReadBuffer assigns a buffer
 * to the block, pins it and starts the read, WaitReadBuffers waits for it.  Before 18, and with
 * io_method = sync, la_aio_works() returns false.
 *
 *		start ---> in flight, pinned ---> finish: wait; the pin becomes the
 *						|				  scan's, or the read's error is raised
 *						+---> finish for the server: wait; the pin is released,
 *						|	  and an error left to the server
 *						+---> settle: the read is done, the pin is released; the
 *						|	  block is a cached one from then on
 *						+---> cancel: not wanted any more; errors are ignored
 *
 * Pins.  A foreseen block must not keep its buffer pinned: that would hold up VACUUM, and on a
 * standby replay.  A read in flight has to.  So at each visit reads that are done are settled,
 * in the order of the scan.  An idle cursor keeps the pins of what was in flight at its last
 * visit: at most max_distance, and no more than the backend's budget of pins allows
 * (base/budget.c).  On a standby, where a pin can cancel queries, no read is started.
 *
 * Memory.  The server writes the result of a read into the operation, so a slot is not reused
 * before its read is done.  After an error the server itself has released the operations
 * (pgaio_io_release_resowner) and the pins.
 *
 * src/window/aio.c
 */
#include "postgres.h"

#include "access/xlog.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "window/window.h"

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
	return aio->nfree > 0 && la_gate_allows_pin(false);
}

/* The slot's read is done, and its pin is the scan's or released. */
static void
free_slot(LaAio *aio, int slot)
{
	la_budget_return_pin(aio->budget, false);
	aio->free[aio->nfree++] = slot;
}

/* Start the read of a block, unless it is cached. */
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
		/* another backend has read it since the look-up */
		*recent = s->buffer;
		ReleaseBuffer(s->buffer);
		return LA_ISSUE_CACHED;
	}
	la_budget_take_pin(aio->budget, false);
	*slot = aio->free[--aio->nfree];
	la_share_note_read(rel->rd_rel->reltablespace);
	return LA_ISSUE_STARTED;
}

/* If the read is done without an error, release the pin; *recent is the buffer. */
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

static void
wait_for_read(void *arg)
{
	WaitReadBuffers(arg);
}

/*
 * Wait for the read, and make its buffer the scan's current one; current: NULL if the block is read
 * for the server only, see la_issue_read().
 */
LaReadResult
la_aio_finish(LaAio *aio, int slot, Relation rel, Buffer *current)
{
	Slot	   *s = &aio->slots[slot];
	LaReadResult result = {true, 0.0};
	Buffer		released = InvalidBuffer;
	double		start = la_issue_clock_us();

	if (current != NULL)
		WaitReadBuffers(&s->op);
	else if (!la_attempt_read(wait_for_read, &s->op))
	{
		la_aio_cancel(aio, slot);
		return result;
	}
	free_slot(aio, slot);
	result.us = la_issue_clock_us() - start;
	la_issue_replace_current(rel, s->buffer, current != NULL ? current : &released);
	if (BufferIsValid(released))
		ReleaseBuffer(released);
	return result;
}

void
la_aio_cancel(LaAio *aio, int slot)
{
	Slot	   *s = &aio->slots[slot];

	pgaio_wref_wait(&s->op.io_wref);
	ReleaseBuffer(s->buffer);
	free_slot(aio, slot);
}

#endif							/* LA_HAVE_AIO */
