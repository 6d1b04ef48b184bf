/*
 * applypace.c
 *	  How many messages may be received ahead: pure functions, of plain C.
 *
 * The queue holds what the server applies in LA_APPLY_SECOND, as far as that can be told from the
 * messages before.  What one of them takes is an average in which slow messages weigh more: it
 * rises quickly and falls slowly.
 *
 * The limit begins low, and is doubled when as many messages have been applied as it allows.  So no
 * more are received ahead than have been applied before, and after slow messages it recovers as
 * slowly as it began.  It is lowered at once.
 *
 * A message may take any time, and those in the queue may be slower than all before.  Nothing but
 * memory depends on the limit: what the publisher waits for is apply.c's to answer.
 *
 * src/replay/applypace.c
 */
#include "replay/applypace.h"

#define LA_APPLY_SECOND	1000000.0	/* microseconds */
#define FIRST_LIMIT		16
#define LEAST_LIMIT		1
#define MOST_LIMIT		65536
#define RISE			4		/* parts of the difference */
#define FALL			16

void
la_applypace_init(LaApplyPace *pace)
{
	pace->us = 0;
	pace->limit = FIRST_LIMIT;
	pace->passed = 0;
}

/* A message has been applied, which has taken so long. */
void
la_applypace_note(LaApplyPace *pace, int64_t us)
{
	double		difference = (double) us - pace->us;

	pace->us += difference / (difference > 0 ? RISE : FALL);
	if (++pace->passed >= pace->limit && pace->limit < MOST_LIMIT)
	{
		pace->limit *= 2;
		pace->passed = 0;
	}
	if ((double) pace->limit * pace->us <= LA_APPLY_SECOND)
		return;
	pace->limit = (uint64_t) (LA_APPLY_SECOND / pace->us);
	pace->passed = 0;
	if (pace->limit < LEAST_LIMIT)
		pace->limit = LEAST_LIMIT;
}
