/*
 * readahead.c
 *	  Which blocks the operating system would have read ahead for the server.
 *
 * A scan that visits nearly all blocks of a part of its table, though in another order, waits for
 * few of them: Linux takes a read for a part of a stream if what precedes the block is in memory,
 * also from long before, and reads as many blocks behind it as it finds before it.  So what
 * look-ahead saves there is little, and saving.c has to know.
 *
 * Visits are replayed here in the order in which the server makes them, with rules like the
 * kernel's:
 *
 *		the block is there			it is no wait.  If a stream is to go on there, up to four times
 *									as many blocks are read meanwhile as are there.
 *		it follows the last one		it is read together with three more, and a stream begins.
 *		two or more before it are	it is read together with as many behind it.
 *		there
 *		else						it is read alone.
 *
 * Which blocks are there is kept for 128 times 64 blocks, the ones of the scan's last visits.  What
 * others have read does not count, nor what has left memory.  The kernel's limit is supposed to be
 * the usual one, 128 kB.
 *
 * src/window/readahead.c
 */
#include "window/readahead.h"

#define WORD_BLOCKS		64
#define MOST			16		/* blocks in a read */
#define LEAST_HISTORY	2
#define FIRST			4		/* blocks in the first read of a stream */

static bool
is_there(const LaReadahead *r, uint64_t block)
{
	uint64_t	number = block / WORD_BLOCKS;
	unsigned	i = number % LA_READAHEAD_WORDS;

	return r->words[i].number == number + 1 &&
		(r->words[i].present >> block % WORD_BLOCKS & 1) != 0;
}

static void
note(LaReadahead *r, uint64_t block)
{
	uint64_t	number = block / WORD_BLOCKS;
	unsigned	i = number % LA_READAHEAD_WORDS;

	if (r->words[i].number != number + 1)
	{
		r->words[i].number = number + 1;
		r->words[i].present = r->words[i].marked = 0;
	}
	r->words[i].present |= (uint64_t) 1 << block % WORD_BLOCKS;
}

/* The blocks from this one on are there now. */
static void
note_read(LaReadahead *r, uint64_t block, int n)
{
	for (int i = 0; i < n; i++)
		note(r, block + i);
}

static void
mark(LaReadahead *r, uint64_t block)
{
	note(r, block);
	r->words[block / WORD_BLOCKS % LA_READAHEAD_WORDS].marked |=
		(uint64_t) 1 << block % WORD_BLOCKS;
}

/* Is there a mark?  It is taken away. */
static bool
take_mark(LaReadahead *r, uint64_t block)
{
	uint64_t	bit = (uint64_t) 1 << block % WORD_BLOCKS;
	uint64_t   *marked = &r->words[block / WORD_BLOCKS % LA_READAHEAD_WORDS].marked;
	bool		is_marked = (*marked & bit) != 0;

	*marked &= ~bit;
	return is_marked;
}

/* How many blocks are there, without a gap: before it, or from it on? */
static int
history_of(const LaReadahead *r, uint64_t block)
{
	int			n = 0;

	while (n < MOST - 1 && block > (uint64_t) n && is_there(r, block - n - 1))
		n++;
	return n;
}

static int
present_from(const LaReadahead *r, uint64_t block)
{
	int			n = 0;

	while (n < MOST && is_there(r, block + n))
		n++;
	return n;
}

static void
go_on(LaReadahead *r, uint64_t block)
{
	int			present = present_from(r, block);
	int			more = present < FIRST ? 4 * present : 2 * present;

	note_read(r, block + present, more < MOST ? more : MOST);
	mark(r, block + present);
}

/* The next visit of the server is to this block: would it have been in memory? */
bool
la_readahead_serves(LaReadahead *r, uint64_t block)
{
	bool		follows = block == r->last + 1;
	int			history;

	r->last = block;
	if (is_there(r, block))
	{
		if (take_mark(r, block))
			go_on(r, block);
		return true;
	}
	history = history_of(r, block);
	if (follows)
	{
		note_read(r, block, FIRST);
		mark(r, block + 1);
	}
	else if (history >= LEAST_HISTORY)
	{
		note_read(r, block, history + 1);
		mark(r, block + history);
	}
	else
		note(r, block);
	return false;
}
