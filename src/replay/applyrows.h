/*
 * applyrows.h
 *	  Changes in the queue, as rows of rows/ahead.c, and the tables that they are for.
 *
 * See applyrows.c.
 *
 * src/replay/applyrows.h
 */
#ifndef LA_APPLYROWS_H
#define LA_APPLYROWS_H

#include "replay/applymessage.h"
#include "replay/applyqueue.h"
#include "replay/applystats.h"
#include "rows/ahead.h"

extern void la_applyrows_begin(const LaApplyQueue *queue);
extern void la_applyrows_forget(void);
extern void la_applyrows_publish(void);
extern LaAhead *la_applyrows_ahead(void);
extern bool la_applyrows_are_outdated(void);
extern bool la_applyrows_were_locked(void);
extern void la_applyrows_pass(char action, LaApplyReader message, bool *in_stream);
extern bool la_applyrows_have_turn(uint64 position);
extern void la_applyrows_catch_up(bool in_stream);
extern LaApplyReason la_applyrows_begin_with(const LaApplyChange *m);
extern bool la_applyrows_open(void);
extern void la_applyrows_take_fewer(void);
extern void la_applyrows_take_more(void);
extern void la_applyrows_close(void);
extern bool la_applyrows_exist(void);
extern uint64 la_applyrows_first(void);
extern void la_applyrows_turn(void);
extern void la_applyrows_clear(void);

#endif							/* LA_APPLYROWS_H */
