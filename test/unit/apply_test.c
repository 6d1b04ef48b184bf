/*
 * apply_test.c
 *	  Messages of logical replication, whole and damaged, the queue that they wait in, and its length.
 *
 * test/unit/apply_test.c
 */
#include <stdlib.h>
#include <string.h>

#include "replay/applymessage.h"
#include "replay/applypace.h"
#include "replay/applyqueue.h"
#include "simulation.h"

typedef struct Message
{
	char		data[512];
	size_t		length;
} Message;

static void
put(Message *m, const char *data, size_t length)
{
	memcpy(m->data + m->length, data, length);
	m->length += length;
}

static void
put_number(Message *m, unsigned number, int length)
{
	while (length-- > 0)
		m->data[m->length++] = (char) (number >> (8 * length));
}

static Message
begin(char action)
{
	Message		m = {{0}, 0};

	put(&m, "w", 1);
	put(&m, "123456781234567812345678", 24);
	put(&m, &action, 1);
	return m;
}

/* A row of four columns: text, null, unchanged, binary. */
static void
put_row(Message *m)
{
	put_number(m, 4, 2);
	put(m, "t", 1);
	put_number(m, 5, 4);
	put(m, "hello", 5);
	put(m, "nub", 3);
	put_number(m, 2, 4);
	put(m, "\0\1", 2);
}

static Message
insert(void)
{
	Message		m = begin('I');

	put_number(&m, 77, 4);
	put(&m, "N", 1);
	put_row(&m);
	return m;
}

static Message
update(char old_kind)
{
	Message		m = begin('U');

	put_number(&m, 77, 4);
	if (old_kind != 0)
	{
		put(&m, &old_kind, 1);
		put_row(&m);
	}
	put(&m, "N", 1);
	put_row(&m);
	return m;
}

static Message
delete(char old_kind)
{
	Message		m = begin('D');

	put_number(&m, 77, 4);
	put(&m, &old_kind, 1);
	put_row(&m);
	return m;
}

static Message
relation(bool streamed)
{
	Message		m = begin('R');

	if (streamed)
		put_number(&m, 4711, 4);
	put_number(&m, 77, 4);
	put(&m, "public\0t\0d", 10);
	put_number(&m, 2, 2);
	for (int i = 0; i < 2; i++)
	{
		put(&m, i == 0 ? "\1" : "\0", 1);
		put(&m, i == 0 ? "id\0" : "a\0", i == 0 ? 3 : 2);
		put_number(&m, 23, 4);
		put_number(&m, 0xffffffff, 4);
	}
	return m;
}

/* The message is at the end of memory of its own, so that reading behind it is found. */
static bool
is_understood(const Message *m, size_t length, bool streamed, LaApplyChange *change)
{
	char	   *copy = malloc(length > 0 ? length : 1);
	LaApplyReader body;
	LaApplyRelation r;
	char		action;
	bool		result = false;

	memcpy(copy, m->data, length);
	action = la_applymessage_action(copy, length, &body);
	if (action == 'R')
		result = la_applymessage_relation(body, streamed, &r);
	else if (action == 'I' || action == 'U' || action == 'D')
		result = la_applymessage_change(action, body, change);
	free(copy);
	return result;
}

static void
test_damage(const char *name, Message m, bool streamed)
{
	LaApplyChange change;
	bool		refused = true;

	check(name, is_understood(&m, m.length, streamed, &change));
	for (size_t length = 0; length < m.length; length++)
		refused &= !is_understood(&m, length, streamed, &change);
	check("... is refused if it is too short, wherever it ends", refused);
	m.length++;
	check("... and if it is too long", !is_understood(&m, m.length, streamed, &change));
	m.length--;
	/* any byte may have any value: nothing is read behind the end */
	for (size_t i = 0; i < m.length; i++)
	{
		char		byte = m.data[i];

		for (int value = 0; value < 256; value++)
		{
			m.data[i] = (char) value;
			(void) is_understood(&m, m.length, streamed, &change);
		}
		m.data[i] = byte;
	}
	check("... and with a wrong byte nothing behind it is read", true);
}

