/*
 * apply.c
 *	  Logical replication: changes looked at before they are applied.
 *
 *	publisher --> libpq --> walrcv_receive() --> queue --> the server applies the first message
 *								  |				   |
 *								  as many as		 +--> applyahead.c looks at those behind it
 *								  are there
 *
 * The worker that applies a subscription's changes asks for one message of the stream after the
 * other.  It calls a function of libpqwalreceiver, through a table that it has when it has loaded
 * this library.  It exchanges the table's address for that of a copy, in which walrcv_receive is
 * ours, when its first transaction after that commits; before it connects.  No other process
 * does: neither sessions, nor the WAL receiver of a standby, nor workers that copy a table or
 * apply streamed transactions.
 *
 * Messages are handed over as they came, in their order.  What is not a message has its place
 * among them: the end of the stream, and an error of the connection, which is kept until the
 * messages before it have been handed over.  A message that does not fit into the queue stays
 * where libpq has put it, and reading stops.
 *
 * HOW FAR AHEAD.  What is in the queue has left the socket, so the publisher may send more, and a
 * keepalive that asks for a reply has its turn later.  The publisher waits for that no longer than
 * wal_sender_timeout.  So the queue takes as many messages as the server has taken in the last
 * SECONDS_AHEAD seconds, but at least LEAST_MESSAGES; and its size is limited.
 *
 * Settings are read when the queue is empty, and enable_apply with each message: when it is off,
 * the queue is emptied and then left out.
 *
 * src/replay/apply.c
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "replication/logicalworker.h"
#include "replication/walreceiver.h"
#include "replication/worker_internal.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/guc.h"
#include "base/minor.h"
#include "replay/apply.h"
#include "replay/applyahead.h"
#include "replay/applyqueue.h"
#include "replay/applystats.h"

#define SECONDS_AHEAD	4
#define LEAST_MESSAGES	256
#define MOST_AT_ONCE	256		/* messages read in one call */
#define DRY_CALLS		16		/* until libpq is asked again, unless few are
								 * left */

static WalReceiverFunctionsType *stock; /* before they were exchanged */
static WalReceiverFunctionsType functions;
static WalReceiverConn *stream = NULL;	/* the connection that sends changes */

static LaApplyQueue queue;
static bool handed = false;		/* the first message has been handed over */

/* what comes behind the messages of the queue */
static char *kept = NULL;		/* a message, which is libpq's */
static int	kept_length;
static bool ended = false;		/* the end of the stream */
static ErrorData *error = NULL;

/* how far ahead */
static uint64 limit = LEAST_MESSAGES;	/* of messages */
static TimestampTz second_began = 0;
static uint64 second_messages;	/* handed over since */
static int	dry_calls;			/* calls since libpq had nothing more */
static uint64 dry_count;		/* messages in the queue then */
static uint64 nmessages;		/* handed over */

/* ---- the queue ------------------------------------------------------------------------ */

static bool
is_empty(void)
{
	return queue.count == 0 && kept == NULL && !ended && error == NULL;
}

static bool
is_wanted(void)
{
	return la_enable && la_enable_apply;
}

