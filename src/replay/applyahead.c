/*
 * applyahead.c
 *	  What the changes in the queue will need, read ahead of their turn: when turns are made.
 *
 * What is known of the changes, applyrows.c has.
 *
 * WHEN.  To look at something takes a transaction, and the worker has one open from the first
 * change of a transaction to its end.  So it is used: when the server asks for the next message
 * within it, the next change in the queue has its turn: it is read for, if it must be, and the
 * window goes on.  The next change may be one of the next transaction, so that a stream of
 * transactions of one change each is looked ahead for as well.  A change that is handed over
 * outside a transaction, and has not had its turn, has none.  No transaction is ever started here,
 * and none is longer but by the reads that the next ones would have made.
 *
 * AT ONCE.  A turn begins with a subtransaction, and locks and opens tables, which takes as long as
 * to look at a page or two.  So up to MOST_TURNS changes have their turns at once, one of
 * TURNS_PART that are known: with few, their reads have only just been started.
 *
 * ERRORS.  A turn neither fails nor waits (base/attempt.c): its error is dropped.  Then there are
 * no turns for some changes, and for twice as many after each further error.
 *
 * LOCKS.  Where one is not to be had at once, there is no turn for a change, and for twice as many
 * each time, until there is a turn with all of its locks.  Where they do not suffice for all
 * tables of the changes that are known ahead (applylock.c), fewer tables are.
 *
 * WHETHER.  Changes are wanted in the queue only where they may have a turn: once something has
 * been waited for, and as long as reads are waits (WHEN in rows/ahead.c).
 *
 * NOT LOOKED AT are streamed transactions, SERIALIZABLE ones, and anything with direct I/O.
 *
 * src/replay/applyahead.c
 */
#include "postgres.h"

#include "access/xact.h"

#include "base/base.h"
#include "base/compat.h"
#include "replay/applymessage.h"
#include "replay/replay_int.h"
#include "window/window.h"

#define MAX_LATE		8		/* turns at once of changes that have passed */
#define MOST_TURNS		16		/* ... of those to come */
#define TURNS_PART		4
#define RETRY_AFTER		4096	/* changes, if a table was locked */
#define AGAIN_AFTER		64		/* changes, after an error; then twice as many */
#define MAX_ERRORS		12
#define MAX_LOCKED		12		/* times that the pause after one is doubled */
#define NEVER			PG_UINT64_MAX

static const LaApplyQueue *queue;
static bool passed_stream;		/* the message to be handed over next is
								 * within a streamed transaction */
static bool passed_change;		/* the last one handed over was a change */
static int64 seen_reads;		/* blocks read then */
static uint64 nchanges;			/* handed over */
static uint64 retry_at = NEVER;
static int	nerrors;
static int	nlocked;			/* turns in a row without all of their locks */
static uint64 again_at;			/* no look-ahead before this change */
static uint64 more_at = NEVER;	/* more tables may be locked again */

/* the turn that is being made */
static uint64 turn_position;
static bool turn_missed;		/* a block was read for the change before */

/* A stream begins. */
void
la_applyahead_begin(const LaApplyQueue *q)
{
	queue = q;
	la_applyrows_begin(q);
	la_applyremote_forget_all();
	passed_stream = passed_change = false;
}

/* It has ended. */
void
la_applyahead_end(void)
{
	la_applyrows_forget();
	la_applyremote_forget_all();
}

/* Messages are handed over without looking ahead. */
void
la_applyahead_stop(void)
{
	la_applyrows_forget();
}

/*
 * A message is handed over: the first one of the queue, or one that has not been in it.  Those that
 * were scanned have been noted.
 */
void
la_applyahead_pass(const char *data, size_t length)
{
	LaApplyReader body;
	char		action = la_applymessage_action(data, length, &body);

	passed_change = la_applyscan_is_change(action) && !passed_stream;
	la_applyrows_pass(action, body, &passed_stream);
	if (!passed_change)
		return;
	nchanges++;
	la_applystats_add(LA_APPLY_CHANGES);
	seen_reads = la_issue_blocks_read();
}

/* Begin to look ahead with the next change, where the last one has waited. */
static void
begin_with_next(void)
{
	LaApplyReason reason = LA_APPLY_DAMAGED;
	LaApplyReader body;
	LaApplyChange m;
	size_t		length;
	const char *data = la_applyqueue_at(queue, turn_position, &length);
	char		action = la_applymessage_action(data, length, &body);
	LaAhead    *ahead;

	if (la_applymessage_change(action, body, &m))
		reason = la_applyrows_begin_with(&m);
	ahead = la_applyrows_ahead();
	if (ahead == NULL)
		la_applystats_leave(reason);
	else
		(void) la_ahead_next(ahead, turn_missed);
}

