/*
 * follow.c
 *	  A room that acts on the rows of a scan before they are returned.
 *
 * Rooms do not call each other.  The room of a scan knows which rows it will return, and a follower
 * what is done with them later: out-of-line values that are fetched.  So the scan offers its node
 * here when it is attached, and tells the follower of each row that it is about to return:
 *
 *		scan finds a row --> la_follow() --> the follower looks at the rows to come (peek)
 *				 |									and starts reads for them
 *				 v
 *		row is returned, filtered, computed with, sent
 *
 * la_follow() is two comparisons as long as no block is read, or the follower rests.
 *
 * A bitmap heap scan is offered by the room that has its first execution; the follower finds its
 * rows by itself, and is not told of them.
 *
 * src/attach/follow.c
 */
#include "postgres.h"

#include "attach/attach.h"

static la_follow_function follow_function = NULL;

void
la_follow_register(la_follow_function function)
{
	follow_function = function;
}

LaFollower *
la_follow_scan(ScanState *scan)
{
	return follow_function == NULL ? NULL : follow_function(scan);
}

/* A turn, which the follower may find nothing to do for. */
bool
la_follow_turn(LaFollower *follower)
{
	bool		goes_on = follower->turn(follower);

	follower->seen_reads = pgBufferUsage.shared_blks_read;
	return goes_on;
}
