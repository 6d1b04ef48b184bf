/*
 * applyqueue.c
 *	  A bounded queue of messages: pure functions, of plain C.
 *
 *		memory:  [ ......... | message | message | message | .......... ]
 *								^ head						 ^ tail
 *
 * Messages lie one behind the other in a ring of bytes, each in one piece, behind a word with its
 * length, and before a zero byte, as libpq returns them.  A message that would not fit before the
 * end of the memory begins at its start, and a word says so.  A position is the number of bytes
 * there have been before, so that it is never used again, and the greater is the later one.
 * Nothing is allocated here.
 *
 * src/replay/applyqueue.c
 */
#include "replay/applyqueue.h"

#include <string.h>

#define WORD		sizeof(uint64_t)
#define TO_START	UINT64_MAX	/* the next message is at the start of the
								 * memory */

static uint64_t
aligned(uint64_t length)
{
	return (length + WORD -1) /WORD *WORD;
}

/* What is left of the memory behind a position. */
static uint64_t
left_behind(const LaApplyQueue *q, uint64_t position)
{
	return q->size - position % q->size;
}

static uint64_t
word_at(const LaApplyQueue *q, uint64_t position)
{
	uint64_t	word;

	memcpy(&word, q->memory + position % q->size, WORD);
	return word;
}

static void
put_word(LaApplyQueue *q, uint64_t position, uint64_t word)
{
	memcpy(q->memory + position % q->size, &word, WORD);
}

void
la_applyqueue_init(LaApplyQueue *q, char *memory, size_t size)
{
	memset(q, 0, sizeof(*q));
	q->memory = memory;
	q->size = size / WORD *WORD;
}

/* Where the message is that is at this position, or begins anew there. */
static uint64_t
settled(const LaApplyQueue *q, uint64_t position)
{
	return position < q->tail && word_at(q, position) == TO_START ?
		position + left_behind(q, position) : position;
}

/* Copy a message into the queue.  Returns false if there is no room. */
bool
la_applyqueue_append(LaApplyQueue *q, const char *data, size_t length)
{
	uint64_t	needed = WORD +aligned(length + 1);
	uint64_t	skipped;

	/* memory that was used last is in the CPU's caches */
	if (q->count == 0 && q->tail % q->size != 0)
		q->head = q->tail = q->tail + left_behind(q, q->tail);
	skipped = left_behind(q, q->tail);
	if (skipped >= needed)
		skipped = 0;
	/* one word stays free, so that a full queue is none of zero bytes */
	if (q->tail - q->head + skipped + needed >= q->size)
		return false;
	if (skipped > 0)
		put_word(q, q->tail, TO_START);
	q->tail += skipped;
	put_word(q, q->tail, length);
	memcpy(q->memory + q->tail % q->size + WORD, data, length);
	q->memory[q->tail % q->size + WORD +length] = '\0';
	q->tail += needed;
	q->count++;
	q->bytes += length;
	return true;
}

/* The message at a position, which is head or what _after() has returned; NULL at the end. */
const char *
la_applyqueue_at(const LaApplyQueue *q, uint64_t position, size_t *length)
{
	position = settled(q, position);
	*length = 0;
	if (position >= q->tail)
		return NULL;
	*length = (size_t) word_at(q, position);
	return q->memory + position % q->size + WORD;
}

/* The position behind the message that is at this one. */
uint64_t
la_applyqueue_after(const LaApplyQueue *q, uint64_t position)
{
	position = settled(q, position);
	return position + WORD +aligned(word_at(q, position) + 1);
}

/* Remove the first message, which there is. */
void
la_applyqueue_remove(LaApplyQueue *q)
{
	uint64_t	first = settled(q, q->head);

	q->bytes -= word_at(q, first);
	q->head = la_applyqueue_after(q, first);
	q->count--;
}

void
la_applyqueue_clear(LaApplyQueue *q)
{
	q->head = q->tail;
	q->count = q->bytes = 0;
}