/* See "AT ONCE". */
static void
turn_to_following(LaAhead *ahead)
{
	uint64		known = la_ahead_end_of_rows(ahead) - la_ahead_next_row(ahead);
	uint64		turns = Min(known / TURNS_PART, MOST_TURNS);

	while (turns-- > 1 && la_applyrows_exist() && !la_applyrows_are_outdated())
		la_applyrows_turn();
}

static bool
is_late(void)
{
	return la_applyrows_exist() && la_applyrows_first() < turn_position;
}

/*
 * The next change has its turn, and before it those that were applied without one: their blocks are
 * there by now, and what was foreseen behind them remains.
 */
static void
turn_to_next(LaAhead *ahead)
{
	for (int i = 0; i < MAX_LATE && is_late(); i++)
		la_applyrows_turn();
	if (is_late())
		la_applyrows_clear();
	la_applyrows_catch_up(passed_stream);
	if (la_applyrows_have_turn(turn_position))
	{
		la_applyrows_turn();
		turn_to_following(ahead);
	}
}

/* A lock was not to be had: see "LOCKS". */
static void
go_without(void)
{
	la_applystats_add(LA_APPLY_LOCKED);
	nlocked = Min(nlocked + 1, MAX_LOCKED);
	again_at = nchanges + (UINT64CONST(1) << nlocked);
	if (la_applylock_ran_out())
	{
		la_applyrows_take_fewer();
		more_at = nchanges + RETRY_AFTER;
	}
	la_applyrows_clear();
}

static void
make_turn(void *unused)
{
	if (!la_applyrows_open())
		go_without();
	else if (la_applyrows_are_outdated())
	{
		la_applystats_add(LA_APPLY_LOCKED);
		la_applyrows_clear();
	}
	else
	{
		LaAhead    *ahead;

		nlocked = 0;
		if (la_applyrows_ahead() == NULL)
			begin_with_next();
		ahead = la_applyrows_ahead();
		if (ahead != NULL && (la_ahead_is_active(ahead) || la_applyrows_exist()))
			turn_to_next(ahead);
	}
	la_applyrows_close();
}

/* Make a turn.  Its error is dropped, with all that it has left. */
static void
try_turn(void)
{
	ErrorData  *error;

	if (la_attempt_open(make_turn, NULL, &error))
		return;
	la_applyrows_forget();
	la_applystats_add(LA_APPLY_ERRORS);
	la_applystats_leave(LA_APPLY_FAILED);
	nerrors = Min(nerrors + 1, MAX_ERRORS);
	again_at = nchanges + (AGAIN_AFTER << nerrors);
	if (error == NULL)
		return;
	elog(DEBUG1, "pg_lookahead: looking ahead has failed: %s", error->message);
	FreeErrorData(error);
}

/* Is there a turn to be made, for the next change, which is at turn_position? */
static bool
is_turn(void)
{
	turn_position = la_applyscan_next_change(queue, passed_stream);
	return turn_position != LA_APPLY_NOWHERE && la_applyrows_have_turn(turn_position);
}

/* Is what is known to be forgotten?  Where a table was locked, it is after a while. */
static bool
begins_anew(void)
{
	if (!la_applyrows_were_locked())
		retry_at = NEVER;
	else if (retry_at == NEVER)
		retry_at = nchanges + RETRY_AFTER;
	return la_applyrows_are_outdated() || nchanges >= retry_at;
}

/* Is it out of the question that a change has a turn now? */
static bool
is_excluded(void)
{
	return passed_stream || nchanges < again_at || IsolationIsSerializable() || la_direct_io() ||
		!la_attempt_is_allowed();
}

/* The server asks for the next message: are those behind it wanted in the queue? */
bool
la_applyahead_wants(void)
{
	LaAhead    *ahead = la_applyrows_ahead();

	if (is_excluded())
		return false;
	if (ahead != NULL)
		return la_ahead_is_active(ahead) || la_applyrows_exist();
	return la_force || (passed_change && la_issue_blocks_read() != seen_reads);
}

/* ... make the turn of the next change, if that is possible. */
void
la_applyahead_look(void)
{
	bool		passed = passed_change;
	LaAhead    *ahead;

	passed_change = false;
	if (!IsTransactionState() || is_excluded())
		return;
	if (begins_anew())
		la_applyrows_forget();
	if (nchanges >= more_at)
	{
		la_applyrows_take_more();
		more_at = nchanges + RETRY_AFTER;
	}
	ahead = la_applyrows_ahead();
	turn_missed = passed && la_issue_blocks_read() != seen_reads;
	if (ahead == NULL && !turn_missed && !la_force)
		return;
	if (ahead != NULL && passed)
		(void) la_ahead_next(ahead, turn_missed);
	if (ahead != NULL && !la_ahead_is_active(ahead) && !la_applyrows_exist())
		la_applyrows_publish();
	else if (is_turn())
	{
		try_turn();
		la_applyrows_publish();
	}
}
