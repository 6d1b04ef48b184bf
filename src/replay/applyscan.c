/*
 * applyscan.c
 *	  The order of messages: what one of them says of the following ones.
 *
 * Messages are scanned ahead of their turn, and in their order.  The description of a table holds
 * for the changes behind it.  One that differs from what is known, and a TRUNCATE, are passed
 * only when no change before them is known ahead.
 *
 * Between two messages there may be a part of a streamed transaction, which need not be committed.
 * What that describes is only used where nothing else is known of a table: a worker that sends
 * changes to another one gets no other description.
 *
 * src/replay/applyscan.c
 */
#include "postgres.h"

#include "replay/replay_int.h"

#define MAX_SKIPPED		32		/* messages before the next change */

bool
la_applyscan_is_change(char action)
{
	return action == LA_APPLY_INSERT || action == LA_APPLY_UPDATE || action == LA_APPLY_DELETE;
}

static LaApplyNote
note_relation(LaApplyReader body, bool is_free, bool in_stream)
{
	LaApplyRelation relation;
	bool		is_new;

	if (!la_applymessage_relation(body, in_stream, &relation))
		return LA_APPLY_NOTED;
	is_new = la_applyremote_find(relation.id) == NULL;
	if ((in_stream && !is_new) || la_applyremote_is_known(&relation))
		return LA_APPLY_NOTED;
	if (!is_free)
		return LA_APPLY_NOT_PASSED;
	la_applyremote_note(&relation);
	return is_new ? LA_APPLY_NOTED : LA_APPLY_NOTED_OTHER;
}

/* Note what a message says of the following ones.  is_free: no change before it is known ahead. */
LaApplyNote
la_applyscan_note(char action, LaApplyReader body, bool is_free, bool *in_stream)
{
	switch (action)
	{
		case LA_APPLY_STREAM_START:
			*in_stream = true;
			break;
		case LA_APPLY_STREAM_STOP:
			*in_stream = false;
			break;
		case LA_APPLY_TRUNCATE:
			if (!is_free && !*in_stream)
				return LA_APPLY_NOT_PASSED;
			break;
		case LA_APPLY_RELATION:
			return note_relation(body, is_free, *in_stream);
	}
	return LA_APPLY_NOTED;
}

/* The position of the next change, if it is among the first messages. */
uint64_t
la_applyscan_next_change(const LaApplyQueue *queue, bool in_stream)
{
	uint64_t	position = queue->head;

	for (int i = 0; i < MAX_SKIPPED && !in_stream; i++)
	{
		LaApplyReader body;
		size_t		length;
		const char *data = la_applyqueue_at(queue, position, &length);
		char		action;

		if (data == NULL)
			break;
		action = la_applymessage_action(data, length, &body);
		if (action == LA_APPLY_STREAM_START || action == LA_APPLY_TRUNCATE)
			break;
		if (la_applyscan_is_change(action))
			return position;
		position = la_applyqueue_after(queue, position);
	}
	return LA_APPLY_NOWHERE;
}