static void
test_content(void)
{
	Message		m = update('K');
	LaApplyReader body;
	LaApplyChange change;
	LaApplyColumn c;
	bool		as_sent = true;

	check("an update is one", la_applymessage_action(m.data, m.length, &body) == 'U');
	check("... and is understood", la_applymessage_change('U', body, &change));
	check("... with its table", change.relation == 77 && change.old_kind == 'K');
	as_sent &= la_applymessage_next_column(&change.new_row, &c) && c.kind == 't' && c.length == 5 &&
		memcmp(c.data, "hello", 5) == 0;
	as_sent &= la_applymessage_next_column(&change.new_row, &c) && c.kind == 'n';
	as_sent &= la_applymessage_next_column(&change.new_row, &c) && c.kind == 'u';
	as_sent &= la_applymessage_next_column(&change.new_row, &c) && c.kind == 'b' && c.length == 2;
	check("... and its columns", as_sent && !la_applymessage_next_column(&change.new_row, &c));
}

static void
test_relation(void)
{
	Message		m = relation(false);
	LaApplyReader body;
	LaApplyRelation r;
	bool		is_key;
	const char *name;

	la_applymessage_action(m.data, m.length, &body);
	check("a table is described", la_applymessage_relation(body, false, &r));
	check("... by its name", strcmp(r.schema, "public") == 0 && strcmp(r.name, "t") == 0 &&
		  r.id == 77 && r.identity == 'd' && r.ncolumns == 2);
	name = la_applymessage_next_name(&r, &is_key);
	check("... and a column of its key", name != NULL && strcmp(name, "id") == 0 && is_key);
	name = la_applymessage_next_name(&r, &is_key);
	check("... and another", name != NULL && strcmp(name, "a") == 0 && !is_key);
	check("... and no more", la_applymessage_next_name(&r, &is_key) == NULL);
}

static void
test_others(void)
{
	LaApplyReader body;
	LaApplyChange change;
	Message		m = begin('I');

	check("a keepalive has no action", la_applymessage_action("k1234567812345678x", 18, &body) == 0);
	check("nothing has none", la_applymessage_action("", 0, &body) == 0);
	check("too short a header has none", la_applymessage_action("w1234", 5, &body) == 0);
	put_number(&m, 77, 4);
	put(&m, "O", 1);
	put_row(&m);
	check("an insert of an old row is none", !is_understood(&m, m.length, false, &change));
	m = begin('D');
	put_number(&m, 77, 4);
	put(&m, "N", 1);
	put_row(&m);
	check("nor is a delete of a new one", !is_understood(&m, m.length, false, &change));
}

static void
test_keepalives(void)
{
	char		request[LA_APPLY_KEEPALIVE];
	Message		m = insert();
	bool		asks = false;

	check("a keepalive may ask for a reply", la_applymessage_asks("k1234567812345678\1", 18));
	check("... or not", !la_applymessage_asks("k1234567812345678\0", 18));
	check("... and does not if it is too short", !la_applymessage_asks("k1234567812345678\1", 17) &&
		  !la_applymessage_asks("", 0));
	check("a change asks for none", !la_applymessage_asks(m.data, m.length));
	check("a request is made of a change", la_applymessage_request(m.data, m.length, request));
	asks = la_applymessage_asks(request, sizeof(request));
	check("... which asks for a reply", asks);
	check("... tells of no position", memcmp(request + 1, "\0\0\0\0\0\0\0\0", 8) == 0);
	check("... and has its time", memcmp(request + 9, m.data + 17, 8) == 0);
	check("none is made of a keepalive",
		  !la_applymessage_request("k1234567812345678\1", 18, request));
	check("... nor of what is too short", !la_applymessage_request(m.data, 24, request));
}

/* ---- how many messages are received ahead ---------------------------------------------- */

/* Messages that take so long. */
static void
note(LaApplyPace *pace, int n, int64_t us)
{
	while (n-- > 0)
		la_applypace_note(pace, us);
}

