/*
 * applymessage.c
 *	  Messages of logical replication, taken apart: pure functions, of plain C.
 *
 * A message of the stream is a 'w' with positions in the publisher's WAL, behind which is a message
 * of the logical replication protocol, or something else: a keepalive, say.
 *
 *		w | start, end, time | action | body
 *		k | end, time | is a reply wanted?
 *
 * The server takes each message apart in its turn, and raises an error for one that is damaged.
 * Here it is looked at before that.  So a message is taken apart as a whole before anything is
 * made of it: one that is too short, too long, or of a kind that is not known, is refused, and
 * nothing is read behind its end.  What a change refers to is in the message itself, which has to
 * stay as long.
 *
 * src/replay/applymessage.c
 */
#include "replay/applymessage.h"

#include <string.h>

#define WAL_HEADER (3 * sizeof(uint64_t))

static const char *
take(LaApplyReader *r, size_t length)
{
	const char *data = r->data;

	if (r->failed || length > (size_t) (r->end - r->data))
	{
		r->failed = true;
		return NULL;
	}
	r->data += length;
	return data;
}

/* A number of 1, 2 or 4 bytes, in network order. */
static uint32_t
take_number(LaApplyReader *r, size_t length)
{
	const unsigned char *data = (const unsigned char *) take(r, length);
	uint32_t	number = 0;

	for (size_t i = 0; data != NULL && i < length; i++)
		number = number << 8 | data[i];
	return number;
}

/* A string, which ends with a zero byte. */
static const char *
take_string(LaApplyReader *r)
{
	const char *zero = r->failed ? NULL : memchr(r->data, 0, (size_t) (r->end - r->data));

	if (zero == NULL)
	{
		r->failed = true;
		return "";
	}
	return take(r, (size_t) (zero - r->data) + 1);
}

/* Is it a keepalive that asks for a reply? */
bool
la_applymessage_asks(const char *data, size_t length)
{
	return length >= LA_APPLY_KEEPALIVE && data[0] == 'k' && data[LA_APPLY_KEEPALIVE - 1] != 0;
}

/*
 * Make a keepalive that asks for a reply, with the time at which the publisher has sent this
 * message, and without a position.  Returns false if the message has no time.
 */
bool
la_applymessage_request(const char *data, size_t length, char *request)
{
	const size_t word = sizeof(uint64_t);

	if (length < 1 + WAL_HEADER || data[0] != 'w')
		return false;
	memset(request, 0, LA_APPLY_KEEPALIVE);
	request[0] = 'k';
	memcpy(request + 1 + word, data + 1 + 2 * word, word);
	request[LA_APPLY_KEEPALIVE - 1] = 1;
	return true;
}

/*
 * The action of a message of the stream, and what is behind it; 0 if it is none of the logical
 * replication protocol.
 */
char
la_applymessage_action(const char *data, size_t length, LaApplyReader *body)
{
	LaApplyReader r = {data, data + length, false};
	char		kind = (char) take_number(&r, 1);

	(void) take(&r, WAL_HEADER);
	*body = r;
	if (r.failed || kind != 'w')
		return 0;
	kind = (char) take_number(&r, 1);
	*body = r;
	return r.failed ? 0 : kind;
}

static void
take_column(LaApplyReader *r, LaApplyColumn *column)
{
	column->kind = (char) take_number(r, 1);
	column->data = NULL;
	column->length = 0;
	switch (column->kind)
	{
		case 'n':
		case 'u':
			break;
		case 't':
		case 'b':
			column->length = take_number(r, 4);
			column->data = take(r, column->length);
			break;
		default:
			r->failed = true;
	}
}

static void
take_row(LaApplyReader *r, LaApplyTuple *tuple)
{
	LaApplyColumn column;

	tuple->ncolumns = (int) take_number(r, 2);
	if (tuple->ncolumns > LA_APPLY_MAX_COLUMNS)
		r->failed = true;
	tuple->data = r->data;
	for (int i = 0; i < tuple->ncolumns && !r->failed; i++)
		take_column(r, &column);
	tuple->end = r->data;
}

/*
 * Take a change apart that is not part of a streamed transaction.  Returns false if it is not
 * one.
 */
bool
la_applymessage_change(char action, LaApplyReader body, LaApplyChange *change)
{
	char		kind;

	memset(change, 0, sizeof(*change));
	change->action = action;
	change->relation = take_number(&body, 4);
	kind = (char) take_number(&body, 1);
	if (action != LA_APPLY_INSERT && (kind == 'K' || kind == 'O'))
	{
		change->old_kind = kind;
		take_row(&body, &change->old_row);
		kind = action == LA_APPLY_UPDATE ? (char) take_number(&body, 1) : 'N';
	}
	else if (action == LA_APPLY_DELETE)
		return false;
	if (kind != 'N')
		return false;
	if (action != LA_APPLY_DELETE)
		take_row(&body, &change->new_row);
	return !body.failed && body.data == body.end;
}

static const char *
take_name(LaApplyReader *r, bool *is_key)
{
	const char *name;

	*is_key = (take_number(r, 1) & 1) != 0;
	name = take_string(r);
	(void) take_number(r, 4);	/* the type, as the publisher numbers it */
	(void) take_number(r, 4);	/* its modifier */
	return name;
}

/* streamed: the message is part of a streamed transaction, whose number comes first. */
bool
la_applymessage_relation(LaApplyReader body, bool streamed, LaApplyRelation *relation)
{
	bool		is_key;

	if (streamed)
		(void) take_number(&body, 4);
	relation->id = take_number(&body, 4);
	relation->schema = take_string(&body);
	if (relation->schema[0] == '\0')
		relation->schema = "pg_catalog";
	relation->name = take_string(&body);
	relation->identity = (char) take_number(&body, 1);
	relation->ncolumns = (int) take_number(&body, 2);
	relation->columns = body.data;
	if (relation->ncolumns > LA_APPLY_MAX_COLUMNS)
		return false;
	for (int i = 0; i < relation->ncolumns && !body.failed; i++)
		(void) take_name(&body, &is_key);
	relation->end = body.data;
	return !body.failed && body.data == body.end;
}

/* The next column of a row; false behind the last one. */
bool
la_applymessage_next_column(LaApplyTuple *tuple, LaApplyColumn *column)
{
	LaApplyReader r = {tuple->data, tuple->end, false};

	if (tuple->ncolumns == 0)
		return false;
	take_column(&r, column);
	tuple->data = r.data;
	tuple->ncolumns--;
	return !r.failed;
}

/* The name of the table's next column; NULL behind the last one. */
const char *
la_applymessage_next_name(LaApplyRelation *relation, bool *is_key)
{
	LaApplyReader r = {relation->columns, relation->end, false};
	const char *name;

	if (relation->ncolumns == 0)
		return NULL;
	name = take_name(&r, is_key);
	relation->columns = r.data;
	relation->ncolumns--;
	return r.failed ? NULL : name;
}
