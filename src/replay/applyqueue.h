/*
 * applyqueue.h
 *	  A bounded queue of messages: pure functions, of plain C.
 *
 * See applyqueue.c.
 *
 * src/replay/applyqueue.h
 */
#ifndef LA_APPLYQUEUE_H
#define LA_APPLYQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct LaApplyQueue
{
	char	   *memory;
	uint64_t	size;			/* of the memory; a multiple of 8 */
	uint64_t	head;			/* positions count all bytes there have been */
	uint64_t	tail;
	uint64_t	count;			/* messages */
	uint64_t	bytes;			/* of these */
} LaApplyQueue;

extern void la_applyqueue_init(LaApplyQueue *q, char *memory, size_t size);
extern bool la_applyqueue_append(LaApplyQueue *q, const char *data, size_t length);
extern const char *la_applyqueue_at(const LaApplyQueue *q, uint64_t position, size_t *length);
extern uint64_t la_applyqueue_after(const LaApplyQueue *q, uint64_t position);
extern void la_applyqueue_remove(LaApplyQueue *q);
extern void la_applyqueue_clear(LaApplyQueue *q);

#endif							/* LA_APPLYQUEUE_H */