static void
test_pace(void)
{
	LaApplyPace pace;
	bool		slowly = true;

	la_applypace_init(&pace);
	check("few messages are received ahead at first", pace.limit <= 16);
	for (int n = 1; n < 20000; n++)
	{
		note(&pace, 1, 20);
		slowly &= pace.limit <= 16 || pace.limit <= 2 * (uint64_t) n;
	}
	check("... and then as many as have been applied", slowly);
	check("fast ones are up to a second's", pace.limit > 8192 && pace.limit <= 50000);
	note(&pace, 4, 30000);
	check("after four slow messages the queue is for three seconds at most", pace.limit * 30 <= 3000);
	note(&pace, 30, 30000);
	check("... after some more, for a second", pace.limit * 30 <= 1100);
	note(&pace, 3, 5000000);
	check("slower ones are not received ahead", pace.limit == 1);
	note(&pace, 100, 20);
	check("it recovers slowly", pace.limit <= 200);
	note(&pace, 20000, 20);
	check("... but does", pace.limit > 8192);
	la_applypace_init(&pace);
	note(&pace, 100000, 0);
	check("messages that take no time are counted", pace.limit <= 65536 && pace.limit > 8192);
}

/* No order of fast and slow messages allows more than a second of what is known. */
static void
test_mixed_pace(unsigned seed)
{
	LaApplyPace pace;
	bool		bounded = true;

	srand(seed);
	la_applypace_init(&pace);
	for (int n = 0; n < 50000; n++)
	{
		int			kind = rand() % 100;

		note(&pace, 1, kind == 0 ? rand() % 100000 : kind < 10 ? rand() % 2000 : rand() % 50);
		bounded &= pace.limit == 1 || (double) pace.limit * pace.us <= 1000001.0;
	}
	check("the limit is a second of what messages may take", bounded);
}

/* ---- the queue ------------------------------------------------------------------- */

#define SLOTS 4096

/* Random messages through a queue of this size, against an array. */
static void
test_queue(size_t size, size_t longest, unsigned seed)
{
	char	   *memory = malloc(size);
	char	   *text = malloc(longest + 1);
	LaApplyQueue q;
	size_t		lengths[SLOTS];
	uint64_t	first = 0;
	uint64_t	last = 0;
	bool		same = true;
	bool		used = false;

	srand(seed);
	la_applyqueue_init(&q, memory, size);
	for (int step = 0; step < 20000; step++)
	{
		size_t		length = (size_t) rand() % (longest + 1);

		if (rand() % 2 == 0 && last - first < SLOTS)
		{
			memset(text, (int) (last % 251), length);
			if (la_applyqueue_append(&q, text, length))
				lengths[last++ % SLOTS] = length;
			else
				used = true;
		}
		else if (first < last)
		{
			uint64_t	position = q.head;

			/* all of them, in their order */
			for (uint64_t n = first; n < last; n++)
			{
				const char *data = la_applyqueue_at(&q, position, &length);

				same &= data != NULL && length == lengths[n % SLOTS] && data[length] == '\0' &&
					(length == 0 || ((unsigned char) data[0] == n % 251 &&
									 (unsigned char) data[length - 1] == n % 251));
				if (!same)
					break;
				position = la_applyqueue_after(&q, position);
			}
			same &= la_applyqueue_at(&q, position, &length) == NULL;
			la_applyqueue_remove(&q);
			first++;
		}
		same &= q.count == last - first && q.head <= q.tail && q.tail - q.head <= q.size;
	}
	check("messages leave a queue as they came", same);
	check("... which has been full", used);
	free(memory);
	free(text);
}

int
main(void)
{
	test_content();
	test_relation();
	test_others();
	test_keepalives();
	test_pace();
	for (unsigned seed = 1; seed <= 3; seed++)
		test_mixed_pace(seed);
	test_damage("an insert", insert(), false);
	test_damage("an update without an old row", update(0), false);
	test_damage("an update with an old key", update('K'), false);
	test_damage("an update with all of an old row", update('O'), false);
	test_damage("a delete by key", delete('K'), false);
	test_damage("a delete by all columns", delete('O'), false);
	test_damage("a description", relation(false), false);
	test_damage("a description in a streamed transaction", relation(true), true);
	for (unsigned seed = 1; seed <= 5; seed++)
	{
		test_queue(1000, 40, seed);
		test_queue(4096, 300, seed);
		test_queue(65536, 20000, seed);
	}
	return report();
}
