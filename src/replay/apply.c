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
 * HOW FAR AHEAD.  Nothing is received ahead before something has been waited for, and nothing more
 * where looking ahead is of no use (la_applyahead_wants()).  The queue takes what is applied in
 * about a second, as far as that is known (applypace.c), and its size is limited.
 *
 * REPLIES.  What is in the queue has left the socket, so the publisher sends more than it could in
 * stock, and a keepalive of its that asks for a reply is behind more changes, or not even received
 * while the queue is full.  The publisher ends the connection if there is no reply for
 * wal_sender_timeout, which is not known here, and no change tells how long it will take.  So where
 * messages are received ahead, the server is asked for a reply without regard to the queue: it is
 * handed a keepalive of our own, between two messages, where the publisher's might stand.
 *		- When a keepalive has been received that asks for a reply.  Then nothing more is received
 *		  until it has been handed over in its turn, too.
 *		- When there has been no reply for REPLY_MS: a keepalive may have been sent that is not
 *		  received yet.  For SLOW_REPLY_MS, if nothing is received ahead: it may have been, and the
 *		  publisher be where it would not be in stock.
 * Its position is zero, which is no news.  So the server reports what it has applied, and confirms
 * nothing that it would not have confirmed in stock at that point.
 *
 * Without look-ahead, the server replies to a keepalive, and when it has applied all that has been
 * sent, which is when the queue and the socket are empty.  It does so still.  So between two
 * replies there is no more time than in stock, or than REPLY_MS and one message.
 *
 * A reply must not wait for the publisher to read others, as it may be busy: there is none where
 * the socket takes no more.  Then there are replies that the publisher has not read, and it will
 * take those for news when it does.
 *
 * Settings are read when the queue is empty, and enable_apply with each message: when it is off,
 * the queue is emptied and then left out.
 *
 * src/replay/apply.c
 */
#include "postgres.h"

#ifndef WIN32
#include <poll.h>
#endif

#include "miscadmin.h"
#include "replication/logicalworker.h"
#include "replication/walreceiver.h"
#include "replication/worker_internal.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/base.h"
#include "replay/applymessage.h"
#include "replay/applypace.h"
#include "replay/applyqueue.h"
#include "replay/replay.h"
#include "replay/replay_int.h"

#define REPLY_MS		100
#define SLOW_REPLY_MS	1000
#ifdef POLLRDHUP
#define CLOSED			POLLRDHUP	/* the publisher has */
#else
#define CLOSED			0
#endif
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
static LaApplyPace pace;
static TimestampTz handed_at;	/* when the last message was; 0: none that is
								 * being applied */
static int	dry_calls;			/* calls since libpq had nothing more */
static uint64 dry_count;		/* messages in the queue then */
static uint64 nmessages;		/* handed over */

/* replies */
static pgsocket socket_of_stream = PGINVALID_SOCKET;	/* as far as known */
static uint64 nasking;			/* keepalives that ask for one, received ahead */
static bool is_asked;			/* and the last one has no reply yet */
static TimestampTz replied_at;
static char request[LA_APPLY_KEEPALIVE];	/* a keepalive of our own */
static bool has_request;		/* it has a time */

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
	la_applypace_init(&pace);
	handed_at = 0;
	socket_of_stream = PGINVALID_SOCKET;
	nasking = 0;
	is_asked = has_request = false;
	replied_at = GetCurrentTimestamp();
}

