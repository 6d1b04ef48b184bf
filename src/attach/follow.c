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
 * A join whose rows to come are known tells of their values instead of addresses.
 *
 * A bitmap heap scan is offered by the room that has its first execution; the follower finds its
 * rows by itself, and is not told of them.
 *
 * src/attach/follow.c
 */
#include "postgres.h"

#include "attach/attach.h"

static la_follow_function follow_function = NULL;
static la_follow_values_function follow_values_function = NULL;

void
la_follow_register(la_follow_function scans, la_follow_values_function values)
{
	follow_function = scans;
	follow_values_function = values;
}

LaFollower *
la_follow_scan(ScanState *scan)
{
	return follow_function == NULL ? NULL : follow_function(scan);
}

LaFollower *
la_follow_values(PlanState *node, const LaComingValues *of)
{
	return follow_values_function == NULL ? NULL : follow_values_function(node, of);
}

/* A turn, which the follower may find nothing to do for. */
bool
la_follow_turn(LaFollower *follower)
{
	bool		goes_on = follower->turn(follower);

	follower->seen_reads = pgBufferUsage.shared_blks_read;
	return goes_on;
}
