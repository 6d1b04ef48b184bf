/*
 * history.c
 *	  What earlier scans of this session have learnt of an index's reads.
 *
 * A scan has to wait for a few reads before it knows that they are waits.  The
 * next scan of the same index need not learn it again: queries of a dozen rows
 * would be over before.  By index, not by table: rows that one index finds
 * scattered over the table, another one finds side by side, where the kernel
 * reads ahead by itself.
 *
 *		index OID ---(modulo)---> one entry of SIZE: { index, slow? }
 *
 * The last verdict counts; two indexes that share an entry forget each other.
 * Being wrong is cheap in both directions (policy.c, behaviours B and J), so
 * nothing is invalidated: not by a vacuumed cache, not by a dropped index.
 *
 * src/window/history.c
 */
#include "postgres.h"

#include "window/history.h"

#define SIZE	256

static struct
{
	Oid			index;
	bool		slow;
}			entries[SIZE];

bool
la_history_known_slow(Oid index)
{
	return entries[index % SIZE].index == index && entries[index % SIZE].slow;
}

void
la_history_note(Oid index, LaVerdict verdict)
{
	if (verdict == LA_READS_UNKNOWN)
		return;
	entries[index % SIZE].index = index;
	entries[index % SIZE].slow = verdict == LA_READS_SLOW;
}
