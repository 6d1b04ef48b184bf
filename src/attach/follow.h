/*
 * follow.h
 *	  A room that acts on the rows of a scan before they are returned.
 *
 * See follow.c.
 *
 * src/attach/follow.h
 */
#ifndef LA_FOLLOW_H
#define LA_FOLLOW_H

#include "executor/instrument.h"
#include "nodes/execnodes.h"
#include "storage/buf.h"
#include "storage/itemptr.h"

/* A row that a scan will come to: as yet, an address in the table. */
typedef struct LaComingRow
{
	ItemPointerData tid;		/* perhaps of the first version of several */
	uint64		id;				/* of no other row that may be known at the
								 * same time */
	Buffer		buffer;			/* that the scan has pinned, or InvalidBuffer */
	bool		may_read;		/* its block may be read now; else it is
								 * looked at only if it is cached */
} LaComingRow;

/* What the scan tells of its rows. */
typedef struct LaComing
{
	void	   *arg;

	/*
	 * the n-th row behind the current one, which is number 0; false: not
	 * known now
	 */
	bool		(*peek) (void *arg, int n, LaComingRow *row);
} LaComing;

/* A follower of a scan, embedded in what its room keeps. */
typedef struct LaFollower
{
	/* the scan is about to return a row; false: it need not be told of others */
	bool		(*turn) (struct LaFollower *follower);

	/* the rows to come are others: the scan starts over, or turns */
	void		(*clear) (struct LaFollower *follower);

	/* the scan ends, and not by an error */
	void		(*end) (struct LaFollower *follower);

	bool		attends;		/* to each row; else only after a block was
								 * read, or when the countdown is over */
	bool		rests;			/* until the countdown is over, unless it
								 * attends */
	int			countdown;		/* rows */
	int64		seen_reads;		/* blocks read when the last row was returned */
} LaFollower;

/* Offers a scan node to the room; NULL if that does not follow it. */
typedef LaFollower *(*la_follow_function) (ScanState *scan, const LaComing *coming);

/* Offers a node that is about to scan a table for the first time. */
typedef void (*la_follow_table_function) (ScanState *scan);

extern void la_follow_register(la_follow_function function);
extern void la_follow_register_table(la_follow_table_function function);
extern void la_follow_table(ScanState *scan);
extern LaFollower *la_follow_scan(ScanState *scan, const LaComing *coming);
extern bool la_follow_turn(LaFollower *follower);

/* The scan is about to return a row.  Returns false if the follower need not be told of others. */
static inline bool
la_follow(LaFollower *follower)
{
	if (!follower->attends && --follower->countdown > 0 &&
		(follower->rests || pgBufferUsage.shared_blks_read == follower->seen_reads))
		return true;
	return la_follow_turn(follower);
}

#endif							/* LA_FOLLOW_H */
