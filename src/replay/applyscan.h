/*
 * applyscan.h
 *	  The order of messages: what one of them says of the following ones.
 *
 * See applyscan.c.
 *
 * src/replay/applyscan.h
 */
#ifndef LA_APPLYSCAN_H
#define LA_APPLYSCAN_H

#include "replay/applymessage.h"
#include "replay/applyqueue.h"

#define LA_APPLY_NOWHERE	UINT64_MAX

typedef enum LaApplyNote
{
	LA_APPLY_NOT_PASSED,		/* wait until it is handed over */
	LA_APPLY_NOTED,
	LA_APPLY_NOTED_OTHER		/* a table is described otherwise than before */
} LaApplyNote;

extern bool la_applyscan_is_change(char action);
extern LaApplyNote la_applyscan_note(char action, LaApplyReader body, bool is_free,
									 bool *in_stream);
extern uint64_t la_applyscan_next_change(const LaApplyQueue *queue, bool in_stream);

#endif							/* LA_APPLYSCAN_H */