/* A message has been received.  ahead: of its turn. */
static void
keep(char *data, int length, bool ahead)
{
	if (la_applymessage_asks(data, length))
	{
		nasking++;
		is_asked = ahead;
	}
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

	PG_TRY();
	{
		length = (stock->walrcv_receive) (stream, data, &socket_of_stream);
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

/* May another message be received ahead? */
static bool
has_room(void)
{
	return kept == NULL && nasking == 0 && queue.count < pace.limit;
}

/* Is libpq to be asked for more messages? */
static bool
is_due(void)
{
	if (ExitOnAnyError || ended || error != NULL || !has_room() || !is_wanted() ||
		!la_applyahead_wants())
		return false;
	return ++dry_calls >= DRY_CALLS || queue.count < dry_count / 2;
}

/* Read ahead what is there. */
static void
read_ahead(void)
{
	if (!is_due())
		return;
	for (int n = 0; n < MOST_AT_ONCE && has_room(); n++)
	{
		char	   *data;
		int			length = receive_early(&data);

		if (length > 0)
		{
			keep(data, length, true);
			continue;
		}
		ended = length < 0;
		dry_calls = 0;
		dry_count = queue.count;
		return;
	}
}

/* The message that was handed over last has been applied. */
static void
note_applied(TimestampTz now)
{
	if (handed_at != 0)
		la_applypace_note(&pace, Max(now - handed_at, 0));
	handed_at = 0;
}

static void
pass(const char *data, int length)
{
	la_applyahead_pass(data, length);
	if (la_applymessage_asks(data, length) && nasking > 0)
		nasking--;
	if (la_applymessage_request(data, length, request))
		has_request = true;
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

/* ---- replies ---------------------------------------------------------------------------- */

/*
 * Can a reply be sent at once?  Who has closed the connection wants none.  If nothing is known of
 * the socket, it has always had data: the publisher waits until it takes more, and reads replies.
 */
static bool
takes_reply(void)
{
#ifndef WIN32
	struct pollfd fd = {.fd = socket_of_stream,.events = POLLOUT | CLOSED};

	return socket_of_stream == PGINVALID_SOCKET || (poll(&fd, 1, 0) > 0 && fd.revents == POLLOUT);
#else
	return true;
#endif
}

/* Is the server to send a reply, though the next message is another one?  See "REPLIES". */
static bool
reply_is_due(TimestampTz now)
{
	int64		wait_ms = queue.count > 1 || kept != NULL ? REPLY_MS : SLOW_REPLY_MS;

	if (!has_request || ended || error != NULL)
		return false;
	if (!is_asked && now >= replied_at && now - replied_at < wait_ms * 1000)
		return false;
	/* if not now, not with each message */
	is_asked = false;
	replied_at = now;
	return takes_reply();
}

static void
send_reply(WalReceiverConn *conn, const char *buffer, int nbytes)
{
	if (conn == stream)
		replied_at = GetCurrentTimestamp();
	(stock->walrcv_send) (conn, buffer, nbytes);
}

/* ---- functions of the table ------------------------------------------------------------- */

/* The queue is empty: receive as in stock.  Returns true if the message is in the queue. */
static bool
receive_next(WalReceiverConn *conn, char **buffer, pgsocket *wait_fd, int *length)
{
	resize();
	*length = (stock->walrcv_receive) (conn, buffer, wait_fd);
	if (*length == 0)
		socket_of_stream = *wait_fd;
	if (*length > 0 && queue.size == 0)
		pass(*buffer, *length);
	if (*length <= 0 || queue.size == 0)
		return false;
	keep(*buffer, *length, false);
	return true;
}

static int
receive(WalReceiverConn *conn, char **buffer, pgsocket *wait_fd)
{
	TimestampTz now;
	int			length;

	if (conn != stream)
		return (stock->walrcv_receive) (conn, buffer, wait_fd);
	if (handed)
		la_applyqueue_remove(&queue);
	handed = false;
	now = GetCurrentTimestamp();
	note_applied(now);
	if (is_empty() && !receive_next(conn, buffer, wait_fd, &length))
		return length;
	read_ahead();
	if (reply_is_due(now))
	{
		*buffer = request;
		return sizeof(request);
	}
	if (is_wanted())
		la_applyahead_look();
	handed_at = now;
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
	functions.walrcv_send = send_reply;
	functions.walrcv_startstreaming = start_streaming;
	functions.walrcv_endstreaming = end_streaming;
	functions.walrcv_disconnect = disconnect;
	WalReceiverFunctions = &functions;
}

/*
 * la_transaction_function: is this a worker that will apply changes, and has it loaded
 * libpqwalreceiver?
 */
static void
transaction_ends(XactEvent event, SubTransactionId failed)
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
	if (la_minor_allows(LA_ROOM_WRITE))
		la_transaction_register(transaction_ends);
}
