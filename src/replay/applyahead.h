/*
 * applyahead.h
 *	  What the changes in the queue will need, read ahead of their turn.
 *
 * See applyahead.c.
 *
 * src/replay/applyahead.h
 */
#ifndef LA_APPLYAHEAD_H
#define LA_APPLYAHEAD_H

#include "replay/applyqueue.h"

extern void la_applyahead_begin(const LaApplyQueue *queue);
extern void la_applyahead_end(void);
extern void la_applyahead_stop(void);
extern void la_applyahead_pass(const char *data, size_t length);
extern bool la_applyahead_wants(void);
extern void la_applyahead_look(void);

#endif							/* LA_APPLYAHEAD_H */
