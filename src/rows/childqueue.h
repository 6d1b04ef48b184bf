/*
 * childqueue.h
 *	  The queue of a child's rows that were fetched before the parent asked for them.
 *
 * src/rows/childqueue.h
 */
#ifndef LA_CHILDQUEUE_H
#define LA_CHILDQUEUE_H

#include "attach/interpose_node.h"
#include "base/budget.h"

#define LA_QUEUE_SIZE	1024	/* rows; a power of 2 */

/* Each row has a number that is not used again. */
typedef struct LaChildQueue
{
	PlanState  *child;
	const LaInterposer *interposer; /* of the child's output */
	LaBudget   *budget;
	MemoryContext context;		/* of the rows' copies */
	Size		accounted;		/* what of it was taken from the budget */
	uint64		head;			/* the row to be returned next */
	uint64		tail;			/* the row to be fetched next */
	bool		at_end;			/* the child has no more rows */
	bool		keeps_errors;	/* it may fail before its turn */
	ErrorData  *error;			/* it has, instead of row number tail */
	TupleTableSlot *fetched;	/* from the child, last */
	TupleTableSlot *returned;	/* the row returned last, or NULL */

	/* may a row be fetched now, while so many are queued? */
	bool		(*may_fetch) (void *arg, int64 queued);
	void	   *arg;
	TupleTableSlot *slots[LA_QUEUE_SIZE];
} LaChildQueue;

/* A row that is in the queue. */
static inline TupleTableSlot *
la_childqueue_at(const LaChildQueue *queue, uint64 n)
{
	return queue->slots[n & (LA_QUEUE_SIZE - 1)];
}

/* Is the next row from the queue, or an error? */
static inline bool
la_childqueue_has_rows(const LaChildQueue *queue)
{
	return queue->head < queue->tail || queue->error != NULL;
}

extern void la_childqueue_init(LaChildQueue *queue, const LaInterposer *interposer,
							   MemoryContext context, LaBudget *budget);
extern TupleTableSlot *la_childqueue_row(LaChildQueue *queue, uint64 n, bool early);
extern void la_childqueue_release(LaChildQueue *queue);
extern TupleTableSlot *la_childqueue_head(LaChildQueue *queue);
extern TupleTableSlot *la_childqueue_return_head(LaChildQueue *queue);
extern void la_childqueue_clear(LaChildQueue *queue);

#endif							/* LA_CHILDQUEUE_H */