/* The queue is empty: have it as large as the setting says. */
static void
resize(void)
{
	Size		size = is_wanted() ? (Size) la_apply_queue_size * 1024 : 0;
	char	   *memory;

	if (size == queue.size)
		return;
	la_applyahead_stop();
	if (queue.memory != NULL)
		pfree(queue.memory);
	la_applyqueue_init(&queue, NULL, 0);
	memory = size == 0 ? NULL :
		MemoryContextAllocExtended(TopMemoryContext, size,
								   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (memory != NULL)
		la_applyqueue_init(&queue, memory, size);
	la_applystats_set(LA_APPLY_QUEUE_SIZE, queue.size);
	la_applystats_set_state(LA_APPLY_OFF);
}

/* Forget what has been read: the stream ends, or begins. */
static void
clear_queue(void)
{
	la_applyqueue_clear(&queue);
	handed = ended = false;
	kept = NULL;
	if (error != NULL)
		FreeErrorData(error);
	error = NULL;
	dry_calls = DRY_CALLS;
	second_began = 0;
	limit = LEAST_MESSAGES;
}

static void
keep(char *data, int length)
{
	if (la_applyqueue_append(&queue, data, length))
		return;
	kept = data;
	kept_length = length;
}

/* The errors that walrcv_receive() itself raises can wait; all others cannot. */
static bool
may_wait(const ErrorData *e)
{
	return e->sqlerrcode == ERRCODE_CONNECTION_FAILURE ||
		e->sqlerrcode == ERRCODE_PROTOCOL_VIOLATION;
}

/* Receive a message whose turn it is not.  An error is kept. */
static int
receive_early(char **data)
{
	MemoryContext old = CurrentMemoryContext;
	volatile int length = 0;
	pgsocket	socket;

	PG_TRY();
	{
		length = (stock->walrcv_receive) (stream, data, &socket);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(TopMemoryContext);
		error = CopyErrorData();
		if (!may_wait(error))
			PG_RE_THROW();
		FlushErrorState();
		MemoryContextSwitchTo(old);
	}
	PG_END_TRY();
	return length;
}

/* Is libpq to be asked for more messages? */
static bool
is_due(void)
{
	if (ExitOnAnyError || kept != NULL || ended || error != NULL || queue.count >= limit ||
		!is_wanted())
		return false;
	return ++dry_calls >= DRY_CALLS || queue.count < dry_count / 2;
}

/* Read ahead what is there. */
static void
read_ahead(void)
{
	if (!is_due())
		return;
	for (int n = 0; n < MOST_AT_ONCE && queue.count < limit && kept == NULL; n++)
	{
		char	   *data;
		int			length = receive_early(&data);

		if (length > 0)
		{
			keep(data, length);
			continue;
		}
		ended = length < 0;
		dry_calls = 0;
		dry_count = queue.count;
		return;
	}
}

/* A message is handed over: see "HOW FAR AHEAD". */
static void
adapt_limit(void)
{
	TimestampTz now = GetCurrentTimestamp();

	second_messages++;
	if (second_messages * SECONDS_AHEAD > limit)
		limit = second_messages * SECONDS_AHEAD;
	if (now < second_began || now - second_began >= USECS_PER_SEC)
	{
		int64		us = second_began == 0 || now < second_began ? USECS_PER_SEC :
			now - second_began;

		limit = Max(second_messages * SECONDS_AHEAD * USECS_PER_SEC / us, LEAST_MESSAGES);
		second_messages = 0;
		second_began = now;
	}
}

static void
pass(const char *data, int length)
{
	la_applyahead_pass(data, length);
	adapt_limit();
	la_applystats_set(LA_APPLY_MESSAGES, ++nmessages);
	la_applystats_set(LA_APPLY_QUEUED, queue.count);
	la_applystats_set(LA_APPLY_QUEUED_BYTES, queue.bytes);
}

/* Hand over what is next: there is something. */
static int
hand_over(char **buffer)
{
	size_t		length;

	if (queue.count > 0)
	{
		*buffer = unconstify(char *, la_applyqueue_at(&queue, queue.head, &length));
		handed = true;
		pass(*buffer, (int) length);
		return (int) length;
	}
	if (kept != NULL)
	{
		*buffer = kept;
		kept = NULL;
		pass(*buffer, kept_length);
		return kept_length;
	}
	if (error != NULL)
	{
		ErrorData  *e = error;

		error = NULL;
		ReThrowError(e);
	}
	ended = false;
	return -1;
}

/* ---- functions of the table ------------------------------------------------------------- */

static int
receive(WalReceiverConn *conn, char **buffer, pgsocket *wait_fd)
{
	int			length;

	if (conn != stream)
		return (stock->walrcv_receive) (conn, buffer, wait_fd);
	if (handed)
		la_applyqueue_remove(&queue);
	handed = false;
	if (is_empty())
	{
		resize();
		length = (stock->walrcv_receive) (conn, buffer, wait_fd);
		if (length > 0 && queue.size == 0)
			pass(*buffer, length);
		if (length <= 0 || queue.size == 0)
			return length;
		keep(*buffer, length);
	}
	read_ahead();
	if (is_wanted())
		la_applyahead_look();
	return hand_over(buffer);
}

static bool
start_streaming(WalReceiverConn *conn, const WalRcvStreamOptions *options)
{
	bool		started = (stock->walrcv_startstreaming) (conn, options);

	if (started && options->logical)
	{
		clear_queue();
		la_applyahead_begin(&queue);
		la_applystats_begin(MyLogicalRepWorker->subid);
		stream = conn;
	}
	return started;
}

static void
leave_stream(const WalReceiverConn *conn)
{
	if (conn != stream)
		return;
	stream = NULL;
	clear_queue();
	la_applyahead_end();
}

static void
end_streaming(WalReceiverConn *conn, TimeLineID *next_tli)
{
	leave_stream(conn);
	(stock->walrcv_endstreaming) (conn, next_tli);
}

static void
disconnect(WalReceiverConn *conn)
{
	leave_stream(conn);
	(stock->walrcv_disconnect) (conn);
}

/* ---- how they are exchanged --------------------------------------------------------------- */

static void
exchange(void)
{
	stock = WalReceiverFunctions;
	functions = *stock;
	functions.walrcv_receive = receive;
	functions.walrcv_startstreaming = start_streaming;
	functions.walrcv_endstreaming = end_streaming;
	functions.walrcv_disconnect = disconnect;
	WalReceiverFunctions = &functions;
}

/*
 * A transaction ends: is this a worker that will apply changes, and has it loaded
 * libpqwalreceiver?
 */
static void
transaction_ends(XactEvent event, void *arg)
{
	static bool decided = false;

	if (decided || event != XACT_EVENT_COMMIT)
		return;
	if (!IsLogicalWorker() || am_tablesync_worker())
		decided = true;
	else if (WalReceiverFunctions != NULL)
	{
		decided = true;
		exchange();
	}
}

void
la_apply_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	la_applystats_init();
	/* what is looked ahead for is found as for writes */
	if (la_minor_allows(LA_ROOM_INSERT))
		RegisterXactCallback(transaction_ends, NULL);
}
