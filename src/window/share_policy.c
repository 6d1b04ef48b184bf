/*
 * share_policy.c
 *	  A session's share of the reads that may be in flight on a tablespace.
 *
 * A device answers requests in the order in which they come, so that a single read takes as long as
 * the requests before it.  Sessions that look ahead keep its queue full, each for itself: the limit
 * of a tablespace is what they may keep in flight together.
 *
 *		limit --- divided by --- sessions that are active ---> parts
 *				a part --- less the read that the scan waits for ---> the session's share
 *				the share --- divided by --- its windows that are active ---> a window's
 *
 * Behaviours:
 *	PARTS		Parts are whole reads, and what is left over is given to the first ones, one
 *				each, so that all of the limit is used: with a limit of 8, three sessions have
 *				3, 3 and 2.
 *	TURNS		Which sessions are the first ones changes each second, so that none has less than
 *				others for long, also where some have a read and others none.
 *	NONE		Where there are as many sessions as reads, or more, a session's share is 0.  It
 *				waits for one read after the other, as the server does.
 *	ACTIVE		is a session that has started a read, or would have, within the last second.
 *				Then it is likely to go on, and a session that pauses for longer is not waited
 *				for.
 *	MEMBERS		A scan, or a join, may have several windows, and a session several of both.
 *				Those that have reads in flight are members.  They are numbered as they come, so
 *				that those who have what is left over are others most of the time.
 *
 * src/window/share_policy.c
 */
#include "window/scan_length.h"
#include "window/share_policy.h"

#define ACTIVE_MS		1000
#define TURN_MS			1000

/* PARTS: of so many, for the member of this rank, which is less than their number. */
static int
share_part(int total, int members, int rank)
{
	return total / members + (rank < total % members ? 1 : 0);
}

/* ACTIVE.  The clock of another process may be a little ahead of this one's. */
bool
la_share_is_active(uint32_t then_ms, uint32_t now_ms)
{
	int32_t		ago = (int32_t) (now_ms - then_ms);

	return ago < ACTIVE_MS && ago > -ACTIVE_MS;
}

/*
 * How many reads may a session have in flight besides the one that it waits for?  active: sessions
 * that are, with this one; place: how many of them come before it.
 */
int
la_share_of_session(int limit, int active, int place, uint32_t now_ms)
{
	uint32_t	turn = now_ms / TURN_MS % (uint32_t) active;
	int			rank = (int) (((uint32_t) place + turn) % (uint32_t) active);

	return la_max(share_part(limit, active, rank) - 1, 0);
}

/*
 * MEMBERS: how many of the session's share may one have?  number: as which it has become a member;
 * who is none is counted as one more.
 */
int
la_share_of_member(int share, int members, uint32_t number, bool is_member)
{
	if (!is_member)
		return share_part(share, members + 1, members);
	return share_part(share, members, (int) (number % (uint32_t) members));
}
